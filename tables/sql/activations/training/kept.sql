-- What the forward pass of a training step keeps for the backward pass.
--
--   kept_bytes = T × (Σ layers (norms + attention + feed-forward + adapters) + final norm + logits) + rotary tables +
--       autocast's weights
--
-- Units: bytes per GPU. T = sequences × context tokens. Every term counts the tensors that autograd saves, each a
--   number of copies of a width (hidden, query, key, feed-forward) in the precision it is computed in; the comments
--   name them.
-- Source: reading which tensors stay alive in the real training steps of transformers 5.23.0 and peft 0.21.2 under fake
--   tensors (source transformers-step-oracle); implementation.csv says where an architecture computes otherwise than
--   its anatomy implies.
--   Selective checkpointing keeps the results of matrix products and of fused attention and computes the rest again:
--   the example of
--   PyTorch's create_selective_checkpoint_contexts. The forms of the loss are in loss.sql.
--   torchtitan keeps of a layer's products the first, the third and so on (release of 2024-12, as in 2025-10:
--   source torchtitan-selective, its policy counts torch.ops.aten.mm).
--   Recurrent layers: activations/recurrent.sql.
-- Not covered: towers of multimodal models (a step of text is counted), diffusion models; what the files of
--   its parts do not cover.

-- Results of a layer's products that selective checkpointing keeps: all of them, or every other one.
CREATE OR REPLACE MACRO kept_product_sum(model, scenario) AS
    iif(scenario.keeps_alternate_products, model.alternate_output_sum, model.linear_output_sum);

