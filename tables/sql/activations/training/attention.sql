-- What one layer of attention keeps for the backward pass, and what its own gradients take, by the kernel that it runs
-- in.
--
--   kept = bytes × (query + key + value + context) + heads × (bytes of a score × tokens read, where scores are tensors,
--       else 4)
--
-- Units: bytes per GPU, or per token of one layer. Source: transformers-step-oracle, read as kept.sql says.
-- Not covered: kernels that no engine of the book runs; eager attention of adapters under autocast where the softmax is
--   told to stay in 16 bits (counted in 32: a quarter too much in counted steps of gpt-oss).

-- Which kernel attention runs in. Fused kernels take neither grouped heads in fp32 nor one key for all queries without
-- being told so: both run as plain matrix products (math). A layer with a window needs a mask, as does a padded batch
-- (attention := 'masked'): that excludes the flash kernel (masked). Transformers makes the mask as soon as a sequence
-- is as long as the window, when nothing lies outside of it yet; a window that looks both ways counts half
-- (masking_utils.py, transformers-5.23.0).
CREATE OR REPLACE MACRO is_window_masked(layer, scenario) AS
    coalesce(iif(layer.mechanism = 'bidirectional', layer.window_tokens // 2,
        layer.window_tokens) <= scenario.context_tokens, false);

CREATE OR REPLACE MACRO attention_kernel(layer, model, scenario) AS CASE
    WHEN scenario.has_fused_sinks AND scenario.attention <> 'eager' THEN 'sinks'
    WHEN scenario.attention = 'eager' OR NOT model.has_flash_attention AND model.attention_form <> 'biased' THEN 'eager'
    WHEN model.attention_form = 'biased' THEN 'biased'
    -- (an engine with model code of its own writes that key out for all heads)
    WHEN model.attention_form = 'broadcast' AND layer.kv_head_count = 1 AND layer.head_count > 1
        AND NOT scenario.joins_projections THEN 'broadcast'
    WHEN is_window_masked(layer, scenario) OR scenario.attention = 'masked' THEN 'masked'
    -- (the flash kernel takes heads of up to 256)
    WHEN layer.query_width > 256 * layer.head_count THEN 'wide'
    WHEN scenario.repeats_keys AND layer.head_count > layer.kv_head_count THEN 'repeated'
    WHEN scenario.compute_bytes = 4 AND layer.head_count > layer.kv_head_count THEN 'math'
    ELSE 'fused'
END;

-- Per head and pair of tokens, eager attention: the fp32 softmax and its 16-bit copy, or the softmax in 16 bits; with
-- dropout the mask and the result; with a cap on the scores, their tanh.
CREATE OR REPLACE MACRO kept_per_score(model, scenario) AS
    CASE
        -- the scores beside their softmax, fp32 where a mask made them so
        WHEN model.softmax_form = 'clamped' THEN 2 * iif(scenario.precision = 'amp', 4, scenario.compute_bytes)
            + iif(model.attention_dropout > 0, 1 + scenario.compute_bytes,
                iif(scenario.precision = 'amp', scenario.compute_bytes, 0))
        WHEN model.softmax_form IN ('compute', 'sinks') AND scenario.precision <> 'amp' THEN scenario.compute_bytes
            + iif(model.attention_dropout > 0, 1 + scenario.compute_bytes, 0)
        ELSE 4 + iif(scenario.compute_bytes = 2 OR model.attention_dropout > 0, scenario.compute_bytes, 0)
            + iif(model.attention_dropout > 0, 1, 0) END
    + iif(model.has_score_cap, scenario.compute_bytes, 0);

-- What a kernel keeps of its scores: all of them, or its statistics; with sinks also what these and the sinks scale by,
-- that in 16 bits, and the scaled context.
CREATE OR REPLACE MACRO kept_by_scores(layer, model, scenario) AS
    layer.head_count * CASE layer.kernel WHEN 'eager' THEN scenario.score_bytes * layer.read_tokens
        WHEN 'math' THEN (4 + iif(model.attention_dropout > 0, 5, 0)) * layer.read_tokens
        WHEN 'broadcast' THEN (4 + iif(model.attention_dropout > 0, 5, 0)) * layer.read_tokens
        WHEN 'sinks' THEN 8 + scenario.compute_bytes ELSE 4 END
    + iif(layer.kernel = 'sinks', scenario.compute_bytes * layer.context_width, 0);

