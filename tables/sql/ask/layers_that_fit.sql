-- Layers on the GPU, the rest on the CPU: how many fit, and what each side holds.
--
--   llama.cpp, -ngl g of a model of n blocks: the output layer goes to the GPU first, then the last g − 1 blocks; g = n
--       + 1 is all of them.
--   The input embeddings stay on the CPU; a tied head is copied. A block's cache lies where the block does.
--       GPU = output (g ≥ 1) + blocks + their caches + compute buffer + what lies outside + one matrix, where a block
--             stays on the CPU: a long prompt copies the CPU's weights over, one at a time
--   --n-cpu-moe c: all on the GPU but the routed experts of the first c blocks
--   Transformers with device_map: embeddings and the first g layers stay on the GPU, the cache of all layers is there,
--       and room is left
--   for the largest part that is brought over to run: a layer, or the head
--
-- Units: bytes of one GPU and of the host. Sources: llama-cpp-offload (load_tensors: i_gpu_start, dev_input,
--   dev_output; common.h: the pattern of --n-cpu-moe; ggml-backend.cpp for weights that are copied), accelerate
--   (infer_auto_device_map: the reserve for the largest layer; hooks run every layer on the main device). accelerate
--   itself plans with nine tenths of the card and without the cache.
-- Caches of different kinds of layers: the largest ones are taken to be on the GPU. Not covered: several GPUs, disk,
--   bitsandbytes (its layers run on the GPU only), -ot with patterns of one's own, what the host holds beside weights
--   and caches.

