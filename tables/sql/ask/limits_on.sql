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
WITH RECURSIVE limit_card AS MATERIALIZED (
    SELECT asked.gpu_id, gpu.gpu_id AS card_id, gpu.capacity_bytes
    FROM (SELECT gpu_id::VARCHAR AS gpu_id) AS asked LEFT JOIN gpu ON gpu.gpu_id = lower(asked.gpu_id)
),
limit_asked AS (
    SELECT
        known_model(model_id) AS model_id, dtype_id AS dtype_id, phase_id AS phase_id, engine_id AS engine_id,
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
    SELECT a.* REPLACE (coalesce(a.context_tokens, default_context_tokens(m, lower(a.phase_id::VARCHAR))) AS context_tokens, coalesce(a.sequences, 1) AS sequences),
        asked_number(coalesce(a.context_tokens, default_context_tokens(m, lower(a.phase_id::VARCHAR)))) AS context_asked,
        asked_number(coalesce(a.sequences, 1)) AS sequences_asked,
        least(greatest(coalesce(asked_number(a.context_parallel), 1), 1), k.most_gpu_count)::BIGINT AS step,
        least(greatest(coalesce(asked_number(a.max_context_tokens), m.max_context_tokens, 1048576), 1), k.most_context_tokens)::BIGINT AS longest
    FROM limit_asked AS a LEFT JOIN shape_row ON shape_row.model_id = a.model_id CROSS JOIN constants_row
),
limit_axis AS MATERIALIZED (
    SELECT 'context' AS axis, step, greatest(longest // step, 1) AS steps FROM limit_base
    UNION ALL
    SELECT 'sequences', 1, 1048576
),
-- the search, the formulas asked in two rounds: of each axis the first place that does not fit, and the last before it that does. It is one
-- recursion so that the formulas are planned once
limit_search AS (
    SELECT 0 AS round, axis, step, steps, 0::BIGINT AS last_enough, NULL::BIGINT AS first_over,
        NULL::STRUCT(model_id VARCHAR, dtype_id VARCHAR, phase_id VARCHAR, engine_id VARCHAR, context_tokens BIGINT, sequences BIGINT, gpu_count BIGINT,
            sharding VARCHAR, attention VARCHAR, kv_dtype_id VARCHAR, total_bytes BIGINT, unknown_reason VARCHAR) AS told
    FROM limit_axis
    UNION ALL
    (
        WITH limit_place AS (
            SELECT s.axis, least(place * ceil(s.steps / 1024)::BIGINT, s.steps) * s.step AS tried
            FROM limit_search AS s CROSS JOIN unnest(range(1, 1025)) AS places(place) WHERE s.round = 0
            UNION ALL
            SELECT s.axis, tried
            FROM limit_search AS s CROSS JOIN unnest(range(s.last_enough + s.step, s.first_over, s.step)) AS places(tried) WHERE s.round = 1
        ),
        limit_step AS (
            SELECT DISTINCT base.* EXCLUDE (context_asked, sequences_asked, step, longest)
                REPLACE (iif(p.axis = 'context', p.tried, base.context_tokens) AS context_tokens,
                    iif(p.axis = 'context', base.sequences, p.tried) AS sequences)
            FROM limit_base AS base CROSS JOIN limit_place AS p
            UNION
            SELECT base.* EXCLUDE (context_asked, sequences_asked, step, longest) FROM limit_base AS base CROSS JOIN limit_search AS s WHERE s.round = 0
        ),
        limit_answer AS (
            SELECT axis.axis, iif(axis.axis = 'context', f.context_tokens, f.sequences) AS place,
                takes(f.total_bytes, f.error_band, limit_card.capacity_bytes) AS is_enough,
                iif(axis.axis = 'context', f.sequences IS NOT DISTINCT FROM limit_base.sequences_asked,
                    f.context_tokens IS NOT DISTINCT FROM limit_base.context_asked) AS is_on_axis,
                f.sequences IS NOT DISTINCT FROM limit_base.sequences_asked AND f.context_tokens IS NOT DISTINCT FROM limit_base.context_asked AS is_asked,
                {'model_id': f.model_id, 'dtype_id': f.dtype_id, 'phase_id': f.phase_id, 'engine_id': f.engine_id, 'context_tokens': f.context_tokens,
                    'sequences': f.sequences, 'gpu_count': f.gpu_count, 'sharding': f.sharding, 'attention': f.attention, 'kv_dtype_id': f.kv_dtype_id,
                    'total_bytes': f.total_bytes, 'unknown_reason': f.unknown_reason} AS told
            FROM footprints_in('limit_step', phase_id, is_plain := is_plain_scenario(lora_rank, lora_targets, precision, sharding, adapter, loss, gradient_accumulation, ema, optimizer_rank, max_context_tokens,
    tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, micro_batches_in_flight, sequence_parallel, offload, images, image_width, image_height,
    audio_seconds)) AS f CROSS JOIN limit_axis AS axis CROSS JOIN limit_card CROSS JOIN limit_base
        ),
        limit_end AS (
            SELECT axis, min(place) FILTER (NOT is_enough AND is_on_axis) AS first_over, any_value(told) FILTER (is_asked) AS told
            FROM limit_answer GROUP BY axis
        ),
        limit_reached AS (
            SELECT answer.axis, max(answer.place) AS last_enough
            FROM limit_answer AS answer JOIN limit_end ON limit_end.axis = answer.axis
            WHERE answer.is_enough AND answer.is_on_axis AND coalesce(answer.place < limit_end.first_over, true)
            GROUP BY answer.axis
        )
        SELECT s.round + 1, s.axis, s.step, s.steps, greatest(s.last_enough, reached.last_enough), coalesce(limit_end.first_over, s.first_over),
            coalesce(s.told, limit_end.told)
        FROM limit_search AS s
        LEFT JOIN limit_end ON limit_end.axis = s.axis
        LEFT JOIN limit_reached AS reached ON reached.axis = s.axis
        WHERE s.round < 2
    )
),
limit_found AS MATERIALIZED (FROM limit_search WHERE round = 2),
limit_told AS (
    SELECT f.*, coalesce(gpu.gpu_id, limit_card.gpu_id) AS card_id, most_requests(f.engine_id, k) AS most_by_engine,
        no_verdict_reason(gpu.gpu_id, limit_card.gpu_id, f.total_bytes, f.unknown_reason, f.model_id,
            coalesce(card_reason(r), kv_reason(kv, gpu.vendor, gpu.compute_capability))) AS reason
    FROM (SELECT unnest(told) FROM limit_found WHERE axis = 'context') AS f
    JOIN limit_card ON true
    LEFT JOIN model AS m ON m.model_id = f.model_id
    LEFT JOIN gpu ON gpu.gpu_id = limit_card.card_id
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = f.kv_dtype_id
    LEFT JOIN runs_on AS r
        ON r.engine_id = f.engine_id AND r.dtype_id = running_format(m, f.dtype_id) AND r.phase_id = f.phase_id
        AND r.attention = f.attention AND r.gpu_id = gpu.gpu_id
    CROSS JOIN constants_row
)
SELECT
    t.card_id AS gpu_id, t.model_id, t.dtype_id, t.phase_id, t.engine_id, t.context_tokens, t.sequences, t.gpu_count, t.sharding,
    iif(t.reason IS NULL, c.last_enough, NULL) AS max_context_tokens,
    CASE
        WHEN t.reason IS NOT NULL THEN NULL
        WHEN c.first_over IS NOT NULL THEN 'card'
        WHEN base.max_context_tokens IS NULL AND model.max_context_tokens IS NULL THEN 'search'
        ELSE 'model'
    END AS max_context_bound,
    iif(t.reason IS NULL, least(s.last_enough, t.most_by_engine), NULL) AS max_sequences,
    CASE
        WHEN t.reason IS NOT NULL THEN NULL
        WHEN s.last_enough >= t.most_by_engine THEN 'engine'
        WHEN s.first_over IS NOT NULL THEN 'card'
        ELSE 'search'
    END AS max_sequences_bound,
    t.reason AS unknown_reason
FROM limit_told AS t
JOIN limit_found AS c ON c.axis = 'context'
JOIN limit_found AS s ON s.axis = 'sequences'
LEFT JOIN model ON model.model_id = t.model_id
CROSS JOIN limit_base AS base;
