-- One row per model with the sums over its layers that every further formula is written in.
--
-- Units: elements, and elements per token. `_sum` columns are summed over layers, `_max` columns are of the one layer
-- that has most. Only text layers count towards activations of the language model; towers are not run in a step of text.
-- Source: arithmetic over tensor, attention_layer and feed_forward_layer.

CREATE OR REPLACE TABLE shape AS
WITH mixer AS (
    SELECT
        model_id,
        -- what every layer caches, as a list so that each keeps its own window
        list({
            'mechanism': mechanism, 'layers': layer_count, 'elements': elements_per_token, 'win': window_tokens,
            'kv_heads': kv_head_count, 'state': state_elements, 'conv_state': conv_state_elements,
            'state_bytes_each': iif(state_dtype_id IN ('bf16', 'fp16'), 2, 4)
        } ORDER BY kind) FILTER (component IN ('text', 'decoder')) AS caches,
        -- widths of what attention works on in one layer of each group; an expanded key or value has one head per query head
        list({
            'mechanism': mechanism, 'layers': layer_count, 'win': window_tokens, 'heads': head_count, 'kv_heads': kv_head_count,
            'query': head_count * head_dim, 'key': kv_head_count * head_dim, 'value': kv_head_count * value_head_dim,
            'context': head_count * value_head_dim, 'gated': iif(has_output_gate, head_count * value_head_dim, 0), 'latent': elements_per_token, 'has_qk_norm': has_qk_norm,
            'expanded_key': iif(kv_head_count > 1, head_count, kv_head_count) * head_dim,
            'expanded_value': iif(kv_head_count > 1, head_count, kv_head_count) * value_head_dim
        } ORDER BY kind) FILTER (head_count > 0) AS mixers,
        coalesce(sum(layer_count) FILTER (head_count > 0), 0)::BIGINT AS attention_layer_count,
        coalesce(sum(layer_count), 0)::BIGINT AS mixer_layer_count,
        coalesce(sum(layer_count * head_count * head_dim), 0)::BIGINT AS query_sum,
        coalesce(sum(layer_count * kv_head_count * head_dim), 0)::BIGINT AS key_sum,
        coalesce(sum(layer_count * head_count * value_head_dim), 0)::BIGINT AS context_sum,
        coalesce(sum(layer_count * kv_head_count * value_head_dim), 0)::BIGINT AS value_sum,
        coalesce(sum(layer_count * head_count), 0)::BIGINT AS head_sum,
        coalesce(sum(layer_count * head_count) FILTER (mechanism <> 'cross'), 0)::BIGINT AS biased_head_sum,
        coalesce(sum(layer_count) FILTER (mechanism = 'cross' AND component = 'decoder'), 0)::BIGINT AS cross_layer_count,
        coalesce(sum(layer_count) FILTER (component = 'encoder'), 0)::BIGINT AS encoder_layer_count,
        coalesce(sum(layer_count * (head_count + kv_head_count)) FILTER (has_qk_norm), 0)::BIGINT AS qk_norm_head_sum,
        coalesce(sum(layer_count * (head_count + kv_head_count) * head_dim) FILTER (has_qk_norm), 0)::BIGINT AS qk_norm_sum,
        coalesce(max(head_count * head_dim), 0)::BIGINT AS query_max,
        coalesce(max(kv_head_count * head_dim), 0)::BIGINT AS key_max,
        coalesce(max(head_count), 0)::BIGINT AS head_max,
        coalesce(max(kv_head_count), 0)::BIGINT AS kv_head_max,
        coalesce(max(head_dim), 0)::BIGINT AS head_dim_max,
        min(window_tokens) FILTER (component IN ('text', 'decoder') AND head_count > 0) AS shortest_window,
        -- masks that eager attention adds: one for the whole context, one for each window
        greatest(count(DISTINCT coalesce(window_tokens, 0)) FILTER (head_count > 0 AND mechanism NOT IN ('cross', 'bidirectional')), 1)
            AS mask_count,
        coalesce(bool_or(has_qk_norm), false) AS has_qk_norm,
        coalesce(bool_and(mechanism = 'bidirectional'), false) AS is_encoder,
        coalesce(max(head_count) > max(kv_head_count), false) AS has_grouped_heads
    FROM attention_layer WHERE component IN ('text', 'encoder', 'decoder')
    GROUP BY model_id
),
block AS (
    SELECT
        model_id,
        list({
            'layers': layer_count, 'width': iif(expert_count = 0, width, 0) + shared_width, 'is_gated': is_gated, 'experts': expert_count,
            'routed': experts_per_token, 'expert_width': iif(expert_count > 0, expert_width, 0), 'activation': activation,
            'is_encoder': component = 'encoder'
        } ORDER BY kind) AS blocks,
        coalesce(sum(layer_count * width) FILTER (is_gated AND expert_count = 0), 0)::BIGINT AS gated_sum,
        coalesce(sum(layer_count * width) FILTER (NOT is_gated AND expert_count = 0), 0)::BIGINT AS plain_sum,
        coalesce(sum(layer_count * experts_per_token * expert_width), 0)::BIGINT AS routed_sum,
        coalesce(sum(layer_count * shared_width), 0)::BIGINT AS shared_sum,
        coalesce(sum(layer_count * experts_per_token), 0)::BIGINT AS experts_per_token_sum,
        coalesce(sum(layer_count) FILTER (expert_count > 0), 0)::BIGINT AS moe_layer_count,
        coalesce(sum(layer_count), 0)::BIGINT AS block_layer_count,
        coalesce(max(width) FILTER (is_gated AND expert_count = 0), 0)::BIGINT AS gated_max,
        coalesce(max(width) FILTER (NOT is_gated AND expert_count = 0), 0)::BIGINT AS plain_max,
        coalesce(max(experts_per_token * expert_width), 0)::BIGINT AS routed_max,
        coalesce(max(shared_width), 0)::BIGINT AS shared_max,
        coalesce(max(experts_per_token), 0)::BIGINT AS experts_per_token_max,
        coalesce(max(expert_count), 0)::BIGINT AS expert_count_max,
        coalesce(bool_or(is_gated), true) AS is_gated,
        -- of the blocks that most layers have
        arg_max(activation, layer_count) AS activation
    FROM feed_forward_layer WHERE component IN ('text', 'encoder', 'decoder')
    GROUP BY model_id
),
role_layer AS (
    SELECT model_id, tensor_class, role, max(element_count // layer_count) AS elements
    FROM tensor WHERE layer_count > 1 AND component IN ('text', 'encoder', 'decoder')
    GROUP BY ALL
),
class_layer AS (SELECT model_id, tensor_class, sum(elements)::BIGINT AS elements FROM role_layer GROUP BY ALL),
largest_layer AS (
    SELECT model_id,
        greatest(coalesce(max(elements) FILTER (tensor_class = 'attention'), 0),
                 coalesce(max(elements) FILTER (tensor_class = 'recurrent'), 0))
        + greatest(coalesce(max(elements) FILTER (tensor_class = 'feed-forward'), 0),
                   coalesce(sum(elements) FILTER (tensor_class IN ('expert', 'shared-expert', 'router')), 0))
        + coalesce(max(elements) FILTER (tensor_class = 'norm'), 0) AS largest_layer_elements
    FROM class_layer GROUP BY model_id
),
census AS (
    SELECT
        model_id,
        coalesce(sum(element_count) FILTER (operator IN ('linear', 'linear-subclass') AND tensor_class <> 'head'
            AND component IN ('text', 'encoder', 'decoder')), 0)::BIGINT AS linear_elements,
        coalesce(sum(element_count) FILTER (operator = 'expert'), 0)::BIGINT AS expert_elements,
        coalesce(sum(element_count) FILTER (tensor_class = 'head' AND operator LIKE 'linear%'), 0)::BIGINT AS head_elements,
        coalesce(max(element_count) FILTER (role = 'embedding'), 0)::BIGINT AS embedding_elements,
        -- what optimizers tell apart: rows and columns of matrices with whole vectors, matrices of the layers, tensors below 4096 elements
        sum(tensor.layer_count * per_layer_count * (out_features + coalesce(in_features, 0)))::BIGINT AS factored_elements,
        coalesce(sum(element_count) FILTER (in_features IS NOT NULL AND tensor_class NOT IN ('embedding', 'head')), 0)::BIGINT
            AS matrix_elements,
        coalesce(sum(element_count) FILTER (out_features * coalesce(in_features, 1) < 4096), 0)::BIGINT AS small_elements,
        -- a fused tensor of experts is one parameter to the optimizer
        coalesce(max(in_features * out_features) FILTER (operator = 'linear' AND tensor_class <> 'head'), 0)::BIGINT AS largest_linear_elements,
        max(element_count // tensor.layer_count // iif(operator = 'expert', 1, per_layer_count))::BIGINT AS largest_parameter_elements,
        coalesce(sum(tensor.layer_count * per_layer_count) FILTER (role IN ('embedding')), 0)::BIGINT AS embedding_count,
        coalesce(bool_or(role = 'position_embedding'), false) AS has_position_embedding,
        coalesce(bool_or(role = 'shared_expert_gate'), false) AS has_shared_expert_gate,
        -- widths of the hidden-size norms of all layers, and of the linear layers that read them
        -- (a final norm of the same shape is one layer more, weight and bias of encoders are one role; norms without weights: two a layer)
        coalesce(sum(iif(tensor.layer_count < model.layer_count, tensor.layer_count,
            tensor.layer_count // greatest(model.layer_count, 1) * model.layer_count) * out_features * per_layer_count
            // iif(model.norm_kind = 'layer' AND per_layer_count >= 4, 2, 1)) FILTER (role = 'norm' AND tensor.layer_count > 1
            AND out_features = model.hidden_size AND component IN ('text', 'encoder', 'decoder')),
            2 * any_value(model.layer_count * model.hidden_size))::BIGINT AS norm_width_sum,
        coalesce(bool_or(role = 'head_transform'), false) AS has_head_transform,
        -- norms of latents, and the rotary part that the latent's keys get after they are expanded
        coalesce(sum(element_count) FILTER (role = 'norm' AND tensor.layer_count > 1 AND out_features <> model.hidden_size), 0)::BIGINT
            * bool_or(role = 'mla_kv_b')::INT AS latent_norm_sum,
        coalesce(any_value(out_features) FILTER (role = 'mla_kv_a') - any_value(in_features) FILTER (role = 'mla_kv_b'), 0)::BIGINT
            AS rotary_width,
        coalesce(bool_or(role = 'norm' AND out_features * 4 < model.hidden_size), false) AS has_narrow_norms,
        coalesce(bool_or(role = 'attention_qkv'), false) AS has_fused_qkv,
        -- (of the text, where there is one: a tower's positions do not limit it)
        coalesce(bool_or(role = 'position_embedding' AND component NOT IN ('vision', 'audio'))
            OR bool_or(role = 'position_embedding') AND NOT bool_or(component = 'text'), false) AS has_learned_positions,
        coalesce(sum(tensor.layer_count * per_layer_count * in_features) FILTER (role IN ('attention_q', 'attention_k', 'attention_v',
            'attention_qkv', 'mla_q_a', 'mla_kv_a', 'ffn_gate', 'ffn_up', 'ffn_gate_up', 'mamba_in', 'delta_qkvz', 'delta_ba', 'delta_qkv', 'delta_z', 'delta_b', 'delta_a',
            'delta_q', 'delta_k', 'delta_v', 'convolution_in') AND operator LIKE 'linear%'), 0)::BIGINT
            AS hidden_input_sum,
        -- adapters: elements per rank of each target set
        coalesce(sum(tensor.layer_count * per_layer_count * (in_features + out_features)) FILTER (
            operator LIKE 'linear%' AND tensor_class = 'attention' AND component IN ('text', 'encoder', 'decoder')), 0)::BIGINT
            AS lora_attention_elements,
        -- (peft gives a fused gate and up twice the rank; a router is a bare parameter)
        coalesce(sum(CASE
            WHEN operator = 'expert' THEN tensor.layer_count * per_layer_count * (in_features + out_features)
                * iif(role = 'expert_gate_up', 2, 1)
            WHEN role = 'router' AND in_features IS NULL THEN tensor.layer_count * (model.hidden_size + out_features // model.hidden_size)
            WHEN is_beside_experts THEN tensor.layer_count * per_layer_count * (in_features + out_features)
        END), 0)::BIGINT AS lora_expert_elements,
        coalesce(sum(tensor.layer_count * per_layer_count * in_features) FILTER (is_beside_experts), 0)::BIGINT AS lora_beside_input_sum,
        coalesce(sum(tensor.layer_count * per_layer_count) FILTER (is_beside_experts), 0)::BIGINT AS lora_beside_module_count,
        coalesce(sum(tensor.layer_count * per_layer_count * (in_features + out_features)) FILTER (
            operator LIKE 'linear%' AND (tensor_class IN ('attention', 'feed-forward', 'shared-expert', 'recurrent', 'projector',
                'vision-tower', 'audio-tower', 'denoiser') OR tensor_class = 'other' AND component = 'text') AND is_adapted), 0)::BIGINT AS lora_linear_elements,
        coalesce(sum(tensor.layer_count * per_layer_count * in_features) FILTER (
            operator LIKE 'linear%' AND tensor_class = 'attention' AND component IN ('text', 'encoder', 'decoder')), 0)::BIGINT
            AS lora_attention_input_sum,
        coalesce(sum(tensor.layer_count * per_layer_count * in_features) FILTER (
            operator LIKE 'linear%' AND tensor_class IN ('attention', 'feed-forward', 'shared-expert', 'recurrent', 'other')
            AND is_adapted AND component IN ('text', 'encoder', 'decoder')), 0)::BIGINT AS lora_linear_input_sum,
        coalesce(sum(tensor.layer_count * per_layer_count) FILTER (
            operator LIKE 'linear%' AND tensor_class = 'attention' AND component IN ('text', 'encoder', 'decoder')), 0)::BIGINT
            AS lora_attention_module_count,
        coalesce(sum(tensor.layer_count * per_layer_count) FILTER (
            operator LIKE 'linear%' AND tensor_class IN ('attention', 'feed-forward', 'shared-expert', 'recurrent', 'other')
            AND is_adapted AND component IN ('text', 'encoder', 'decoder')), 0)::BIGINT AS lora_linear_module_count
    FROM (
        SELECT tensor.*, role <> 'mamba_out' OR coalesce(code.are_mixer_outputs_adapted, true) AS is_adapted,
            -- linear layers that peft adapts beside fused experts
            operator LIKE 'linear%' AND (tensor_class = 'recurrent' OR role = 'shared_expert_gate') AS is_beside_experts
        FROM tensor JOIN model USING (model_id) LEFT JOIN implementation AS code USING (model_type)
    ) AS tensor JOIN model USING (model_id) GROUP BY model_id
)
SELECT
    model.model_id, model.parameter_count, model.hidden_size, model.layer_count, coalesce(model.vocab_size, 0) AS vocab_size,
    model.stored_format, model.is_head_tied, model.norm_kind, model.is_block_parallel, model.has_flash_attention, model.max_context_tokens,
    model.hidden_dropout, model.attention_dropout,
    -- how the architecture's code differs from what its anatomy implies; null means that it does not
    coalesce(code.norm_form, model.norm_kind, 'rms') AS norm_form,
    coalesce(code.rotary_form, iif(census.has_learned_positions, 'none', 'rotated')) AS rotary_form,
    -- encoders of the first generation take softmax and loss in the precision of the model; so do encoder-decoders, whose loss autocast runs
    -- in fp32
    coalesce(code.softmax_form, iif(mixer.is_encoder OR mixer.cross_layer_count > 0, 'compute', 'fp32')) AS softmax_form,
    coalesce(code.loss_form, CASE WHEN mixer.is_encoder THEN 'compute' WHEN mixer.cross_layer_count > 0 THEN 'cast' ELSE 'fp32' END) AS loss_form,
    coalesce(code.attention_form, 'grouped') AS attention_form,
    coalesce(code.has_score_cap, false) AS has_score_cap,
    coalesce(code.has_logit_cap, false) AS has_logit_cap,
    coalesce(code.router_input_bytes, 0) AS router_input_bytes,
    coalesce(code.feed_forward_extra, 0) AS feed_forward_extra,
    coalesce(code.residual_extra, 0) AS residual_extra,
    coalesce(code.eager_hidden_16, 0) AS eager_hidden_16, coalesce(code.eager_hidden_32, 0) AS eager_hidden_32,
    coalesce(code.value_norm_bytes, 0) AS value_norm_bytes,
    coalesce(code.has_block_dropout, false) AS has_block_dropout,
    -- bytes of a mask that the class holds beside its weights
    CASE WHEN code.has_layer_masks THEN mixer.attention_layer_count WHEN code.has_mask_buffer THEN 1 ELSE 0 END
        * iif(code.has_mask_buffer OR code.has_layer_masks, model.max_context_tokens::BIGINT * model.max_context_tokens, 0) AS mask_buffer_bytes,
    coalesce(code.are_experts_adapted, true) AS are_experts_adapted,
    coalesce(code.runs_all_experts, false) AS runs_all_experts,
    mixer.* EXCLUDE (model_id), block.* EXCLUDE (model_id), recurrent_shape.recurrences,
    -- layers that are either a mixer or a block, as Nemotron-H's
    recurrent_shape.recurrences IS NOT NULL AND mixer.mixer_layer_count + coalesce(block.block_layer_count, 0) <= model.layer_count
        AND coalesce(block.block_layer_count, 0) > 0 AS is_alternating,
    census.* EXCLUDE (model_id, norm_width_sum, has_narrow_norms),
    -- norms of whole queries and keys are as wide as the hidden state, and counted with attention
    census.norm_width_sum - iif(mixer.has_qk_norm AND NOT census.has_narrow_norms,
        model.layer_count * model.hidden_size * ((mixer.query_max = model.hidden_size)::INT + (mixer.key_max = model.hidden_size)::INT), 0)
        AS norm_width_sum,
    -- norms whose output linear layers read: one before each mixer and block at most, the others stand behind
    least(norm_width_sum, (coalesce(mixer.mixer_layer_count, 0) + coalesce(block.block_layer_count, 0)) * model.hidden_size)::BIGINT AS norm_output_sum,
    least(coalesce(largest_layer.largest_layer_elements, model.parameter_count), model.parameter_count)::BIGINT
        AS largest_layer_elements
FROM model
JOIN census USING (model_id)
LEFT JOIN mixer USING (model_id)
LEFT JOIN block USING (model_id)
LEFT JOIN largest_layer USING (model_id)
LEFT JOIN recurrent_shape USING (model_id)
LEFT JOIN implementation AS code ON code.model_type = model.model_type
WHERE model.anatomy_grade <> 'unknown' AND model.parameter_count IS NOT NULL;
