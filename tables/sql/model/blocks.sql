-- The feed-forward blocks of a model, and its largest layer: part of `shape`.
--
-- Units: elements, layers, experts. `_max` columns are of the one layer that has most; largest_layer_elements are the
-- parameters of a layer of the largest mixer and the largest block. Source: arithmetic over feed_forward_layer and
-- tensor.
-- Not covered: towers, which are not run in a step of text.

CREATE OR REPLACE TEMP TABLE block_list AS
SELECT
    model_id,
    list({
        'layer_count': layer_count, 'width': iif(expert_count = 0, width, 0) + shared_width, 'is_gated': is_gated,
        'expert_count': expert_count, 'experts_per_token': experts_per_token,
        'expert_width': iif(expert_count > 0, expert_width, 0), 'activation': feed_forward_layer.activation,
        'kept_tensors': coalesce(kept_tensors, 2), 'kept_tensors_adapter': coalesce(kept_tensors_adapter, 2),
        'kept_tensors_amp': coalesce(kept_tensors_amp, 2), 'gradient_tensors': coalesce(gradient_tensors, 2),
        'gradient_tensors_amp': coalesce(gradient_tensors_amp, 2), 'is_encoder': component = 'encoder'
    } ORDER BY kind) AS blocks
FROM feed_forward_layer LEFT JOIN activation AS form ON form.function_name = feed_forward_layer.activation
WHERE component IN ('text', 'encoder', 'decoder')
GROUP BY model_id;

CREATE OR REPLACE TEMP TABLE block_shape AS
SELECT
    model_id,
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
GROUP BY model_id;

CREATE OR REPLACE TEMP TABLE largest_layer AS
WITH role_layer AS (
    SELECT model_id, tensor_class, role, max(element_count // layer_count) AS elements
    FROM tensor WHERE layer_count > 1 AND component IN ('text', 'encoder', 'decoder')
    GROUP BY ALL
),
class_layer AS (SELECT model_id, tensor_class, sum(elements)::BIGINT AS elements FROM role_layer GROUP BY ALL)
SELECT model_id,
    -- (one row of each class)
    greatest(coalesce(any_value(elements) FILTER (tensor_class = 'attention'), 0),
             coalesce(any_value(elements) FILTER (tensor_class = 'recurrent'), 0))
    + greatest(coalesce(any_value(elements) FILTER (tensor_class = 'feed-forward'), 0),
               coalesce(sum(elements) FILTER (tensor_class IN ('expert', 'shared-expert', 'router')), 0))
    + coalesce(any_value(elements) FILTER (tensor_class = 'norm'), 0) AS largest_layer_elements
FROM class_layer GROUP BY model_id;
