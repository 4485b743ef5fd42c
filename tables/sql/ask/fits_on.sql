-- fits_on('rtx-4090', 'Qwen/Qwen3-8B', ...): any scenario of footprint_of against one card, on gpu_count of them.
--
-- A verdict is of the cards that were named: fits where each of gpu_count of them gives what it needs.
-- engine_setting is what the engine has to be told for it, where its defaults leave too little.
-- Units: bytes per GPU. Source: footprints, gpu, runs_on. Not covered: mixed cards.

CREATE OR REPLACE MACRO fits_on(gpu_id, {parameters}) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id),
seeing AS (SELECT DISTINCT layer.model_id FROM attention_layer AS layer WHERE layer.component = 'vision'),
windowed AS (SELECT DISTINCT layer.model_id FROM attention_layer AS layer WHERE layer.window_tokens IS NOT NULL),
scenario_asked AS (SELECT {arguments}),
-- (asked once: each subquery is planned as a join of its own)
answered AS (
    SELECT told.*, told.model_id IN (FROM windowed) AS has_windows, told.model_id IN (FROM seeing) AS sees
    FROM footprints_in('scenario_asked', phase_id, is_plain := {is_plain}) AS told
)
SELECT
    coalesce(gpu.gpu_id, card_asked.gpu_id) AS gpu_id, footprint.model_id, footprint.dtype_id, footprint.phase_id,
    footprint.engine_id, footprint.context_tokens, footprint.sequences, footprint.gpu_count,
    footprint.total_bytes, gpu.capacity_bytes, gpu.capacity_bytes - footprint.total_bytes AS headroom_bytes,
    CASE WHEN coalesce(card_reason(running), kv_reason(kv, gpu.vendor, gpu.compute_capability)) IS NULL
        THEN card_verdict(footprint.total_bytes, footprint.error_band, gpu.capacity_bytes, 1) END
            AS verdict,
    no_verdict_reason(gpu.gpu_id, card_asked.gpu_id, footprint.total_bytes, footprint.unknown_reason,
        footprint.model_id,
        coalesce(card_reason(running), kv_reason(kv, gpu.vendor, gpu.compute_capability))) AS unknown_reason,
    iif(footprint.total_bytes IS NULL, NULL, nullif(concat_ws(' ',
        share_needed(footprint.engine_id, footprint.total_bytes, gpu.capacity_bytes,
            default_share(footprint, constants)),
        requests_needed(footprint, model.vocab_size, gpu.name, gpu.memory_gib_nominal, gpu.capacity_bytes, constants),
        tokens_needed(footprint, footprint.has_windows,
            read_beyond_bytes(footprint, footprint.has_windows,
                vllm_read_tokens(gpu.name, gpu.memory_gib_nominal, constants), constants),
            gpu.capacity_bytes, constants),
        static_share_needed(footprint.engine_id, footprint.weights_bytes + footprint.kv_cache_bytes
            + footprint.kv_padding_bytes + footprint.state_bytes, footprint.total_bytes,
            gpu.capacity_bytes, gpu.memory_gib_nominal, footprint.gpu_count, footprint.sees,
            communication_bytes(footprint, constants), constants),
        slots_needed(footprint, footprint.has_windows),
        prompts_needed(footprint, constants),
        inputs_needed(footprint.engine_id, footprint.images, footprint.sees)), ''))
        AS engine_setting, footprint.holds_for
FROM card_asked
JOIN answered AS footprint ON true
LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
LEFT JOIN model ON model.model_id = footprint.model_id
LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = footprint.kv_dtype_id
LEFT JOIN runs_on AS running
    ON running.engine_id = footprint.engine_id AND running.dtype_id = running_format(model, footprint.dtype_id)
        AND running.phase_id = footprint.phase_id
    AND running.attention = footprint.attention AND running.gpu_id = gpu.gpu_id
CROSS JOIN constants_row;
