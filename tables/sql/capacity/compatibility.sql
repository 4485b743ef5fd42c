-- Verdicts: a footprint against what a card gives.
--
--   fits       total_bytes × (1 + error_band) ≤ capacity_bytes on one GPU
--   tight      total_bytes ≤ capacity_bytes, but the error band does not fit: on one GPU, or, where the band fits on no count, on the
--              fewest that take the total: gpu_count_needed
--   multi-gpu  the same as fits, on more GPUs of this kind: gpu_count_needed
--   no         the total is larger than the card on every GPU count of the lookup
--   null       the footprint is not known, or no source says that the engine runs the format on this card, or one says that it does not;
--              unknown_reason says which
--
-- Units: bytes per GPU; total_bytes is that of gpu_count_needed GPUs, or of one where nothing fits. A null total has a null verdict
-- and its reason. Source: footprint, gpu, runs_on. Not covered: counts beyond those of scenario_set.csv, mixed cards, offload to the CPU.

-- One row per scenario, its totals by GPU count.
CREATE OR REPLACE VIEW scenario_totals AS
SELECT
    model_id, dtype_id, phase_id, engine_id, context_tokens, sequences, kv_dtype_id, optimizer_id, precision, checkpointing,
    list({'gpu_count': gpu_count, 'sharding': sharding, 'total': total_bytes, 'band': error_band} ORDER BY gpu_count)
        FILTER (total_bytes IS NOT NULL) AS totals,
    arg_min(unknown_reason, gpu_count) AS unknown_reason, any_value(attention) AS attention
FROM footprint
GROUP BY ALL;

CREATE OR REPLACE VIEW compatibility AS
WITH judged AS (
    SELECT
        s.* EXCLUDE (totals, unknown_reason), gpu.gpu_id, gpu.capacity_bytes, s.totals,
        iif(s.totals IS NULL, s.unknown_reason, card_reason(r)) AS unknown_reason,
        CASE WHEN card_reason(r) IS NULL THEN verdict(s.totals, gpu.capacity_bytes) END AS verdict,
        CASE WHEN card_reason(r) IS NOT NULL OR verdict(s.totals, gpu.capacity_bytes) = 'no' THEN NULL
            WHEN verdict(s.totals, gpu.capacity_bytes) = 'tight' THEN barely_fitting(s.totals, gpu.capacity_bytes)
            ELSE fitting(s.totals, gpu.capacity_bytes) END AS chosen
    FROM scenario_totals AS s
    JOIN model AS m ON m.model_id = s.model_id
    JOIN gpu ON true
    LEFT JOIN runs_on AS r
        ON r.engine_id = s.engine_id AND r.dtype_id = running_format(m, s.dtype_id) AND r.phase_id = s.phase_id
        AND r.attention = s.attention AND r.gpu_id = gpu.gpu_id
)
SELECT
    j.model_id, j.dtype_id, j.phase_id, j.engine_id, j.context_tokens, j.sequences, j.kv_dtype_id, j.optimizer_id, j.precision,
    j.checkpointing, j.gpu_id,
    coalesce(chosen.total, totals[1].total) AS total_bytes,
    chosen.gpu_count AS gpu_count_needed,
    coalesce(chosen.sharding, totals[1].sharding) AS sharding,
    verdict,
    CASE WHEN verdict IS NOT NULL THEN largest_between(c.points, j.capacity_bytes, context_multiple(j.engine_id, k)) END
        AS max_context_tokens,
    CASE
        WHEN verdict IS NULL THEN NULL
        WHEN j.phase_id <> 'inference' THEN largest_between(s.points, j.capacity_bytes, 1)
        ELSE largest_beyond(s.points, j.capacity_bytes, line_end(j.engine_id, k))
    END::BIGINT AS max_sequences,
    iif(verdict IS NULL, unknown_reason, NULL) AS unknown_reason
FROM judged AS j
LEFT JOIN context_points AS c
    ON c.model_id = j.model_id AND c.dtype_id = j.dtype_id AND c.phase_id = j.phase_id AND c.engine_id = j.engine_id
    AND c.sequences = j.sequences
    AND c.kv_dtype_id IS NOT DISTINCT FROM j.kv_dtype_id AND c.optimizer_id IS NOT DISTINCT FROM j.optimizer_id
    AND c.precision IS NOT DISTINCT FROM j.precision AND c.checkpointing IS NOT DISTINCT FROM j.checkpointing
LEFT JOIN sequence_points AS s
    ON s.model_id = j.model_id AND s.dtype_id = j.dtype_id AND s.phase_id = j.phase_id AND s.engine_id = j.engine_id
    AND s.context_tokens = j.context_tokens
    AND s.kv_dtype_id IS NOT DISTINCT FROM j.kv_dtype_id AND s.optimizer_id IS NOT DISTINCT FROM j.optimizer_id
    AND s.precision IS NOT DISTINCT FROM j.precision AND s.checkpointing IS NOT DISTINCT FROM j.checkpointing
CROSS JOIN constants AS k;
