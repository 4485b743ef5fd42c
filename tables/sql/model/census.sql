-- Sums over the tensors of a model: part of `shape`.
--
--   factored_elements = Σ over tensors rows + columns (of a vector: all of it);  small_elements: tensors below 4096
--       elements
--   hidden_input_sum = Σ in over linear layers that read the hidden state;  linear_output_sum = Σ out;  widest_input =
--       max in
--   alternate_output_sum = Σ out of the first, third, fifth and seventh product of a layer
--   per_layer_input_sum = Σ over layers of the width that each layer reads of an embedding of its own
--   encoder_*_sum = Σ in over projections that read the tokens of an encoder: its own, and the keys and values of
--       cross-attention
--   projected_* = Σ elements, Σ longer side, Σ shorter side: what GaLore and APOLLO keep in a low rank
--
-- Units: elements. Source: arithmetic over tensor.
-- Not covered: routed experts in the projected sums (a fused tensor of three axes is no matrix to these optimizers).

CREATE OR REPLACE TEMP TABLE census AS
SELECT
    model_id,
    coalesce(sum(element_count) FILTER (operator IN ('linear', 'linear-subclass') AND tensor_class <> 'head'
        AND component IN ('text', 'encoder', 'decoder')), 0)::BIGINT AS linear_elements,
    -- of these, what bitsandbytes leaves as it is
    coalesce(sum(element_count) FILTER (operator = 'linear-subclass' AND tensor_class <> 'head'
        AND component IN ('text', 'encoder', 'decoder')), 0)::BIGINT AS own_linear_elements,
    coalesce(sum(element_count) FILTER (operator = 'expert'), 0)::BIGINT AS expert_elements,
    coalesce(sum(element_count) FILTER (tensor_class = 'head' AND operator LIKE 'linear%'), 0)::BIGINT AS head_elements,
    -- what a head gives for a token: a number for each word, or for each class
    coalesce(max(out_features) FILTER (tensor_class = 'head' AND operator LIKE 'linear%'), 0)::BIGINT AS head_outputs,
    coalesce(max(element_count) FILTER (role = 'embedding'), 0)::BIGINT AS embedding_elements,
    -- what optimizers tell apart
    sum(layer_count * per_layer_count * (out_features + coalesce(in_features, 0)))::BIGINT AS factored_elements,
    coalesce(sum(element_count) FILTER (in_features IS NOT NULL AND tensor_class NOT IN ('embedding', 'head')),
        0)::BIGINT
        AS matrix_elements,
    coalesce(sum(element_count) FILTER (out_features * coalesce(in_features, 1)
        < constants.small_optimizer_elements), 0)::BIGINT AS small_elements,
    coalesce(max(in_features * out_features) FILTER (operator = 'linear' AND tensor_class <> 'head'), 0)::BIGINT
        AS largest_linear_elements,
    -- (a fused tensor of experts is one parameter to the optimizer)
    max(element_count // layer_count // iif(operator = 'expert', 1, per_layer_count))::BIGINT
        AS largest_parameter_elements,
    -- of latent attention: what makes the latents (and an indexer), and what expands that of keys and values
    -- (and compressors of keys, which are in 16 bits whatever the rest is in)
    coalesce(sum(element_count) FILTER (role IN ('mla_q_a', 'mla_kv_a') OR starts_with(role, 'indexer')
        AND role <> 'indexer_compressor'), 0)::BIGINT
        AS latent_input_elements,
    coalesce(sum(element_count) FILTER (role IN ('compressor', 'indexer_compressor')), 0)::BIGINT
        AS compressor_elements,
    coalesce(sum(element_count) FILTER (role = 'mla_kv_b'), 0)::BIGINT AS latent_output_elements,
    coalesce(bool_or(role = 'position_embedding'), false) AS has_position_embedding,
    coalesce(bool_or(role = 'shared_expert_gate'), false) AS has_shared_expert_gate,
    coalesce(bool_or(role = 'head_transform'), false) AS has_head_transform,
    coalesce(bool_or(role = 'router_scale'), false) AS has_router_scale,
    coalesce(bool_or(role = 'attention_qkv'), false) AS has_fused_qkv,
    -- gate and up projection in one matrix, whose output stays whole while its halves are multiplied
    coalesce(bool_or(role = 'ffn_gate_up' AND component IN ('text', 'decoder')), false) AS has_fused_gate,
    -- layers beside the routed experts that have the names of their projections
    coalesce(bool_or(role IN ('ffn_gate', 'ffn_up', 'ffn_down', 'shared_gate', 'shared_up', 'shared_down')
        AND component = 'text'), false) AS names_experts,
    -- the rotary part that the latent's keys get after they are expanded
    coalesce(any_value(out_features) FILTER (role = 'mla_kv_a') - any_value(in_features) FILTER (role = 'mla_kv_b'),
        0)::BIGINT
        AS rotary_width,
    -- (of the text, where there is one: a tower's positions do not limit it)
    coalesce(bool_or(role = 'position_embedding' AND component NOT IN ('vision', 'audio'))
        OR bool_or(role = 'position_embedding') AND NOT bool_or(component = 'text'), false) AS has_learned_positions,
    -- absolute or relative
    coalesce(max(out_features) FILTER (role = 'position_embedding' AND component = 'text'), 0)::BIGINT AS position_rows,
    coalesce(sum(layer_count * per_layer_count * in_features) FILTER (role IN ('attention_q', 'attention_k',
        'attention_v', 'attention_qkv', 'mla_q_a', 'mla_kv_a', 'ffn_gate', 'ffn_up', 'ffn_gate_up', 'mamba_in',
        'delta_qkvz', 'delta_ba', 'delta_qkv', 'delta_z', 'delta_b', 'delta_a', 'delta_q', 'delta_k', 'delta_v',
        'convolution_in') AND operator LIKE 'linear%'), 0)::BIGINT AS hidden_input_sum
FROM tensor CROSS JOIN constants GROUP BY model_id;

CREATE OR REPLACE TEMP TABLE linear_shape AS
WITH linear AS (
    SELECT
        *, layer_count * per_layer_count AS matrices, role IN ('attention_q', 'attention_v', 'attention_qkv')
            AS is_query_value,
        operator LIKE 'linear%' AND component IN ('text', 'encoder', 'decoder')
            AND tensor_class IN ('attention', 'feed-forward', 'shared-expert', 'recurrent') AS is_linear,
        role IN ('attention_q', 'attention_k', 'attention_v', 'ffn_gate', 'ffn_up') AS is_hidden_input
    FROM tensor
)
SELECT
    model_id,
    coalesce(sum(matrices * out_features) FILTER (is_linear), 0)::BIGINT AS linear_output_sum,
    -- (in the order query, key, value, output, gate, up, down; of layers of these products alone, without biases)
    iif(list(role ORDER BY role) FILTER (is_linear OR operator = 'expert') = ['attention_k', 'attention_o',
            'attention_q', 'attention_v', 'ffn_down', 'ffn_gate', 'ffn_up']
            AND max(per_layer_count) FILTER (is_linear) = 1 AND NOT bool_or(role = 'bias' AND component = 'text'),
        sum(matrices * out_features) FILTER (is_linear AND role IN ('attention_q', 'attention_v', 'ffn_gate',
            'ffn_down')), NULL)::BIGINT AS alternate_output_sum,
    coalesce(sum(matrices * out_features) FILTER (role = 'per_layer_gate'), 0)::BIGINT AS per_layer_input_sum,
    coalesce(sum(matrices * in_features) FILTER (is_linear AND component = 'encoder' AND is_hidden_input), 0)::BIGINT
        AS encoder_hidden_input_sum,
    coalesce(sum(matrices * in_features) FILTER (is_linear AND component = 'encoder' AND is_query_value), 0)::BIGINT
        AS encoder_query_value_sum,
    coalesce(sum(matrices * in_features)
        FILTER (is_linear AND component = 'encoder' AND tensor_class = 'attention'), 0)::BIGINT
            AS encoder_attention_sum,
    coalesce(sum(matrices * in_features) FILTER (is_linear AND component = 'encoder'), 0)::BIGINT AS encoder_linear_sum,
    coalesce(max(in_features) FILTER (is_linear), 0)::BIGINT AS widest_input,
    coalesce(sum(element_count) FILTER (is_linear), 0)::BIGINT AS projected_elements,
    coalesce(sum(matrices * greatest(in_features, out_features)) FILTER (is_linear), 0)::BIGINT AS projected_longer_sum,
    coalesce(sum(matrices * least(in_features, out_features)) FILTER (is_linear), 0)::BIGINT AS projected_shorter_sum
FROM linear GROUP BY model_id;
