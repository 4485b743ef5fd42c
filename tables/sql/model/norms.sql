-- The norms of a model's layers: part of `shape`.
--
--   norm_width_sum = Σ over layers of norms as wide as the hidden state;  norm_output_sum: of these what linear layers
--       read
--   inner_norm_sum = Σ over layers of norms as wide as a feed-forward block, which stand inside it before its last
--       projection
--   latent_norm_sum = Σ over layers of norms of latents
--
-- Units: elements. Source: arithmetic over tensor. Which norm a tensor is, its width says: a checkpoint names them all
-- alike.
-- Not covered: norms whose width is that of another place.

CREATE OR REPLACE TEMP TABLE norm_shape AS
WITH norm AS (
    SELECT
        tensor.*, model.hidden_size, model.layer_count AS model_layers, model.norm_kind,
        role = 'norm' AND tensor.layer_count > 1 AS is_in_layers,
        coalesce(mixer_shape.has_qk_norm, false) AS has_qk_norm, mixer_shape.query_max, mixer_shape.key_max,
        coalesce(mixer_layer_count, 0) + coalesce(block_layer_count, 0) AS part_count,
        out_features = block_shape.gated_max AND out_features > model.hidden_size
            AND out_features > mixer_shape.query_max
            AS is_as_wide_as_block
    FROM tensor JOIN model USING (model_id) LEFT JOIN mixer_shape USING (model_id) LEFT
        JOIN block_shape USING (model_id)
),
summed AS (
    SELECT
        model_id,
        -- (a final norm of the same shape is one layer more, weight and bias of encoders are one role; norms without
        -- weights: two a layer)
        coalesce(sum(iif(layer_count < model_layers, layer_count, layer_count // greatest(model_layers, 1)
            * model_layers)
                * out_features * per_layer_count // iif(norm_kind = 'layer' AND per_layer_count >= 4, 2, 1))
            FILTER (is_in_layers AND out_features = hidden_size AND component IN ('text', 'encoder', 'decoder')),
            2 * any_value(model_layers * hidden_size))::BIGINT AS hidden_width_sum,
        -- norms of whole queries and keys are as wide as the hidden state, and counted with attention
        iif(any_value(has_qk_norm) AND NOT coalesce(bool_or(role = 'norm' AND out_features * 4 < hidden_size), false),
            any_value(model_layers * hidden_size)
            * (any_value(query_max = hidden_size)::INT + any_value(key_max = hidden_size)::INT), 0) AS qk_width_sum,
        any_value(part_count * hidden_size) AS outputs_most,
        coalesce(sum(element_count) FILTER (is_in_layers AND out_features <> hidden_size), 0)::BIGINT
            * bool_or(role = 'mla_kv_b')::INT AS latent_norm_sum,
        coalesce(sum(layer_count * per_layer_count * out_features)
            FILTER (is_in_layers AND component = 'text' AND is_as_wide_as_block), 0)::BIGINT AS inner_norm_sum
    FROM norm GROUP BY model_id
)
SELECT
    model_id, latent_norm_sum, inner_norm_sum, hidden_width_sum - qk_width_sum AS norm_width_sum,
    -- linear layers read the output of one norm before each mixer and block at most, the others stand behind
    least(hidden_width_sum, outputs_most)::BIGINT AS norm_output_sum
FROM summed;
