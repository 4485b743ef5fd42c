-- Resident weights of every model in every dtype, and what of them tensor parallelism cannot split.
--
--   weights_bytes = Σ over tensors ceil(elements × element_bits ÷ 8) + rows × row_bits ÷ 8
--
-- Units: bytes, whole model on one GPU. `element_bits` include scales and zero points.
-- Sources: weight_format.csv (bits by operator, class and role; the most specific row wins) and, for GGUF,
--   gguf_mix.csv with gguf_type.csv (block formats by tensor category and layer, llama.cpp's own selection). MLX packs
--   every matrix and embedding of the language model whose rows divide into groups (group_elements).
-- `stored`, the checkpoint as published, is what its tensor headers say to the byte where they are at hand
--   (stored_tensor, less what no engine loads), else what its quantisation config or its total says of each part
--   (stored_part), else the format that they name.
-- A quantised format that the checkpoint itself is published in is loaded as it is: `fp8` of an FP8 repository is
-- `stored`. Tied heads are held once. GGUF keeps norms, routers, position embeddings and short convolutions in F32 and
--   the vision and audio parts in F16 (they live in a file of their own).
-- input_bytes: tables of which a step reads single rows: those of each layer and of n-grams, and the embedding where
--   the output is a matrix of its own or there is none. llama.cpp leaves them in the computer's memory whatever goes to
--   the card (llama-cpp-offload: tensors of its input layer; the log calls them CPU_Mapped model buffer).
-- tower_bytes: what sees and hears, and what joins it to the text; speech_bytes: what speaks beside what writes,
--   with what of it tensor parallelism leaves whole, and its embeddings and heads; an engine may leave out either
--   (engine_part.csv).
-- packing_spread_bytes: what a copy may hold beyond weights_bytes (packing_ways.sql); 0 where all known ways agree.
-- Not covered: padding of the vocabulary, recipes with a format that weight_format.csv lacks, copies that a kernel
--   makes while loading.

-- what every tensor-parallel rank holds whole
CREATE OR REPLACE MACRO is_replicated(tensor_class) AS
    tensor_class IN ('norm', 'router', 'vision-tower', 'audio-tower', 'projector');

CREATE OR REPLACE TABLE weight AS
WITH sums AS (
    SELECT
        model_id, dtype_id,
        sum(bytes)::BIGINT AS weights_bytes,
        coalesce(sum(bytes) FILTER (is_replicated(tensor_class)), 0)::BIGINT AS replicated_bytes,
        coalesce(sum(bytes) FILTER (tensor_class = 'embedding'), 0)::BIGINT AS embedding_bytes,
        coalesce(sum(bytes) FILTER (tensor_class = 'head'), 0)::BIGINT AS head_bytes,
        coalesce(sum(bytes) FILTER (role IN ('per_layer_embedding', 'ngram_embedding')
            OR role = 'embedding' AND component = 'text' AND NOT is_head_tied), 0)::BIGINT AS input_bytes,
        coalesce(sum(bytes) FILTER (is_of_towers(component)), 0)::BIGINT AS tower_bytes,
        coalesce(sum(bytes) FILTER (is_of_speech(component)), 0)::BIGINT AS speech_bytes,
        coalesce(sum(bytes) FILTER (is_of_speech(component) AND is_replicated(tensor_class)), 0)::BIGINT
            AS speech_replicated_bytes,
        coalesce(sum(bytes) FILTER (is_of_speech(component) AND tensor_class IN ('embedding', 'head')), 0)::BIGINT
            AS speech_end_bytes,
        coalesce(sum(bytes) FILTER (layer_count > 1 AND component = 'text' OR tensor_class = 'denoiser'), 0)::BIGINT
            AS layer_bytes,
        coalesce(sum(bytes) FILTER (bytes >= 2 * element_count), 0)::BIGINT AS unquantised_bytes,
        coalesce(sum(bytes) FILTER (tensor_class = 'expert'), 0)::BIGINT AS expert_bytes,
        coalesce(sum(bytes) FILTER (tensor_class = 'shared-expert'), 0)::BIGINT AS shared_expert_bytes,
        coalesce(sum(bytes) FILTER (tensor_class = 'feed-forward'), 0)::BIGINT AS feed_forward_bytes,
        read_sum(bytes, read_share(tensor_class, component, role = 'embedding' AND is_head_read_from_embeddings,
            expert_share)) AS read_bytes
    FROM tensor_bytes JOIN reading_shape USING (model_id)
    JOIN (SELECT model_id, is_head_tied FROM model) USING (model_id)
    GROUP BY model_id, dtype_id
    UNION ALL BY NAME
    FROM stored_sums
),
held_as AS (
    -- the checkpoint as published is what its headers say, or one of the formats, where its quantisation says which
    SELECT model_id, dtype.dtype_id,
        CASE
            WHEN NOT is_as_published THEN dtype.dtype_id
            WHEN model_id IN (SELECT model_id FROM stored_sums) THEN 'stored'
            WHEN model.stored_unknown_reason IS NULL THEN model.stored_format
        END AS format, is_as_published,
        iif(is_as_published, model.stored_unknown_reason, NULL) AS stored_unknown_reason,
        dtype.dtype_id = 'stored' AND starts_with(model.stored_format, 'mlx-') AS is_stored_for_mlx
    FROM model, dtype,
    LATERAL (SELECT dtype.dtype_id = 'stored' OR coalesce(dtype.dtype_id = model.stored_format
        AND dtype.engine_id IN ('vllm', 'transformers') AND dtype.bits_per_weight < 16, false) AS is_as_published)
    WHERE model.parameter_count IS NOT NULL AND model.anatomy_grade <> 'unknown'
)
SELECT
    held_as.model_id, held_as.dtype_id,
    iif(reason.unknown_reason IS NULL, columns(sums.* EXCLUDE (model_id, dtype_id)), NULL),
    iif(reason.unknown_reason IS NULL, coalesce(otherwise.more_bytes, 0), NULL)::BIGINT AS packing_spread_bytes,
    reason.unknown_reason
FROM held_as
LEFT JOIN sums ON sums.model_id = held_as.model_id AND sums.dtype_id = held_as.format
-- (the checkpoint's own format is what it is)
LEFT JOIN packed_otherwise('', NULL) AS otherwise
    ON otherwise.model_id = held_as.model_id AND otherwise.dtype_id = held_as.dtype_id AND NOT held_as.is_as_published,
LATERAL (SELECT CASE
    -- (as published is asked of a server, and no server loads it)
    WHEN held_as.is_stored_for_mlx
        THEN 'published in a format of MLX: dtype_id := ''mlx-4bit'' and its kin say what MLX LM holds'
    WHEN held_as.format IS NULL AND held_as.stored_unknown_reason IS NOT NULL
        THEN 'how the published checkpoint holds its weights is not known: ' || held_as.stored_unknown_reason
    WHEN held_as.format IS NULL THEN 'the format of the published checkpoint is not known'
    WHEN held_as.format IN ('mxfp4', 'gguf-mxfp4') AND held_as.model_id NOT IN (SELECT model_id FROM tensor
        WHERE operator = 'expert')
        THEN 'this format is for routed experts, and the model has none'
    WHEN held_as.format IN (
        SELECT dtype.dtype_id FROM model, dtype, engine_gap AS gap
        WHERE model.model_id = held_as.model_id AND gap.gap = 'packing' AND gap.engine_id = dtype.engine_id
            AND dtype.bits_per_weight < 16 AND list_contains(string_split(gap.model_types, ' '), model.model_type)
    ) THEN 'how this format holds the architecture is not known: some of its matrices are packed otherwise '
        || '(table engine_gap)'
END AS unknown_reason) AS reason;