-- Per token, what selective checkpointing keeps of all layers: their input, the results of products (adapters' too)
-- and of attention.
CREATE OR REPLACE MACRO kept_selectively(model, scenario, mixers) AS
    model.layer_count * model.hidden_size * scenario.residual_bytes
    + scenario.compute_bytes * kept_product_sum(model, scenario)
    + list_sum(list_transform(mixers, lambda layer: layer.layer_count * (scenario.compute_bytes * layer.context_width
        + iif(layer.kernel = 'eager', scenario.compute_bytes * layer.head_count * scenario.context_tokens,
            4 * layer.head_count))))
    + coalesce(list_sum(list_transform(model.blocks, lambda block: block.layer_count
        * (scenario.compute_bytes * block.expert_count + expert_compute_bytes(model, scenario)
            * routed_copies(block, model) * (iif(block.is_gated, 2, 1) * block.expert_width
                + iif(block.expert_count > 0, model.hidden_size, 0))))), 0)
    + iif(scenario.is_adapter, adapter_compute_bytes(scenario) * (adapted_elements(model, scenario)
        - adapted_inputs(model, scenario) + scenario.lora_rank * adapted_modules(model, scenario)), 0);

CREATE OR REPLACE MACRO kept_parts(model, scenario, mixers) AS {
    'hidden': hidden_kept_sum(model, scenario) + encoder_hidden_kept(model, scenario),
    'adapters': kept_by_adapters(model, scenario)
        * (1 + (scenario.encoder_ratio - 1) * encoder_adapter_share(model, scenario)),
    'selective': kept_selectively(model, scenario, mixers),
    -- masks of all pairs of tokens, which layers to recompute hold on to
    'mask': iif(list_bool_or(list_transform(mixers, lambda layer: layer.kernel = 'eager'
        AND layer.mechanism NOT IN ('cross', 'bidirectional')))
        AND scenario.encoder_ratio = 1, model.mask_count * scenario.residual_bytes * scenario.context_tokens, 0),
    -- that of a window, one byte a pair and the same for all sequences, is kept too
    'window_mask': iif(scenario.attention <> 'masked'
        AND list_bool_or(list_transform(mixers, lambda layer: layer.kernel = 'masked')), scenario.context_tokens, 0)
        -- (a kernel of blocks has lists of them, of the whole context and of the window)
        + iif(list_bool_or(list_transform(mixers, lambda layer: layer.kernel = 'sinks')),
            scenario.flex_mask_bytes_each * scenario.context_tokens, 0),
    'attention': list_concat(recurrent_parts(model, scenario), list_transform(coalesce(mixers, []), lambda layer: {
        'layer_count': layer.layer_count,
        'kept': (layer.token_ratio * kept_by_attention(layer, model, scenario))::DOUBLE,
        'gradients': (layer.token_ratio * score_gradients(layer, model, scenario))::DOUBLE})),
    'blocks': list_transform(coalesce(model.blocks, []), lambda block: {
        'layer_count': block.layer_count, 'is_encoder': block.is_encoder,
        'kept': iif(block.is_encoder, scenario.encoder_ratio, 1) * kept_by_feed_forward(block, model, scenario),
        'gradients': iif(block.is_encoder, scenario.encoder_ratio, 1) * feed_forward_gradients(block, model, scenario),
        'moments': block_moments(block, model, scenario, feed_forward_gradients(block, model, scenario)),
        'beside_experts': beside_experts(block, model, scenario)})
};

-- The moments of blocks (feed_forward.sql) that take most, and the elements of what is no group's way down.
CREATE OR REPLACE MACRO block_sums(model, scenario, parts) AS {
    'plain_down': model.hidden_size * coalesce(list_max(list_transform(coalesce(model.blocks, []),
        lambda block: block.width + iif(has_groups(block, model), 0, block.expert_count * block.expert_width))), 0),
    'plain': coalesce(list_max(list_transform(parts.blocks,
        lambda block: iif(block.is_encoder, scenario.encoder_ratio, 1) * block.moments.plain)), 0)
            / scenario.tensor_parallel,
    'start': list_max(list_transform(parts.blocks, lambda block: block.moments.start))
        / scenario.tensor_parallel,
    'down': list_max(list_transform(parts.blocks, lambda block: block.moments.down))
        / scenario.tensor_parallel,
    'end': list_max(list_transform(parts.blocks, lambda block: block.moments."end")) / scenario.tensor_parallel
};

CREATE OR REPLACE MACRO kept_sums(model, scenario, parts) AS {
    'mask': coalesce(parts.mask, 0),
    'window_mask': coalesce(parts.window_mask, 0),
    'freed': iif(list_max(list_transform(parts.attention, lambda part: part.gradients)) > 0,
        freed_before_scores(model, scenario), 0),
    'layers': (parts.hidden + parts.adapters) / residual_parallel(scenario)
        + (list_sum(list_transform(parts.attention, lambda part: part.layer_count * part.kept))
        + coalesce(list_sum(list_transform(parts.blocks, lambda block: block.layer_count * block.kept)), 0))
            / scenario.tensor_parallel,
    'selective': parts.selective / scenario.tensor_parallel,
    -- the inputs of all layers, and what an encoder begins and ends on
    'inputs': (model.layer_count + (scenario.encoder_ratio - 1) * model.encoder_layer_count) * model.hidden_size
        * scenario.residual_bytes / residual_parallel(scenario),
    'encoder_end': iif(model.cross_layer_count > 0, scenario.encoder_ratio * (
        kept_by_norms(model.hidden_size, model.hidden_size, model, scenario)
        + iif(scenario.is_adapter OR scenario.encoder_ratio = 1, 0, 6 * scenario.compute_bytes * model.hidden_size)),
            0),
    'layer': greatest(scenario.encoder_ratio, 1) * (parts.hidden + parts.adapters) / residual_parallel(scenario)
        / greatest(model.layer_count + (scenario.encoder_ratio - 1) * model.encoder_layer_count, 1)
        + list_max(list_transform(parts.attention, lambda part: part.kept)) / scenario.tensor_parallel,
    -- the first layer without its experts: norms, the least of the mixers, the rest of the block
    'before_experts': parts.hidden / residual_parallel(scenario) / greatest(model.layer_count, 1)
        + (coalesce(list_min(list_transform(parts.attention, lambda part: part.kept)), 0)
            + coalesce(list_min(list_transform(parts.blocks, lambda block: block.beside_experts)), 0))
                / scenario.tensor_parallel,
    'block': coalesce(list_max(list_transform(parts.blocks, lambda block: block.kept)), 0) / scenario.tensor_parallel,
    -- what a block adds to the layer while it is differentiated: where it is a layer of its own, only what it keeps
    -- beyond a mixer
    'block_work': (coalesce(list_max(list_transform(parts.blocks, lambda block: block.kept)), 0)
        - iif(model.is_alternating, list_max(list_transform(parts.attention, lambda part: part.kept)), 0))
            / scenario.tensor_parallel,
    -- what differentiating a mixer adds to the layer that keeps most
    'mixer_work': (list_max(list_transform(parts.attention, lambda part: part.kept + part.gradients))
        - list_max(list_transform(parts.attention, lambda part: part.kept))) / scenario.tensor_parallel,
    'score_gradients': list_max(list_transform(parts.attention, lambda part: part.gradients))
        / scenario.tensor_parallel,
    -- elements of the widest projection back to the hidden state, whose gradient comes first
    'down': model.hidden_size * coalesce(list_max(list_transform(coalesce(model.blocks, []),
        lambda block: block.width + block.expert_count * block.expert_width)), 0),
    'block_gradients': coalesce(list_max(list_transform(parts.blocks, lambda block: block.gradients)), 0)
        / scenario.tensor_parallel,
    'moments': block_sums(model, scenario, parts)
};

-- Inputs of layers that are recomputed, where they wait in the host's memory: small ones stay, of others those of a few
-- layers are on the card at a time.
CREATE OR REPLACE MACRO inputs_in_host(model, scenario, sums) AS
    iif(scenario.offloads_checkpoints AND scenario.checkpointing = 'full'
        AND step_tokens(scenario) * model.hidden_size * scenario.residual_bytes > scenario.unsloth_input_bytes_least,
        greatest(sums.inputs - scenario.unsloth_inputs_on_card * model.hidden_size * scenario.residual_bytes, 0), 0);
CREATE OR REPLACE MACRO inputs_on_card(model, scenario, sums) AS
    sums.inputs - inputs_in_host(model, scenario, sums);

-- sums: kept_sums. Bytes per token that the layers keep; the first norm's input needs no gradient where the base is
-- frozen.
CREATE OR REPLACE MACRO kept_by_layers(model, scenario, sums) AS CASE scenario.checkpointing
    WHEN 'full' THEN inputs_on_card(model, scenario, sums) + sums.mask + sums.window_mask / scenario.sequences
    WHEN 'selective' THEN sums.selective + sums.mask + sums.window_mask / scenario.sequences
    ELSE iif(is_prompted(scenario), kept_by_prompted_layers(model, scenario, sums),
        sums.layers - iif(scenario.is_adapter, scenario.norm_bytes * model.hidden_size, 0)
        -- nor does the first feed-forward block where it stands beside the adapted attention
        - iif(model.is_block_parallel AND scenario.lora_targets IN ('attention', 'query-value')
            AND NOT norms_embedding(scenario), sums.block, 0)
        - iif(is_first_untrained(scenario), sums.before_experts - scenario.norm_bytes * model.hidden_size, 0))
END;

-- Of one layer: what is kept twice when the layer is worked on. Layers of a hybrid differ, the heaviest is worked on;
-- where a layer is either a mixer or a block, the heavier of the two.
CREATE OR REPLACE MACRO kept_by_one_layer(model, scenario, sums) AS CASE
    WHEN scenario.checkpointing = 'full' THEN model.hidden_size * scenario.residual_bytes / residual_parallel(scenario)
    WHEN scenario.checkpointing = 'selective' THEN sums.selective / greatest(model.layer_count, 1)
    WHEN model.recurrences IS NULL THEN sums.layers / greatest(model.layer_count, 1)
    ELSE sums.layer + greatest(sums.block_work, 0)
END;

CREATE OR REPLACE MACRO kept_by_head(model, scenario) AS
    kept_by_norms(model.hidden_size, model.hidden_size, model, scenario)
        + iif(scenario.is_autocast AND NOT is_tiled(scenario), 2 * model.hidden_size, 0)
    + logit_width(model, scenario) * kept_per_logit(model, scenario) + kept_by_head_adapter(model, scenario)
    + iif(trains_scales(scenario), scenario.compute_bytes * logit_width(model, scenario), 0)
    -- a dense layer, its activation and a norm before the head
    + iif(model.has_head_transform, 3 * scenario.compute_bytes * model.hidden_size, 0);

CREATE OR REPLACE MACRO rope_bytes(model, scenario) AS
    scenario.context_tokens * 2 * model.head_dim_max * iif(scenario.precision = 'amp', 4, scenario.compute_bytes);

-- What the convolutions before an encoder keep though they are frozen: its layers are recomputed, for which their input
-- needs a gradient. (Under autocast the positions' sum and the last norm are in fp32.)
CREATE OR REPLACE MACRO convolutions_kept(model, scenario) AS
    iif(model.cross_layer_count > 0 AND scenario.is_adapter AND scenario.checkpointing = 'full',
        iif(encoder_ratio(model, scenario) = 1, 0, model.hidden_size * encoder_ratio(model, scenario)
            * (6 * scenario.compute_bytes + iif(scenario.precision = 'amp' AND scenario.compute_bytes = 2, 4, 0))), 0);

-- stage: a pipeline stage. Logits and layers divide under tensor parallelism; norms with sequence parallelism only.
CREATE OR REPLACE MACRO kept_bytes(model, scenario, sums, stage) AS
    step_tokens(scenario) * (kept_by_layers(model, scenario, sums) * stage.share * stage.flights + stage.is_last
        * (kept_by_head(model, scenario) + sums.encoder_end + convolutions_kept(model, scenario)))
    + rope_bytes(model, scenario)
    + iif(scenario.is_autocast, 2 * (iif(scenario.checkpointing <> 'none', 0, cast_elements(model) * stage.share)
        + copied_head_elements(model, scenario)) / scenario.tensor_parallel, 0)
    -- (autocast's copy of a head that is not quantised)
    + iif(is_prepared(scenario) AND scenario.precision = 'amp', 2 * copied_head_elements(model, scenario)
        * head_products(scenario), 0)
    -- (and of each product with a frozen base in fp32, which the backward pass reads)
    + iif(scenario.checkpointing = 'none', 2 * cast_base_elements(model, scenario) * stage.share
        / scenario.tensor_parallel, 0)
    + stage.is_last * (kept_by_fused_loss(model, scenario) + kept_by_tiled_loss(model, scenario))
    + iif(model.attention_form = 'biased' AND scenario.attention <> 'eager' AND scenario.checkpointing = 'none',
        scenario.compute_bytes * model.biased_head_sum * stage.share * scenario.context_tokens
            * scenario.context_tokens / scenario.tensor_parallel, 0)
    + step_tokens(scenario) * (kept_packed_inputs(model, scenario) + kept_by_embedding_norm(model, scenario))
    + merged_experts_kept(model, scenario, sums)
    + balance_bytes(model, step_tokens(scenario), scenario.balance_bytes_per_expert);
