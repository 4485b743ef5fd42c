-- The table of verdicts: every published scenario on every card, by the rules of verdict.sql, with the limits of
-- limits.sql.
--
--   verdict            null where the footprint is not known, or no source says that the engine runs the format on this
--                      card, or one says that it does not; unknown_reason says which
--   gpu_count_needed   the number of cards that answers: `chosen`
--
-- Units: bytes per GPU; total_bytes is that of gpu_count_needed GPUs, or of one where nothing fits. A null total has a
-- null verdict and its reason. Source: footprint, gpu, runs_on. Not covered: counts beyond those of scenario_set.csv,
-- mixed cards, offload to the CPU.

-- One row per scenario, its totals by GPU count.
CREATE OR REPLACE VIEW scenario_totals AS
SELECT
    model_id, dtype_id, phase_id, engine_id, context_tokens, sequences, kv_dtype_id, optimizer_id, precision,
    checkpointing,
    list({'gpu_count': gpu_count, 'sharding': sharding, 'total': total_bytes,
        'need': needed(total_bytes, error_band)} ORDER BY gpu_count)
        FILTER (total_bytes IS NOT NULL) AS totals,
    arg_min(unknown_reason, gpu_count) AS unknown_reason, any_value(attention) AS attention
FROM footprint
GROUP BY ALL;

CREATE OR REPLACE VIEW compatibility AS
WITH judged AS (
    SELECT
        scenario.* EXCLUDE (totals, unknown_reason), gpu.gpu_id, gpu.capacity_bytes, scenario.totals,
        iif(scenario.totals IS NULL, scenario.unknown_reason, card_reason(running)) AS unknown_reason,
        iif(card_reason(running) IS NULL, scenario.totals, NULL) AS running_totals,
        chosen(running_totals, gpu.capacity_bytes) AS chosen,
        verdict_of(running_totals, chosen, gpu.capacity_bytes) AS verdict
    FROM scenario_totals AS scenario
    JOIN model ON model.model_id = scenario.model_id
    JOIN gpu ON true
    LEFT JOIN runs_on_kind AS running
        ON running.engine_id = scenario.engine_id
            AND running.running_id = running_format(model, scenario.dtype_id, scenario.engine_id)
            AND running.phase_id = scenario.phase_id
        AND running.attention = scenario.attention AND running.card_kind = card_kind(gpu)
)
SELECT
    judged.model_id, judged.dtype_id, judged.phase_id, judged.engine_id, judged.context_tokens, judged.sequences,
    judged.kv_dtype_id, judged.optimizer_id, judged.precision,
    judged.checkpointing, judged.gpu_id,
    coalesce(chosen.total, totals[1].total) AS total_bytes,
    chosen.gpu_count AS gpu_count_needed,
    coalesce(chosen.sharding, totals[1].sharding) AS sharding,
    verdict,
    CASE WHEN verdict IS NOT NULL THEN largest_between(context.points, judged.capacity_bytes,
        context_multiple(judged.engine_id, constants)) END
        AS max_context_tokens,
    CASE
        WHEN verdict IS NULL THEN NULL
        WHEN judged.phase_id <> 'inference' THEN largest_between(sequence.points, judged.capacity_bytes, 1)
        ELSE largest_beyond(sequence.points, judged.capacity_bytes, line_end(judged.engine_id, constants))
    END::BIGINT AS max_sequences,
    iif(verdict IS NULL, unknown_reason, NULL) AS unknown_reason
FROM judged
LEFT JOIN context_points AS context
    ON context.model_id = judged.model_id AND context.dtype_id = judged.dtype_id AND context.phase_id = judged.phase_id
        AND context.engine_id = judged.engine_id
    AND context.sequences = judged.sequences
    AND context.kv_dtype_id IS NOT DISTINCT FROM judged.kv_dtype_id
        AND context.optimizer_id IS NOT DISTINCT FROM judged.optimizer_id
    AND context.precision IS NOT DISTINCT FROM judged.precision
        AND context.checkpointing IS NOT DISTINCT FROM judged.checkpointing
LEFT JOIN sequence_points AS sequence
    ON sequence.model_id = judged.model_id AND sequence.dtype_id = judged.dtype_id
        AND sequence.phase_id = judged.phase_id AND sequence.engine_id = judged.engine_id
    AND sequence.context_tokens = judged.context_tokens
    AND sequence.kv_dtype_id IS NOT DISTINCT FROM judged.kv_dtype_id
        AND sequence.optimizer_id IS NOT DISTINCT FROM judged.optimizer_id
    AND sequence.precision IS NOT DISTINCT FROM judged.precision
        AND sequence.checkpointing IS NOT DISTINCT FROM judged.checkpointing
CROSS JOIN constants_row;
