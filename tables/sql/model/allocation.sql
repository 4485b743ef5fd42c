-- What PyTorch's allocator rounds the weights of a model up to: part of `shape`, a column for each way to hold them.
--
--   rounding = Σ over tensors of at least 10 MiB: their size rounded up to 2 MiB − size, where that is no more than 1
--       MiB
--
-- Units: bytes, whole model. Source: PyTorch's c10/cuda/CUDACachingAllocator.cpp, as overhead/rounding.sql says.
--   merged: servers hold queries, keys and values in one matrix, gate and up in another; half, quarter, eighth: their
--   shards.
--   Packed to 4 or 8 bits (AWQ, GPTQ) a matrix is packed values and the scales of its groups (2 bytes for each group of
--   128): what a large matrix leaves free of its last 2 MiB, between 1 and 2 MiB, the next scales of that size take
--   whole.
-- Not covered: shards of other than 2, 4 or 8; other tensors below 10 MiB, which share blocks of 20 MiB; packed formats
--   other than AWQ and GPTQ.

CREATE OR REPLACE TEMP TABLE rounding_shape AS
WITH matrix AS (
    SELECT
        model_id, layer_count, component, role,
        -- routed experts are one tensor a layer
        CASE WHEN operator = 'expert' THEN 1 ELSE per_layer_count END AS each,
        element_count // layer_count // CASE WHEN operator = 'expert' THEN 1 ELSE per_layer_count END AS elements
    FROM tensor
),
merged AS (
    SELECT model_id, layer_count, sum(elements * each)::BIGINT AS elements, 1 AS each
    FROM matrix WHERE role IN ('attention_q', 'attention_k', 'attention_v', 'ffn_gate', 'ffn_up')
    GROUP BY model_id, component, layer_count, starts_with(role, 'ffn')
    UNION ALL
    SELECT model_id, layer_count, elements, each
    FROM matrix WHERE role NOT IN ('attention_q', 'attention_k', 'attention_v', 'ffn_gate', 'ffn_up')
),
whole AS (
    SELECT
        model_id, sum(layer_count * each * block_rounding(2 * elements, constants)) AS rounding_16_bit,
        sum(layer_count * each * block_rounding(4 * elements, constants)) AS rounding_32_bit
    FROM matrix CROSS JOIN constants GROUP BY model_id
),
served AS (
    SELECT
        model_id, sum(layer_count * each * block_rounding(2 * elements, constants)) AS rounding_merged_16_bit,
        sum(layer_count * each * block_rounding(elements, constants)) AS rounding_merged_half,
        sum(layer_count * each * block_rounding(elements // 2, constants)) AS rounding_merged_quarter,
        sum(layer_count * each * block_rounding(elements // 4, constants)) AS rounding_merged_eighth
    FROM merged CROSS JOIN constants GROUP BY model_id
)
SELECT model_id, columns(* EXCLUDE (model_id))::BIGINT FROM whole JOIN served USING (model_id);

CREATE OR REPLACE TEMP TABLE packed_rounding_shape AS
WITH packed AS (
    SELECT
        model_id, dtype_id, layer_count * per_layer_count AS matrices, element_bits < 16 AS is_packed,
        element_count // (layer_count * per_layer_count) AS elements,
        elements * floor(element_bits)::BIGINT // 8 AS bytes, iif(is_packed, elements // 64, 0) AS scale_bytes,
        segment_rest(bytes, constants) AS left_bytes,
        scale_bytes > constants.allocator_rest_bytes AND scale_bytes <= constants.allocator_segment_bytes
            AS fills_rest
    FROM tensor JOIN element_format USING (operator, tensor_class, role) CROSS JOIN constants
    WHERE dtype_id IN ('gptq-int4', 'gptq-int8')
),
counted AS (
    SELECT
        model_id, dtype_id, sum(matrices * block_rounding(bytes, constants)) AS rounded,
        coalesce(sum(matrices) FILTER (left_bytes > constants.allocator_rest_bytes), 0) AS gaps,
        coalesce(sum(matrices * left_bytes) FILTER (left_bytes > constants.allocator_rest_bytes), 0)
            / greatest(gaps, 1) AS gap_bytes,
        coalesce(sum(matrices) FILTER (fills_rest), 0) AS scales,
        coalesce(sum(matrices * scale_bytes) FILTER (fills_rest), 0) / greatest(scales, 1)
            AS scale_bytes
    FROM packed CROSS JOIN constants GROUP BY ALL
),
filled AS (
    SELECT model_id, dtype_id, (rounded + least(gaps, scales) * greatest(gap_bytes - scale_bytes, 0))::BIGINT AS bytes
        FROM counted
)
SELECT
    model_id, any_value(bytes) FILTER (dtype_id = 'gptq-int4') AS rounding_packed_4_bit,
    any_value(bytes) FILTER (dtype_id = 'gptq-int8') AS rounding_packed_8_bit
FROM filled GROUP BY model_id;
