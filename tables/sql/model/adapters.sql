-- The layers that adapters of each target set read and write: part of `shape`.
--
--   lora_<set>_elements = Σ over adapted layers in + out;  lora_<set>_input_sum = Σ in;  lora_<set>_module_count = Σ 1
--   lora_routed_elements = Σ over routed experts' matrices (in + out), once for a fused gate and up (peft's
--       target_parameters)
--
-- Units: elements per rank, layers. Source: arithmetic over tensor; implementation.csv for mixers whose output peft
-- leaves as it is.
-- Not covered: adapters of embeddings and biases.

CREATE OR REPLACE TEMP TABLE adapter_shape AS
WITH matrix AS (
    SELECT
        tensor.*, model.hidden_size, tensor.layer_count * per_layer_count AS matrices, operator LIKE 'linear%'
            AS is_linear,
        component IN ('text', 'encoder', 'decoder') AS is_of_text,
        role IN ('attention_q', 'attention_v', 'attention_qkv') AS is_query_value,
        role <> 'mamba_out' OR coalesce(are_mixer_outputs_adapted, true) AS is_adapted,
        -- linear layers that peft adapts beside fused experts
        operator LIKE 'linear%' AND (tensor_class = 'recurrent' OR role = 'shared_expert_gate') AS is_beside_experts
    FROM tensor JOIN model USING (model_id) LEFT JOIN implementation USING (model_type)
),
target AS (
    SELECT
        *, is_linear AND tensor_class = 'attention' AND is_of_text AS is_attention,
        is_linear AND tensor_class IN ('attention', 'feed-forward', 'shared-expert', 'recurrent', 'other')
            AND is_adapted AND is_of_text
            AS is_any,
        is_linear AND is_of_text AND tensor_class IN ('attention', 'feed-forward', 'shared-expert', 'recurrent')
            AND is_query_value AS is_of_queries
    FROM matrix
)
SELECT
    model_id,
    coalesce(sum(matrices * (in_features + out_features)) FILTER (is_attention), 0)::BIGINT AS lora_attention_elements,
    coalesce(sum(matrices * in_features) FILTER (is_attention), 0)::BIGINT AS lora_attention_input_sum,
    coalesce(sum(matrices) FILTER (is_attention), 0)::BIGINT AS lora_attention_module_count,
    coalesce(sum(matrices * (in_features + out_features)) FILTER (is_of_queries), 0)::BIGINT
        AS lora_query_value_elements,
    coalesce(sum(matrices * in_features) FILTER (is_of_queries), 0)::BIGINT AS lora_query_value_input_sum,
    coalesce(sum(matrices) FILTER (is_of_queries), 0)::BIGINT AS lora_query_value_module_count,
    -- (towers and the denoiser have adapters too, and keep nothing in a step of text)
    coalesce(sum(matrices * (in_features + out_features)) FILTER (
        is_linear AND (tensor_class IN ('attention', 'feed-forward', 'shared-expert', 'recurrent', 'projector',
            'vision-tower', 'audio-tower', 'denoiser') OR tensor_class = 'other' AND component = 'text')
                AND is_adapted), 0)::BIGINT
        AS lora_linear_elements,
    -- (the text's own)
    coalesce(sum(matrices * (in_features + out_features)) FILTER (is_any), 0)::BIGINT AS lora_text_elements,
    coalesce(sum(matrices * in_features) FILTER (is_any), 0)::BIGINT AS lora_linear_input_sum,
    coalesce(sum(matrices) FILTER (is_any), 0)::BIGINT AS lora_linear_module_count,
    -- (peft gives a fused gate and up twice the rank; a router is a bare parameter)
    coalesce(sum(CASE
        WHEN operator = 'expert' THEN matrices * (in_features + out_features) * iif(role = 'expert_gate_up', 2, 1)
        WHEN role = 'router' AND in_features IS NULL THEN layer_count * (hidden_size + out_features // hidden_size)
        WHEN is_beside_experts THEN matrices * (in_features + out_features)
    END), 0)::BIGINT AS lora_expert_elements,
    coalesce(sum(matrices * (in_features + out_features)) FILTER (operator = 'expert'), 0)::BIGINT
        AS lora_routed_elements,
    coalesce(sum(matrices * in_features) FILTER (is_beside_experts), 0)::BIGINT AS lora_beside_input_sum,
    coalesce(sum(matrices) FILTER (is_beside_experts), 0)::BIGINT AS lora_beside_module_count,
    -- biases in layers: of linear layers, and of norms whose weights and biases are not one role
    coalesce(sum(matrices * out_features) FILTER (role = 'bias' AND is_of_text AND layer_count > 1), 0)::BIGINT
        AS layer_bias_sum
FROM target GROUP BY model_id;
