-- Which parameters of a model tensor, pipeline and expert parallelism divide: part of `shape`.
--
-- Units: elements, whole model. layer_elements sit in the repeated layers, of which layer_whole_elements (norms and
--   routers) stay whole on every tensor-parallel rank; input_elements are embeddings, output_elements an untied head.
-- Source: sums over `tensor`; Megatron-LM and torchtitan divide linear layers, embedding and head and replicate norms
-- and routers.
-- Not covered: towers of multimodal models, which stay whole on the first stage.

CREATE OR REPLACE TEMP TABLE sharding_shape AS
SELECT
    model_id,
    coalesce(sum(element_count) FILTER (is_in_layers), 0)::BIGINT AS layer_elements,
    coalesce(sum(element_count) FILTER (is_in_layers AND tensor_class IN ('norm', 'router')), 0)::BIGINT
        AS layer_whole_elements,
    coalesce(sum(element_count) FILTER (tensor_class = 'embedding' AND NOT is_in_layers), 0)::BIGINT AS input_elements,
    coalesce(sum(element_count) FILTER (tensor_class = 'head' AND NOT is_in_layers), 0)::BIGINT AS output_elements
FROM (
    SELECT *, layer_count > 1 AND component IN ('text', 'encoder', 'decoder') OR tensor_class = 'denoiser'
        AS is_in_layers
    FROM tensor
)
GROUP BY model_id;
