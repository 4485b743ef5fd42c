-- The census by class: elements, the layers that hold them, and whether weight-only formats usually quantise them.
--
-- Units: elements. Source: sums over `tensor`; is_quantisable says whether some format of weight_format.csv or GGUF
-- holds most of the class in fewer than 16 bits on the engine that runs it (linear layers and routed experts, but not
-- head, router or towers). Not covered: whether a kernel for the class exists on a card.

CREATE OR REPLACE TABLE tensor_class AS
SELECT
    model_id, tensor_class, sum(element_count)::BIGINT AS element_count, max(layer_count)::BIGINT AS layer_count,
    coalesce(sum(element_count) FILTER (operator IN ('linear', 'linear-subclass', 'expert')) * 2 > sum(element_count)
        AND tensor_class NOT IN ('head', 'router', 'norm', 'embedding', 'vision-tower', 'audio-tower', 'projector'),
            false)
        AS is_quantisable
FROM tensor
GROUP BY model_id, tensor_class;
