-- How many cards so many users at once take, and how they share: weights once in each copy of the model, a cache for
-- every user.
--
--   plan_for('h100-sxm', 'deepseek-ai/DeepSeek-R1', dtype_id := 'stored', users := 3, context_tokens := 8192)
--     one row per number of cards: the best way to share on it. plan_rank 1 is the fewest cards that hold all users
--     total_bytes (each card) = weights + caches of the users of its copy + what runs beside them, as in footprint
--     weights_times_users_bytes = weights × users: what people expect, and pay for where each user has a model of his
--         own; gpu_count_by_weights_times_users is the cards that it would take
--
--   serving_plans_in('asked')  the same for many questions at once: a relation of these arguments
--
-- Searched: 1, 2, 4, 8, 16, 32 and 64 cards, and 12 where an engine shares a model among fewer than 16; on each, one
-- copy over all of them, or 2, 4 ... copies, no more than users, with the users spread evenly. A copy shares by the
-- engine's own way: vLLM and SGLang by tensors over the 8 cards of a server, a pipeline over servers; llama.cpp by
-- layers. Of those that fit, the way with the fewest cards to a copy, as vLLM's documentation has it: cards that share
-- a copy wait for one another, copies do not. Without a word for the engine, 16 bits are served by vLLM.
-- No more tokens are written than the cards can multiply (speed): that bounds many users. What is likely, and its band,
-- is as in likely.sql; first_token_seconds is one prompt of context_tokens read by one copy, attention's own operations
-- left out. The machine around them is as in machine.sql; a disk holds the weights once.
-- Units: bytes of each card; tokens a second, a bound as in speed. Source: footprints, gpu, runs_on, speed;
-- vllm-parallelism.
-- Not covered: users who share the beginning of their prompts, which vLLM holds once; users who wait; copies on cards
-- of several kinds; expert parallelism and data-parallel attention.

-- who serves a format where nobody says: 16 bits vLLM, but not on Apple's chips
CREATE OR REPLACE MACRO serving_engine(dtype_id, vendor, format_engine_id) AS
    iif(dtype_id IN ('bf16', 'fp16') AND vendor IS DISTINCT FROM 'apple', 'vllm', format_engine_id);

