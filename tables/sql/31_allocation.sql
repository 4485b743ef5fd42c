-- What PyTorch's allocator rounds large weights up to: added to `shape` as one column per size of an element, and which models hold
-- gate and up in one matrix.
--
--   rounding = Σ over tensors of at least 10 MiB: their size rounded up to 2 MiB − size, where that is no more than 1 MiB
--
-- Units: bytes, whole model. The allocator takes such a tensor from the driver in multiples of 2 MiB and splits the rest off only
--   where it is larger than 1 MiB, so that a smaller rest counts as allocated: 43 MiB become 44.
-- Sources: PyTorch's c10/cuda/CUDACachingAllocator.cpp (kMinLargeAlloc, kRoundLarge, kSmallSize). merged: servers hold queries, keys
--   and values in one matrix, gate and up in another.
--   Packed to 4 or 8 bits (AWQ, GPTQ) a matrix is packed values and the scales of its groups: what a large matrix leaves free of its last
--   2 MiB, between 1 and 2 MiB, the next scales of that size take whole.
-- Not covered: shards of other than 2, 4 or 8; other tensors below 10 MiB, which share blocks of 20 MiB; packed formats other than AWQ and GPTQ; Transformers from 4.50
--   on, which asks the driver once for all weights (caching_allocator_warmup): there nothing is rounded, and this is a margin.

CREATE OR REPLACE MACRO block_rounding(bytes) AS CASE
    WHEN bytes >= 10485760 AND (2097152 - bytes % 2097152) % 2097152 <= 1048576 THEN (2097152 - bytes % 2097152) % 2097152
    ELSE 0
END;

ALTER TABLE shape ADD COLUMN has_fused_gate BOOLEAN DEFAULT false;
ALTER TABLE shape ADD COLUMN rounding_16_bit BIGINT;
ALTER TABLE shape ADD COLUMN rounding_32_bit BIGINT;
ALTER TABLE shape ADD COLUMN rounding_merged_16_bit BIGINT;
ALTER TABLE shape ADD COLUMN rounding_merged_half BIGINT;
ALTER TABLE shape ADD COLUMN rounding_merged_quarter BIGINT;
ALTER TABLE shape ADD COLUMN rounding_merged_eighth BIGINT;
ALTER TABLE shape ADD COLUMN rounding_packed_4_bit BIGINT;
ALTER TABLE shape ADD COLUMN rounding_packed_8_bit BIGINT;

UPDATE shape SET
    rounding_16_bit = sums.rounding_16_bit, rounding_32_bit = sums.rounding_32_bit, rounding_merged_16_bit = sums.rounding_merged_16_bit,
    rounding_merged_half = sums.half, rounding_merged_quarter = sums.quarter, rounding_merged_eighth = sums.eighth
