-- How many layers of a model too large for a card go to it: layers_that_fit asks cpu_splits of one model and one card.
--
--   gpu_layers          the most that fit with their error band, as -ngl of llama.cpp counts them (the output is one)
--   cpu_expert_layers   of a mixture of experts the fewest blocks whose experts stay on the CPU (--n-cpu-moe) while all
--                       else is on the GPU
--   told_gpu_layers, told_expert_layers   so many in their place, whether they fit or not (-ngl 20; --n-cpu-moe 20)
--   text_only := true   without what llama.cpp sees with (--no-mmproj)
--
-- Units: bytes of the GPU and of the host. Sources: those of capacity/cpu_split.sql. Not covered: what that does not
--   cover.

-- layers_that_fit('rtx-3060-12gb', 'Qwen/Qwen3-32B', context_tokens := 8192).
-- free_bytes := n is what is free of the card, or of one that nobody names (gpu_id NULL).
CREATE OR REPLACE MACRO layers_that_fit(
    gpu_id, model_id, dtype_id := 'gguf-q4_k_m', context_tokens := NULL, sequences := 1, kv_dtype_id := NULL,
    attention := NULL, free_bytes := NULL, text_only := NULL, told_gpu_layers := NULL, told_expert_layers := NULL
) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id, free_bytes::BIGINT AS free_bytes),
scenario_asked AS (
    SELECT
        known_model(model_id) AS model_id, dtype_id AS dtype_id, 'inference' AS phase_id, NULL::VARCHAR AS engine_id,
        context_tokens AS context_tokens, sequences AS sequences, kv_dtype_id AS kv_dtype_id,
        NULL::VARCHAR AS optimizer_id, NULL::VARCHAR AS checkpointing, attention AS attention, 1 AS gpu_count,
        asked_flag(text_only) AS text_only
),
asked AS (SELECT known_model(model_id) AS model_id, dtype_id AS dtype_id),
layer AS MATERIALIZED (FROM layer_weights((SELECT model_id FROM asked), dtype_id := (SELECT dtype_id FROM asked))),
held AS (
    SELECT list(layer_bytes ORDER BY block) AS layer_bytes, list(expert_bytes ORDER BY block) AS expert_bytes,
        max(matrix_bytes) AS matrix_bytes FROM layer
),
cached AS MATERIALIZED (
    SELECT footprint, layer_caches(model, footprint) AS caches
    FROM (SELECT told AS footprint FROM footprints_in('scenario_asked', 'inference',
        is_plain := NOT coalesce(asked_flag(text_only), false)) AS told)
    LEFT JOIN shape_row ON shape_row.model_id = footprint.model_id
),
loaded AS (
    SELECT * REPLACE (weights_bytes - iif(coalesce(asked_flag(text_only), false), tower_bytes, 0) AS weights_bytes)
    FROM weight
),
whole AS MATERIALIZED (
    SELECT footprint.* EXCLUDE (host_bytes), model.layer_count AS blocks,
        list_max(held.expert_bytes) > 0 AS has_experts, has_layers_apart(weight, held) AS has_layers_apart,
        iif(footprint.unknown_reason IS NULL, cpu_splits(model, weight, footprint, held, caches), NULL) AS ways
    FROM (SELECT footprint, caches, weight FROM cached LEFT JOIN loaded AS weight
        ON weight.model_id = footprint.model_id AND weight.dtype_id = footprint.dtype_id)
    LEFT JOIN shape_row ON shape_row.model_id = footprint.model_id
    CROSS JOIN held
),
best AS (
    -- (least passes over nulls: an amount of memory may stand for the card, or be what is free of it)
    SELECT iif(told_gpu_layers IS NULL, most_layers(ways, error_band, bytes),
            told_layers(ways, blocks, told_gpu_layers)) AS layers,
        iif(engine_id = 'llama.cpp' AND has_experts, iif(told_expert_layers IS NULL,
            fewest_experts(ways, blocks, error_band, bytes), told_experts(ways, blocks, told_expert_layers)), NULL)
            AS experts
    FROM whole, card_asked LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id),
        LATERAL (SELECT asked_bytes(gpu, card_asked.free_bytes) AS bytes) AS given
),
reasoned AS (
    SELECT whole.*, coalesce(gpu.gpu_id, card_asked.gpu_id) AS gpu_id, CASE
        WHEN card_asked.gpu_id IS NULL AND card_asked.free_bytes IS NOT NULL AND whole.unknown_reason IS NOT NULL
            THEN with_nearest(whole.unknown_reason, whole.model_id)
        WHEN gpu.gpu_id IS NULL AND (card_asked.gpu_id IS NOT NULL OR card_asked.free_bytes IS NULL)
            OR whole.unknown_reason IS NOT NULL
            THEN no_verdict_reason(gpu.gpu_id, card_asked.gpu_id, whole.total_bytes, whole.unknown_reason,
                whole.model_id, NULL)
        WHEN gpu.gpu_id IS NOT NULL AND card_reason(running) IS NOT NULL THEN card_reason(running)
        WHEN whole.engine_id NOT IN ('llama.cpp', 'transformers')
            THEN 'sharing with the CPU is worked out for llama.cpp and Transformers'
        WHEN whole.engine_id = 'transformers' AND whole.dtype_id NOT IN ('fp32', 'bf16', 'fp16')
            THEN 'bitsandbytes runs its layers on the GPU only'
        WHEN is_computer(gpu) THEN 'its memory is the computer''s, and there is no other to share a model with'
        WHEN NOT coalesce(whole.has_layers_apart, false)
            THEN 'the layers of this model are not told apart yet'
    END AS reason
    FROM whole JOIN card_asked ON true LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
    LEFT JOIN card_row ON card_row.gpu_id = gpu.gpu_id
    LEFT JOIN (
        SELECT known.model_id, known.stored_format, known.limited_engines, known.model_type FROM model AS known
    ) AS model ON model.model_id = whole.model_id
    LEFT JOIN runs_on_kind AS running ON running.engine_id = whole.engine_id
        AND running.running_id = running_format(model, whole.dtype_id, whole.engine_id)
        AND running.phase_id = whole.phase_id AND running.attention = whole.attention
        AND running.card_kind = card_row.card.card_kind
)
SELECT
    reasoned.gpu_id, reasoned.model_id, reasoned.dtype_id, reasoned.engine_id, reasoned.context_tokens,
    reasoned.sequences, reasoned.blocks AS layer_count,
    CASE WHEN reasoned.reason IS NULL THEN best.layers.gpu_layers END::BIGINT AS gpu_layers,
    CASE WHEN reasoned.reason IS NULL THEN best.layers.gpu_bytes END AS gpu_bytes,
    CASE WHEN reasoned.reason IS NULL THEN best.layers.host_bytes END AS host_bytes,
    CASE WHEN reasoned.reason IS NULL THEN best.experts.cpu_expert_layers END::BIGINT AS cpu_expert_layers,
    CASE WHEN reasoned.reason IS NULL THEN best.experts.gpu_bytes END AS cpu_expert_gpu_bytes,
    CASE WHEN reasoned.reason IS NULL THEN best.experts.host_bytes END AS cpu_expert_host_bytes,
    coalesce(reasoned.reason, CASE
        WHEN best.layers IS NOT NULL THEN NULL
        WHEN reasoned.engine_id = 'llama.cpp' THEN 'not even the compute buffer fits beside the caches'
        ELSE reasoned.dtype_id
            || ' is no format of llama.cpp; in Transformers, not even the embeddings, the cache and the largest layer '
            || 'fit on the card'
    END) AS unknown_reason
FROM reasoned CROSS JOIN best;
