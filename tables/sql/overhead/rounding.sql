-- What PyTorch's allocator rounds large weights up to: the part of the overhead that a model's own sizes decide.
--
--   rounding = Σ over tensors of at least 10 MiB: their size rounded up to 2 MiB − size, where that is no more than 1
--       MiB
--
-- Units: bytes. The allocator takes such a tensor from the driver in multiples of 2 MiB and splits the rest off only
--   where it is larger than 1 MiB, so that a smaller rest counts as allocated: 43 MiB become 44. The sums over a model
--   are in model/allocation.sql.
-- Sources: PyTorch's c10/cuda/CUDACachingAllocator.cpp, by the constants allocator_large_bytes, _segment_, _rest_.
-- Not covered: shards of other than 2, 4 or 8; other tensors below 10 MiB, which share blocks of 20 MiB; Transformers
--   from 4.50 on, which asks the driver once for all weights (caching_allocator_warmup): there nothing is rounded, and
--   this is a margin.

-- what a tensor leaves free of its segment, where it has one of its own
CREATE OR REPLACE MACRO segment_rest(bytes, constants) AS iif(bytes >= constants.allocator_large_bytes,
    ((constants.allocator_segment_bytes - bytes % constants.allocator_segment_bytes)
        % constants.allocator_segment_bytes)::BIGINT, 0);
CREATE OR REPLACE MACRO block_rounding(bytes, constants) AS
    iif(segment_rest(bytes, constants) <= constants.allocator_rest_bytes, segment_rest(bytes, constants), 0);

-- of the weights of a scenario on one GPU; a server's shards of every matrix are rounded up on each (a half, a quarter,
-- an eighth)
CREATE OR REPLACE MACRO rounding_bytes(model, scenario) AS CASE
    WHEN scenario.gpu_count > 1 AND scenario.phase_id = 'inference' AND is_server(scenario)
        AND scenario.dtype_id IN ('bf16', 'fp16') THEN
        CASE scenario.tensor_parallel WHEN 1 THEN model.rounding_merged_16_bit WHEN 2 THEN model.rounding_merged_half
            WHEN 4 THEN model.rounding_merged_quarter
            WHEN 8 THEN model.rounding_merged_eighth ELSE 0 END
        -- (of the stage with the most layers)
        * ceil(model.layer_count / scenario.pipeline_parallel) / greatest(model.layer_count, 1)
    WHEN scenario.gpu_count > 1 OR scenario.phase_id <> 'inference'
        OR scenario.engine_id IN ('llama.cpp', 'mlx-lm', 'mlx-vlm') THEN 0
    WHEN scenario.dtype_id IN ('bf16', 'fp16') AND is_server(scenario) THEN model.rounding_merged_16_bit
    WHEN scenario.dtype_id IN ('bf16', 'fp16') THEN model.rounding_16_bit
    WHEN scenario.dtype_id = 'fp32' THEN model.rounding_32_bit
    WHEN scenario.dtype_id IN ('awq-int4', 'gptq-int4') AND NOT is_server(scenario) THEN model.rounding_packed_4_bit
    WHEN scenario.dtype_id = 'gptq-int8' AND NOT is_server(scenario) THEN model.rounding_packed_8_bit
    ELSE 0
END;
