-- How far a card goes: the longest context and the most sequences of any scenario, to the token and to the sequence.
--
--   limits_on('rtx-4090', 'Qwen/Qwen3-8B', phase_id := 'lora', checkpointing := 'full', ...)
--     max_context_tokens  the longest context at this many sequences whose total, error band included, the card gives;
--                         one step more does not fit. A step is one token, or context_parallel of them. 0 where not
--                             even the first step fits
--     max_sequences       the most sequences (in training the micro-batch of a GPU) at this context
--     ..._bound           what ends it: 'card'; 'model' (its own longest context, or max_context_tokens := n); 'engine'
--                         (vLLM runs no more by default); 'search' (1,048,576, beyond which nobody looked)
--
-- Takes what footprint_of takes. The forward formula is asked twice: at 1024 places of the whole range, then at every
-- step between the last place that fits and the first one that does not. The limits of the view `compatibility` lie on
-- lines between points that are published: never above these, often below.
-- Units: tokens of each sequence, sequences. Source: footprints, gpu, runs_on; constant.csv for vLLM's default.
-- Not covered: totals that fall again as a scenario grows, which the engine vllm-0.8 has at its chunks: the first end
-- is told.

CREATE OR REPLACE MACRO limits_on(gpu_id, {parameters}) AS TABLE
WITH RECURSIVE limit_card AS MATERIALIZED (
    SELECT asked.gpu_id, gpu.gpu_id AS card_id, gpu.capacity_bytes
    FROM (SELECT gpu_id::VARCHAR AS gpu_id) AS asked LEFT JOIN gpu ON gpu.gpu_id = lower(asked.gpu_id)
),
limit_said AS (SELECT {arguments}),
limit_asked AS (
    -- (known_model, by a join)
    SELECT asked.* REPLACE (coalesce(named.model_id, asked.model_id) AS model_id)
    FROM with_program_in('limit_said', {is_plain}) AS asked
    LEFT JOIN model_name AS named ON named.name = lower(asked.model_id)
),
-- what was asked, and its axes: how far each is looked along and in which steps
limit_base AS MATERIALIZED (
    SELECT asked.* EXCLUDE (program_numbers, program_reason, program_holds_for, program_share, program_base) REPLACE (
        coalesce(asked.context_tokens, program_numbers.context_tokens,
            default_context_tokens(model, lower(asked.phase_id::VARCHAR))) AS context_tokens,
        coalesce(asked.sequences, program_numbers.sequences, 1) AS sequences),
        asked_number(coalesce(asked.context_tokens, program_numbers.context_tokens,
            default_context_tokens(model, lower(asked.phase_id::VARCHAR)))) AS context_asked,
        asked_number(coalesce(asked.sequences, program_numbers.sequences, 1)) AS sequences_asked,
        least(greatest(coalesce(asked_number(asked.context_parallel), 1), 1), constants.most_gpu_count)::BIGINT AS step,
        least(greatest(coalesce(asked_number(asked.max_context_tokens), model.max_context_tokens,
            constants.limit_search_most), 1),
            constants.most_context_tokens)::BIGINT AS longest
    FROM limit_asked AS asked LEFT JOIN shape_row ON shape_row.model_id = asked.model_id CROSS JOIN constants_row
),
limit_axis AS MATERIALIZED (
    SELECT 'context' AS axis, step, greatest(longest // step, 1) AS steps FROM limit_base
    UNION ALL
    SELECT 'sequences', 1, limit_search_most::BIGINT FROM constants
),
-- the search, the formulas asked in two rounds: of each axis the first place that does not fit, and the last before it
-- that does. It is one recursion so that the formulas are planned once
limit_search AS (
    SELECT 0 AS round, axis, step, steps, 0::BIGINT AS last_enough, NULL::BIGINT AS first_over,
        NULL::STRUCT(model_id VARCHAR, dtype_id VARCHAR, phase_id VARCHAR, engine_id VARCHAR, context_tokens BIGINT,
            sequences BIGINT, gpu_count BIGINT,
            sharding VARCHAR, attention VARCHAR, kv_dtype_id VARCHAR, total_bytes BIGINT, unknown_reason VARCHAR)
                AS told
    FROM limit_axis
    UNION ALL
    (
        WITH limit_place AS (
            SELECT search.axis, least(unnest(range(1, constants.limit_search_places::BIGINT + 1))
                * ceil(search.steps / constants.limit_search_places)::BIGINT, search.steps) * search.step AS tried
            FROM limit_search AS search CROSS JOIN constants
            WHERE search.round = 0
            UNION ALL
            SELECT search.axis, unnest(range(search.last_enough + search.step, search.first_over, search.step))
            FROM limit_search AS search
            WHERE search.round = 1
        ),
        -- (materialized: rows that are told apart come in small parts, each of which takes the formulas as long as a
        -- large one)
        limit_step AS MATERIALIZED (
            SELECT DISTINCT base.* EXCLUDE (context_asked, sequences_asked, step, longest)
                REPLACE (iif(place.axis = 'context', place.tried, base.context_tokens) AS context_tokens,
                    iif(place.axis = 'context', base.sequences, place.tried) AS sequences)
            FROM limit_base AS base CROSS JOIN limit_place AS place
            UNION
            SELECT base.* EXCLUDE (context_asked, sequences_asked, step, longest) FROM limit_base AS base CROSS
                JOIN limit_search AS search WHERE search.round = 0
        ),
        limit_answer AS (
            SELECT axis.axis, iif(axis.axis = 'context', footprint.context_tokens, footprint.sequences) AS place,
                takes(footprint.total_bytes, footprint.error_band, limit_card.capacity_bytes) AS is_enough,
                iif(axis.axis = 'context', footprint.sequences IS NOT DISTINCT FROM limit_base.sequences_asked,
                    footprint.context_tokens IS NOT DISTINCT FROM limit_base.context_asked) AS is_on_axis,
                footprint.sequences IS NOT DISTINCT FROM limit_base.sequences_asked
                    AND footprint.context_tokens IS NOT DISTINCT FROM limit_base.context_asked AS is_asked,
                {'model_id': footprint.model_id, 'dtype_id': footprint.dtype_id, 'phase_id': footprint.phase_id,
                    'engine_id': footprint.engine_id, 'context_tokens': footprint.context_tokens,
                    'sequences': footprint.sequences, 'gpu_count': footprint.gpu_count, 'sharding': footprint.sharding,
                    'attention': footprint.attention, 'kv_dtype_id': footprint.kv_dtype_id,
                    'total_bytes': footprint.total_bytes, 'unknown_reason': footprint.unknown_reason} AS told
            FROM footprints_in('limit_step', phase_id, is_plain := {is_plain}, is_usual := {is_usual}) AS footprint
            CROSS JOIN limit_axis AS axis CROSS JOIN limit_card CROSS JOIN limit_base
        ),
        limit_end AS (
            SELECT axis, min(place) FILTER (NOT is_enough AND is_on_axis) AS first_over, any_value(told)
                FILTER (is_asked) AS told
            FROM limit_answer GROUP BY axis
        ),
        limit_reached AS (
            SELECT answer.axis, max(answer.place) AS last_enough
            FROM limit_answer AS answer JOIN limit_end ON limit_end.axis = answer.axis
            WHERE answer.is_enough AND answer.is_on_axis AND coalesce(answer.place < limit_end.first_over, true)
            GROUP BY answer.axis
        )
        SELECT search.round + 1, search.axis, search.step, search.steps,
            greatest(search.last_enough, reached.last_enough), coalesce(limit_end.first_over, search.first_over),
            coalesce(search.told, limit_end.told)
        FROM limit_search AS search
        LEFT JOIN limit_end ON limit_end.axis = search.axis
        LEFT JOIN limit_reached AS reached ON reached.axis = search.axis
        WHERE search.round < 2
    )
),
limit_found AS MATERIALIZED (FROM limit_search WHERE round = 2),
limit_told AS (
    SELECT footprint.*, coalesce(gpu.gpu_id, limit_card.gpu_id) AS card_id,
        most_requests(footprint.engine_id, constants) AS most_by_engine,
        with_nearest_once(missing_reason(gpu.gpu_id, limit_card.gpu_id, footprint.total_bytes,
            footprint.unknown_reason, coalesce(card_reason(running),
                images_reason(running, asked_number(named.images)), program_card_reason(named, card_row.card),
                kv_reason(kv, older.least_capability, gpu.vendor, gpu.compute_capability))),
            footprint.model_id) AS reason
    FROM (SELECT unnest(told) FROM limit_found WHERE axis = 'context') AS footprint
    JOIN limit_card ON true
    JOIN limit_base AS named ON true
    LEFT JOIN model ON model.model_id = footprint.model_id
    LEFT JOIN gpu ON gpu.gpu_id = limit_card.card_id
    LEFT JOIN card_row ON card_row.gpu_id = gpu.gpu_id
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = footprint.kv_dtype_id
    LEFT JOIN kv_older AS older ON older.kv_dtype_id = footprint.kv_dtype_id AND older.engine_id = footprint.engine_id
        AND older.model_id = footprint.model_id AND is_from(program_version, older.min_version)
    LEFT JOIN runs_on_kind AS running
        ON running.engine_id = footprint.engine_id
            AND running.running_id = running_format(model, footprint.dtype_id, footprint.engine_id)
            AND running.phase_id = footprint.phase_id
        AND running.attention = footprint.attention AND running.card_kind = card_row.card.card_kind
    CROSS JOIN constants_row
)
SELECT
    told.card_id AS gpu_id, told.model_id, told.dtype_id, told.phase_id, told.engine_id, told.context_tokens,
    told.sequences, told.gpu_count, told.sharding,
    iif(told.reason IS NULL, context.last_enough, NULL) AS max_context_tokens,
    CASE
        WHEN told.reason IS NOT NULL THEN NULL
        WHEN context.first_over IS NOT NULL THEN 'card'
        WHEN base.max_context_tokens IS NULL AND model.max_context_tokens IS NULL THEN 'search'
        ELSE 'model'
    END AS max_context_bound,
    iif(told.reason IS NULL, least(search.last_enough, told.most_by_engine), NULL) AS max_sequences,
    CASE
        WHEN told.reason IS NOT NULL THEN NULL
        WHEN search.last_enough >= told.most_by_engine THEN 'engine'
        WHEN search.first_over IS NOT NULL THEN 'card'
        ELSE 'search'
    END AS max_sequences_bound,
    told.reason AS unknown_reason
FROM limit_told AS told
JOIN limit_found AS context ON context.axis = 'context'
JOIN limit_found AS search ON search.axis = 'sequences'
LEFT JOIN model ON model.model_id = told.model_id
CROSS JOIN limit_base AS base;
