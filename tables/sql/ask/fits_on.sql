-- fits_on('rtx-4090', 'Qwen/Qwen3-8B', ...): any scenario of footprint_of against one card, on gpu_count of them.
--
-- engine_setting is what the engine has to be told for it, where its defaults leave too little.
-- Units: bytes per GPU. Source: footprints, gpu, runs_on. Not covered: mixed cards.

-- fits_on('rtx-4090', 'Qwen/Qwen3-8B', ...): any scenario of footprint_of against one card, on gpu_count of them.
-- engine_setting is what the engine has to be told for it, where its defaults leave too little.
CREATE OR REPLACE MACRO fits_on(
    gpu_id, model_id, dtype_id := NULL, phase_id := 'inference', context_tokens := NULL, sequences := 1,
    kv_dtype_id := NULL,
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
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id),
seeing AS (SELECT DISTINCT layer.model_id FROM attention_layer AS layer WHERE layer.component = 'vision'),
scenario_asked AS (
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
SELECT
    coalesce(gpu.gpu_id, card_asked.gpu_id) AS gpu_id, footprint.model_id, footprint.dtype_id, footprint.phase_id,
    footprint.engine_id, footprint.context_tokens, footprint.sequences, footprint.gpu_count,
    footprint.total_bytes, gpu.capacity_bytes, gpu.capacity_bytes - footprint.total_bytes AS headroom_bytes,
    CASE WHEN coalesce(card_reason(running), kv_reason(kv, gpu.vendor, gpu.compute_capability)) IS NULL
        THEN card_verdict(footprint.total_bytes, footprint.error_band, gpu.capacity_bytes, footprint.gpu_count) END
            AS verdict,
    no_verdict_reason(gpu.gpu_id, card_asked.gpu_id, footprint.total_bytes, footprint.unknown_reason,
        footprint.model_id,
        coalesce(card_reason(running), kv_reason(kv, gpu.vendor, gpu.compute_capability))) AS unknown_reason,
    iif(footprint.total_bytes IS NULL, NULL, nullif(concat_ws(' ',
        share_needed(footprint.engine_id, footprint.total_bytes, gpu.capacity_bytes, constants),
        requests_needed(footprint.engine_id, footprint.sequences, footprint.total_bytes, footprint.activations_bytes,
            model.vocab_size, gpu.name, gpu.memory_gib_nominal,
            gpu.capacity_bytes, constants),
        static_share_needed(footprint.engine_id, footprint.weights_bytes + footprint.kv_cache_bytes
            + footprint.kv_padding_bytes + footprint.state_bytes, footprint.total_bytes,
            gpu.capacity_bytes, gpu.memory_gib_nominal, footprint.gpu_count, footprint.model_id IN (FROM seeing),
            communication_bytes(footprint, constants), constants),
        inputs_needed(footprint.engine_id, footprint.images, footprint.model_id IN (FROM seeing))), ''))
        AS engine_setting
FROM card_asked
JOIN footprints_in('scenario_asked', phase_id, is_plain := is_plain_scenario(
    lora_rank, lora_targets, precision, sharding, adapter, loss, gradient_accumulation, ema, optimizer_rank,
    max_context_tokens, tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, micro_batches_in_flight,
    sequence_parallel, offload, images, image_width, image_height, audio_seconds
)) AS footprint ON true
LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
LEFT JOIN model ON model.model_id = footprint.model_id
LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = footprint.kv_dtype_id
LEFT JOIN runs_on AS running
    ON running.engine_id = footprint.engine_id AND running.dtype_id = running_format(model, footprint.dtype_id)
        AND running.phase_id = footprint.phase_id
    AND running.attention = footprint.attention AND running.gpu_id = gpu.gpu_id
CROSS JOIN constants_row;
