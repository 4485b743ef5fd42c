-- fits_on('rtx-4090', 'Qwen/Qwen3-8B', ...): any scenario of footprint_of against one card, on gpu_count of them.
--
-- A verdict is of the cards that were named: fits where each of gpu_count of them gives what it needs.
-- engine_setting is what the engine has to be told for it, where its defaults leave too little.
-- Units: bytes per GPU. Source: footprints, gpu, runs_on. Not covered: mixed cards.

CREATE OR REPLACE MACRO fits_on(gpu_id, {parameters}) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id),
windowed AS (SELECT DISTINCT layer.model_id FROM attention_layer AS layer WHERE layer.window_tokens IS NOT NULL),
scenario_asked AS (SELECT {arguments}),
-- (asked once: each subquery is planned as a join of its own)
answered AS (
    SELECT told.*, model.vocab_size, running_format(model, told.dtype_id, told.engine_id) AS running_format,
        told.model_id IN (FROM windowed) AS has_windows, seeing.model_id IS NOT NULL AS sees, seeing.has_counted_tower,
        sharing.data_setting, sharing.expert_setting, sharing.context_setting, kv,
        cache_setting(kv, told.program) AS kv_setting
    FROM footprints_in('scenario_asked', phase_id, is_plain := {is_plain}, is_usual := {is_usual}) AS told
    LEFT JOIN model ON model.model_id = told.model_id
    LEFT JOIN seeing_model AS seeing ON seeing.model_id = told.model_id
    LEFT JOIN data_parallel_rule AS sharing ON sharing.engine_id = told.engine_id
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = told.kv_dtype_id
),
-- (a row in one column: of a table's row DuckDB plans all columns each time that a macro reads one of them)
judged AS (
    SELECT footprint, card, card_asked.gpu_id AS card_name,
        coalesce(card_reason(running), images_reason(running, footprint.images),
            program_card_reason(footprint, card),
            kv_reason(footprint.kv, older.least_capability, card.vendor, card.compute_capability)) AS not_there
    FROM card_asked
    JOIN (SELECT answered AS footprint FROM answered) ON true
    LEFT JOIN card_row ON card_row.gpu_id = lower(card_asked.gpu_id)
    LEFT JOIN kv_older AS older ON older.kv_dtype_id = footprint.kv_dtype_id AND older.engine_id = footprint.engine_id
        AND older.model_id = footprint.model_id AND is_from(footprint.program_version, older.min_version)
    LEFT JOIN runs_on_kind AS running
        ON running.engine_id = footprint.engine_id AND running.running_id = footprint.running_format
            AND running.phase_id = footprint.phase_id
        AND running.attention = footprint.attention AND running.card_kind = card.card_kind
)
SELECT
    coalesce(card.gpu_id, card_name) AS gpu_id, footprint.model_id, footprint.dtype_id, footprint.phase_id,
    footprint.engine_id, footprint.context_tokens, footprint.sequences, footprint.gpu_count,
    footprint.total_bytes, card.capacity_bytes, card.capacity_bytes - footprint.total_bytes AS headroom_bytes,
    iif(not_there IS NULL, card_verdict(footprint.total_bytes, footprint.error_band, card.capacity_bytes, 1), NULL)
        AS verdict,
    with_nearest_once(missing_reason(card.gpu_id, card_name, footprint.total_bytes, footprint.unknown_reason,
        not_there), footprint.model_id) AS unknown_reason,
    engine_setting(footprint, card, constants) AS engine_setting, footprint.holds_for
FROM judged
CROSS JOIN constants_row;
