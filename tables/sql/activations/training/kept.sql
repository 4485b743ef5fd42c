-- What the forward pass of a training step keeps for the backward pass.
--
--   kept_bytes = T × (Σ layers (norms + attention + feed-forward + adapters) + final norm + logits) + rotary tables + autocast's weights
--
-- Units: bytes per GPU. T = sequences × context tokens. Every term counts the tensors that autograd saves, each a number of copies of a
--   width (hidden, query, key, feed-forward) in the precision it is computed in; the comments name them.
-- Source: reading which tensors stay alive in the real training steps of transformers 5.23.0 and peft 0.21.2 under fake tensors
--   (source transformers-step-oracle); implementation.csv says where an architecture computes otherwise than its anatomy implies.
--   Selective checkpointing keeps the results of matrix products and of fused attention and computes the rest again: the example of
--   PyTorch's create_selective_checkpoint_contexts. The forms of the loss are in loss.sql.
--   Recurrent layers: activations/recurrent.sql.
-- Not covered: towers of multimodal models (a step of text is counted), diffusion models; that dense layers before the first with experts
--   keep nothing where experts alone are adapted (counted as if they did: 2.2 % too much
--   in DeepSeek V2 Lite); eager attention of adapters under autocast
--   where the softmax is told to stay in 16 bits (counted in 32: a quarter too much in counted steps of gpt-oss).

