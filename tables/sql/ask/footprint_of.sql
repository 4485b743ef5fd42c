-- footprint_of('Qwen/Qwen3-8B', ...): one scenario, as the table footprint has it; every argument but the model may be
-- left out.
--
-- Units: bytes per GPU. Source: footprint/footprints.sql. Not covered: what that does not cover.

CREATE OR REPLACE MACRO footprint_of(
    model_id, dtype_id := NULL, phase_id := 'inference', context_tokens := NULL, sequences := 1, kv_dtype_id := NULL,
    optimizer_id := NULL, checkpointing := NULL, lora_rank := NULL, lora_targets := NULL, precision := NULL,
    attention := NULL,
    sharding := NULL, gpu_count := NULL, engine_id := NULL, adapter := NULL, loss := NULL,
    gradient_accumulation := NULL, ema := NULL,
    optimizer_rank := NULL, max_context_tokens := NULL,
    tensor_parallel := NULL, pipeline_parallel := NULL, context_parallel := NULL, expert_parallel := NULL,
    micro_batches_in_flight := NULL,
    sequence_parallel := NULL, offload := NULL, images := NULL, image_width := NULL, image_height := NULL,
    audio_seconds := NULL
) AS TABLE
WITH scenario_asked AS (
    SELECT
        model_id AS model_id, dtype_id AS dtype_id, phase_id AS phase_id, engine_id AS engine_id,
        context_tokens AS context_tokens, sequences AS sequences, images AS images, image_width AS image_width,
        image_height AS image_height,
        audio_seconds AS audio_seconds, kv_dtype_id AS kv_dtype_id, optimizer_id AS optimizer_id,
        precision AS precision, checkpointing AS checkpointing, lora_rank AS lora_rank, lora_targets AS lora_targets,
        attention AS attention, sharding AS sharding, gpu_count AS gpu_count, adapter AS adapter, loss AS loss,
        gradient_accumulation AS gradient_accumulation, ema AS ema, optimizer_rank AS optimizer_rank,
        max_context_tokens AS max_context_tokens,
        tensor_parallel AS tensor_parallel, pipeline_parallel AS pipeline_parallel, context_parallel
            AS context_parallel,
        expert_parallel AS expert_parallel, micro_batches_in_flight AS micro_batches_in_flight, sequence_parallel
            AS sequence_parallel,
        offload AS offload
)
SELECT footprint.* REPLACE (with_nearest(footprint.unknown_reason, footprint.model_id) AS unknown_reason)
    FROM footprints_in('scenario_asked', phase_id, is_plain := is_plain_scenario(
    lora_rank, lora_targets, precision, sharding, adapter, loss, gradient_accumulation, ema, optimizer_rank,
    max_context_tokens, tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, micro_batches_in_flight,
    sequence_parallel, offload, images, image_width, image_height, audio_seconds
)) AS footprint;
