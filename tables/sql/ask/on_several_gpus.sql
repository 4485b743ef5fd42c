-- One model on one, several and many cards of a kind: what each holds, whether it fits, and how far it goes.
--
--   1 to 8 cards: the footprint with the engine's own parallelism
--   servers of 8 (vLLM, SGLang): the footprint with tensor parallel over the 8 of a server, a pipeline over the servers
--   max_context_tokens, max_sequences: the limits of `compatibility`, for any count and any cache format
--
-- Units: bytes on each card, tokens, sequences. Source: as the footprint's parts.
-- Not covered: expert parallelism and data-parallel attention, decode context parallelism, padding of the vocabulary (less than 64 rows),
--   the network's buffers beyond NCCL's within a server.

CREATE OR REPLACE MACRO on_several_gpus(
    gpu_id, model_id, dtype_id := 'bf16', context_tokens := 8192, sequences := 1, kv_dtype_id := NULL, engine_id := NULL, attention := NULL
) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id),
asked AS (
    SELECT known_model(model_id) AS model_id, dtype_id AS dtype_id,
        coalesce(asked_number(context_tokens), 8192)::BIGINT AS context_tokens, coalesce(asked_number(sequences), 1)::BIGINT AS sequences,
        coalesce(number_reason('context_tokens', context_tokens, k.most_context_tokens), number_reason('sequences', sequences, k.most_sequences))
            AS wrong,
        kv_dtype_id AS kv_dtype_id, engine_id AS engine_id, attention AS attention
    FROM constants AS k
),
point AS (
    SELECT asked.context_tokens, asked.sequences FROM asked
    UNION
    SELECT unnest(list_distinct(list_filter(list_concat([256, 1024, 8192, 32768, 131072, 1048576], ladder_contexts(m, k)),
        lambda one: one <= coalesce(m.max_context_tokens, 1048576)))), asked.sequences
    FROM asked JOIN shape AS m ON m.model_id = asked.model_id CROSS JOIN constants AS k
    UNION
    SELECT asked.context_tokens, unnest([1, 8, 64]) FROM asked
),
scenario_asked AS (
    SELECT
        asked.model_id, asked.dtype_id, 'inference' AS phase_id, asked.engine_id, point.context_tokens::BIGINT AS context_tokens,
        point.sequences::BIGINT AS sequences, asked.kv_dtype_id, NULL::VARCHAR AS optimizer_id, NULL::VARCHAR AS precision,
        NULL::VARCHAR AS checkpointing, NULL::BIGINT AS lora_rank, NULL::VARCHAR AS lora_targets, asked.attention,
        NULL::VARCHAR AS sharding, cards::BIGINT AS gpu_count, NULL::VARCHAR AS adapter, NULL::VARCHAR AS loss,
        NULL::BIGINT AS gradient_accumulation, NULL::BOOLEAN AS ema, NULL::BIGINT AS optimizer_rank, NULL::BIGINT AS max_context_tokens,
        NULL::BIGINT AS tensor_parallel, NULL::BIGINT AS pipeline_parallel, NULL::BIGINT AS context_parallel, NULL::BIGINT AS expert_parallel,
        NULL::BIGINT AS micro_batches_in_flight, NULL::BOOLEAN AS sequence_parallel, NULL AS offload,
        NULL::BIGINT AS images, NULL::BIGINT AS image_width, NULL::BIGINT AS image_height, NULL::DOUBLE AS audio_seconds
    FROM asked, point, (VALUES (1), (2), (4), (8), (16), (24), (32), (64)) AS counts(cards)
),
placed AS MATERIALIZED (
    SELECT f.model_id, f.dtype_id, f.engine_id, f.context_tokens, f.sequences, f.kv_dtype_id, f.attention, f.gpu_count, f.sharding,
        greatest(f.gpu_count // k.server_gpu_count, 1) AS stages, f.total_bytes, f.error_band, f.unknown_reason
    FROM footprints_in('scenario_asked', 'inference', is_plain := true) AS f CROSS JOIN constants AS k
    WHERE f.gpu_count <= k.server_gpu_count OR is_server(f)
),
judged AS (
    SELECT
        p.*, coalesce(gpu.gpu_id, card_asked.gpu_id) AS asked_gpu_id, gpu.capacity_bytes,
        no_verdict_reason(gpu.gpu_id, card_asked.gpu_id, p.total_bytes, p.unknown_reason, p.model_id,
            coalesce(card_reason(r), kv_reason(kv, gpu.vendor, gpu.compute_capability))) AS reason
    FROM card_asked
    JOIN placed AS p ON true
    LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
    LEFT JOIN model AS m ON m.model_id = p.model_id
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = p.kv_dtype_id
    LEFT JOIN runs_on AS r
        ON r.engine_id = p.engine_id AND r.dtype_id = running_format(m, p.dtype_id) AND r.phase_id = 'inference'
        AND r.attention = p.attention AND r.gpu_id = gpu.gpu_id
),
summed AS (
    SELECT j.gpu_count, any_value(j.asked_gpu_id) AS gpu_id, any_value(j.model_id) AS model_id, any_value(j.dtype_id) AS dtype_id,
        any_value(j.engine_id) AS engine_id, any_value(a.context_tokens) AS context_tokens, any_value(a.sequences) AS sequences,
        any_value(j.sharding) AS sharding, any_value(j.stages) AS stages, any_value(j.capacity_bytes) AS capacity_bytes,
        max(j.total_bytes) FILTER (j.context_tokens = a.context_tokens AND j.sequences = a.sequences AND a.wrong IS NULL) AS total_bytes,
        max(j.error_band) FILTER (j.context_tokens = a.context_tokens AND j.sequences = a.sequences) AS error_band,
        coalesce(any_value(a.wrong), max(j.reason) FILTER (j.context_tokens = a.context_tokens AND j.sequences = a.sequences)) AS reason,
        list({'at': j.context_tokens, 'need': j.total_bytes * (1 + j.error_band)} ORDER BY j.context_tokens)
            FILTER (j.sequences = a.sequences AND j.total_bytes IS NOT NULL) AS context_points,
        list({'at': j.sequences, 'need': j.total_bytes * (1 + j.error_band)} ORDER BY j.sequences)
            FILTER (j.context_tokens = a.context_tokens AND j.total_bytes IS NOT NULL) AS sequence_points
    FROM judged AS j JOIN asked AS a ON true
    GROUP BY j.gpu_count
)
SELECT
    s.gpu_id, s.model_id, s.dtype_id, s.engine_id, s.context_tokens, s.sequences, s.gpu_count, s.sharding, s.stages, s.total_bytes,
    iif(reason IS NULL, card_verdict(total_bytes, error_band, capacity_bytes, gpu_count), NULL) AS verdict,
    CASE WHEN reason IS NULL THEN largest_between(context_points, capacity_bytes, context_multiple(s.engine_id, k)) END::BIGINT
        AS max_context_tokens,
    CASE WHEN reason IS NULL THEN largest_beyond(sequence_points, capacity_bytes, line_end(s.engine_id, k)) END::BIGINT AS max_sequences,
    reason AS unknown_reason
FROM summed AS s CROSS JOIN constants AS k
ORDER BY s.gpu_count;
