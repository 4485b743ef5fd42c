-- What Transformers holds at its peak beside weights and cache.
--
-- The largest moment of prefilling all sequences at once, T = sequences × context tokens:
--     feed-forward  T × bytes × (tensors of the block's width × width + tensors of the residual width × hidden), or the routed experts
--     attention     T × (10 × heads × context + …) where no fused kernel runs (eager), 8 × heads × context in PyTorch's own (math)
--     loading       where a copy of the head is alive while the weights load, that copy less the cache that is not there yet
--     logits        of each sequence's last token, bytes + 4 per column; of every token in encoders and in versions before 4.45
--
-- Units: bytes per GPU. Sources: transformers-step-oracle (transformers 5.23.0 under fake tensors; 15 architectures within 0.5 % of
--   the peak, most within 0.05 %). Recurrent layers: activations/recurrent.sql.
-- Not covered: images and audio (towers.sql), speculative decoding.

-- Tensors of a feed-forward block's width that are alive at once, by activation function: one kernel needs its input and output,
-- written-out forms keep their terms. A gated block ends on gate, up and product, a fused one on both halves, gate and product.
CREATE OR REPLACE MACRO wide_tensors(activation, is_gated) AS greatest(iif(is_gated, 3, 2), CASE
    WHEN activation IN ('gelu_new', 'gelu_new_gated', 'gated-gelu') THEN 4
    WHEN activation = 'gelu_tanh' THEN 5
    -- (both branches in Python: input, mask, one branch, and of the other a product, a term and their sum)
    WHEN activation = 'xielu' THEN 5.5
    WHEN activation IN ('relu2', 'quick_gelu') THEN 3
    ELSE 2
END);

CREATE OR REPLACE MACRO is_encoder(m) AS coalesce(list_bool_and(list_transform(m.caches, lambda c: c.mechanism = 'bidirectional')), false);

-- Encoders of the first generation; the text half of a pair (CLIP) norms before its blocks.
CREATE OR REPLACE MACRO is_post_norm(m) AS is_encoder(m) AND m.has_learned_positions AND m.tower IS NULL;

-- Tensors of the residual width beside them: the embeddings, the layer's input, the residual, the norm's output; code that names its
-- intermediate results keeps more of them alive. Encoders with norms behind their blocks hold the embeddings, the block's input and
-- its output.
CREATE OR REPLACE MACRO hidden_tensors(m) AS CASE
    WHEN is_post_norm(m) THEN 2 + m.embedding_elements // greatest(m.vocab_size, 1) / m.hidden_size
    WHEN is_encoder(m) THEN iif(m.rotary_form = 'fp32', 6, 4)
    WHEN m.norm_kind = 'layer' AND m.is_gated AND NOT m.is_block_parallel THEN 6
    WHEN m.norm_kind = 'layer' AND m.activation = 'gelu_new' AND NOT m.is_block_parallel THEN 5
    ELSE 4
END;

-- Routed experts, each token copied for every expert that it passes: the copies, their outputs, the weighted outputs and those put
-- back in order (routers with experts that everyone shares, or with scales of their own, weigh in fp32), or the widest moment inside the experts.
CREATE OR REPLACE MACRO routed_bytes_per_token(m, x) AS CASE
    WHEN m.routed_max = 0 THEN 0
    -- code that runs every token through every expert
    WHEN m.runs_all_experts AND starts_with(x.engine_id, 'transformers') THEN x.compute_bytes * m.expert_count_max
        * (m.hidden_size + iif(m.is_gated, 4, 2) * m.routed_max / m.experts_per_token_max)
    ELSE greatest(
        m.experts_per_token_max * m.hidden_size
            * (2 * x.compute_bytes + 2 * iif(m.shared_max > 0 AND NOT m.has_shared_expert_gate OR m.has_router_scale, 4, x.compute_bytes)),
        x.compute_bytes * (m.experts_per_token_max * m.hidden_size + (iif(m.is_gated, 4, 2) + iif(starts_with(x.engine_id, 'transformers'), m.feed_forward_extra, 0)) * m.routed_max)
    ) + 4 * m.expert_count_max + 8 * m.experts_per_token_max
        -- a dense block beside the experts (routers with scales): its output, and the experts' own norm
        + iif(m.has_router_scale, 2 * x.compute_bytes * m.hidden_size, 0)
END;

CREATE OR REPLACE MACRO feed_forward_bytes_per_token(m, x) AS x.compute_bytes * (hidden_tensors(m) + m.residual_extra) * m.hidden_size + greatest(
    x.compute_bytes * greatest(wide_tensors(m.activation, true), iif(m.has_fused_gate, 4, 3)) * m.gated_max,
    x.compute_bytes * wide_tensors(m.activation, false) * m.plain_max,
    x.compute_bytes * (m.hidden_size + 3 * m.shared_max),
    routed_bytes_per_token(m, x));

-- Per head and pair of tokens: scores and their softmax in the compute precision, beside what a block of an encoder keeps by name; with
-- sinks the scores, the same with the sinks beside them, and those less their largest; else the scores and their fp32 softmax, in and out.
CREATE OR REPLACE MACRO score_bytes_eager(m, x) AS CASE m.softmax_form
    WHEN 'compute' THEN iif(is_encoder(m), 3, 2) * x.compute_bytes
    WHEN 'sinks' THEN 3 * x.compute_bytes
    -- (scores before and after the mask, and the softmax of the layer before, all have names)
    WHEN 'named' THEN iif(x.compute_bytes = 4, 8, 10) + 2 * x.compute_bytes
    -- (the softmax of the layer before has a name; with MPT so have the scores before they are made fp32)
    WHEN 'kept' THEN 8 + x.compute_bytes
    WHEN 'kept-scores' THEN 12
    WHEN 'clamped' THEN 2 * x.compute_bytes
    ELSE iif(x.compute_bytes = 4, 8, 10)
END;

CREATE OR REPLACE MACRO keeps_softmax(m) AS m.softmax_form IN ('named', 'kept', 'kept-scores');

-- (eager attention has a mask for the whole context and one for each window, whatever the length)
CREATE OR REPLACE MACRO eager_attention_bytes(m, x) AS step_tokens(x) * (
    score_bytes_eager(m, x) * m.head_max * x.context_tokens
    + x.compute_bytes * iif(is_encoder(m) AND m.softmax_form = 'compute', 8 * m.hidden_size,
        3 * m.hidden_size + m.query_max * iif(m.has_grouped_heads OR m.softmax_form = 'compute', 3, 1)
            -- (queries, keys and values of one product stay as long as the values, a view of it)
            + iif(m.has_fused_qkv AND m.rotary_form <> 'none' AND m.softmax_form <> 'compute', m.query_max + 2 * m.key_max, 0)
            + iif(x.compute_bytes = 4, m.eager_hidden_32, m.eager_hidden_16) * m.hidden_size)
    + iif(is_encoder(m), 0, m.mask_count * x.compute_bytes * x.context_tokens));

-- PyTorch's written-out attention (math): scores and their softmax in fp32, the mask, and queries, keys and values repeated in fp32.
-- It runs where no fused kernel does: fp32 with grouped heads, or one key head that serves all queries unannounced.
CREATE OR REPLACE MACRO has_broadcast_heads(m) AS m.attention_form = 'broadcast' AND m.kv_head_max = 1 AND m.head_max > 1;

CREATE OR REPLACE MACRO math_attention_bytes(m, x) AS step_tokens(x) * (
    8 * m.head_max * x.context_tokens
    + iif(has_broadcast_heads(m), 1 + x.compute_bytes, 4 / x.sequences) * x.context_tokens
    + 3 * x.compute_bytes * m.hidden_size
    -- (products of several sequences need their heads in rows: queries and keys are copied)
    + CASE WHEN has_broadcast_heads(m) THEN 3 WHEN x.sequences > 1 THEN 6 ELSE 5 END * 4 * m.query_max);

CREATE OR REPLACE MACRO is_eager(m, x) AS NOT has_broadcast_heads(m) AND (x.attention = 'eager' OR NOT m.has_flash_attention);

CREATE OR REPLACE MACRO attention_bytes(m, x) AS CASE
    WHEN has_broadcast_heads(m) THEN math_attention_bytes(m, x)
    WHEN is_eager(m, x) THEN eager_attention_bytes(m, x)
    WHEN m.has_grouped_heads AND x.compute_bytes = 4 THEN math_attention_bytes(m, x)
    ELSE 0
END;

-- Queries and keys that are rotated in fp32: a mask of one layer's window, and beside the layer's input and its norm the projections
-- in 16 bits, twice the queries' products and once the keys' in 32.
CREATE OR REPLACE MACRO rotation_bytes(m, x) AS iif(m.rotary_form = 'fp32' AND x.compute_bytes = 2,
    step_tokens(x) * 15 * 2 * m.query_max + x.context_tokens * x.context_tokens, 0);

-- columns of the output head on one GPU: the vocabulary, labels, or none
CREATE OR REPLACE MACRO head_columns(m, x) AS iif(m.is_head_tied, m.vocab_size,
    least(m.vocab_size, m.head_elements // greatest(m.hidden_size, 1))) / tensor_parallel(x);

-- Generation needs the last token's logits, in fp32 for sampling; encoders and old versions answer for every token.
CREATE OR REPLACE MACRO logit_bytes(m, x) AS CASE
    WHEN is_encoder(m) THEN step_tokens(x) * (head_columns(m, x) * x.compute_bytes + 2 * x.compute_bytes * m.hidden_size)
    WHEN x.engine_id = 'transformers-4.44'
        THEN step_tokens(x) * (head_columns(m, x) * (x.compute_bytes + 4) + x.compute_bytes * m.hidden_size)
    ELSE x.sequences * head_columns(m, x) * (x.compute_bytes + 4)
END;

-- What Transformers holds between two steps beside weights and cache: old versions a table of rotations in every layer, AutoGPTQ's
-- 4-bit kernels (ExLlama, its default) a buffer for the largest matrix unpacked.
CREATE OR REPLACE MACRO resting_bytes(m, x) AS iif(x.engine_id = 'transformers-4.44' AND NOT m.has_position_embedding,
        m.attention_layer_count * coalesce(m.max_context_tokens, 0) * 2 * m.head_dim_max * iif(x.dtype_id = 'fp32', 4, 2), 0)
    + iif(x.dtype_id = 'gptq-int4', 2 * m.largest_linear_elements, 0);

-- Packed weights of 4 or 8 bits, of which one matrix is unpacked while its product is formed, beside the residual stream and what the
-- block's gate and up projection have put out: AWQ's from 1024 tokens on, 8-bit GPTQ's from 128 on and through 16-bit integers (6 bytes
-- each). Below that AWQ's kernel has 8 partial sums of its output.
CREATE OR REPLACE MACRO unpacking_bytes(m, x) AS CASE
    WHEN x.dtype_id = 'awq-int4' AND step_tokens(x) >= 1024 THEN
        step_tokens(x) * x.compute_bytes * (hidden_tensors(m) * m.hidden_size + 2 * greatest(m.gated_max, m.plain_max))
            + x.compute_bytes * m.largest_linear_elements
    WHEN x.dtype_id = 'awq-int4' THEN
        step_tokens(x) * x.compute_bytes * (hidden_tensors(m) * m.hidden_size + 10 * greatest(m.gated_max, m.plain_max))
    WHEN x.dtype_id = 'gptq-int8' AND step_tokens(x) >= 128 THEN
        step_tokens(x) * x.compute_bytes * (hidden_tensors(m) * m.hidden_size + greatest(m.gated_max, m.plain_max))
            + 6 * m.largest_linear_elements
    ELSE 0
END;

-- What is alive all the while: token ids, positions with their embedding or rotation; old versions keep a table of rotations in
-- every layer.
CREATE OR REPLACE MACRO standing_bytes(m, x) AS 8 * step_tokens(x) + m.mask_buffer_bytes
    + iif(is_post_norm(m), 0, x.context_tokens) * (8 + x.compute_bytes * iif(m.has_position_embedding, m.hidden_size, 2 * m.head_dim_max))
    + resting_bytes(m, x);

-- Embeddings per layer, before the first layer and without a cache yet: looked up, projected, and the norm's two steps in fp32. Their
-- sum stays through all layers.
CREATE OR REPLACE MACRO per_layer_input_bytes(m, x) AS iif(m.per_layer_input_sum = 0, 0,
    step_tokens(x) * ((x.compute_bytes + 10) * m.per_layer_input_sum + x.compute_bytes * m.hidden_size) - kv_cache_bytes(m, x));

-- The shortest window of a layer: from its length on fused kernels need a mask, one byte for each pair of tokens all the while, and in a layer
-- its additive form beside what it was made from; such kernels get grouped keys and values repeated for every head. Sequences that are
-- padded to one length (attention := 'masked') have a mask each.
CREATE OR REPLACE MACRO needs_mask(m, x) AS (coalesce(m.shortest_window <= x.context_tokens, false) OR x.attention = 'masked')
    AND x.attention <> 'eager' AND m.has_flash_attention AND NOT is_encoder(m);

CREATE OR REPLACE MACRO mask_bytes(m, x) AS iif(needs_mask(m, x),
    x.context_tokens::DOUBLE * x.context_tokens * iif(x.attention = 'masked', x.sequences, 1), 0);

CREATE OR REPLACE MACRO masked_attention_bytes(m, x) AS iif(needs_mask(m, x), (1 + x.compute_bytes) * mask_bytes(m, x)
    + step_tokens(x) * x.compute_bytes * (3 * m.hidden_size + m.query_max * iif(m.has_grouped_heads AND m.kv_head_max > 1, 3, 1)), 0);

-- What a layer of these allocates anew, where all of a prompt's logits come after it: what the allocator can have cached by then.
CREATE OR REPLACE MACRO layer_bytes_before_logits(m, x) AS iif(x.phase_id = 'inference' AND x.engine_id = 'transformers-4.44',
    greatest(step_tokens(x) * feed_forward_bytes_per_token(m, x), attention_bytes(m, x)), NULL);

-- Beside the feed-forward block of a layer of eager attention: the softmax, which the layer's code still names, and the masks.
CREATE OR REPLACE MACRO scores_beside_bytes(m, x) AS iif(is_eager(m, x) AND NOT is_encoder(m),
    x.compute_bytes * step_tokens(x) * x.context_tokens * coalesce(iif(keeps_softmax(m), 2, 1) * m.head_max + m.mask_count, 0), 0);

CREATE OR REPLACE MACRO prefill_bytes_transformers(m, x) AS greatest(
    greatest(step_tokens(x) * feed_forward_bytes_per_token(m, x) + scores_beside_bytes(m, x), attention_bytes(m, x), recurrent_prefill_bytes(m, x),
        masked_attention_bytes(m, x), unpacking_bytes(m, x)) + step_tokens(x) * x.compute_bytes * m.per_layer_input_sum + mask_bytes(m, x),
    per_layer_input_bytes(m, x), rotation_bytes(m, x), logit_bytes(m, x)
) + standing_bytes(m, x);

-- While it loads, a second copy of a tied head is there before anything else is: in old versions, and where AWQ's layers are put in. No
-- cache and no activations are there yet.
CREATE OR REPLACE MACRO loading_bytes(m, x) AS CASE
    WHEN NOT starts_with(x.engine_id, 'transformers') THEN 0
    WHEN m.is_head_tied AND (x.dtype_id = 'awq-int4' OR x.engine_id = 'transformers-4.44')
        THEN 2 * m.vocab_size * m.hidden_size - kv_cache_bytes(m, x)
    ELSE 0
END;