-- Per token, what selective checkpointing keeps of all layers: their input, the results of all products (adapters' too) and of attention.
CREATE OR REPLACE MACRO kept_selectively(m, x, mixers) AS
    m.layer_count * m.hidden_size * x.residual_bytes
    + x.compute_bytes * m.linear_output_sum
    + list_sum(list_transform(mixers, lambda c: c.layers * (x.compute_bytes * c.context
        + iif(c.kernel = 'eager', x.compute_bytes * c.heads * x.context_tokens, 4 * c.heads))))
    + coalesce(list_sum(list_transform(m.blocks, lambda b: b.layers * x.compute_bytes
        * (b.experts + routed_copies(b, m) * (iif(b.is_gated, 2, 1) * b.expert_width + iif(b.experts > 0, m.hidden_size, 0))))), 0)
    + iif(x.is_adapter, adapter_compute_bytes(x) * (adapted_elements(m, x) - adapted_inputs(m, x) + x.lora_rank * adapted_modules(m, x)), 0);

CREATE OR REPLACE MACRO kept_parts(m, x, mixers) AS {
    'hidden': hidden_kept_sum(m, x) + encoder_hidden_kept(m, x),
    'adapters': kept_by_adapters(m, x) * (1 + (x.encoder_ratio - 1) * encoder_adapter_share(m, x)),
    'selective': kept_selectively(m, x, mixers),
    -- masks of all pairs of tokens, which layers to recompute hold on to
    'mask': iif(list_bool_or(list_transform(mixers, lambda c: c.kernel = 'eager' AND c.mechanism NOT IN ('cross', 'bidirectional')))
        AND x.encoder_ratio = 1, m.mask_count * x.residual_bytes * x.context_tokens, 0),
    -- that of a window, one byte a pair and the same for all sequences, is kept too
    'window_mask': iif(x.attention <> 'masked' AND list_bool_or(list_transform(mixers, lambda c: c.kernel = 'masked')), x.context_tokens, 0),
    'attention': list_concat(recurrent_parts(m, x),
        list_transform(coalesce(mixers, []), lambda c: [c.layers, c.times * kept_by_attention(c, m, x), c.times * score_gradients(c, m, x)])),
    'blocks': list_transform(coalesce(m.blocks, []), lambda b: [b.layers,
        iif(b.is_encoder, x.encoder_ratio, 1) * kept_by_feed_forward(b, m, x),
        iif(b.is_encoder, x.encoder_ratio, 1) * feed_forward_gradients(b, m, x), beside_experts(b, m, x)])
};

CREATE OR REPLACE MACRO kept_sums(m, x, parts) AS {
    'mask': coalesce(parts.mask, 0),
    'window_mask': coalesce(parts.window_mask, 0),
    'freed': iif(list_max(list_transform(parts.attention, lambda a: a[3])) > 0, freed_before_scores(m, x), 0),
    'layers': (parts.hidden + parts.adapters) / residual_parallel(x) + (list_sum(list_transform(parts.attention, lambda a: a[1] * a[2]))
        + coalesce(list_sum(list_transform(parts.blocks, lambda b: b[1] * b[2])), 0)) / tensor_parallel(x),
    'selective': parts.selective / tensor_parallel(x),
    -- the inputs of all layers, and what an encoder begins and ends on
    'inputs': (m.layer_count + (x.encoder_ratio - 1) * m.encoder_layer_count) * m.hidden_size * x.residual_bytes / residual_parallel(x),
    'encoder_end': iif(m.cross_layer_count > 0, x.encoder_ratio * (kept_by_norms(m.hidden_size, m.hidden_size, m, x)
        + iif(x.is_adapter OR x.encoder_ratio = 1, 0, 6 * x.compute_bytes * m.hidden_size)), 0),
    'layer': greatest(x.encoder_ratio, 1) * (parts.hidden + parts.adapters) / residual_parallel(x) / greatest(m.layer_count + (x.encoder_ratio - 1) * m.encoder_layer_count, 1)
        + list_max(list_transform(parts.attention, lambda a: a[2])) / tensor_parallel(x),
    -- the first layer without its experts: norms, the least of the mixers, the rest of the block
    'before_experts': parts.hidden / residual_parallel(x) / greatest(m.layer_count, 1)
        + (coalesce(list_min(list_transform(parts.attention, lambda a: a[2])), 0)
            + coalesce(list_min(list_transform(parts.blocks, lambda b: b[4])), 0)) / tensor_parallel(x),
    'block': coalesce(list_max(list_transform(parts.blocks, lambda b: b[2])), 0) / tensor_parallel(x),
    -- what a block adds to the layer while it is differentiated: where it is a layer of its own, only what it keeps beyond a mixer
    'block_work': (coalesce(list_max(list_transform(parts.blocks, lambda b: b[2])), 0)
        - iif(m.is_alternating, list_max(list_transform(parts.attention, lambda a: a[2])), 0)) / tensor_parallel(x),
    -- what differentiating a mixer adds to the layer that keeps most
    'mixer_work': (list_max(list_transform(parts.attention, lambda a: a[2] + a[3]))
        - list_max(list_transform(parts.attention, lambda a: a[2]))) / tensor_parallel(x),
    'score_gradients': list_max(list_transform(parts.attention, lambda a: a[3])) / tensor_parallel(x),
    -- elements of the widest projection back to the hidden state, whose gradient comes first
    'down': m.hidden_size * coalesce(list_max(list_transform(coalesce(m.blocks, []), lambda b: b.width + b.experts * b.expert_width)), 0),
    'block_gradients': coalesce(list_max(list_transform(parts.blocks, lambda b: b[3])), 0) / tensor_parallel(x)
};

-- s: kept_sums. Bytes per token that the layers keep; the first norm's input needs no gradient where the base is frozen.
CREATE OR REPLACE MACRO kept_by_layers(m, x, s) AS CASE x.checkpointing
    WHEN 'full' THEN s.inputs + s.mask + s.window_mask / x.sequences
    WHEN 'selective' THEN s.selective + s.mask + s.window_mask / x.sequences
    ELSE s.layers - iif(x.is_adapter, x.norm_bytes * m.hidden_size, 0)
        -- nor does the first feed-forward block where it stands beside the adapted attention
        - iif(m.is_block_parallel AND x.lora_targets IN ('attention', 'query-value'), s.block, 0)
        - iif(is_first_untrained(x), s.before_experts - x.norm_bytes * m.hidden_size, 0)
END;

-- Of one layer: what is kept twice when the layer is worked on. Layers of a hybrid differ, the heaviest is worked on; where a layer is
-- either a mixer or a block, the heavier of the two.
CREATE OR REPLACE MACRO kept_by_one_layer(m, x, s) AS CASE
    WHEN x.checkpointing = 'full' THEN m.hidden_size * x.residual_bytes / residual_parallel(x)
    WHEN x.checkpointing = 'selective' THEN s.selective / greatest(m.layer_count, 1)
    WHEN m.recurrences IS NULL THEN s.layers / greatest(m.layer_count, 1)
    ELSE s.layer + greatest(s.block_work, 0)
END;

CREATE OR REPLACE MACRO kept_by_head(m, x) AS
    kept_by_norms(m.hidden_size, m.hidden_size, m, x) + iif(x.is_autocast, 2 * m.hidden_size, 0)
    + logit_width(m, x) * kept_per_logit(m, x)
    -- a dense layer, its activation and a norm before the head
    + iif(m.has_head_transform, 3 * x.compute_bytes * m.hidden_size, 0);

CREATE OR REPLACE MACRO rope_bytes(m, x) AS
    x.context_tokens * 2 * m.head_dim_max * iif(x.precision = 'amp', 4, x.compute_bytes);

-- t: a pipeline stage. Logits and layers divide under tensor parallelism; norms with sequence parallelism only.
CREATE OR REPLACE MACRO kept_bytes(m, x, s, t) AS
    step_tokens(x) * (kept_by_layers(m, x, s) * t.share * t.flights + t.is_last * (kept_by_head(m, x) + s.encoder_end)) + rope_bytes(m, x)
    + iif(x.is_autocast, 2 * iif(x.checkpointing <> 'none', m.vocab_size * m.hidden_size, cast_elements(m) * t.share + m.vocab_size * m.hidden_size)
        / x.tensor_parallel, 0)
    -- (autocast's copy of a head that is not quantised)
    + iif(is_prepared(x) AND x.precision = 'amp', 2 * m.vocab_size * m.hidden_size, 0)
    + t.is_last * kept_by_fused_loss(m, x)
    + iif(m.attention_form = 'biased' AND x.attention <> 'eager' AND x.checkpointing = 'none',
        x.compute_bytes * m.biased_head_sum * t.share * x.context_tokens * x.context_tokens / x.tensor_parallel, 0)
    + merged_experts_kept(m, x, s);
