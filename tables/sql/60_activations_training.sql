-- What the forward pass of a training step keeps for the backward pass.
--
--   kept_bytes = T × (Σ layers (norms + attention + feed-forward + adapters) + final norm + logits) + rotary tables + autocast's weights
--
-- Units: bytes per GPU. T = sequences × context tokens. Every term counts the tensors that autograd saves, each a number of copies of a
--   width (hidden, query, key, feed-forward) in the precision it is computed in; the comments name them.
-- Source: reading which tensors stay alive in the real training steps of transformers 5.23.0 and peft 0.21.2 under fake tensors
--   (source transformers-step-oracle); implementation.csv says where an architecture computes otherwise than its anatomy implies.
--   Selective checkpointing keeps the results of matrix products and of fused attention and computes the rest again: the example of
--   PyTorch's create_selective_checkpoint_contexts. The forms of the loss are in 59_loss.sql.
--   Recurrent layers: 63_recurrent.sql.
-- Not covered: towers of multimodal models (a step of text is counted), diffusion models; that dense layers before the first with experts
--   keep nothing where experts alone are adapted (counted as if they did: 2.2 % too much
--   in DeepSeek V2 Lite); eager attention of adapters under autocast
--   where the softmax is told to stay in 16 bits (counted in 32: a quarter too much in counted steps of gpt-oss).

-- GPUs that divide the residual stream between the layers (sequence parallelism)
CREATE OR REPLACE MACRO residual_parallel(x) AS iif(x.is_sequence_parallel, x.tensor_parallel, 1);

