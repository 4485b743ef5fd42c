-- What a server adapts of a model where it is started for adapters, and what tensor parallelism divides of it: part of
-- `shape`.
--
--   served_adapter   the row of served_adapter for the model's type, and of all its adapted matrices, for each rank of
--                    an adapter:
--          whole_elements     Σ what every GPU holds: inputs of what is divided by columns, outputs of what is divided
--              by rows, both sides of routers, embedding and head
--          divided_elements   Σ the other sides;  key_elements: those of keys and values, which follow their heads
--          joined_elements    Σ outputs of queries, keys and values that are one matrix
--
-- Units: elements per rank of one adapter. Source: served_adapter.csv (classes as they were read); arithmetic over
--   tensor. A gate and an up projection that the class holds apart have an adapter each, also those of routed experts.
-- Not covered: models with linear layers of other roles, which have no row.

CREATE OR REPLACE TEMP TABLE served_adapter_shape AS
WITH matrix AS (
    SELECT
        tensor.model_id, role, operator, in_features AS inputs, out_features AS outputs,
        tensor.layer_count * per_layer_count AS matrices, model.hidden_size,
        model.vocab_size, model.vocab_size + model.hidden_size AS table_sides, rule,
        role IN ('attention_o', 'ffn_down', 'expert_down') AS is_by_rows,
        role IN ('attention_q', 'ffn_gate', 'ffn_up', 'ffn_gate_up', 'expert_gate', 'expert_up', 'expert_gate_up')
            AS is_by_columns,
        role IN ('attention_k', 'attention_v') AS is_of_keys, role = 'attention_qkv' AS is_joined
    FROM tensor JOIN model USING (model_id)
    JOIN (SELECT served_adapter AS rule FROM served_adapter) AS served
        ON list_contains(string_split(rule.model_types, ' '), model.model_type)
),
placed AS (
    SELECT
        *, matrices * CASE
            WHEN is_by_rows THEN outputs
            WHEN role = 'expert_gate_up' THEN 2 * inputs
            WHEN is_by_columns OR is_of_keys OR is_joined THEN inputs
            WHEN role = 'router' THEN hidden_size + coalesce(outputs, 0) // iif(inputs IS NULL, hidden_size, 1)
            ELSE 0
        END AS whole,
        matrices * CASE WHEN is_by_rows THEN inputs WHEN is_by_columns THEN outputs ELSE 0 END AS divided
    FROM matrix
)
SELECT
    model_id, {
        'engine_id': any_value(rule.engine_id), 'min_version': any_value(rule.min_version),
        'holds_for': any_value(rule.holds_for), 'has_head': any_value(rule.has_head),
        'has_experts': bool_or(operator = 'expert'),
        'is_vocab_refused': any_value(rule.has_head AND vocab_size > constants.vllm_lora_most_vocab),
        'whole_elements': (sum(whole) + any_value(iif(rule.has_embedding, table_sides, 0))
            + any_value(iif(rule.has_head, table_sides, 0)))::BIGINT,
        'divided_elements': sum(divided)::BIGINT,
        'key_elements': sum(iif(is_of_keys, matrices * outputs, 0))::BIGINT,
        'joined_elements': sum(iif(is_joined, matrices * outputs, 0))::BIGINT
    } AS served_adapter
FROM placed CROSS JOIN constants
GROUP BY model_id
-- (an embedding or a head of another model's width has sides of its own)
HAVING NOT bool_or((operator LIKE 'linear%' OR operator = 'expert') AND NOT is_by_rows AND NOT is_by_columns
    AND NOT is_of_keys AND NOT is_joined AND role <> 'head')
    AND bool_and(role NOT IN ('embedding', 'head') OR inputs + outputs = table_sides);
