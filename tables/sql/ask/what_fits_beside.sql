-- what_fits_beside('rtx-4090', 64 * 1024 ** 3): what does not fit one such card whole, and does in llama.cpp with a
-- part of it in so much memory of the computer; mixtures whose experts lie there first, then by downloads.
--
--   ways_beside(relation, ram_bytes)   the same of rows that name what a card gives (`bytes`), a total and its band
--
-- Units: bytes of the GPU and of the host. Sources: those of capacity/cpu_split.sql, in whose table the ways lie at
--   8,192 tokens. Not covered: whole layers on the CPU at other contexts, where what each caches is not in that table.

-- Of a mixture whose experts stay on the CPU all caches are on the card, so that what it holds less than the whole is
-- the same at every context and for every cache. Of whole layers it is not: those of the table's own total are told
-- alone.
CREATE OR REPLACE MACRO ways_beside(relation, ram_bytes) AS TABLE
WITH held AS MATERIALIZED (
    SELECT split.model_id, split.dtype_id, max(split.gpu_layers) - 1 AS layer_count,
        max(split.cpu_expert_layers) > 0 AS has_experts,
        max_by(split.gpu_bytes, split.gpu_layers) FILTER (split.cpu_expert_layers = 0) AS whole_bytes,
        list({'on_gpu': split.gpu_layers, 'cpu_expert_layers': split.cpu_expert_layers, 'gpu_bytes': split.gpu_bytes,
            'host_bytes': split.host_bytes} ORDER BY split.cpu_expert_layers, split.gpu_layers) AS ways
    FROM cpu_split AS split GROUP BY ALL
),
told AS (
    SELECT said.*, held.layer_count, held.has_experts, list_transform(list_filter(held.ways,
        lambda way: way.on_gpu > held.layer_count OR said.total_bytes = held.whole_bytes),
        lambda way: {'on_gpu': way.on_gpu, 'cpu_expert_layers': way.cpu_expert_layers,
            'gpu_bytes': said.total_bytes - held.whole_bytes + way.gpu_bytes, 'host_bytes': way.host_bytes}) AS ways
    FROM query_table(relation) AS said
    JOIN held ON held.model_id = said.model_id AND held.dtype_id = said.dtype_id
),
best AS (
    SELECT told.* EXCLUDE (ways, has_experts), most_layers(ways, error_band, bytes) AS layers,
        iif(has_experts, fewest_experts(ways, layer_count, error_band, bytes), NULL) AS experts
    FROM told
),
way AS (
    -- (where the experts of some fit so, the output alone does too: one layer as -ngl counts them)
    SELECT best.* EXCLUDE (layers, experts),
        CASE way_beside(coalesce(layers.on_gpu, iif(experts.cpu_expert_layers > 0, 1, NULL)),
            experts.cpu_expert_layers, layer_count) WHEN 'experts' THEN experts WHEN 'layers' THEN layers END AS way
    FROM best
)
SELECT
    way.* EXCLUDE (way), way.way.on_gpu AS gpu_layers, nullif(way.way.cpu_expert_layers, 0) AS cpu_expert_layers,
    way.way.gpu_bytes, way.way.host_bytes
FROM way
WHERE ram_takes(way.way.host_bytes, error_band, ram_bytes,
    (SELECT any_value(value) FROM constant WHERE constant_id = 'host_system_bytes'));

-- free_bytes := n is what is free of the card. A context or a number of sequences that is not published is an error.
CREATE OR REPLACE MACRO what_fits_beside(
    gpu_id, ram_bytes, dtype_id := NULL, context_tokens := 8192, sequences := 1, free_bytes := NULL
) AS TABLE
WITH beside_known AS MATERIALIZED (
    SELECT list_sort(list(DISTINCT footprint.context_tokens)) AS contexts,
        list_sort(list(DISTINCT footprint.sequences)) AS counts
    FROM footprint WHERE footprint.phase_id = 'inference' AND footprint.engine_id = 'llama.cpp'
        AND footprint.gpu_count = 1
),
beside_card AS MATERIALIZED (
    SELECT gpu.gpu_id, card_kind(gpu) AS card_kind, asked_bytes(gpu, free_bytes::BIGINT) AS bytes,
        known_dtype(dtype_id) AS dtype_id,
        published('context_tokens', coalesce(context_tokens, 8192), known.contexts) AS context_tokens,
        published('sequences', coalesce(sequences, 1), known.counts) AS sequences
    FROM gpu CROSS JOIN beside_known AS known WHERE gpu.gpu_id = known_gpu(gpu_id) AND NOT is_computer(gpu)
),
beside_total AS MATERIALIZED (
    SELECT footprint.model_id, footprint.dtype_id, footprint.engine_id, footprint.context_tokens, footprint.sequences,
        footprint.phase_id, footprint.attention, footprint.total_bytes, footprint.error_band, card.bytes, card.gpu_id
    FROM beside_card AS card
    JOIN footprint
        ON footprint.phase_id = 'inference' AND footprint.engine_id = 'llama.cpp' AND footprint.gpu_count = 1
        AND footprint.context_tokens = card.context_tokens AND footprint.sequences = card.sequences
        AND coalesce(footprint.dtype_id = card.dtype_id, true) AND footprint.total_bytes IS NOT NULL
),
beside_way AS MATERIALIZED (FROM ways_beside('beside_total', ram_bytes::BIGINT))
-- (the names of arguments are told from columns by what stands before them)
SELECT
    way.model_id, way.dtype_id, way.engine_id, way.context_tokens, way.sequences, model.parameter_count,
    model.downloads_30d, way.layer_count::BIGINT AS layer_count, way.gpu_layers::BIGINT AS gpu_layers,
    way.cpu_expert_layers::BIGINT AS cpu_expert_layers, way.gpu_bytes::BIGINT AS gpu_bytes,
    way.host_bytes::BIGINT AS host_bytes
FROM beside_way AS way
JOIN beside_card AS card ON card.gpu_id = way.gpu_id
JOIN model ON model.model_id = way.model_id
JOIN runs_on_kind AS running
    ON running.engine_id = way.engine_id AND running.running_id = running_format(model, way.dtype_id, way.engine_id)
    AND running.phase_id = way.phase_id AND running.attention = way.attention AND running.card_kind = card.card_kind
    AND running.runs
ORDER BY way.cpu_expert_layers IS NULL, model.downloads_30d DESC NULLS LAST, way.model_id, way.dtype_id;