-- autocast over fp32 weights that are trained: norms run in fp32, linear layers keep 16-bit copies
CREATE OR REPLACE MACRO is_autocast(x) AS x.precision = 'amp' AND NOT x.is_adapter;
-- bytes of an element between the layers
-- (QLoRA's preparation holds embeddings and norms in fp32: so is all that flows between the layers, and into their activations)
CREATE OR REPLACE MACRO residual_bytes(x) AS iif(x.is_autocast OR is_prepared(x), 4, x.compute_bytes);
CREATE OR REPLACE MACRO is_prepared(x) AS x.phase_id = 'qlora' AND x.precision <> 'pure';

-- What one norm keeps per element besides its output. RMS norms in Python: the fp32 copy of the input and, for the weight's
-- gradient, the normalised tensor in 16 bits (rms, and rms-copy with the input in 16 bits too) or in fp32 (rms-fp32). Fused layer norms: the input. Layer norms written out
-- (layer-fp32): the centred input twice and the normalised tensor. Without weights (layer-plain): the fp32 copy.
CREATE OR REPLACE MACRO norm_form(m, x) AS
    iif(x.engine_norm_form IS NOT NULL AND m.norm_form IN ('rms', 'rms-copy', 'rms-fp32'), x.engine_norm_form, m.norm_form);
CREATE OR REPLACE MACRO kept_by_norm(m, x) AS CASE iif(x.has_fused_kernels, 'layer', norm_form(m, x))
    WHEN 'rms' THEN iif(x.is_adapter, 4, 4 + x.residual_bytes)
    WHEN 'rms-copy' THEN iif(x.is_adapter, 4, 4 + x.residual_bytes) + iif(x.residual_bytes = 2, 2, 0)
    WHEN 'rms-fp32' THEN iif(x.is_adapter, 4, 8)
    WHEN 'layer-fp32' THEN iif(x.is_adapter, 8, 12)
    WHEN 'layer-plain' THEN 4
    -- autocast runs fused norms in fp32, frozen or not
    ELSE iif(x.precision = 'amp', 4, x.compute_bytes)
END;

-- Norms of `width` elements, of which `outputs` feed linear layers: their input is kept for the weights' gradients, once, or under
-- autocast as a 16-bit copy for every linear layer (counted apart). Layer norms of a parallel block share their input.
CREATE OR REPLACE MACRO kept_by_norms(width, outputs, m, x) AS
    iif(m.norm_form = 'layer' AND m.is_block_parallel, outputs_of_blocks(width, m), width) * x.norm_bytes
    + iif(x.is_adapter OR x.is_autocast, 0, x.compute_bytes * outputs);
CREATE OR REPLACE MACRO outputs_of_blocks(width, m) AS least(width, m.layer_count * m.hidden_size);

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

-- Tensors of the width of a plain block between its projections, in units of the compute precision: a kernel keeps its input and the
-- result feeds the next projection; formulas in Python keep their steps (under autocast three of them in fp32).
CREATE OR REPLACE MACRO activation_tensors(activation, x) AS CASE
    WHEN activation = 'relu' THEN 1
    WHEN activation IN ('gelu_new', 'gelu_fast', 'gelu_python_tanh', 'gelu_new_gated') THEN iif(x.precision = 'amp', 8, 5)
    WHEN activation = 'quick_gelu' THEN 3
    WHEN activation = 'relu2' AND x.precision = 'amp' THEN 4
    WHEN activation = 'xielu' THEN CASE WHEN x.precision = 'amp' THEN 8.5 WHEN x.is_adapter THEN 4.5 ELSE 6 END
    ELSE 2
END;

-- Gated blocks keep two more: the other projection and the product. Frozen weights need no copy of their input.
CREATE OR REPLACE MACRO block_tensors(b, m, x) AS
    activation_tensors(b.activation, x) + iif(b.is_gated, 2, 0) + m.feed_forward_extra
    -- (a fused kernel works the activation out again from its input)
    - iif(x.has_fused_kernels AND b.is_gated, 1, 0)
    - iif(x.is_adapter AND (b.is_gated OR b.activation <> 'relu') AND NOT (b.experts > 0 AND x.has_adapted_experts), 1, 0);

-- copies of a token that experts run: those of the router, or all
CREATE OR REPLACE MACRO routed_copies(b, m) AS iif(m.runs_all_experts, b.experts, b.routed);
-- elements of weights that autocast copies: those of products that it knows (experts in groups are none)
CREATE OR REPLACE MACRO cast_elements(m) AS m.linear_elements + iif(m.runs_all_experts, m.expert_elements, 0);

-- One layer. Each routed copy of a token keeps the block's tensors, its input and its output, and some forty bytes of indices.
CREATE OR REPLACE MACRO kept_by_feed_forward(b, m, x) AS
    (iif(is_prepared(x), 4, x.compute_bytes) * block_tensors(b, m, x)
        -- dropout's mask, and its result where the activation keeps its own
        + iif(m.has_block_dropout, 1 + iif(b.activation = 'relu' AND NOT x.is_adapter, x.compute_bytes, 0), 0)) * (b.width + routed_copies(b, m) * b.expert_width)
    + iif(b.experts > 0, (x.compute_bytes * iif(x.is_adapter AND NOT x.has_adapted_experts, 1, 2)
            -- (all experts' copies are weighed before they are cast for the product)
            + iif(m.runs_all_experts, x.residual_bytes - x.compute_bytes, 0)) * routed_copies(b, m) * m.hidden_size
        + 40 * routed_copies(b, m) + 4 * b.experts + m.router_input_bytes * m.hidden_size, 0);

-- Per token, backward inside the feed-forward block: the gradients of two tensors of its width, and of routed inputs and outputs; and of
-- the input copy of an adapter in fp32.
CREATE OR REPLACE MACRO feed_forward_gradients(b, m, x) AS
    x.compute_bytes * CASE
        -- the gated product's gradient with those of both its factors (its own copy is gone where it was kept), or with that of the output
        WHEN b.experts > 0 AND m.runs_all_experts THEN b.experts * greatest(iif(x.is_adapter, 3, 2) * b.expert_width, b.expert_width + m.hidden_size)
        ELSE 2 * (b.width + b.routed * (b.expert_width + iif(b.experts > 0, m.hidden_size, 0))) END
    + iif(x.is_adapter AND x.lora_targets = 'all-linear' AND NOT x.has_adapted_experts AND adapter_compute_bytes(x) > x.compute_bytes,
        adapter_compute_bytes(x) * b.width, 0);

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

-- Inputs of the adapted layers in the adapter's precision, and the rank-wide products. Each layer makes its own copy, but where the input
-- has that precision already: then layers that read the same norm share it.
CREATE OR REPLACE MACRO kept_by_adapters(m, x) AS CASE
    WHEN NOT x.is_adapter THEN 0
    ELSE adapter_compute_bytes(x) * (adapted_inputs(m, x) + x.lora_rank * adapted_modules(m, x)
        + iif(x.has_adapted_experts AND x.lora_targets <> 'experts', m.lora_beside_input_sum + x.lora_rank * m.lora_beside_module_count, 0)
        - CASE
            WHEN x.compute_bytes < 4 AND x.precision <> 'pure' OR x.lora_targets = 'experts' THEN 0
            WHEN x.lora_targets IN ('attention', 'query-value') OR x.has_adapted_experts THEN
                iif(m.has_fused_qkv, 0, iif(x.lora_targets = 'query-value', 1, 2) * m.layer_count * m.hidden_size)
            ELSE m.hidden_input_sum - m.norm_output_sum
        END)
        -- dora: what the base layer and the adapter give, for the magnitude's gradient
        + iif(x.adapter = 'dora', (adapted_elements(m, x) - adapted_inputs(m, x)) * (x.compute_bytes + adapter_compute_bytes(x)), 0)
END;
CREATE OR REPLACE MACRO adapter_compute_bytes(x) AS iif(x.precision IN ('amp', 'pure'), x.compute_bytes, 4);

-- Per token, what selective checkpointing keeps of all layers: their input, the results of all products (adapters' too) and of attention.
CREATE OR REPLACE MACRO kept_selectively(m, x, mixers) AS
    m.layer_count * m.hidden_size * x.residual_bytes
    + x.compute_bytes * m.linear_output_sum
    + list_sum(list_transform(mixers, lambda c: c.layers * (x.compute_bytes * c.context
        + iif(c.kernel = 'eager', x.compute_bytes * c.heads * x.context_tokens, 4 * c.heads))))
    + coalesce(list_sum(list_transform(m.blocks, lambda b: b.layers * x.compute_bytes
        * (b.experts + routed_copies(b, m) * (iif(b.is_gated, 2, 1) * b.expert_width + iif(b.experts > 0, m.hidden_size, 0))))), 0)
    + iif(x.is_adapter, adapter_compute_bytes(x) * (adapted_elements(m, x) - adapted_inputs(m, x) + x.lora_rank * adapted_modules(m, x)), 0);

-- Embeddings per layer: their sum with a projection of the hidden state; in each layer a gate, its activation and their product, and what
-- the gate reads.
CREATE OR REPLACE MACRO per_layer_inputs_kept(m, x) AS iif(m.per_layer_input_sum = 0, 0,
    x.compute_bytes * iif(x.is_adapter, 2, 4) * m.per_layer_input_sum
    + iif(x.is_adapter, 0, x.norm_bytes * m.per_layer_input_sum + x.compute_bytes * m.layer_count * m.hidden_size));

-- everything that is as wide as the hidden state: norms with their statistics, 16-bit copies for linear layers, dropout masks
CREATE OR REPLACE MACRO hidden_kept_sum(m, x) AS
    kept_by_norms(m.norm_width_sum, m.norm_output_sum, m, x) + 8 * m.layer_count
    + m.latent_norm_sum * (x.norm_bytes + iif(x.is_adapter, 0, x.compute_bytes))
    + iif(x.is_autocast, 2 * m.hidden_input_sum, 0)
    -- norms inside blocks: that of the feed-forward block's width, and the output of the one before attention's last projection
    + iif(m.inner_norm_sum > 0, m.inner_norm_sum * x.norm_bytes
        + iif(x.is_adapter OR x.is_autocast, 0, x.compute_bytes * m.layer_count * m.hidden_size), 0)
    + per_layer_inputs_kept(m, x)
    + iif(m.hidden_dropout > 0, (m.mixer_layer_count + coalesce(m.block_layer_count, 0)) * m.hidden_size, 0);

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
-- Encoders of a window of their own have encoder_ratio tokens for each of the decoder's: what that adds to the sums over both. Their
-- norms are two a layer of the decoder's three. (The convolutions before them keep six times the hidden state.)
CREATE OR REPLACE MACRO encoder_ratio(m, x) AS
    iif(coalesce(m.tower.component = 'encoder' AND m.tower.grid = 'fixed', false), m.tower.tokens::DOUBLE / x.context_tokens, 1);
CREATE OR REPLACE MACRO encoder_hidden_kept(m, x) AS iif(x.encoder_ratio = 1, 0, (x.encoder_ratio - 1) * (
    2 * m.encoder_layer_count * (m.hidden_size * (x.norm_bytes + iif(x.is_adapter OR x.is_autocast, 0, x.compute_bytes)
        + iif(m.hidden_dropout > 0, 1, 0)) + 8)
    + iif(x.is_autocast, 2 * (m.encoder_hidden_input_sum + 2 * m.cross_layer_count * m.hidden_size), 0)));
CREATE OR REPLACE MACRO encoder_adapter_share(m, x) AS iif(x.is_adapter AND x.encoder_ratio <> 1,
    (of_targets(x, m.encoder_attention_sum, m.encoder_query_value_sum, m.encoder_linear_sum)
        + iif(x.lora_targets = 'query-value', 1, 2) * m.cross_layer_count * m.hidden_size) / greatest(adapted_inputs(m, x), 1), 0);

-- What the first block with experts does not keep where they alone are adapted: a shared expert, and outputs for the gradients of the
-- router's weights.
CREATE OR REPLACE MACRO beside_experts(b, m, x) AS iif(b.experts > 0,
    x.compute_bytes * ((block_tensors(b, m, x) - 1) * b.width + routed_copies(b, m) * m.hidden_size), 1e30);

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

-- peft 0.21.2 multiplies adapters of fused experts out: W + scaling × B A of all experts of a layer is a tensor of its own, which autograd keeps
-- for the gradient of its input, beside copies of A and B in the weights' precision. Where experts alone are adapted nothing before the
-- first of them is trained: its gate and up, which need no gradient of their input, are not kept (unless checkpointing makes the
-- embeddings' output need one). Selective checkpointing keeps the products of the adapters, in their own precision.
CREATE OR REPLACE MACRO moe_layer_expert_elements(m) AS m.expert_elements / greatest(m.moe_layer_count, 1);
CREATE OR REPLACE MACRO is_first_untrained(x) AS x.is_adapter AND x.lora_targets = 'experts' AND x.checkpointing = 'none' AND x.pipeline_parallel = 1;
-- (the way down of a layer's experts: a third of gated ones, half of others)
CREATE OR REPLACE MACRO down_expert_elements(m, s) AS least(s.down, moe_layer_expert_elements(m) / 2);
CREATE OR REPLACE MACRO merged_factor_bytes(m, x) AS iif(adapter_bytes_each(x) = x.compute_bytes, 0,
    x.compute_bytes * x.lora_rank * iif(x.lora_targets = 'experts', m.lora_routed_elements, m.lora_expert_elements));
CREATE OR REPLACE MACRO merged_experts_kept(m, x, s) AS iif(x.has_adapted_experts, CASE x.checkpointing
    WHEN 'none' THEN merged_factor_bytes(m, x) + x.compute_bytes * (m.expert_elements
        - iif(is_first_untrained(x), moe_layer_expert_elements(m) - down_expert_elements(m, s), 0))
    WHEN 'selective' THEN adapter_bytes_each(x) * m.expert_elements
    ELSE 0
END, 0);
-- While a layer is differentiated: what is kept, the layer's own where it is recomputed, and the gradient of its matrix down. (That of gate and
-- up comes when the matrix down and its gradient are gone.)
CREATE OR REPLACE MACRO merged_experts_work(m, x, s) AS iif(x.has_adapted_experts, merged_experts_kept(m, x, s)
    + iif(x.checkpointing = 'full', x.compute_bytes * moe_layer_expert_elements(m) + merged_factor_bytes(m, x) / greatest(m.moe_layer_count, 1), 0)
    + x.compute_bytes * down_expert_elements(m, s), 0);

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