-- layer_weights('Qwen/Qwen3-8B', dtype_id := 'gguf-q4_k_m'): the bytes of every block, and of them the routed experts'.
CREATE OR REPLACE MACRO layer_weights(model_id, dtype_id := 'gguf-q4_k_m') AS TABLE
WITH asked AS (SELECT known_model(model_id) AS model_id, lower(dtype_id) AS dtype_id),
held AS (
    SELECT shape.model_id, iif(asked.dtype_id = 'stored', model.stored_format, asked.dtype_id) AS dtype_id,
        shape.layer_count AS blocks,
        coalesce((SELECT max(head_count // greatest(kv_head_count, 1)) FROM attention_layer AS layer
            WHERE layer.model_id = asked.model_id AND layer.component = 'text' AND layer.head_count > 0), 1)
                AS kv_group,
        coalesce((SELECT max(expert_count) FROM feed_forward_layer AS block WHERE block.model_id = asked.model_id), 0)
            AS experts, shape.is_head_tied
    FROM asked JOIN shape ON shape.model_id = asked.model_id JOIN model ON model.model_id = shape.model_id
),
body AS MATERIALIZED (
    SELECT tensor.*, held.dtype_id, held.blocks, held.kv_group, held.experts, row_number() OVER () AS tensor_number,
        tensor.element_count // tensor.layer_count AS elements,
        gguf_category(tensor.tensor_class, tensor.role, tensor.operator, held.is_head_tied) AS category
    FROM held JOIN tensor ON tensor.model_id = held.model_id AND tensor.component = 'text' AND tensor.layer_count > 1
),
one AS MATERIALIZED (
    SELECT body.*, place,
        -- experts follow dense first blocks, whose feed-forward stands before them; all else is spread over the blocks
        least(blocks - 1, CASE
            WHEN tensor_class IN ('expert', 'shared-expert', 'router') THEN place + blocks - layer_count
            WHEN tensor_class = 'feed-forward' THEN place
            ELSE place * blocks // layer_count
        END) AS block
    FROM body, unnest(range(body.layer_count)) AS layer(place)
),
packed AS (
    SELECT one.block, one.tensor_class, gguf_packed_bytes(one.elements, one.in_features, wide, fallback) AS bytes
    FROM one
    JOIN gguf_mix AS rule
        ON rule.dtype_id = one.dtype_id AND NOT gguf_is_unpacked(one.category)
        AND gguf_rule_claims(rule.layer_rule, one.place, one.layer_count, one.kv_group, one.experts,
            one.operator = 'expert')
        AND (rule.role = one.category OR rule.role = 'other')
    JOIN gguf_type AS wide ON wide.gguf_type = rule.gguf_type
    LEFT JOIN gguf_type AS fallback ON fallback.gguf_type = wide.fallback_gguf_type
    QUALIFY row_number() OVER (
        PARTITION BY one.tensor_number, one.place
        ORDER BY gguf_rule_rank(rule.layer_rule) * 2 + iif(rule.role = one.category, 1, 0) DESC
    ) = 1
),
plain AS (
    SELECT one.block, one.tensor_class,
        ceil(one.elements * rule.element_bits / 8)::BIGINT
            + (one.per_layer_count * iif(one.in_features IS NULL, 0, one.out_features) * rule.row_bits / 8)::BIGINT
                AS bytes
    FROM one
    JOIN weight_format AS rule
        ON rule.dtype_id = one.dtype_id
        AND coalesce(rule.operator = one.operator, true)
        AND coalesce(rule.tensor_class = one.tensor_class, true)
        AND coalesce(rule.role = one.role, true)
    QUALIFY row_number() OVER (
        PARTITION BY one.tensor_number, one.place
        ORDER BY (rule.role IS NOT NULL)::INT * 4 + (rule.tensor_class IS NOT NULL)::INT * 2
            + (rule.operator IS NOT NULL)::INT DESC
    ) = 1
),
piece AS (
    FROM packed
    UNION ALL
    SELECT block, tensor_class, gguf_unpacked_bytes(elements, category) FROM one
    WHERE gguf_is_unpacked(category) AND starts_with(dtype_id, 'gguf-')
    UNION ALL
    FROM plain
)
SELECT block, sum(bytes)::BIGINT AS layer_bytes, coalesce(sum(bytes) FILTER (tensor_class = 'expert'), 0)::BIGINT
    AS expert_bytes,
    max(bytes)::BIGINT AS matrix_bytes
FROM piece GROUP BY block ORDER BY block;

-- layers_that_fit('rtx-3060-12gb', 'Qwen/Qwen3-32B', context_tokens := 8192): the most layers that fit with their error
-- band, and for a mixture of experts the fewest blocks whose experts stay on the CPU while all else is on the GPU.
-- free_bytes := n is what is free of the card, or of one that nobody names (gpu_id NULL).
CREATE OR REPLACE MACRO layers_that_fit(
    gpu_id, model_id, dtype_id := 'gguf-q4_k_m', context_tokens := NULL, sequences := 1, kv_dtype_id := NULL,
    attention := NULL, free_bytes := NULL
) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id, free_bytes::BIGINT AS free_bytes),
scenario_asked AS (
    SELECT
        known_model(model_id) AS model_id, dtype_id AS dtype_id, 'inference' AS phase_id, NULL::VARCHAR AS engine_id,
        context_tokens AS context_tokens, sequences AS sequences, kv_dtype_id AS kv_dtype_id,
        NULL::VARCHAR AS optimizer_id, NULL::VARCHAR AS checkpointing, attention AS attention, 1 AS gpu_count
),
asked AS (SELECT known_model(model_id) AS model_id, dtype_id AS dtype_id),
whole AS MATERIALIZED (
    SELECT footprint.* EXCLUDE (host_bytes), shape.layer_count AS blocks, shape.is_head_tied, weight.embedding_bytes,
        weight.head_bytes, weight.layer_bytes AS blocks_bytes,
        weight.weights_bytes - weight.layer_bytes - weight.embedding_bytes - weight.head_bytes AS other_bytes,
        footprint.engine_id = 'llama.cpp' AS is_llama_cpp,
        footprint.kv_cache_bytes + footprint.kv_padding_bytes + footprint.state_bytes AS cache_bytes,
        -- what each layer caches, the largest first, as shares of the whole
        list_reverse_sort(
            flatten(list_transform(shape.caches, lambda layer: list_transform(range(layer.layer_count), lambda place:
            layer.elements_per_token * least(footprint.context_tokens,
                coalesce(layer.window_tokens, footprint.context_tokens)) * footprint.sequences + layer.state_elements
            + layer.conv_state_elements
        )))) AS caches
    FROM footprints_in('scenario_asked', 'inference', is_plain := true) AS footprint
    LEFT JOIN shape ON shape.model_id = footprint.model_id
    LEFT JOIN weight ON weight.model_id = footprint.model_id AND weight.dtype_id = footprint.dtype_id
),
layer AS MATERIALIZED (FROM layer_weights((SELECT model_id FROM asked), dtype_id := (SELECT dtype_id FROM asked))),
blocks AS (SELECT list({'layer_bytes': layer_bytes, 'expert_bytes': expert_bytes, 'matrix_bytes': matrix_bytes}
    ORDER BY block) AS list FROM layer),
