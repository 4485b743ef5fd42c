-- Resident weights of every model in every dtype, and what of them tensor parallelism cannot split.
--
--   weights_bytes = Σ over tensors ceil(elements × element_bits ÷ 8) + rows × row_bits ÷ 8
--
-- Units: bytes, whole model on one GPU. `element_bits` include scales and zero points.
-- Sources: weight_format.csv (bits by operator, class and role; the most specific row wins) and, for GGUF,
--   gguf_mix.csv with gguf_type.csv (block formats by tensor category and layer, llama.cpp's own selection). MLX packs every matrix
--   and embedding of the language model whose rows divide into groups (group_elements).
-- `stored`, the checkpoint as published, is what its tensor headers say to the byte where they are at hand (stored_tensor, less what
--   no engine loads), else what its quantisation config or its total says of each part (stored_part), else the format that they name.
-- A quantised format that the checkpoint itself is published in is loaded as it is: `fp8` of an FP8 repository is `stored`.
-- Tied heads are held once. GGUF keeps norms, routers, position embeddings and short convolutions in F32 and the
--   vision and audio parts in F16 (they live in a file of their own).
-- Not covered: padding of the vocabulary, recipes with a format that weight_format.csv lacks, copies that a kernel
--   makes while loading.

-- The bits of each kind of tensor in each format that packs element by element.
CREATE OR REPLACE TEMP TABLE element_format AS
WITH kinds AS (SELECT DISTINCT operator, tensor_class, role FROM tensor)
SELECT
    rule.dtype_id, kinds.operator, kinds.tensor_class, kinds.role, rule.element_bits, rule.row_bits, rule.group_elements
FROM kinds
JOIN weight_format AS rule
    ON coalesce(rule.operator = kinds.operator, true)
    AND coalesce(rule.tensor_class = kinds.tensor_class, true)
    AND coalesce(rule.role = kinds.role, true)
QUALIFY row_number() OVER (
    PARTITION BY rule.dtype_id, kinds.operator, kinds.tensor_class, kinds.role
    ORDER BY (rule.role IS NOT NULL)::INT * 4 + (rule.tensor_class IS NOT NULL)::INT * 2
        + (rule.operator IS NOT NULL)::INT DESC
) = 1;

-- What llama.cpp calls our tensors, as far as its selection tells them apart.
CREATE OR REPLACE MACRO gguf_category(tensor_class, role, operator, is_head_tied) AS CASE
    WHEN tensor_class IN ('vision-tower', 'audio-tower', 'projector') THEN 'separate'
    WHEN operator IN ('vector', 'conv', 'parameter') OR tensor_class IN ('norm', 'router')
        OR role LIKE 'position%' OR role LIKE 'token_type%' OR role LIKE 'relative%' THEN 'f32'
    WHEN tensor_class = 'head' OR (is_head_tied AND role = 'embedding') THEN 'output'
    WHEN role IN ('attention_v', 'attention_qkv', 'mla_kv_b') THEN 'attn_v'
    WHEN role = 'attention_k' THEN 'attn_k'
    WHEN role = 'attention_o' THEN 'attn_output'
    WHEN role IN ('ffn_down', 'expert_down', 'shared_down') THEN 'ffn_down'
    WHEN role = 'attention_q' THEN 'attn_q'
    WHEN role IN ('ffn_up', 'ffn_gate', 'ffn_gate_up', 'expert_gate_up', 'expert_up', 'expert_gate', 'shared_up', 'shared_gate',
        'shared_gate_up') THEN 'ffn_up'
    WHEN role = 'embedding' THEN 'token_embd'
    ELSE 'other'
END;

-- In how many of `layers` layers a rule of the mix applies (llama.cpp: use_more_bits and its neighbours).
CREATE OR REPLACE MACRO gguf_rule_layers(layer_rule, layers, kv_group, experts, is_expert) AS CASE layer_rule
    WHEN 'rest' THEN layers
    WHEN 'more-bits' THEN len(list_filter(range(layers), lambda i:
        i < layers // 8 OR i >= 7 * layers // 8 OR (i - layers // 8) % 3 = 2))
    WHEN 'first-two' THEN least(2, layers)
    WHEN 'first-four' THEN least(4, layers)
    WHEN 'first-eighth' THEN layers // 8
    WHEN 'middle' THEN 7 * layers // 8 - layers // 8
    WHEN 'first-sixteenth' THEN layers // 16
    WHEN 'four-queries-per-key' THEN iif(kv_group >= 4, layers, 0)
    WHEN 'eighty-layers' THEN iif(layers = 80, layers, 0)
    WHEN 'four-experts' THEN iif(experts >= 4, layers, 0)
    WHEN 'eight-experts' THEN iif(experts = 8, layers, 0)
    WHEN 'routed' THEN iif(is_expert, layers, 0)
END;

-- Rules that beat others come later; a layer that an earlier rule claims keeps it unless it is beaten.
CREATE OR REPLACE MACRO gguf_rule_rank(layer_rule) AS list_position([
    'rest', 'four-queries-per-key', 'four-experts', 'eighty-layers', 'more-bits', 'middle', 'first-two', 'first-four', 'first-eighth',
    'first-sixteenth', 'eight-experts', 'routed'], layer_rule);

CREATE OR REPLACE TEMP TABLE gguf_tensor AS
SELECT
    tensor.*,
    gguf_category(tensor.tensor_class, tensor.role, tensor.operator, model.is_head_tied) AS category,
    tensor.operator = 'expert' AS is_expert,
    coalesce((SELECT max(head_count // greatest(kv_head_count, 1)) FROM attention_layer AS a
        WHERE a.model_id = tensor.model_id AND a.component = 'text' AND a.head_count > 0), 1) AS kv_group,
    coalesce((SELECT max(expert_count) FROM feed_forward_layer AS f WHERE f.model_id = tensor.model_id), 0) AS experts
FROM tensor JOIN model USING (model_id);

CREATE OR REPLACE TEMP TABLE gguf_share AS
WITH claims AS (
    SELECT
        shape.*, rule.dtype_id, rule.gguf_type,
        gguf_rule_rank(rule.layer_rule) AS rank,
        gguf_rule_layers(rule.layer_rule, shape.layer_count, kv_group, experts, is_expert) AS claimed
    FROM (SELECT DISTINCT category, layer_count, kv_group, experts, is_expert FROM gguf_tensor
          WHERE category NOT IN ('separate', 'f32')) AS shape
    JOIN gguf_mix AS rule
        ON rule.role = shape.category
        OR (rule.role = 'other' AND NOT (rule.layer_rule = 'rest' AND EXISTS (
            FROM gguf_mix AS own
            WHERE own.dtype_id = rule.dtype_id AND own.role = shape.category AND own.layer_rule = 'rest')))
)
SELECT
    category, layer_count, kv_group, experts, is_expert, dtype_id, gguf_type,
    -- claims of higher rank cover the lower ones; what is left of a rule is its count less what beats it
    greatest(claimed - coalesce(max(claimed) OVER (
        PARTITION BY category, layer_count, kv_group, experts, is_expert, dtype_id ORDER BY rank
        ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), 0), 0) AS layers
FROM claims WHERE claimed > 0;

CREATE OR REPLACE MACRO gguf_bytes(elements, block_elements, block_bytes) AS
    (elements * block_bytes + block_elements - 1) // block_elements;

-- Bytes of every tensor in every dtype.
CREATE OR REPLACE TEMP TABLE tensor_bytes AS
SELECT tensor.*, format.dtype_id,
    -- a matrix whose rows do not fill groups of one scale each is not packed
    ceil(tensor.element_count * iif(coalesce(tensor.in_features % format.group_elements > 0, false), 16, format.element_bits) / 8)::BIGINT
        + (tensor.layer_count * tensor.per_layer_count
            * iif(tensor.in_features IS NULL, 0, tensor.out_features) * format.row_bits / 8)::BIGINT AS bytes
FROM tensor JOIN element_format AS format USING (operator, tensor_class, role)
UNION ALL
SELECT tensor.* EXCLUDE (category, is_expert, kv_group, experts), share.dtype_id,
    sum(gguf_bytes(tensor.element_count // tensor.layer_count * share.layers,
        coalesce(narrower.block_elements, wide.block_elements), coalesce(narrower.block_bytes, wide.block_bytes)))::BIGINT
FROM gguf_tensor AS tensor
JOIN gguf_share AS share USING (category, layer_count, kv_group, experts, is_expert)
JOIN gguf_type AS wide ON wide.gguf_type = share.gguf_type
-- a row that does not divide into blocks takes the fallback, and F16 where that does not divide either
LEFT JOIN gguf_type AS fallback
    ON fallback.gguf_type = wide.fallback_gguf_type AND tensor.in_features % wide.block_elements <> 0
LEFT JOIN gguf_type AS narrower
    ON fallback.gguf_type IS NOT NULL
    AND narrower.gguf_type = iif(tensor.in_features % fallback.block_elements = 0, fallback.gguf_type, 'F16')
GROUP BY ALL
UNION ALL
SELECT tensor.* EXCLUDE (category, is_expert, kv_group, experts), mix.dtype_id,
    tensor.element_count * iif(tensor.category = 'f32', 4, 2)
FROM gguf_tensor AS tensor, (SELECT DISTINCT dtype_id FROM gguf_mix) AS mix
WHERE tensor.category IN ('f32', 'separate');

-- What a checkpoint holds where its headers say it (scales and tables come with the class of their matrix), else where its config or its
-- total says what is held in which format: bits by operator, whatever the class, since the part says it.
CREATE OR REPLACE TEMP TABLE part_held AS
SELECT
    part.model_id, part.component, part.tensor_class, part.is_in_layers, part.element_count,
    ceil(part.element_count * rule.element_bits / 8)::BIGINT
        + (part.layer_count * part.per_layer_count
            * iif(part.in_features IS NULL, 0, part.out_features) * rule.row_bits / 8)::BIGINT AS bytes
FROM stored_part AS part
JOIN weight_format AS rule
    ON rule.dtype_id = part.dtype_id AND rule.tensor_class IS NULL AND rule.role IS NULL
    AND coalesce(rule.operator = part.operator, true)
QUALIFY row_number() OVER (
    PARTITION BY part.model_id, part.component, part.tensor_class, part.role, part.operator, part.dtype_id, part.is_in_layers,
        part.layer_count, part.in_features, part.out_features
    ORDER BY rule.operator IS NULL
) = 1;

CREATE OR REPLACE TEMP TABLE stored_sums AS
WITH held AS (
    SELECT model_id, component, tensor_class, is_in_layers, element_count, stored_bytes AS bytes
    FROM stored_tensor WHERE not_loaded_reason IS NULL
    UNION ALL BY NAME
    FROM part_held WHERE model_id NOT IN (SELECT model_id FROM stored_tensor WHERE not_loaded_reason IS NULL)
)
SELECT
    model_id, 'stored' AS dtype_id,
    sum(bytes)::BIGINT AS weights_bytes,
    coalesce(sum(bytes) FILTER (tensor_class IN ('norm', 'router', 'vision-tower', 'audio-tower', 'projector')), 0)::BIGINT
        AS replicated_bytes,
    coalesce(sum(bytes) FILTER (tensor_class = 'embedding'), 0)::BIGINT AS embedding_bytes,
    coalesce(sum(bytes) FILTER (tensor_class = 'head'), 0)::BIGINT AS head_bytes,
    coalesce(sum(bytes) FILTER (is_in_layers AND component = 'text' OR tensor_class = 'denoiser'), 0)::BIGINT AS layer_bytes,
    coalesce(sum(bytes) FILTER (bytes >= 2 * element_count), 0)::BIGINT AS unquantised_bytes
FROM held
GROUP BY model_id;

CREATE OR REPLACE TABLE weight AS
WITH sums AS (
    SELECT
        model_id, dtype_id,
        sum(bytes)::BIGINT AS weights_bytes,
        coalesce(sum(bytes) FILTER (tensor_class IN ('norm', 'router', 'vision-tower', 'audio-tower', 'projector')), 0)::BIGINT
            AS replicated_bytes,
        coalesce(sum(bytes) FILTER (tensor_class = 'embedding'), 0)::BIGINT AS embedding_bytes,
        coalesce(sum(bytes) FILTER (tensor_class = 'head'), 0)::BIGINT AS head_bytes,
        coalesce(sum(bytes) FILTER (layer_count > 1 AND component = 'text' OR tensor_class = 'denoiser'), 0)::BIGINT AS layer_bytes,
        coalesce(sum(bytes) FILTER (bytes >= 2 * element_count), 0)::BIGINT AS unquantised_bytes
    FROM tensor_bytes
    GROUP BY ALL
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
        END AS format,
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
    reason.unknown_reason
FROM held_as
LEFT JOIN sums ON sums.model_id = held_as.model_id AND sums.dtype_id = held_as.format,
LATERAL (SELECT CASE
    -- (as published is asked of a server, and no server loads it)
    WHEN held_as.is_stored_for_mlx THEN 'published in a format of MLX: dtype_id := ''mlx-4bit'' and its kin say what MLX LM holds'
    WHEN held_as.format IS NULL AND held_as.stored_unknown_reason IS NOT NULL
        THEN 'how the published checkpoint holds its weights is not known: ' || held_as.stored_unknown_reason
    WHEN held_as.format IS NULL THEN 'the format of the published checkpoint is not known'
    WHEN held_as.format IN ('mxfp4', 'gguf-mxfp4') AND held_as.model_id NOT IN (SELECT model_id FROM tensor WHERE operator = 'expert')
        THEN 'this format is for routed experts, and the model has none'
    WHEN held_as.format IN (
        SELECT dtype.dtype_id FROM model, dtype, engine_gap AS gap
        WHERE model.model_id = held_as.model_id AND gap.gap = 'packing' AND gap.engine_id = dtype.engine_id
            AND dtype.bits_per_weight < 16 AND list_contains(string_split(gap.model_types, ' '), model.model_type)
    ) THEN 'how this format holds the architecture is not known: some of its matrices are packed otherwise (table engine_gap)'
END AS unknown_reason) AS reason;
