-- One model on one, several and many cards of a kind: what each holds, whether it fits, and how far it goes.
--
--   1 to 8 cards: the footprint with the engine's own parallelism
--   servers of 8 (vLLM, SGLang): the footprint with tensor parallel over the 8 of a server, a pipeline over the servers
--   max_context_tokens, max_sequences: the limits of `compatibility`, for any count and any cache format
--
-- Units: bytes on each card, tokens, sequences. Source: as the footprint's parts.
--   data_parallel := true (vLLM, SGLang): each card serves its own share of the sequences, and the routed experts lie
--     over all of them (weights/data_parallel.sql)
-- Not covered: decode context parallelism (footprint_of counts it), padding of the vocabulary (less than 64 rows), the
--   network's buffers beyond NCCL's within a server.

CREATE OR REPLACE MACRO on_several_gpus(
    gpu_id, model_id, dtype_id := 'bf16', context_tokens := 8192, sequences := 1, kv_dtype_id := NULL,
    engine_id := NULL, attention := NULL, data_parallel := false
) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id),
asked AS (
    SELECT known_model(model_id) AS model_id, dtype_id AS dtype_id,
        coalesce(asked_number(context_tokens), 8192)::BIGINT AS context_tokens,
        coalesce(asked_number(sequences), 1)::BIGINT AS sequences,
        coalesce(number_reason('context_tokens', context_tokens, constants.most_context_tokens),
            number_reason('sequences', sequences, constants.most_sequences),
            flag_reason('data_parallel', data_parallel))
            AS wrong,
        kv_dtype_id AS kv_dtype_id, engine_id AS engine_id, attention AS attention,
        coalesce(asked_flag(data_parallel), false) AS is_spread
    FROM constants_row
),
point AS (
    SELECT asked.context_tokens, asked.sequences, false AS is_ladder FROM asked
    UNION
    SELECT unnest(
        list_distinct(
            list_filter(list_concat([256, 1024, 8192, 32768, 131072, 1048576], ladder_contexts(model, constants)),
        lambda one: one <= coalesce(model.max_context_tokens, 1048576)))), asked.sequences, false
    FROM asked JOIN shape_row ON shape_row.model_id = asked.model_id CROSS JOIN constants_row
    UNION
    SELECT asked.context_tokens, unnest([1, 8, 64]), asked.is_spread FROM asked
    UNION
    -- (of data-parallel ranks as many for each, up to what they run by themselves)
    SELECT asked.context_tokens, constants.vllm_default_sequences::BIGINT, true
    FROM asked CROSS JOIN constants_row WHERE asked.is_spread
),
scenario_asked AS (
    SELECT DISTINCT
        asked.model_id, asked.dtype_id, 'inference' AS phase_id, asked.engine_id,
        point.context_tokens::BIGINT AS context_tokens,
        (point.sequences * iif(point.is_ladder, cards, 1))::BIGINT AS sequences, asked.kv_dtype_id,
        NULL::VARCHAR AS optimizer_id, NULL::VARCHAR AS checkpointing, asked.attention, cards::BIGINT AS gpu_count,
        iif(asked.is_spread, cards, NULL)::BIGINT AS data_parallel,
        iif(asked.is_spread, cards, NULL)::BIGINT AS expert_parallel
    FROM asked, point, (VALUES (1), (2), (4), (8), (16), (24), (32), (64)) AS counts(cards)
),
placed AS MATERIALIZED (
    SELECT footprint.model_id, footprint.dtype_id, footprint.engine_id, footprint.context_tokens, footprint.sequences,
        footprint.kv_dtype_id, footprint.attention, footprint.gpu_count, footprint.sharding,
        iif(footprint.data_parallel > 1, 1, greatest(footprint.gpu_count // constants.server_gpu_count, 1)) AS stages,
        footprint.total_bytes, footprint.error_band, footprint.unknown_reason
    FROM footprints_in('scenario_asked', 'inference', is_plain := NOT coalesce(asked_flag(data_parallel), false))
        AS footprint
    CROSS JOIN constants_row
    WHERE footprint.gpu_count <= constants.server_gpu_count OR is_server(footprint)
),
judged AS (
    SELECT
        placed.*, coalesce(gpu.gpu_id, card_asked.gpu_id) AS asked_gpu_id, gpu.capacity_bytes,
        no_verdict_reason(gpu.gpu_id, card_asked.gpu_id, placed.total_bytes, placed.unknown_reason, placed.model_id,
            coalesce(card_reason(running),
                kv_reason(kv, older.least_capability, gpu.vendor, gpu.compute_capability))) AS reason
    FROM card_asked
    JOIN placed ON true
    LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
    LEFT JOIN model ON model.model_id = placed.model_id
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = placed.kv_dtype_id
    LEFT JOIN kv_older AS older ON older.kv_dtype_id = placed.kv_dtype_id AND older.engine_id = placed.engine_id
        AND older.model_id = placed.model_id
    LEFT JOIN runs_on_kind AS running
        ON running.engine_id = placed.engine_id
            AND running.running_id = running_format(model, placed.dtype_id, placed.engine_id)
            AND running.phase_id = 'inference'
        AND running.attention = placed.attention AND running.card_kind = card_kind(gpu)
),
summed AS (
    SELECT judged.gpu_count, any_value(judged.asked_gpu_id) AS gpu_id, any_value(judged.model_id) AS model_id,
        any_value(judged.dtype_id) AS dtype_id,
        any_value(judged.engine_id) AS engine_id, any_value(asked.context_tokens) AS context_tokens,
        any_value(asked.sequences) AS sequences,
        any_value(judged.sharding) AS sharding, any_value(judged.stages) AS stages, any_value(judged.capacity_bytes)
            AS capacity_bytes,
        -- (one row of each number of cards is what was asked)
        any_value(judged.total_bytes) FILTER (judged.context_tokens = asked.context_tokens
            AND judged.sequences = asked.sequences AND asked.wrong IS NULL) AS total_bytes,
        any_value(judged.error_band) FILTER (judged.context_tokens = asked.context_tokens
            AND judged.sequences = asked.sequences) AS error_band,
        coalesce(any_value(asked.wrong), any_value(judged.reason) FILTER (
            judged.context_tokens = asked.context_tokens AND judged.sequences = asked.sequences)) AS reason,
        list({'at': judged.context_tokens, 'need': needed(judged.total_bytes, judged.error_band)}
            ORDER BY judged.context_tokens)
            FILTER (judged.sequences = asked.sequences AND judged.total_bytes IS NOT NULL) AS context_points,
        list({'at': judged.sequences, 'need': needed(judged.total_bytes, judged.error_band)} ORDER BY judged.sequences)
            FILTER (judged.context_tokens = asked.context_tokens AND judged.total_bytes IS NOT NULL
                AND (NOT asked.is_spread OR judged.sequences % judged.gpu_count = 0)) AS sequence_points,
        -- (as many on each rank)
        any_value(iif(asked.is_spread, judged.gpu_count, 1)) AS rank_count
    FROM judged JOIN asked ON true
    GROUP BY judged.gpu_count
)
SELECT
    summed.gpu_id, summed.model_id, summed.dtype_id, summed.engine_id, summed.context_tokens, summed.sequences,
    summed.gpu_count, summed.sharding, summed.stages, summed.total_bytes,
    iif(reason IS NULL, card_verdict(total_bytes, error_band, capacity_bytes, gpu_count), NULL) AS verdict,
    CASE WHEN reason IS NULL THEN largest_between(context_points, capacity_bytes,
        context_multiple(summed.engine_id, constants)) END::BIGINT
        AS max_context_tokens,
    CASE WHEN reason IS NULL THEN floor(largest_beyond(sequence_points, capacity_bytes,
        line_end(summed.engine_id, constants) * rank_count) / rank_count) * rank_count END::BIGINT AS max_sequences,
    reason AS unknown_reason
FROM summed CROSS JOIN constants_row
ORDER BY summed.gpu_count;
