-- What Transformers holds at its peak beside weights and cache, and what LitGPT's generate and AutoAWQ's fused modules
-- do otherwise.
--
-- The largest moment of prefilling all sequences at once, T = sequences × context tokens:
--     feed-forward  T × bytes × (tensors of the block's width × width + tensors of the residual width × hidden), or the
--         routed experts
--     attention     T × (10 × heads × context + …) where no fused kernel runs (eager), 8 × heads × context in PyTorch's
--         own (math)
--     loading       where a copy of the head is alive while the weights load, that copy less the cache that is not
--         there yet
--     logits        of each sequence's last token, bytes + 4 per column; of every token in encoders, in versions
--         before 4.45 and in classes that do not ask which are wanted (has_prompt_logits of implementation.csv)
--
--     LitGPT        the logits of every token, bytes + 4 per column; a mask that stands for each pair of tokens; of
--         packed weights the largest matrix or the head, taken apart
--     AutoAWQ       scores without a fused kernel; while it loads, queries, keys and values of all layers a second time
--
-- Units: bytes per GPU. Sources: transformers-step-oracle (transformers 5.23.0 under fake tensors; 15 architectures
--   within 0.5 % of the peak, most within 0.05 %), litgpt-0.5.13 and litgpt-generate (22 prompts counted, within
--   0.04 %), autoawq-0.1.6. Recurrent layers: activations/recurrent.sql.
-- Not covered: images and audio (towers.sql), speculative decoding.

-- Tensors of a feed-forward block's width that are alive at once, by activation function (activation.csv): one kernel
-- needs its input and output, written-out forms keep their terms. A gated block ends on gate, up and product, a fused
-- one on both halves, gate and product.
CREATE OR REPLACE MACRO wide_tensors(alive_tensors, is_gated) AS greatest(iif(is_gated, 3, 2), alive_tensors);

CREATE OR REPLACE MACRO is_encoder(model) AS
    coalesce(list_bool_and(list_transform(model.caches, lambda layer: layer.mechanism = 'bidirectional')), false);

-- Encoders of the first generation; the text half of a pair (CLIP) norms before its blocks.
CREATE OR REPLACE MACRO is_post_norm(model) AS
    is_encoder(model) AND model.has_learned_positions AND model.tower IS NULL;

-- Tensors of the residual width beside them: the embeddings, the layer's input, the residual, the norm's output; code
-- that names its intermediate results keeps more of them alive. Encoders with norms behind their blocks hold the
-- embeddings, the block's input and its output.
CREATE OR REPLACE MACRO hidden_tensors(model) AS CASE
    -- (DeBERTa keeps what every layer put out, asked or not)
    WHEN model.attention_form = 'disentangled' THEN 1 + model.layer_count
    WHEN is_post_norm(model) THEN 2 + model.embedding_elements // greatest(model.vocab_size, 1) / model.hidden_size
    WHEN is_encoder(model) THEN iif(model.rotary_form = 'fp32', 6, 4)
    WHEN model.norm_kind = 'layer' AND model.is_gated AND NOT model.is_block_parallel THEN 6
    WHEN model.norm_kind = 'layer' AND model.activation = 'gelu_new' AND NOT model.is_block_parallel THEN 5
    ELSE 4
END;

-- Routed experts, each token copied for every expert that it passes: the copies, their outputs, the weighted outputs
-- and those put back in order (routers with experts that everyone shares, or with scales of their own, weigh in fp32),
-- or the widest moment inside the experts.
CREATE OR REPLACE MACRO routed_bytes_per_token(model, scenario) AS CASE
    WHEN model.routed_max = 0 THEN 0
    -- code that runs every token through every expert
    WHEN model.runs_all_experts AND scenario.reads_prompt = 'whole' THEN scenario.compute_bytes
        * model.expert_count_max
        * (model.hidden_size + iif(model.is_gated, 4, 2) * model.routed_max / model.experts_per_token_max)
    ELSE greatest(
        model.experts_per_token_max * model.hidden_size
            * (2 * scenario.compute_bytes + 2 * iif(model.shared_max > 0 AND NOT model.has_shared_expert_gate
                OR model.has_router_scale OR model.routing_bytes = 4 AND scenario.reads_prompt = 'whole',
                4, scenario.compute_bytes)),
        scenario.compute_bytes * (model.experts_per_token_max * model.hidden_size
            + (iif(model.is_gated, 4, 2) + iif(scenario.reads_prompt = 'whole',
                model.feed_forward_extra, 0)) * model.routed_max)
    ) + 4 * model.expert_count_max + 8 * model.experts_per_token_max
        -- a dense block beside the experts (routers with scales): its output, and the experts' own norm
        + iif(model.has_router_scale, 2 * scenario.compute_bytes * model.hidden_size, 0)
        -- (a shared expert with a gate goes first, and its output waits)
        + iif(model.has_shared_expert_gate AND scenario.reads_prompt = 'whole',
            scenario.compute_bytes * model.hidden_size, 0)
END;

CREATE OR REPLACE MACRO feed_forward_bytes_per_token(model, scenario) AS
    scenario.compute_bytes * (hidden_tensors(model) + model.residual_extra) * model.hidden_size + greatest(
        scenario.compute_bytes * greatest(wide_tensors(model.alive_tensors, true), iif(model.has_fused_gate, 4, 3))
            * model.gated_max,
        scenario.compute_bytes * wide_tensors(model.alive_tensors, false) * model.plain_max,
        scenario.compute_bytes * (model.hidden_size + 3 * model.shared_max),
        routed_bytes_per_token(model, scenario));

-- Per head and pair of tokens: scores and their softmax in the compute precision, beside what a block of an encoder
-- keeps by name; with sinks the scores, the same with the sinks beside them, and those less their largest; else the
-- scores and their fp32 softmax, in and out.
CREATE OR REPLACE MACRO score_bytes_eager(model, scenario) AS CASE model.softmax_form
    WHEN 'compute' THEN iif(is_encoder(model), 3, 2) * scenario.compute_bytes
    WHEN 'sinks' THEN 3 * scenario.compute_bytes
    -- (scores before and after the mask, and the softmax of the layer before, all have names)
    WHEN 'named' THEN iif(scenario.compute_bytes = 4, 8, 10) + 2 * scenario.compute_bytes
    -- (the softmax of the layer before has a name; with MPT so have the scores before they are made fp32)
    WHEN 'kept' THEN 8 + scenario.compute_bytes
    WHEN 'kept-scores' THEN 12
    WHEN 'clamped' THEN 2 * scenario.compute_bytes
    ELSE iif(scenario.compute_bytes = 4, 8, 10)
END;

CREATE OR REPLACE MACRO keeps_softmax(model) AS model.softmax_form IN ('named', 'kept', 'kept-scores');

-- Of latent attention: the product that keys and values are expanded to, of which the values are a view, what is
-- rotated of the queries, and the latent.
CREATE OR REPLACE MACRO expanded_latent_elements(model) AS coalesce(list_max(list_transform(model.mixers,
        lambda layer: iif(layer.mechanism = 'mla', layer.head_count * (layer.expanded_key_width
            + layer.expanded_value_width), 0)))
    + list_max(list_transform(model.caches, lambda layer: iif(layer.mechanism = 'mla', layer.elements_per_token, 0))),
    0);

-- and beside it, where its output is projected: the queries and their product, the keys, and what was attended to
CREATE OR REPLACE MACRO latent_attention_bytes(model, scenario) AS iif(expanded_latent_elements(model) = 0, 0,
    step_tokens(scenario) * scenario.compute_bytes * (hidden_tensors(model) * model.hidden_size + 3 * model.query_max
        + expanded_latent_elements(model)
        + list_max(list_transform(model.mixers, lambda layer: layer.context_width))));

-- (eager attention has a mask for the whole context and one for each window, whatever the length)
CREATE OR REPLACE MACRO eager_masks(model) AS model.mask_count + iif(model.has_window_mask, 1, 0);

CREATE OR REPLACE MACRO eager_attention_bytes(model, scenario) AS step_tokens(scenario) * (
    score_bytes_eager(model, scenario) * model.head_max * scenario.context_tokens
    + scenario.compute_bytes * iif(is_encoder(model) AND model.softmax_form = 'compute', 8 * model.hidden_size,
        3 * model.hidden_size + model.query_max * iif(model.has_grouped_heads OR model.softmax_form = 'compute', 3, 1)
            -- (queries, keys and values of one product stay as long as the values, a view of it)
            + iif(model.has_fused_qkv AND model.rotary_form <> 'none' AND model.softmax_form <> 'compute',
                model.query_max + 2 * model.key_max, 0)
            -- (AutoAWQ's fused modules name that product too, and the keys as the cache takes them)
            + iif(scenario.ways.joins_while_loading, model.query_max + 3 * model.key_max, 0)
            + expanded_latent_elements(model)
            + iif(scenario.compute_bytes = 4, model.eager_hidden_32, model.eager_hidden_16) * model.hidden_size)
    + iif(is_encoder(model), 0, eager_masks(model) * scenario.compute_bytes * scenario.context_tokens));

-- PyTorch's written-out attention (math): scores and their softmax in fp32, the mask, and queries, keys and values
-- repeated in fp32.
-- It runs where no fused kernel does: fp32 with grouped heads, or one key head that serves all queries unannounced.
CREATE OR REPLACE MACRO has_broadcast_heads(model) AS
    model.attention_form = 'broadcast' AND model.kv_head_max = 1 AND model.head_max > 1;

CREATE OR REPLACE MACRO math_attention_bytes(model, scenario) AS step_tokens(scenario) * (
    8 * model.head_max * scenario.context_tokens
    + iif(has_broadcast_heads(model), 1 + scenario.compute_bytes, 4 / scenario.sequences) * scenario.context_tokens
    + 3 * scenario.compute_bytes * model.hidden_size
    -- (products of several sequences need their heads in rows: queries and keys are copied)
    + CASE WHEN has_broadcast_heads(model) THEN 3 WHEN scenario.sequences > 1 THEN 6 ELSE 5 END * 4 * model.query_max);

-- DeBERTa's: beside the scores those of content to positions, of positions to content, and their sum, each gathered
-- from the scores of all positions that are told apart. The second version repeats what its positions were projected to
-- for every sequence; the first tells no more of them apart than the context has, and multiplies copies. Positions of
-- pairs are integers of 8 bytes, once for all sequences, and their mask for each.
CREATE OR REPLACE MACRO told_positions(model, scenario) AS iif(model.has_fused_qkv,
    2 * least(scenario.context_tokens, model.position_rows / 2), model.position_rows);

CREATE OR REPLACE MACRO disentangled_attention_bytes(model, scenario) AS scenario.compute_bytes * (
    step_tokens(scenario) * model.layer_count * model.hidden_size
    + 2 * told_positions(model, scenario) * model.hidden_size
    + iif(model.has_fused_qkv,
        step_tokens(scenario) * (5 * model.hidden_size + told_positions(model, scenario) * model.head_max)
            + greatest(4 * step_tokens(scenario) * scenario.context_tokens * model.head_max,
                3 * step_tokens(scenario) * scenario.context_tokens * model.head_max + model.hidden_size
                    * (step_tokens(scenario) + scenario.sequences * told_positions(model, scenario))),
        step_tokens(scenario) * (3 * model.hidden_size + model.head_max * (4 * scenario.context_tokens
                + greatest(scenario.context_tokens, told_positions(model, scenario))))
            + 2 * scenario.sequences * told_positions(model, scenario) * model.hidden_size)
) + 8 * scenario.context_tokens * (step_tokens(scenario) + 3 * scenario.context_tokens);

-- Whether a layer runs without a mask: Transformers repeats keys and values where there is one, and a fused kernel
-- takes them in fp32 too.
CREATE OR REPLACE MACRO has_unmasked_layer(model, scenario) AS scenario.attention <> 'masked'
    AND NOT has_masks_of_encoder(model) AND coalesce(list_bool_or(list_transform(model.mixers,
        lambda layer: coalesce(layer.window_tokens > scenario.context_tokens, true))), true);

CREATE OR REPLACE MACRO is_eager(model, scenario) AS
    NOT has_broadcast_heads(model)
        AND (scenario.attention = 'eager' OR scenario.ways.attends_unfused OR NOT model.has_flash_attention
            OR has_unfused_class(model, scenario.engine_id));

CREATE OR REPLACE MACRO attention_bytes(model, scenario) AS CASE
    WHEN has_broadcast_heads(model) THEN math_attention_bytes(model, scenario)
    WHEN model.attention_form = 'disentangled' THEN disentangled_attention_bytes(model, scenario)
    WHEN is_eager(model, scenario) THEN eager_attention_bytes(model, scenario)
    WHEN model.has_grouped_heads AND scenario.compute_bytes = 4 AND expanded_latent_elements(model) = 0
            AND has_unmasked_layer(model, scenario)
        THEN math_attention_bytes(model, scenario)
    ELSE latent_attention_bytes(model, scenario)
END;

-- Queries and keys that are rotated in fp32: a mask of one layer's window, and beside the layer's input and its norm
-- the projections in 16 bits, twice the queries' products and once the keys' in 32.
CREATE OR REPLACE MACRO rotation_bytes(model, scenario, constants) AS
    iif(model.rotary_form = 'fp32' AND scenario.compute_bytes = 2,
        step_tokens(scenario) * constants.fp32_rotation_tensors * scenario.compute_bytes * model.query_max
            + scenario.context_tokens * scenario.context_tokens, 0);

-- columns of the output head on one GPU: the vocabulary, labels, or none
CREATE OR REPLACE MACRO head_columns(model, scenario) AS iif(model.is_head_tied, model.vocab_size,
    least(model.vocab_size, model.head_elements // greatest(model.hidden_size, 1))) / scenario.tensor_parallel;

-- Generation needs the last token's logits, in fp32 for sampling; encoders and old versions answer for every token.
CREATE OR REPLACE MACRO logit_bytes(model, scenario) AS CASE
    WHEN is_encoder(model) THEN step_tokens(scenario) * (head_columns(model, scenario) * scenario.compute_bytes + 2
        * scenario.compute_bytes * model.hidden_size)
    WHEN scenario.logits_of = 'all'
        THEN step_tokens(scenario) * (head_columns(model, scenario) * (scenario.compute_bytes + 4)
            + scenario.compute_bytes * model.hidden_size)
    -- (what they were made of is gone when they are made fp32)
    WHEN scenario.logits_of = 'handed-over'
        THEN step_tokens(scenario) * head_columns(model, scenario) * (scenario.compute_bytes + 4)
    -- (the hidden states that they are made of lie beside them; the last token's are made fp32 when these are gone)
    WHEN model.has_prompt_logits AND scenario.reads_prompt = 'whole'
        THEN step_tokens(scenario) * scenario.compute_bytes * (head_columns(model, scenario) + model.hidden_size)
    ELSE scenario.sequences * head_columns(model, scenario) * (scenario.compute_bytes + 4)
END;

-- What Transformers holds between two steps beside weights and cache: old versions a table of rotations in every layer,
-- AutoGPTQ's 4-bit kernels (ExLlama, its default) a buffer for the largest matrix unpacked. AutoAWQ's fused modules
-- have a table in every layer too: a complex number of 8 bytes for two elements of a head, of twice the cache's
-- positions.
CREATE OR REPLACE MACRO resting_bytes(model, scenario) AS
    CASE WHEN model.has_position_embedding THEN 0
        WHEN scenario.rotations_in = 'layers' THEN
            model.attention_layer_count * coalesce(model.max_context_tokens, 0) * 2 * model.head_dim_max
                * iif(scenario.dtype_id = 'fp32', 4, 2)
        WHEN scenario.rotations_in = 'cache' THEN
            model.attention_layer_count * 2 * scenario.context_tokens * 8 * model.head_dim_max / 2
        ELSE 0
    END
        + iif(scenario.dtype_id = 'gptq-int4', 2 * model.largest_linear_elements, 0);

-- Packed weights, of which one matrix is taken apart while its product is formed, beside the residual stream and what
-- the block's gate and up projection have put out (packed_kernel.csv).
CREATE OR REPLACE MACRO unpacking_bytes(model, scenario) AS coalesce(
    step_tokens(scenario) * scenario.compute_bytes * (hidden_tensors(model) * model.hidden_size
        + scenario.kernel_block_tensors * greatest(model.gated_max, model.plain_max))
    + scenario.kernel_unpacked_bytes * model.largest_linear_elements, 0);

-- bitsandbytes multiplies single tokens packed; for a prompt it takes a matrix apart. Counted of engines that pack the
-- head as well and cast what they have unpacked (activations/training/packed.sql): the largest matrix of a layer, or
-- the head, beside its logits once it is cast.
CREATE OR REPLACE MACRO unpacking_in_prompt(model, scenario) AS iif(packs_head(scenario), greatest(
    step_tokens(scenario) * scenario.compute_bytes * hidden_tensors(model) * model.hidden_size
        + unpacked_bytes(model, scenario),
    step_tokens(scenario) * scenario.compute_bytes * model.hidden_size + unpacked_head_bytes(model, scenario),
    -- (only what was cast is left when the logits are made)
    step_tokens(scenario) * scenario.compute_bytes * (model.hidden_size + head_columns(model, scenario))
        + scenario.compute_bytes * head_matrix_elements(model, scenario)), 0);

-- What is alive all the while: token ids, positions with their embedding or rotation; old versions keep a table of
-- rotations in every layer.
CREATE OR REPLACE MACRO standing_bytes(model, scenario) AS 8 * step_tokens(scenario) + model.mask_buffer_bytes
    + scenario.ways.mask_bytes_each * scenario.context_tokens::DOUBLE * scenario.context_tokens
    + iif(is_post_norm(model), 0, scenario.context_tokens)
        * (8 + scenario.compute_bytes * iif(model.has_position_embedding, model.hidden_size, 2 * model.head_dim_max))
    + resting_bytes(model, scenario);

-- Embeddings per layer, before the first layer and without a cache yet: looked up, projected, and the norm's two steps
-- in fp32. Their sum stays through all layers.
CREATE OR REPLACE MACRO per_layer_input_bytes(model, scenario) AS iif(model.per_layer_input_sum = 0, 0,
    step_tokens(scenario) * ((scenario.compute_bytes + 10) * model.per_layer_input_sum + scenario.compute_bytes
        * model.hidden_size) - kv_cache_bytes(model, scenario));

-- The shortest window of a layer: from its length on fused kernels need a mask, one byte for each pair of tokens all
-- the while, and in a layer its additive form beside what it was made from; such kernels get grouped keys and values
-- repeated for every head. Sequences that are padded to one length (attention := 'masked') have a mask each.
CREATE OR REPLACE MACRO needs_mask(model, scenario) AS
    (coalesce(model.shortest_window <= scenario.context_tokens, false) OR scenario.attention = 'masked'
            OR scenario.ways.mask_bytes_each > 0)
        AND scenario.attention <> 'eager' AND model.has_flash_attention AND NOT is_encoder(model);

-- Masks of all pairs of tokens, a byte each: that of windows; a class that makes it though no layer has a window has
-- one that nobody reads. A decoder's class with windows that was made an encoder has one for the windows and one for
-- the whole context, whatever the length: no kernel knows either without.
CREATE OR REPLACE MACRO has_masks_of_encoder(model) AS is_encoder(model) AND model.shortest_window IS NOT NULL
    AND caches_unread(model);

CREATE OR REPLACE MACRO pairs_masked(scenario) AS scenario.context_tokens::DOUBLE * scenario.context_tokens
    * iif(scenario.attention = 'masked', scenario.sequences, 1);

CREATE OR REPLACE MACRO mask_bytes(model, scenario) AS pairs_masked(scenario) * iif(has_masks_of_encoder(model), 2,
    iif(needs_mask(model, scenario), 1, 0) + iif(model.has_window_mask AND NOT is_eager(model, scenario), 1, 0));

CREATE OR REPLACE MACRO masked_attention_bytes(model, scenario) AS
    iif(needs_mask(model, scenario), (1 + scenario.compute_bytes) * pairs_masked(scenario)
        + step_tokens(scenario) * scenario.compute_bytes * (3 * model.hidden_size + model.query_max
            * iif(model.has_grouped_heads AND model.kv_head_max > 1, 3, 1)), 0);

-- What a layer of these allocates anew, where all of a prompt's logits come after it: what the allocator can have
-- cached by then.
CREATE OR REPLACE MACRO layer_bytes_before_logits(model, scenario) AS
    iif(scenario.phase_id = 'inference' AND (scenario.logits_of IN ('all', 'handed-over')
            OR model.has_prompt_logits AND scenario.reads_prompt = 'whole'),
        greatest(step_tokens(scenario) * feed_forward_bytes_per_token(model, scenario),
            attention_bytes(model, scenario)), NULL);

-- Beside the feed-forward block of a layer of eager attention: the softmax, which the layer's code still names, and the
-- masks.
CREATE OR REPLACE MACRO scores_beside_bytes(model, scenario) AS iif(is_eager(model, scenario) AND NOT is_encoder(model),
    scenario.compute_bytes * step_tokens(scenario) * scenario.context_tokens * coalesce(iif(keeps_softmax(model), 2, 1)
        * model.head_max + eager_masks(model), 0), 0);

CREATE OR REPLACE MACRO prefill_bytes_transformers(model, scenario, constants) AS greatest(
    greatest(step_tokens(scenario) * feed_forward_bytes_per_token(model, scenario)
        + scores_beside_bytes(model, scenario), attention_bytes(model, scenario),
        recurrent_prefill_bytes(model, scenario),
        masked_attention_bytes(model, scenario), unpacking_bytes(model, scenario)) + step_tokens(scenario)
            * scenario.compute_bytes * model.per_layer_input_sum + mask_bytes(model, scenario),
    per_layer_input_bytes(model, scenario), rotation_bytes(model, scenario, constants), logit_bytes(model, scenario),
    unpacking_in_prompt(model, scenario)
) + standing_bytes(model, scenario);

-- While it loads, a second copy of a tied head is there before anything else is: in old versions, and where AWQ's
-- layers are put in. No cache and no activations are there yet. AutoAWQ's fused modules join queries, keys and values
-- of layer after layer, whose caches they make, and let go of what they were made of when all layers are done.
CREATE OR REPLACE MACRO loading_bytes(model, dtype, scenario) AS CASE
    WHEN scenario.reads_prompt <> 'whole' THEN 0
    WHEN scenario.ways.joins_while_loading THEN resting_bytes(model, scenario) + dtype.bits_per_weight / 8
        * model.hidden_size * list_sum(list_transform(model.mixers, lambda layer: layer.layer_count
            * (layer.query_width + layer.key_width + layer.value_width)))
    WHEN model.is_head_tied AND (scenario.dtype_id = 'awq-int4' OR scenario.copies_tied_head)
        THEN 2 * model.vocab_size * model.hidden_size - kv_cache_bytes(model, scenario)
    ELSE 0
END;
