-- What one layer of attention keeps for the backward pass, and what its own gradients take, by the kernel that it runs in.
--
--   kept = bytes × (query + key + value + context) + heads × (bytes of a score × tokens read, where scores are tensors, else 4)
--
-- Units: bytes per GPU, or per token of one layer. Source: transformers-step-oracle, read as kept.sql says.
-- Not covered: kernels that no engine of the book runs; eager attention of adapters under autocast where the softmax is told to stay in 16
--   bits (counted in 32: a quarter too much in counted steps of gpt-oss).

-- Which kernel attention runs in. Fused kernels take neither grouped heads in fp32 nor one key for all queries without being told so:
-- both run as plain matrix products (math). A layer with a window needs a mask, as does a padded batch (attention := 'masked'): that
-- excludes the flash kernel (masked). Transformers makes the mask as soon as a sequence is as long as the window, when nothing lies
-- outside of it yet; a window that looks both ways counts half (masking_utils.py, transformers-5.23.0).
CREATE OR REPLACE MACRO is_window_masked(c, x) AS coalesce(iif(c.mechanism = 'bidirectional', c.win // 2, c.win) <= x.context_tokens, false);

CREATE OR REPLACE MACRO attention_kernel(c, m, x) AS CASE
    WHEN x.attention = 'eager' OR NOT m.has_flash_attention AND m.attention_form <> 'biased' THEN 'eager'
    WHEN m.attention_form = 'biased' THEN 'biased'
    WHEN m.attention_form = 'broadcast' AND c.kv_heads = 1 AND c.heads > 1 THEN 'broadcast'
    WHEN is_window_masked(c, x) OR x.attention = 'masked' THEN 'masked'
    -- (the flash kernel takes heads of up to 256)
    WHEN c.query > 256 * c.heads THEN 'wide'
    WHEN x.repeats_keys AND c.heads > c.kv_heads THEN 'repeated'
    WHEN x.compute_bytes = 4 AND c.heads > c.kv_heads THEN 'math'
    ELSE 'fused'
END;

-- Per head and pair of tokens, eager attention: the fp32 softmax and its 16-bit copy, or the softmax in 16 bits; with dropout the mask
-- and the result; with a cap on the scores, their tanh.
CREATE OR REPLACE MACRO kept_per_score(m, x) AS
    CASE
        -- the scores beside their softmax, fp32 where a mask made them so
        WHEN m.softmax_form = 'clamped' THEN 2 * iif(x.precision = 'amp', 4, x.compute_bytes)
            + iif(m.attention_dropout > 0, 1 + x.compute_bytes, iif(x.precision = 'amp', x.compute_bytes, 0))
        WHEN m.softmax_form IN ('compute', 'sinks') AND x.precision <> 'amp' THEN x.compute_bytes + iif(m.attention_dropout > 0, 1 + x.compute_bytes, 0)
        ELSE 4 + iif(x.compute_bytes = 2 OR m.attention_dropout > 0, x.compute_bytes, 0) + iif(m.attention_dropout > 0, 1, 0) END
    + iif(m.has_score_cap, x.compute_bytes, 0);

-- One layer: query, key, value, output and softmax statistics (a learned bias is counted apart: all sequences share it). Fused projections of rotated heads stay alive through the value, a view of
-- them; rotary embeddings that concatenate lay the output out so that it is copied once more for the output projection. What only feeds
-- a frozen projection is not kept. A latent is expanded into keys and values, and the keys are assembled once more with the rotary part.
CREATE OR REPLACE MACRO kept_by_attention(c, m, x) AS
    x.compute_bytes * CASE
        WHEN c.mechanism = 'mla' THEN 3 * c.query - c.heads * m.rotary_width + c.context
            + iif(c.kernel = 'eager' AND x.is_adapter, 0, c.context)
        WHEN c.kernel = 'repeated' THEN 2 * (c.query + c.context)
        WHEN c.kernel IN ('eager', 'masked', 'wide') THEN c.query + c.expanded_key + c.expanded_value
            + iif(c.kernel = 'eager' AND x.is_adapter, 0, c.context) + iif(c.kernel = 'masked', c.reach, 0)
        -- (scaling it writes even a single key out for all heads)
        WHEN c.kernel = 'math' THEN 2 * c.query + c.context + iif(x.is_adapter, 0, c.context)
        -- in fp32; a batch repeats the one key and value for every head
        WHEN c.kernel = 'broadcast' THEN 4 * iif(x.sequences > 1, 2 * c.query + c.context, c.query + c.key + c.value) / x.compute_bytes
            + iif(x.is_adapter, 0, c.context)
        ELSE c.query + c.key + c.value + c.context
    END
    + c.heads * CASE c.kernel WHEN 'eager' THEN x.score_bytes * c.reach
        WHEN 'math' THEN (4 + iif(m.attention_dropout > 0, 5, 0)) * c.reach
        WHEN 'broadcast' THEN (4 + iif(m.attention_dropout > 0, 5, 0)) * c.reach ELSE 4 END
    + iif(m.rotary_form = 'concatenated' AND c.kernel = 'fused' AND x.compute_bytes = 2 AND NOT x.is_adapter, 2 * c.context, 0)
    + iif(m.rotary_form <> 'none' AND m.has_fused_qkv AND (c.kernel = 'fused' OR c.kernel = 'masked' AND c.value = c.expanded_value),
        x.compute_bytes * (c.query + c.key), 0)
    -- an output gate's sigmoid, and its product with the context
    + x.compute_bytes * iif(x.is_adapter, 1, 2) * c.gated
    -- (an adapter in the same precision reads the kernel's own output, not a copy)
    - iif(c.kernel IN ('fused', 'repeated', 'masked', 'wide') AND c.gated = 0 AND m.rotary_form <> 'concatenated' AND x.precision = 'pure' AND x.is_adapter AND x.lora_targets IN ('attention', 'all-linear'),
        x.compute_bytes * c.context, 0)
    + m.value_norm_bytes * c.value
    + CASE
        WHEN NOT c.has_qk_norm THEN 0
        WHEN m.norm_form = 'layer' THEN iif(m.has_fused_qkv, 0, x.compute_bytes) * (c.query + c.key)
        ELSE iif(x.is_adapter, 4, iif(norm_form(m, x) = 'rms-fp32', 8, 4 + x.compute_bytes)) * (c.query + c.key) + 4 * (c.heads + c.kv_heads)
    END;

-- Per token, backward inside attention where scores are tensors: the softmax, its gradient, their product (a temporary of PyTorch's CUDA
-- kernel) and the gradient of the scores, all in the softmax's precision, in place of what was kept of them. (PyTorch takes an fp32
-- softmax of fp16 scores in one kernel: their gradient is fp16.) Queries and keys wait for it; the gradient of the values has taken
-- the values' place, and what the layer kept behind its attention is gone.
CREATE OR REPLACE MACRO score_gradients(c, m, x) AS CASE c.kernel
    WHEN 'eager' THEN (CASE WHEN m.softmax_form = 'clamped' THEN 5 * iif(x.precision = 'amp', 4, x.compute_bytes)
        WHEN m.softmax_form IN ('compute', 'sinks') AND x.precision <> 'amp' THEN 4 * x.compute_bytes
            ELSE iif(x.is_half, 14, 16) END
        + iif(m.has_score_cap, x.compute_bytes, 0) - x.score_bytes) * c.heads * c.reach
    WHEN 'math' THEN 12 * c.heads * c.reach + 8 * c.context
    WHEN 'broadcast' THEN 12 * c.heads * c.reach + 8 * c.context
    ELSE 0 END;

-- Bytes per token of the layers' parts, in sum and of the one layer that has most: every formula of the moments is written in these.
CREATE OR REPLACE MACRO with_kernels(m, x) AS
    -- (spelled out: a stored macro loses the names that struct_insert is given)
    list_transform(m.mixers, lambda c: {
        'mechanism': c.mechanism, 'layers': c.layers, 'win': c.win, 'heads': c.heads, 'kv_heads': c.kv_heads, 'query': c.query,
        'key': iif(c.mechanism = 'cross', x.encoder_ratio, 1) * c.key, 'value': iif(c.mechanism = 'cross', x.encoder_ratio, 1) * c.value,
        'context': c.context, 'gated': c.gated, 'latent': c.latent, 'has_qk_norm': c.has_qk_norm,
        'expanded_key': c.expanded_key, 'expanded_value': c.expanded_value, 'kernel': attention_kernel(c, m, x),
        -- tokens that a query reads, and how many of each there are for a token of the decoder
        'reach': iif(c.mechanism IN ('cross', 'bidirectional'), x.encoder_ratio, 1) * x.context_tokens,
        'times': iif(c.mechanism = 'bidirectional', x.encoder_ratio, 1)
    });

-- Per token and layer, where scores are tensors: what is gone when they are differentiated. The norm before the feed-forward block, adapters' inputs behind
-- the scores, one of the two gradients of hidden states. Blocks beside attention, and layers that are either, keep it.
CREATE OR REPLACE MACRO freed_before_scores(m, x) AS iif(m.is_block_parallel OR m.is_alternating OR x.encoder_ratio <> 1, 0, (
    kept_by_norms(m.norm_width_sum, m.norm_output_sum, m, x) / 2
    + x.residual_bytes * m.layer_count * m.hidden_size
    + iif(x.is_adapter, adapter_compute_bytes(x) * CASE
        WHEN x.lora_targets = 'attention' THEN m.context_sum
        WHEN x.lora_targets = 'all-linear' AND NOT x.has_adapted_experts THEN
            adapted_inputs(m, x) - m.lora_attention_input_sum + m.context_sum
        ELSE 0 END, 0)
    ) / greatest(m.layer_count, 1));