-- One layer: query, key, value, output and softmax statistics (a learned bias is counted apart: all sequences share
-- it). Fused projections of rotated heads stay alive through the value, a view of them; rotary embeddings that
-- concatenate lay the output out so that it is copied once more for the output projection. What only feeds a frozen
-- projection is not kept. A latent is expanded into keys and values, and the keys are assembled once more with the
-- rotary part.
CREATE OR REPLACE MACRO kept_by_attention(layer, model, scenario) AS
    scenario.compute_bytes * CASE
        WHEN layer.mechanism = 'mla' THEN 3 * layer.query_width - layer.head_count * model.rotary_width
            + layer.context_width
            + iif(layer.kernel = 'eager' AND scenario.is_adapter, 0, layer.context_width)
        WHEN layer.kernel = 'repeated' THEN 2 * (layer.query_width + layer.context_width)
        WHEN layer.kernel IN ('eager', 'masked', 'wide') THEN layer.query_width + layer.expanded_key_width
            + layer.expanded_value_width
            + iif(layer.kernel = 'eager' AND scenario.is_adapter, 0, layer.context_width)
                + iif(layer.kernel = 'masked', layer.read_tokens, 0)
        -- (scaling it writes even a single key out for all heads)
        WHEN layer.kernel = 'math' THEN 2 * layer.query_width + layer.context_width
            + iif(scenario.is_adapter, 0, layer.context_width)
        -- in fp32; a batch repeats the one key and value for every head
        WHEN layer.kernel = 'broadcast' THEN 4 * iif(scenario.sequences > 1, 2 * layer.query_width
            + layer.context_width, layer.query_width + layer.key_width + layer.value_width) / scenario.compute_bytes
            + iif(scenario.is_adapter, 0, layer.context_width)
        ELSE layer.query_width + layer.key_width + layer.value_width + layer.context_width
    END
    + kept_by_scores(layer, model, scenario)
    + iif(model.rotary_form = 'concatenated' AND layer.kernel = 'fused' AND scenario.compute_bytes = 2
        AND NOT scenario.is_adapter, 2 * layer.context_width, 0)
    -- (LitGPT lays the context out anew for its projection)
    + iif(scenario.joins_projections AND NOT scenario.is_adapter, scenario.compute_bytes * layer.context_width, 0)
    + iif(model.rotary_form <> 'none' AND (model.has_fused_qkv OR scenario.joins_projections)
        AND (layer.kernel = 'fused' OR layer.kernel = 'masked' AND layer.value_width = layer.expanded_value_width),
        scenario.compute_bytes * (layer.query_width + layer.key_width), 0)
    -- an output gate's sigmoid, and its product with the context
    + scenario.compute_bytes * iif(scenario.is_adapter, 1, 2) * layer.gate_width
    -- (an adapter in the same precision reads the kernel's own output, not a copy)
    - iif(layer.kernel IN ('fused', 'repeated', 'masked', 'wide') AND layer.gate_width = 0
        AND model.rotary_form <> 'concatenated' AND NOT scenario.joins_projections AND scenario.precision = 'pure'
        AND scenario.is_adapter AND NOT scenario.has_adapter_dropout
        AND (scenario.lora_targets IN ('attention', 'attention-experts') OR adapts_all_linear(scenario)),
        scenario.compute_bytes * layer.context_width, 0)
    + model.value_norm_bytes * layer.value_width
    + CASE
        WHEN NOT layer.has_qk_norm THEN 0
        WHEN model.norm_form = 'layer' THEN iif(model.has_fused_qkv, 0, scenario.compute_bytes)
            * (layer.query_width + layer.key_width)
        ELSE iif(scenario.is_adapter, 4, iif(norm_form(model, scenario) = 'rms-fp32', 8, 4 + scenario.compute_bytes))
            * (layer.query_width + layer.key_width) + 4 * (layer.head_count + layer.kv_head_count)
    END;

-- Per token, backward inside attention where scores are tensors: the softmax, its gradient, their product (a temporary
-- of PyTorch's CUDA kernel) and the gradient of the scores, all in the softmax's precision, in place of what was kept
-- of them. (PyTorch takes an fp32 softmax of fp16 scores in one kernel: their gradient is fp16.) Queries and keys wait
-- for it; the gradient of the values has taken the values' place, and what the layer kept behind its attention is gone.
CREATE OR REPLACE MACRO score_gradients(layer, model, scenario) AS CASE layer.kernel
    WHEN 'eager' THEN (CASE WHEN model.softmax_form = 'clamped' THEN 5 * iif(scenario.precision = 'amp', 4,
        scenario.compute_bytes)
        WHEN model.softmax_form IN ('compute', 'sinks') AND scenario.precision <> 'amp' THEN 4 * scenario.compute_bytes
            ELSE iif(scenario.is_half, 14, 16) END
        + iif(model.has_score_cap, scenario.compute_bytes, 0) - scenario.score_bytes) * layer.head_count
            * layer.read_tokens
    WHEN 'math' THEN 12 * layer.head_count * layer.read_tokens + 8 * layer.context_width
    WHEN 'broadcast' THEN 12 * layer.head_count * layer.read_tokens + 8 * layer.context_width
    -- that of the kernel's context, and its product with the context, which the scales' own is summed from
    WHEN 'sinks' THEN 2 * scenario.compute_bytes * layer.context_width
    ELSE 0 END;

-- Bytes per token of the layers' parts, in sum and of the one layer that has most: every formula of the moments is
-- written in these.
CREATE OR REPLACE MACRO with_kernels(model, scenario) AS
    -- (spelled out: a stored macro loses the names that struct_insert is given)
    list_transform(model.mixers, lambda layer: {
        'mechanism': layer.mechanism, 'layer_count': layer.layer_count, 'window_tokens': layer.window_tokens,
        'head_count': layer.head_count, 'kv_head_count': layer.kv_head_count, 'query_width': layer.query_width,
        'key_width': iif(layer.mechanism = 'cross', scenario.encoder_ratio, 1) * layer.key_width,
        'value_width': iif(layer.mechanism = 'cross', scenario.encoder_ratio, 1) * layer.value_width,
        'context_width': layer.context_width, 'gate_width': layer.gate_width, 'has_qk_norm': layer.has_qk_norm,
        'expanded_key_width': layer.expanded_key_width, 'expanded_value_width': layer.expanded_value_width,
        'kernel': attention_kernel(layer, model, scenario),
        -- tokens that a query reads, and how many of each there are for a token of the decoder
        'read_tokens': iif(layer.mechanism IN ('cross', 'bidirectional'), scenario.encoder_ratio, 1)
            * scenario.context_tokens,
        'token_ratio': iif(layer.mechanism = 'bidirectional', scenario.encoder_ratio, 1)
    });

-- Per token and layer, where scores are tensors: what is gone when they are differentiated. The norm before the
-- feed-forward block, adapters' inputs behind the scores, one of the two gradients of hidden states. Blocks beside
-- attention, and layers that are either, keep it.
CREATE OR REPLACE MACRO freed_before_scores(model, scenario) AS
    iif(model.is_block_parallel OR model.is_alternating OR scenario.encoder_ratio <> 1, 0, (
        kept_by_norms(model.norm_width_sum, model.norm_output_sum, model, scenario) / 2
        + scenario.residual_bytes * model.layer_count * model.hidden_size
        + iif(scenario.is_adapter, adapter_compute_bytes(scenario) * CASE
            WHEN scenario.lora_targets = 'attention' THEN model.context_sum
            WHEN adapts_all_linear(scenario) AND NOT scenario.has_adapted_experts THEN
                adapted_inputs(model, scenario) - model.lora_attention_input_sum + model.context_sum
            ELSE 0 END, 0)
        ) / greatest(model.layer_count, 1));