-- every way to share: on_gpu of 0 … n + 1, or all of them with the experts of the first blocks on the CPU
way AS (
    SELECT whole.*, blocks.list AS list, on_gpu, experts_off
    FROM whole, blocks,
        (SELECT on_gpu, 0 AS experts_off FROM whole, unnest(range(0, whole.blocks + 2)) AS step(on_gpu)
            UNION ALL
            SELECT whole.blocks + 1, experts_off FROM whole, unnest(range(1, whole.blocks + 1)) AS step(experts_off))
                AS ways
    WHERE whole.unknown_reason IS NULL
),
placed AS (
    SELECT way.*,
        greatest(on_gpu - 1, 0) AS layers,
        on_gpu <= blocks OR experts_off > 0 AS is_shared,
        CASE
            WHEN is_llama_cpp THEN iif(on_gpu = 0, 0, iif(is_head_tied, embedding_bytes, head_bytes) + other_bytes)
                + coalesce(list_sum(list_transform(list[blocks - layers + 1:], lambda block: block.layer_bytes)), 0)
                - coalesce(list_sum(list_transform(list[:experts_off], lambda block: block.expert_bytes)), 0)
            ELSE embedding_bytes + coalesce(list_sum(list_transform(list[:layers], lambda block: block.layer_bytes)), 0)
                + iif(on_gpu > blocks, head_bytes + other_bytes, 0)
        END AS gpu_weights,
        iif(is_llama_cpp, cache_bytes * coalesce(list_sum(caches[:iif(layers >= blocks, len(caches), layers)])
            / greatest(list_sum(caches), 1), 0),
            cache_bytes) AS gpu_cache,
        CASE
            WHEN NOT is_shared THEN 0
            WHEN is_llama_cpp THEN list_max(list_transform(list, lambda block: block.matrix_bytes))
            ELSE greatest(head_bytes, list_max(list_transform(list, lambda block: block.layer_bytes)))
        END AS brought_over
    FROM way
),
sized AS MATERIALIZED (
    SELECT *,
        (gpu_weights + ceil(gpu_cache) + activations_bytes + overhead_bytes + brought_over)::BIGINT AS gpu_bytes,
        greatest(0, weights_bytes + iif(is_llama_cpp AND is_head_tied AND on_gpu > 0, embedding_bytes, 0)
            - gpu_weights + cache_bytes - ceil(gpu_cache))::BIGINT AS host_bytes
    FROM placed
),
best AS (
    SELECT
        max(on_gpu) FILTER (experts_off = 0) AS on_gpu,
        arg_max(gpu_bytes, on_gpu) FILTER (experts_off = 0) AS gpu_bytes,
        arg_max(host_bytes, on_gpu) FILTER (experts_off = 0) AS host_bytes,
        min(experts_off) FILTER (on_gpu > blocks) AS experts_off,
        arg_min(gpu_bytes, experts_off) FILTER (on_gpu > blocks) AS experts_gpu_bytes,
        arg_min(host_bytes, experts_off) FILTER (on_gpu > blocks) AS experts_host_bytes
    FROM sized JOIN card_asked ON true LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
    -- (least passes over nulls: an amount of memory may stand for the card, or be what is free of it)
    WHERE takes(gpu_bytes, error_band, least(gpu.capacity_bytes, card_asked.free_bytes))
),
reasoned AS (
    SELECT whole.*, coalesce(gpu.gpu_id, card_asked.gpu_id) AS gpu_id, CASE
        WHEN card_asked.gpu_id IS NULL AND card_asked.free_bytes IS NOT NULL AND whole.unknown_reason IS NOT NULL
            THEN with_nearest(whole.unknown_reason, whole.model_id)
        WHEN gpu.gpu_id IS NULL AND (card_asked.gpu_id IS NOT NULL OR card_asked.free_bytes IS NULL)
            OR whole.unknown_reason IS NOT NULL
            THEN no_verdict_reason(gpu.gpu_id, card_asked.gpu_id, whole.total_bytes, whole.unknown_reason,
                whole.model_id, NULL)
        WHEN whole.engine_id NOT IN ('llama.cpp', 'transformers')
            THEN 'sharing with the CPU is worked out for llama.cpp and Transformers'
        WHEN whole.engine_id = 'transformers' AND whole.dtype_id NOT IN ('fp32', 'bf16', 'fp16')
            THEN 'bitsandbytes runs its layers on the GPU only'
        WHEN coalesce((SELECT sum(layer_bytes) FROM layer), 0) * 1.001 < greatest(whole.blocks_bytes, 1)
            THEN 'the layers of this model are not told apart yet'
    END AS reason
    FROM whole JOIN card_asked ON true LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
)
SELECT
    reasoned.gpu_id, reasoned.model_id, reasoned.dtype_id, reasoned.engine_id, reasoned.context_tokens,
    reasoned.sequences, reasoned.blocks AS layer_count,
    -- as -ngl counts them in llama.cpp, where the output is one more
    CASE WHEN reasoned.reason IS NULL AND best.on_gpu IS NOT NULL THEN iif(reasoned.is_llama_cpp, best.on_gpu,
        greatest(best.on_gpu - 1, 0)) END::BIGINT AS gpu_layers,
    CASE WHEN reasoned.reason IS NULL THEN best.gpu_bytes END AS gpu_bytes,
    CASE WHEN reasoned.reason IS NULL THEN best.host_bytes END AS host_bytes,
    CASE WHEN reasoned.reason IS NULL AND reasoned.engine_id = 'llama.cpp'
        AND (SELECT sum(expert_bytes) FROM layer) > 0 THEN best.experts_off END::BIGINT
        AS cpu_expert_layers,
    CASE WHEN reasoned.reason IS NULL AND reasoned.engine_id = 'llama.cpp'
        AND (SELECT sum(expert_bytes) FROM layer) > 0 THEN best.experts_gpu_bytes END
        AS cpu_expert_gpu_bytes,
    CASE WHEN reasoned.reason IS NULL AND reasoned.engine_id = 'llama.cpp'
        AND (SELECT sum(expert_bytes) FROM layer) > 0 THEN best.experts_host_bytes END
        AS cpu_expert_host_bytes,
    coalesce(reasoned.reason, CASE
        WHEN best.on_gpu IS NOT NULL THEN NULL
        WHEN reasoned.is_llama_cpp THEN 'not even the compute buffer fits beside the caches'
        ELSE reasoned.dtype_id
            || ' is no format of llama.cpp; in Transformers, not even the embeddings, the cache and the largest layer '
            || 'fit on the card'
    END) AS unknown_reason
FROM reasoned CROSS JOIN best;
