-- Sums over linear layers that some recipes of training need, added to `shape`.
--
--   lora_query_value_* = Σ over projections of queries and values (or the one matrix that holds them) of in + out, in, 1
--   lora_routed_elements = Σ over routed experts' matrices (in + out), once for a fused gate and up (peft's target_parameters)
--   linear_output_sum = Σ out; widest_input = max in
--   per_layer_input_sum = Σ over layers of the width that each layer reads of an embedding of its own
--   encoder_*_sum = Σ in over projections that read the tokens of an encoder: its own, and the keys and values of cross-attention
--   inner_norm_sum = Σ over layers of norms as wide as a feed-forward block, which stand inside it before its last projection
--   projected_* = Σ elements, Σ longer side, Σ shorter side: what GaLore and APOLLO keep in a low rank
--
-- Units: elements; the lora columns per rank. Source: arithmetic over tensor.
-- Not covered: routed experts in the projected sums (a fused tensor of three axes is no matrix to these optimizers).

CREATE OR REPLACE TEMP TABLE recipe_sum AS
WITH linear AS (
    SELECT
        tensor.*, tensor.layer_count * per_layer_count AS matrices,
        operator LIKE 'linear%' AND component IN ('text', 'encoder', 'decoder')
            AND tensor_class IN ('attention', 'feed-forward', 'shared-expert', 'recurrent') AS is_linear,
        role IN ('attention_q', 'attention_v', 'attention_qkv') AS is_query_value,
        role = 'norm' AND tensor.layer_count > 1 AND component = 'text' AND out_features = shape.gated_max
            AND out_features > shape.hidden_size AND out_features > shape.query_max AS is_inner_norm
    FROM tensor JOIN shape USING (model_id)
)
SELECT
    model_id,
    coalesce(sum(matrices * (in_features + out_features)) FILTER (is_linear AND is_query_value), 0)::BIGINT AS lora_query_value_elements,
    coalesce(sum(matrices * in_features) FILTER (is_linear AND is_query_value), 0)::BIGINT AS lora_query_value_input_sum,
    coalesce(sum(matrices) FILTER (is_linear AND is_query_value), 0)::BIGINT AS lora_query_value_module_count,
    coalesce(sum(matrices * (in_features + out_features)) FILTER (operator = 'expert'), 0)::BIGINT
        AS lora_routed_elements,
    coalesce(sum(matrices * out_features) FILTER (is_linear), 0)::BIGINT AS linear_output_sum,
    coalesce(sum(matrices * out_features) FILTER (role = 'per_layer_gate'), 0)::BIGINT AS per_layer_input_sum,
    coalesce(sum(matrices * in_features) FILTER (is_linear AND component = 'encoder' AND role IN ('attention_q', 'attention_k',
        'attention_v', 'ffn_gate', 'ffn_up')), 0)::BIGINT AS encoder_hidden_input_sum,
    coalesce(sum(matrices * in_features) FILTER (is_linear AND component = 'encoder' AND is_query_value), 0)::BIGINT AS encoder_query_value_sum,
    coalesce(sum(matrices * in_features) FILTER (is_linear AND component = 'encoder' AND tensor_class = 'attention'), 0)::BIGINT
        AS encoder_attention_sum,
    coalesce(sum(matrices * in_features) FILTER (is_linear AND component = 'encoder'), 0)::BIGINT AS encoder_linear_sum,
    coalesce(sum(matrices * out_features) FILTER (is_inner_norm), 0)::BIGINT AS inner_norm_sum,
    coalesce(bool_or(role = 'router_scale'), false) AS has_router_scale,
    coalesce(max(in_features) FILTER (is_linear), 0)::BIGINT AS widest_input,
    coalesce(sum(element_count) FILTER (is_linear), 0)::BIGINT AS projected_elements,
    coalesce(sum(matrices * greatest(in_features, out_features)) FILTER (is_linear), 0)::BIGINT AS projected_longer_sum,
    coalesce(sum(matrices * least(in_features, out_features)) FILTER (is_linear), 0)::BIGINT AS projected_shorter_sum
FROM linear GROUP BY model_id;

CREATE OR REPLACE TABLE shape AS FROM shape JOIN recipe_sum USING (model_id);