FROM (
    WITH matrix AS (
        SELECT
            model_id, layer_count, component, role,
            -- routed experts are one tensor a layer
            CASE WHEN operator = 'expert' THEN 1 ELSE per_layer_count END AS each,
            element_count // layer_count // CASE WHEN operator = 'expert' THEN 1 ELSE per_layer_count END AS elements
        FROM tensor
    ),
    merged AS (
        SELECT model_id, layer_count, sum(elements * each) AS elements, 1 AS each
        FROM matrix WHERE role IN ('attention_q', 'attention_k', 'attention_v', 'ffn_gate', 'ffn_up')
        GROUP BY model_id, component, layer_count, starts_with(role, 'ffn')
        UNION ALL
        SELECT model_id, layer_count, elements, each
        FROM matrix WHERE role NOT IN ('attention_q', 'attention_k', 'attention_v', 'ffn_gate', 'ffn_up')
    )
    SELECT model_id, rounding_16_bit, rounding_32_bit, rounding_merged_16_bit, half, quarter, eighth
    FROM (SELECT model_id, sum(layer_count * each * block_rounding(2 * elements)) AS rounding_16_bit,
            sum(layer_count * each * block_rounding(4 * elements)) AS rounding_32_bit FROM matrix GROUP BY model_id)
    JOIN (SELECT model_id, sum(layer_count * each * block_rounding(2 * elements::BIGINT)) AS rounding_merged_16_bit,
            sum(layer_count * each * block_rounding(elements::BIGINT)) AS half,
            sum(layer_count * each * block_rounding(elements::BIGINT // 2)) AS quarter,
            sum(layer_count * each * block_rounding(elements::BIGINT // 4)) AS eighth FROM merged
            GROUP BY model_id) USING (model_id)
) AS sums
WHERE sums.model_id = shape.model_id;

-- Every matrix on its own, packed where the format packs it: what is left of the last 2 MiB, and the scales (2 bytes for each group of 128).
UPDATE shape SET rounding_packed_4_bit = sums.four, rounding_packed_8_bit = sums.eight
FROM (
    WITH packed AS (
        SELECT
            model_id, dtype_id, layer_count * per_layer_count AS matrices, element_bits < 16 AS is_packed,
            element_count // (layer_count * per_layer_count) AS elements,
            elements * floor(element_bits)::BIGINT // 8 AS bytes, iif(is_packed, elements // 64, 0) AS scale_bytes,
            iif(bytes >= 10485760, (2097152 - bytes % 2097152) % 2097152, 0) AS left_bytes
        FROM tensor JOIN element_format USING (operator, tensor_class, role)
        WHERE dtype_id IN ('gptq-int4', 'gptq-int8')
    ),
    counted AS (
        SELECT
            model_id, dtype_id, sum(matrices * block_rounding(bytes)) AS rounded,
            coalesce(sum(matrices) FILTER (left_bytes > 1048576), 0) AS gaps,
            coalesce(sum(matrices * left_bytes) FILTER (left_bytes > 1048576), 0) / greatest(gaps, 1) AS gap_bytes,
            coalesce(sum(matrices) FILTER (scale_bytes BETWEEN 1048577 AND 2097152), 0) AS scales,
            coalesce(sum(matrices * scale_bytes) FILTER (scale_bytes BETWEEN 1048577 AND 2097152), 0) / greatest(scales, 1) AS scale_bytes
        FROM packed GROUP BY ALL
    ),
    filled AS (
        SELECT model_id, dtype_id, (rounded + least(gaps, scales) * greatest(gap_bytes - scale_bytes, 0))::BIGINT AS bytes FROM counted
    )
    SELECT
        model_id, max(bytes) FILTER (dtype_id = 'gptq-int4') AS four, max(bytes) FILTER (dtype_id = 'gptq-int8') AS eight
    FROM filled GROUP BY model_id
) AS sums
WHERE sums.model_id = shape.model_id;

-- gate and up projection in one matrix, whose output stays whole while its halves are multiplied
UPDATE shape SET has_fused_gate = true
WHERE model_id IN (SELECT model_id FROM tensor WHERE role = 'ffn_gate_up' AND component IN ('text', 'decoder'));

-- of the weights of a scenario on one GPU; a server's shards of every matrix are rounded up on each (a half, a quarter, an eighth)
CREATE OR REPLACE MACRO rounding_bytes(m, x) AS CASE
    WHEN x.gpu_count > 1 AND x.phase_id = 'inference' AND is_server(x) AND x.dtype_id IN ('bf16', 'fp16') THEN
        CASE x.tensor_parallel WHEN 1 THEN m.rounding_merged_16_bit WHEN 2 THEN m.rounding_merged_half WHEN 4 THEN m.rounding_merged_quarter
            WHEN 8 THEN m.rounding_merged_eighth ELSE 0 END
        -- (of the stage with the most layers)
        * ceil(m.layer_count / x.pipeline_parallel) / greatest(m.layer_count, 1)
    WHEN x.gpu_count > 1 OR x.phase_id <> 'inference' OR x.engine_id IN ('llama.cpp', 'mlx-lm') THEN 0
    WHEN x.dtype_id IN ('bf16', 'fp16') AND is_server(x) THEN m.rounding_merged_16_bit
    WHEN x.dtype_id IN ('bf16', 'fp16') THEN m.rounding_16_bit
    WHEN x.dtype_id = 'fp32' THEN m.rounding_32_bit
    WHEN x.dtype_id IN ('awq-int4', 'gptq-int4') AND NOT is_server(x) THEN m.rounding_packed_4_bit
    WHEN x.dtype_id = 'gptq-int8' AND NOT is_server(x) THEN m.rounding_packed_8_bit
    ELSE 0
END;