CREATE OR REPLACE MACRO serving_plans_in(relation) AS TABLE
WITH serving_said AS MATERIALIZED (
    SELECT known_model(asked.model_id) AS model_id, lower(asked.dtype_id) AS dtype_id,
        lower(asked.kv_dtype_id::VARCHAR) AS kv_dtype_id, asked.gpu_id AS named_id, card,
        coalesce(lower(asked.engine_id::VARCHAR), serving_engine(lower(asked.dtype_id), card.vendor, dtype.engine_id))
            AS engine_id,
        asked_number(asked.users) AS users, asked_number(asked.context_tokens) AS context_tokens,
        CASE
            WHEN asked.users IS NULL OR asked_number(asked.users) < 1 THEN 'users starts at 1'
            WHEN asked.context_tokens IS NULL OR asked_number(asked.context_tokens) < 1
                THEN 'context_tokens starts at 1'
            ELSE coalesce(number_reason('users', asked.users, constants.most_sequences),
                number_reason('context_tokens', asked.context_tokens, constants.most_context_tokens))
        END AS wrong
    FROM query_table(relation) AS asked
    LEFT JOIN gpu AS card ON card.gpu_id = lower(asked.gpu_id)
    LEFT JOIN dtype ON dtype.dtype_id = lower(asked.dtype_id)
    CROSS JOIN constants_row
),
serving_way AS (
    SELECT said.*, cards::BIGINT AS gpu_count, copies::BIGINT AS copy_count, (cards // copies)::BIGINT
        AS copy_gpu_count, coalesce(ceil(said.users / copies), 1)::BIGINT AS copy_users
    FROM serving_said AS said LEFT JOIN engine AS run ON run.engine_id = said.engine_id,
        unnest([1, 2, 4, 8, 12, 16, 32, 64]) AS count(cards), unnest([1, 2, 4, 8, 16, 32, 64]) AS copy(copies)
    WHERE cards % copies = 0 AND (cards <> 12 OR run.most_gpu_count < 16) AND (copies <= said.users OR copies = 1)
        AND (cards = 1 OR said.wrong IS NULL AND card.vendor IS DISTINCT FROM 'apple')
),
serving_scenario AS (
    SELECT DISTINCT model_id, dtype_id, 'inference' AS phase_id, engine_id, context_tokens, copy_users AS sequences,
        kv_dtype_id, NULL::VARCHAR AS optimizer_id, NULL::VARCHAR AS checkpointing, NULL::VARCHAR AS attention,
        copy_gpu_count AS gpu_count
    FROM serving_way
),
serving_placed AS MATERIALIZED (
    SELECT footprint.*, running_format(known, footprint.dtype_id, footprint.engine_id) AS running_id, kv,
        older.least_capability AS older_capability
    FROM footprints_in('serving_scenario', 'inference', is_plain := true) AS footprint
    LEFT JOIN model AS known ON known.model_id = footprint.model_id
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = footprint.kv_dtype_id
    LEFT JOIN kv_older AS older ON older.kv_dtype_id = footprint.kv_dtype_id AND older.engine_id = footprint.engine_id
        AND older.model_id = footprint.model_id
),
serving_told AS (
    SELECT way.* EXCLUDE (wrong, context_tokens, engine_id), way.wrong IS NOT NULL AS is_wrong, placed,
        placed.engine_id,
        coalesce(way.wrong, no_verdict_reason(card.gpu_id, named_id, placed.total_bytes, placed.unknown_reason,
            placed.model_id, coalesce(card_reason(running), kv_reason(kv, older_capability, card.vendor,
                card.compute_capability))))
            AS reason
    FROM serving_way AS way
    JOIN serving_placed AS placed ON placed.gpu_count = way.copy_gpu_count AND placed.sequences = way.copy_users
        AND placed.model_id = way.model_id AND placed.dtype_id = way.dtype_id
        AND placed.context_tokens IS NOT DISTINCT FROM coalesce(way.context_tokens, placed.context_tokens)
        AND placed.engine_id IS NOT DISTINCT FROM coalesce(way.engine_id, placed.engine_id)
        AND placed.kv_dtype_id IS NOT DISTINCT FROM coalesce(way.kv_dtype_id, placed.kv_dtype_id)
    LEFT JOIN runs_on_kind AS running
        ON running.engine_id = placed.engine_id AND running.running_id = placed.running_id
            AND running.phase_id = 'inference'
        AND running.attention = placed.attention AND running.card_kind = card_kind(card)
),
serving_judged AS (
    SELECT told.*, weight.weights_bytes AS whole_bytes,
        iif(reason IS NULL, iif(copy_users > coalesce(most_requests(told.engine_id, constants), copy_users), 'no',
            card_verdict(placed.total_bytes, placed.error_band, card.capacity_bytes, told.gpu_count)), NULL) AS verdict,
        decode_reason(model, weight, placed, card) AS slow_reason,
        least(users * decode_most(model, weight, placed, card) / copy_users, told.copy_count
            * prefill_most(model, dtype, placed, card)) AS decode_most,
        prefill_most(model, dtype, placed, card) AS copy_prefill_most,
        decode_likely(model, weight, dtype, placed, card, speed) / copy_users AS user_likely,
        likely_reason(speed, placed, share_tflops(card, dtype.product_bits, speed)) AS unlikely_reason,
        prefill_likely(model, dtype, placed, card, speed) AS copy_prefill_likely, speed
    FROM serving_told AS told
    LEFT JOIN shape_row ON shape_row.model_id = told.model_id
    LEFT JOIN weight ON weight.model_id = told.model_id AND weight.dtype_id = told.dtype_id
    LEFT JOIN dtype ON dtype.dtype_id = told.dtype_id
    LEFT JOIN engine_speed AS speed
        ON is_speed_of(speed, told.engine_id, told.card, coalesce(model.expert_count_max > 0, false))
    CROSS JOIN constants_row
),
serving_best AS (
    SELECT *, coalesce(list_position(['fits', 'multi-gpu', 'tight', 'no'], verdict), 8) AS verdict_rank
    FROM serving_judged
    QUALIFY row_number() OVER (PARTITION BY named_id, serving_judged.model_id, serving_judged.dtype_id,
            serving_judged.engine_id, serving_judged.kv_dtype_id, users, placed.context_tokens, serving_judged.gpu_count
        ORDER BY verdict_rank, iif(verdict = 'no', placed.total_bytes, NULL), copy_gpu_count) = 1
)
SELECT row_number() OVER (
        PARTITION BY named_id, best.model_id, best.dtype_id, best.engine_id, best.kv_dtype_id, users,
            placed.context_tokens
        ORDER BY iif(verdict IN ('fits', 'multi-gpu'), 1, verdict_rank), best.gpu_count) AS plan_rank,
    coalesce(card.gpu_id, named_id) AS gpu_id, best.model_id, best.dtype_id, best.engine_id, users,
    placed.context_tokens, best.gpu_count, verdict, copy_count, copy_gpu_count, copy_users, placed.tensor_parallel,
    placed.pipeline_parallel, iif(is_wrong, NULL, placed.weights_bytes) AS weights_bytes,
    iif(is_wrong, NULL, placed.kv_cache_bytes + placed.kv_padding_bytes + placed.state_bytes) AS caches_bytes,
    iif(is_wrong, NULL, placed.total_bytes) AS total_bytes, card.capacity_bytes,
    iif(is_wrong, NULL, card.capacity_bytes - placed.total_bytes) AS headroom_bytes,
    try_cast(iif(is_wrong, NULL, users::DOUBLE * whole_bytes) AS BIGINT) AS weights_times_users_bytes,
    try_cast(iif(is_wrong, NULL, ceil(users::DOUBLE * whole_bytes / card.capacity_bytes)) AS BIGINT)
        AS gpu_count_by_weights_times_users,
    iif(reason IS NULL, decode_most, NULL) AS decode_tokens_per_second_most,
    iif(reason IS NULL, decode_most / users, NULL) AS user_tokens_per_second_most,
    iif(reason IS NULL, user_likely, NULL) AS user_tokens_per_second_likely,
    iif(reason IS NULL, user_likely / speed.slower_ratio, NULL) AS user_tokens_per_second_low,
    iif(reason IS NULL AND user_likely IS NOT NULL, least(user_likely / speed.quicker_ratio, decode_most / users), NULL)
        AS user_tokens_per_second_high,
    iif(reason IS NULL, copy_count * copy_prefill_most, NULL) AS prefill_tokens_per_second_most,
    iif(reason IS NULL, placed.context_tokens / copy_prefill_most, NULL) AS first_token_seconds_least,
    iif(reason IS NULL, placed.context_tokens / copy_prefill_likely, NULL) AS first_token_seconds_likely,
    iif(reason IS NULL AND is_serving_engine(best.engine_id), serving_cpu_count(best.gpu_count, copy_gpu_count,
        constants), NULL) AS server_cpu_count,
    iif(reason IS NULL, placed.weights_bytes * cards_of_server(copy_gpu_count, constants), NULL)::BIGINT
        AS server_memory_bytes,
    iif(reason IS NULL, whole_bytes, NULL)::BIGINT AS disk_bytes,
    iif(reason IS NULL, best.gpu_count * card.tdp_w / 1000, NULL) AS power_kw_most,
    coalesce(reason, iif(copy_users > most_requests(best.engine_id, constants),
        'by default the engine takes no more than ' || most_requests(best.engine_id, constants)
            || ' requests at once on each copy', coalesce(slow_reason, unlikely_reason))) AS unknown_reason
FROM serving_best AS best CROSS JOIN constants_row;

CREATE OR REPLACE MACRO plan_for(
    gpu_id, model_id, dtype_id := 'bf16', users := 1, context_tokens := 8192, kv_dtype_id := NULL, engine_id := NULL
) AS TABLE
WITH plan_said AS (
    SELECT gpu_id::VARCHAR AS gpu_id, model_id::VARCHAR AS model_id, dtype_id::VARCHAR AS dtype_id, users AS users,
        context_tokens AS context_tokens, kv_dtype_id AS kv_dtype_id, engine_id AS engine_id
)
FROM serving_plans_in('plan_said') ORDER BY plan_rank;
