-- Verdicts: a footprint against what a card gives.
--
--   fits       total_bytes × (1 + error_band) ≤ capacity_bytes on one GPU
--   tight      total_bytes ≤ capacity_bytes on one GPU, but the error band does not fit
--   multi-gpu  the same as fits, on more GPUs of this kind: gpu_count_needed
--   no         not on any GPU count of the lookup
--
-- Units: bytes per GPU; total_bytes is that of gpu_count_needed GPUs, or of one where nothing fits. A null total has a null verdict
-- and its reason. Source: footprint, gpu. Not covered: counts beyond those of scenario_set.csv, mixed cards, offload to the CPU.

-- One row per scenario, its totals by GPU count.
CREATE OR REPLACE VIEW scenario_totals AS
SELECT
    model_id, dtype_id, phase_id, engine_id, context_tokens, sequences, kv_dtype_id, optimizer_id, precision, checkpointing,
    list({'gpu_count': gpu_count, 'sharding': sharding, 'total': total_bytes, 'band': error_band} ORDER BY gpu_count)
        FILTER (total_bytes IS NOT NULL) AS totals,
    arg_min(unknown_reason, gpu_count) AS unknown_reason
FROM footprint
GROUP BY ALL;

CREATE OR REPLACE MACRO fitting(totals, capacity) AS
    list_filter(totals, lambda t: t.total * (1 + t.band) <= capacity)[1];

CREATE OR REPLACE MACRO verdict(totals, capacity) AS CASE
    WHEN totals IS NULL THEN NULL
    WHEN fitting(totals, capacity).gpu_count = 1 THEN 'fits'
    WHEN totals[1].gpu_count = 1 AND totals[1].total <= capacity THEN 'tight'
    WHEN fitting(totals, capacity) IS NOT NULL THEN 'multi-gpu'
    ELSE 'no'
END;

CREATE OR REPLACE VIEW compatibility AS
WITH judged AS (
    SELECT
        s.* EXCLUDE (totals, unknown_reason), gpu_id, s.totals, s.unknown_reason,
        verdict(s.totals, gpu.capacity_bytes) AS verdict,
        CASE verdict(s.totals, gpu.capacity_bytes) WHEN 'no' THEN NULL WHEN 'tight' THEN s.totals[1]
            ELSE fitting(s.totals, gpu.capacity_bytes) END AS chosen
    FROM scenario_totals AS s CROSS JOIN gpu
)
SELECT
    model_id, dtype_id, phase_id, engine_id, context_tokens, sequences, kv_dtype_id, optimizer_id, precision, checkpointing, gpu_id,
    coalesce(chosen.total, totals[1].total) AS total_bytes,
    chosen.gpu_count AS gpu_count_needed,
    coalesce(chosen.sharding, totals[1].sharding) AS sharding,
    verdict,
    if(verdict IS NULL, unknown_reason, NULL) AS unknown_reason
FROM judged;
