-- GGUF: which block format llama.cpp gives to which layer of which tensor.
--
-- Units: elements, bytes. Sources: gguf_mix.csv with gguf_type.csv (block formats by tensor category and layer,
-- llama.cpp's own selection). GGUF keeps norms, routers, position embeddings and short convolutions in F32, those of
-- vision and audio too, and the matrices of vision and audio in F16 (they live in a file of their own). The convolution
-- that makes patches is F16 in files that are F16 throughout, and F32 in those of BF16, as which it is counted.
-- Routed experts that were published in MXFP4 stay in it whatever the mix of the rest is called: of gpt-oss all files
-- of ggml-org, unsloth, bartowski and lmstudio-community, F16 to Q2_K (gguf-mxfp4-experts). Copies in 16 bits do not.
-- Files that llama.cpp's own selection made of Qwen3.6-27B are counted to the last digit that their sizes were read in
-- (gguf-qwen3.6-sizes: 15.401 GiB in Q4_K_M, 14.036 in IQ4_XS).
-- Not covered: importance matrices, mixes that somebody chose tensor by tensor: of that model others' files of the same
-- names hold up to 2.4 % more, which is less than the error band.

-- What llama.cpp calls our tensors, as far as its selection tells them apart.
CREATE OR REPLACE MACRO gguf_category(tensor_class, role, operator, is_head_tied) AS CASE
    WHEN tensor_class IN ('vision-tower', 'audio-tower', 'projector') AND operator NOT IN ('vector', 'conv')
        AND NOT role LIKE 'position%' THEN 'separate'
    WHEN operator IN ('vector', 'conv', 'parameter') OR tensor_class IN ('norm', 'router')
        OR role LIKE 'position%' OR role LIKE 'token_type%' OR role LIKE 'relative%' THEN 'f32'
    WHEN tensor_class = 'head' OR (is_head_tied AND role = 'embedding') THEN 'output'
    -- (gated delta nets have theirs under the name of joined attention: attn_qkv)
    WHEN role IN ('attention_v', 'attention_qkv', 'delta_qkv', 'mla_kv_b') THEN 'attn_v'
    WHEN role = 'attention_k' THEN 'attn_k'
    WHEN role = 'attention_o' THEN 'attn_output'
    WHEN role IN ('ffn_down', 'expert_down', 'shared_down') THEN 'ffn_down'
    WHEN role = 'attention_q' THEN 'attn_q'
    WHEN role IN ('ffn_up', 'ffn_gate', 'ffn_gate_up', 'expert_gate_up', 'expert_up', 'expert_gate', 'shared_up',
        'shared_gate',
        'shared_gate_up') THEN 'ffn_up'
    WHEN role = 'embedding' THEN 'token_embd'
    ELSE 'other'
END;

-- Whether a rule of a mix speaks of the layer at a place, the first of which is 0 (llama.cpp: use_more_bits and its
-- neighbours).
CREATE OR REPLACE MACRO gguf_rule_claims(layer_rule, place, layers, kv_group, experts, is_expert) AS CASE layer_rule
    WHEN 'rest' THEN true
    WHEN 'more-bits' THEN place < layers // 8 OR place >= 7 * layers // 8 OR (place - layers // 8) % 3 = 2
    WHEN 'first-two' THEN place < 2
    WHEN 'first-four' THEN place < 4
    WHEN 'first-eighth' THEN place < layers // 8
    WHEN 'first-sixteenth' THEN place < layers // 16
    WHEN 'middle' THEN place >= layers // 8 AND place < 7 * layers // 8
    WHEN 'four-queries-per-key' THEN kv_group >= 4
    WHEN 'four-experts' THEN experts >= 4
    WHEN 'eighty-layers' THEN layers = 80
    WHEN 'eight-experts' THEN experts = 8
    WHEN 'routed' THEN is_expert
END;

-- In how many of so many layers it does.
CREATE OR REPLACE MACRO gguf_rule_layers(layer_rule, layers, kv_group, experts, is_expert) AS
    len(list_filter(range(layers),
        lambda place: gguf_rule_claims(layer_rule, place, layers, kv_group, experts, is_expert)));

-- Rules that beat others come later; a layer that an earlier rule claims keeps it unless it is beaten.
CREATE OR REPLACE MACRO gguf_rule_rank(layer_rule) AS list_position([
    'rest', 'four-queries-per-key', 'four-experts', 'eighty-layers', 'more-bits', 'middle', 'first-two', 'first-four',
    'first-eighth',
    'first-sixteenth', 'eight-experts', 'routed'], layer_rule);

-- models whose experts were published in MXFP4, under this name or another's of the same work
CREATE OR REPLACE TABLE keeps_experts AS
SELECT model.model_id
FROM model JOIN work USING (model_id)
JOIN engine_gap AS gap ON gap.gap = 'experts' AND gap.engine_id = 'llama.cpp'
    AND list_contains(string_split(gap.model_types, ' '), model.model_type)
WHERE coalesce(model.stored_format, 'mxfp4') = 'mxfp4' AND lower(model.model_id) NOT LIKE '%bf16%'
    AND (work.plain_name, model.model_type) IN (
        SELECT (theirs.plain_name, published.model_type)
        FROM model AS published JOIN work AS theirs USING (model_id)
        WHERE published.stored_format = 'mxfp4');

CREATE OR REPLACE TEMP TABLE gguf_tensor AS
SELECT
    tensor.*,
    gguf_category(tensor.tensor_class, tensor.role, tensor.operator, model.is_head_tied) AS category,
    tensor.operator = 'expert' AS is_expert,
    tensor.operator = 'expert' AND model.model_id IN (FROM keeps_experts) AS is_kept,
    coalesce((SELECT max(head_count // greatest(kv_head_count, 1)) FROM attention_layer AS layer
        WHERE layer.model_id = tensor.model_id AND layer.component = 'text' AND layer.head_count > 0), 1) AS kv_group,
    coalesce((SELECT max(expert_count) FROM feed_forward_layer AS block WHERE block.model_id = tensor.model_id), 0)
        AS experts
FROM tensor JOIN model USING (model_id);

CREATE OR REPLACE TEMP TABLE gguf_share AS
WITH claims AS (
    SELECT
        shape.*, rule.dtype_id, rule.gguf_type,
        gguf_rule_rank(rule.layer_rule) AS rank,
        gguf_rule_layers(rule.layer_rule, shape.layer_count, kv_group, experts, is_expert) AS claimed
    FROM (SELECT DISTINCT category, layer_count, kv_group, experts, is_expert FROM gguf_tensor
          WHERE NOT gguf_is_unpacked(category)) AS shape
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

-- What elements of a tensor take in a block format (wide, a row of gguf_type; fallback, the row that it names). A row
-- of the tensor that does not divide into blocks takes the fallback, and F16 where that does not divide either.
CREATE OR REPLACE MACRO gguf_packed_bytes(elements, in_features, wide, fallback) AS CASE
    WHEN coalesce(in_features % wide.block_elements, 0) = 0
        THEN gguf_bytes(elements, wide.block_elements, wide.block_bytes)
    WHEN in_features % fallback.block_elements = 0
        THEN gguf_bytes(elements, fallback.block_elements, fallback.block_bytes)
    ELSE 2 * elements
END;

-- what llama.cpp packs into no blocks
CREATE OR REPLACE MACRO gguf_is_unpacked(category) AS category IN ('f32', 'separate');
CREATE OR REPLACE MACRO gguf_unpacked_bytes(elements, category) AS elements * iif(category = 'f32', 4, 2);
