-- What the matrices of the widest layer give for one token: part of `shape`.
--
--   layer_output_elements = (attention or recurrence, whichever is wider) + (feed-forward, or router, shared and routed
--       experts)
--
-- Units: elements per token; routed experts count as often as a token passes them. Source: arithmetic over tensor.
-- Not covered: towers; what a layer makes without a matrix.

CREATE OR REPLACE TEMP TABLE widest_layer AS
WITH role AS (
    SELECT
        model_id, tensor_class, role,
        max(out_features * iif(operator = 'expert', block_shape.experts_per_token_max, per_layer_count)) AS elements
    FROM tensor LEFT JOIN block_shape USING (model_id)
    WHERE component IN ('text', 'decoder') AND in_features IS NOT NULL
        AND operator IN ('linear', 'linear-subclass', 'expert') AND tensor_class NOT IN ('head', 'embedding')
    GROUP BY ALL
),
class AS (SELECT model_id, tensor_class, sum(elements) AS elements FROM role GROUP BY ALL)
SELECT
    model_id,
    (greatest(coalesce(max(elements) FILTER (tensor_class = 'attention'), 0),
        coalesce(max(elements) FILTER (tensor_class = 'recurrent'), 0))
        + greatest(coalesce(max(elements) FILTER (tensor_class = 'feed-forward'), 0), coalesce(sum(elements)
            FILTER (tensor_class IN ('expert', 'shared-expert', 'router', 'other')), 0)))::BIGINT
                AS layer_output_elements
FROM class GROUP BY model_id;
