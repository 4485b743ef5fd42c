-- How far a card goes: the longest context and the most sequences of any scenario, to the token and to the sequence.
--
--   limits_on('rtx-4090', 'Qwen/Qwen3-8B', phase_id := 'lora', checkpointing := 'full', ...)
--     max_context_tokens  the longest context at this many sequences whose total, error band included, the card gives; one step more does not
--                         fit. A step is one token, or context_parallel of them. 0 where not even the first step fits
--     max_sequences       the most sequences (in training the micro-batch of a GPU) at this context
--     ..._bound           what ends it: 'card'; 'model' (its own longest context, or max_context_tokens := n); 'engine' (vLLM runs no more by
--                         default); 'search' (1,048,576, beyond which nobody looked)
--
-- Takes what footprint_of takes. The forward formula is asked twice: at 1024 places of the whole range, then at every step between the last
-- place that fits and the first one that does not. The limits of the view `compatibility` lie on lines between points that are published:
-- never above these, often below.
-- Units: tokens of each sequence, sequences. Source: footprints, gpu, runs_on; constant.csv for vLLM's default.
-- Not covered: totals that fall again as a scenario grows, which the engine vllm-0.8 has at its chunks: the first end is told.

CREATE OR REPLACE MACRO limits_on(
    gpu_id, model_id, dtype_id := NULL, phase_id := 'inference', context_tokens := NULL, sequences := 1, kv_dtype_id := NULL,
    optimizer_id := NULL, checkpointing := NULL, lora_rank := NULL, lora_targets := NULL, precision := NULL, attention := NULL,
    sharding := NULL, gpu_count := NULL, engine_id := NULL, adapter := NULL, loss := NULL, gradient_accumulation := NULL, ema := NULL,
    optimizer_rank := NULL, max_context_tokens := NULL,
    tensor_parallel := NULL, pipeline_parallel := NULL, context_parallel := NULL, expert_parallel := NULL, micro_batches_in_flight := NULL,
    sequence_parallel := NULL, offload := NULL, images := NULL, image_width := NULL, image_height := NULL,
    audio_seconds := NULL
) AS TABLE
WITH limit_card AS (
    SELECT asked.gpu_id, gpu.capacity_bytes, iif(gpu.gpu_id IS NULL, unknown_gpu_reason(asked.gpu_id), NULL) AS reason
    FROM (SELECT gpu_id AS gpu_id) AS asked LEFT JOIN gpu ON gpu.gpu_id = asked.gpu_id
),
limit_asked AS (
    SELECT
        model_id AS model_id, dtype_id AS dtype_id, phase_id AS phase_id, engine_id AS engine_id,
        context_tokens AS context_tokens, sequences AS sequences, images AS images, image_width AS image_width, image_height AS image_height,
        audio_seconds AS audio_seconds, kv_dtype_id AS kv_dtype_id, optimizer_id AS optimizer_id,
        precision AS precision, checkpointing AS checkpointing, lora_rank AS lora_rank, lora_targets AS lora_targets,
        attention AS attention, sharding AS sharding, gpu_count AS gpu_count, adapter AS adapter, loss AS loss,
        gradient_accumulation AS gradient_accumulation, ema AS ema, optimizer_rank AS optimizer_rank,
        max_context_tokens AS max_context_tokens,
        tensor_parallel AS tensor_parallel, pipeline_parallel AS pipeline_parallel, context_parallel AS context_parallel,
        expert_parallel AS expert_parallel, micro_batches_in_flight AS micro_batches_in_flight, sequence_parallel AS sequence_parallel,
        offload AS offload
),
-- what was asked, and its axes: how far each is looked along and in which steps
limit_base AS MATERIALIZED (
    SELECT a.* REPLACE (coalesce(a.context_tokens, default_context_tokens(m, a.phase_id))::BIGINT AS context_tokens,
            coalesce(a.sequences, 1)::BIGINT AS sequences),
        greatest(coalesce(a.context_parallel, 1), 1)::BIGINT AS step,
        greatest(coalesce(a.max_context_tokens, m.max_context_tokens, 1048576), 1)::BIGINT AS longest
    FROM limit_asked AS a LEFT JOIN shape_row ON shape_row.model_id = a.model_id
),
limit_axis AS MATERIALIZED (
    SELECT 'context' AS axis, step, greatest(longest // step, 1) AS steps FROM limit_base
    UNION ALL
    SELECT 'sequences', 1, 1048576
),
limit_places AS (
    SELECT axis, least(place * ceil(steps / 1024)::BIGINT, steps) * step AS tried FROM limit_axis CROSS JOIN unnest(range(1, 1025)) AS places(place)
),
limit_far AS MATERIALIZED (
    SELECT DISTINCT base.* EXCLUDE (step, longest)
        REPLACE (iif(p.axis = 'context', p.tried, base.context_tokens) AS context_tokens, iif(p.axis = 'context', base.sequences, p.tried) AS sequences)
    FROM limit_base AS base CROSS JOIN limit_places AS p
    UNION
    SELECT * EXCLUDE (step, longest) FROM limit_base
),
limit_first AS MATERIALIZED (
    SELECT f.*, f.total_bytes * (1 + f.error_band) <= limit_card.capacity_bytes AS is_enough,
        f.context_tokens = limit_base.context_tokens AS is_context, f.sequences = limit_base.sequences AS are_sequences
    FROM footprints('limit_far') AS f CROSS JOIN limit_card CROSS JOIN limit_base
),
-- of each axis the first place that does not fit, and the last before it that does
limit_gap AS MATERIALIZED (
    SELECT axis.*, ends.first_over, coalesce((SELECT max(iif(axis.axis = 'context', f.context_tokens, f.sequences)) FROM limit_first AS f
        WHERE f.is_enough AND iif(axis.axis = 'context', f.are_sequences, f.is_context)
            AND coalesce(iif(axis.axis = 'context', f.context_tokens, f.sequences) < ends.first_over, true)), 0) AS last_enough
    FROM limit_axis AS axis
    JOIN (
        SELECT 'context' AS axis, min(f.context_tokens) FILTER (NOT f.is_enough AND f.are_sequences) AS first_over FROM limit_first AS f
        UNION ALL
        SELECT 'sequences', min(f.sequences) FILTER (NOT f.is_enough AND f.is_context) FROM limit_first AS f
    ) AS ends ON ends.axis = axis.axis
),
limit_near AS MATERIALIZED (
    SELECT DISTINCT base.* EXCLUDE (step, longest)
        REPLACE (iif(gap.axis = 'context', tried, base.context_tokens) AS context_tokens, iif(gap.axis = 'context', base.sequences, tried) AS sequences)
    FROM limit_base AS base CROSS JOIN limit_gap AS gap
        CROSS JOIN unnest(range(gap.last_enough + gap.step, gap.first_over, gap.step)) AS places(tried)
),
limit_second AS MATERIALIZED (
    SELECT f.context_tokens, f.sequences, f.total_bytes * (1 + f.error_band) <= limit_card.capacity_bytes AS is_enough,
        f.context_tokens = limit_base.context_tokens AS is_context, f.sequences = limit_base.sequences AS are_sequences
    FROM footprints('limit_near') AS f CROSS JOIN limit_card CROSS JOIN limit_base
),
limit_found AS MATERIALIZED (
    SELECT gap.axis, gap.step, gap.steps, gap.first_over, greatest(gap.last_enough, coalesce((
        SELECT max(iif(gap.axis = 'context', f.context_tokens, f.sequences)) FROM limit_second AS f
        WHERE f.is_enough AND iif(gap.axis = 'context', f.are_sequences, f.is_context)
            AND iif(gap.axis = 'context', f.context_tokens, f.sequences) < coalesce((
                SELECT min(iif(gap.axis = 'context', g.context_tokens, g.sequences)) FROM limit_second AS g
                WHERE NOT g.is_enough AND iif(gap.axis = 'context', g.are_sequences, g.is_context)), gap.first_over)), 0)) AS found
    FROM limit_gap AS gap
),
limit_told AS (
    SELECT f.*, limit_card.gpu_id AS card_id,
        iif(starts_with(f.engine_id, 'vllm') OR f.engine_id = 'sglang', k.vllm_default_sequences::BIGINT, NULL) AS most_by_engine,
        CASE
            WHEN limit_card.reason IS NOT NULL THEN limit_card.reason
            WHEN f.total_bytes IS NULL THEN with_nearest(f.unknown_reason, f.model_id)
            ELSE coalesce(card_reason(r), kv_reason(f.kv_dtype_id, gpu.vendor, gpu.compute_capability))
        END AS reason
    FROM (SELECT DISTINCT * EXCLUDE (is_enough) FROM limit_first WHERE is_context AND are_sequences) AS f
    JOIN limit_card ON true
    LEFT JOIN model AS m ON m.model_id = f.model_id
    LEFT JOIN gpu ON gpu.gpu_id = limit_card.gpu_id
    LEFT JOIN runs_on AS r
        ON r.engine_id = f.engine_id AND r.dtype_id = running_format(m, f.dtype_id) AND r.phase_id = f.phase_id
        AND r.attention = f.attention AND r.gpu_id = limit_card.gpu_id
    CROSS JOIN constants_row
)
SELECT
    t.card_id AS gpu_id, t.model_id, t.dtype_id, t.phase_id, t.engine_id, t.context_tokens, t.sequences, t.gpu_count, t.sharding,
    iif(t.reason IS NULL, c.found, NULL) AS max_context_tokens,
    CASE
        WHEN t.reason IS NOT NULL THEN NULL
        WHEN c.first_over IS NOT NULL THEN 'card'
        WHEN base.max_context_tokens IS NULL AND model.max_context_tokens IS NULL THEN 'search'
        ELSE 'model'
    END AS max_context_bound,
    iif(t.reason IS NULL, least(s.found, t.most_by_engine), NULL) AS max_sequences,
    CASE
        WHEN t.reason IS NOT NULL THEN NULL
        WHEN s.found >= t.most_by_engine THEN 'engine'
        WHEN s.first_over IS NOT NULL THEN 'card'
        ELSE 'search'
    END AS max_sequences_bound,
    t.reason AS unknown_reason
FROM limit_told AS t
JOIN limit_found AS c ON c.axis = 'context'
JOIN limit_found AS s ON s.axis = 'sequences'
LEFT JOIN model ON model.model_id = t.model_id
CROSS JOIN limit_base AS base;
