-- What a training step holds at its peak beside weights, gradients, optimizer and adapters.
--
--   activations_bytes = max over the moments of the step − (weights + gradients + optimizer + adapters)
--
-- The moments: `loss` (everything the forward kept, and the fp32 gradients of the logits), `forward` (autocast's copies
-- of the weights, with checkpointing), `backward` (the last or the first layer is differentiated: inside its
-- feed-forward block or inside its attention, beside the gradients of the layers behind it), `end` (all gradients, and
-- the tied embedding's second one), `optimizer` (copies that the step makes).
--
-- Units: bytes per GPU. stage: a pipeline stage (sharding/held.sql) with what it holds; sums: kept_sums. Source: as
-- kept.sql.
-- Not covered: what is not covered there; moments inside layers between the first and the last.

-- bytes of a gradient that one GPU holds whole or in its share
CREATE OR REPLACE MACRO gradient_bytes(elements, scenario) AS
    iif(scenario.is_adapter, 0, elements * scenario.gradient_bytes_each / scenario.tensor_parallel
        / scenario.gradient_shards);

-- What a stage holds of weights, adapters and optimizer states through the whole step.
CREATE OR REPLACE MACRO held_throughout(stage) AS stage.weights + stage.adapters + stage.optimizer;

-- Gradients that exist before the step's own: those of earlier micro-batches, and those that an engine never frees.
CREATE OR REPLACE MACRO standing_gradients(model, scenario, stage) AS
    iif(scenario.has_standing_gradients, stage.gradients, embedding_gradient_bytes(model, scenario));

-- An optimizer that steps in the backward pass leaves the gradient of a tied head, which waits for the embedding's, and
-- that of one matrix with what its step takes.
CREATE OR REPLACE MACRO gradients_stepped(model, scenario, sums) AS
    iif(is_tied(model, scenario), gradient_bytes(model.embedding_elements, scenario), 0)
    + gradient_bytes(sums.down, scenario) + scenario.stepping_bytes_each * sums.down;

-- The step of a head of its own, while everything but the loss's logits is kept.
CREATE OR REPLACE MACRO head_step_work(model, scenario) AS iif(
    scenario.steps_in_backward AND NOT is_tied(model, scenario),
    gradient_bytes(head_matrix_elements(model, scenario), scenario)
    + scenario.stepping_bytes_each * head_matrix_elements(model, scenario)
    - kept_per_logit(model, scenario) * logit_width(model, scenario) * step_tokens(scenario), 0);

-- Of a head that is trained beside adapters: its input is kept, and its gradient comes when those of the logits are in
-- the precision of its products.
CREATE OR REPLACE MACRO saved_loss_work(model, scenario) AS
    step_tokens(scenario) * model.hidden_size * scenario.compute_bytes
    + greatest(loss_work(model, scenario, 0), saved_head_bytes(model, scenario)
        + 2 * scenario.compute_bytes * logit_width(model, scenario) * step_tokens(scenario));

-- A head of one number, or of a few classes, leaves the last norm as the first that is differentiated: three fp32
-- tensors of the hidden state and its gradient, or five fp32 ones where the norm casts what it reads.
CREATE OR REPLACE MACRO has_few_logits(model, scenario) AS is_scored(scenario)
    OR model.logit_columns BETWEEN 1 AND model.hidden_size - 1 AND model.norm_form <> 'layer';
CREATE OR REPLACE MACRO scored_loss_work(model, scenario) AS iif(has_few_logits(model, scenario), step_tokens(scenario)
    * model.hidden_size * iif(scenario.residual_bytes = 4, 3 * 4 + scenario.compute_bytes, 5 * 4), 0);

-- Of a pipeline the last stage has the loss.
CREATE OR REPLACE MACRO loss_moment(model, scenario, stage) AS
    held_throughout(stage) + stage.kept + standing_gradients(model, scenario, stage)
    + stage.is_last * iif(coalesce(scenario.trains_embeddings, false), saved_loss_work(model, scenario),
        greatest(loss_work(model, scenario, gradient_bytes(head_matrix_elements(model, scenario), scenario)),
            head_step_work(model, scenario), scored_loss_work(model, scenario)));

CREATE OR REPLACE MACRO forward_moment(model, scenario, stage) AS
    held_throughout(stage) + stage.kept + standing_gradients(model, scenario, stage)
    -- the logits, and their fp32 copy where the loss takes one, or a tile or a part of them
    + stage.is_last * iif(scenario.loss IN ('full', 'logged', 'logged-blocks', 'logged-copy'),
        iif(takes_logits_in_16_bits(model, scenario), scenario.compute_bytes, 6) * logit_width(model, scenario)
            * step_tokens(scenario) + logged_bytes(model, scenario), 0)
    + stage.is_last * iif(is_tiled(scenario), iif(is_recomputed_head(scenario), recomputed_part_bytes(model, scenario),
        tile_bytes(model, scenario)), 0)
    -- (a fused loss takes its gradients here, while autocast's copies of the layers are there)
    + stage.is_last * iif(is_fused(scenario), loss_work(model, scenario, 0), 0)
    + iif(scenario.is_autocast AND scenario.checkpointing <> 'none',
        2 * cast_elements(model) / scenario.tensor_parallel, 0);

-- Per token, one layer is worked on: all that it keeps (or keeps again when it is recomputed), and either the gradients
-- inside the feed-forward block, or those inside attention when the block's tensors are gone; beside the gradients of
-- two hidden states.
CREATE OR REPLACE MACRO layer_work(model, scenario, sums) AS
    sums.layer + 2 * scenario.residual_bytes * model.hidden_size
    -- what a context-parallel GPU gathers of the others' keys and values, and a tensor-parallel one of the others'
    -- residual stream
    + iif(scenario.context_parallel > 1, scenario.compute_bytes * 2 * model.key_max * scenario.context_parallel
        / scenario.tensor_parallel, 0)
    + iif(residual_parallel(scenario) > 1, scenario.compute_bytes * model.hidden_size, 0);

-- Gradients that exist when the first layer is reached: of everything but that layer and the embedding (a tied one has
-- the head's). Its feed-forward block, first the way down, comes before its attention. Where gradients stand, one
-- matrix's own comes on top.
CREATE OR REPLACE MACRO gradients_before(elements, model, scenario, stage, sums) AS CASE
    WHEN scenario.steps_in_backward THEN gradients_stepped(model, scenario, sums)
    WHEN scenario.is_adapter THEN stage.gradients - iif(scenario.has_standing_gradients, 0,
        saved_bytes(model, scenario) - saved_head_bytes(model, scenario))
    WHEN scenario.has_standing_gradients THEN stage.gradients + gradient_bytes(sums.down, scenario)
    ELSE greatest(0, stage.gradients
        - gradient_bytes(elements + iif(is_tied(model, scenario), 0, model.embedding_elements), scenario))
END;

-- Those that exist when the last layer is: the head's, and so many elements of the layer.
CREATE OR REPLACE MACRO gradients_first(elements, model, scenario, stage, sums) AS CASE
    WHEN scenario.steps_in_backward THEN gradients_stepped(model, scenario, sums)
    WHEN scenario.has_standing_gradients THEN stage.gradients + gradient_bytes(sums.down, scenario)
    ELSE least(stage.gradients, gradient_bytes(head_matrix_elements(model, scenario) + elements, scenario)
        + saved_head_bytes(model, scenario) + embedding_gradient_bytes(model, scenario))
END;

-- `made`: bytes that an element of a layer's own gradient takes before it is reduced, where it is: then none of it is
-- in the shards yet.
-- The last layer is differentiated while only the gradients of the head exist: its feed-forward block (`gradients` per
-- token, while so many `elements` of the block's weights have theirs), or its attention.
CREATE OR REPLACE MACRO last_block_moment(model, scenario, stage, sums, made, gradients, elements) AS
    step_tokens(scenario) * gradients + made * elements
    + gradients_first(iif(made > 0, 0, elements), model, scenario, stage, sums);
CREATE OR REPLACE MACRO last_block_work(model, scenario, stage, sums, made) AS
    step_tokens(scenario) * sums.block_work + gathered_next(model, scenario)
    + greatest(
        step_tokens(scenario) * sums.moments.plain + made * sums.moments.plain_down
            + gradients_first(0, model, scenario, stage, sums),
        coalesce(greatest(
            last_block_moment(model, scenario, stage, sums, made, sums.moments.start, 0),
            last_block_moment(model, scenario, stage, sums, made, sums.moments.down, down_expert_elements(model, sums))
                + merged_gradient_bytes(model, scenario, sums),
            last_block_moment(model, scenario, stage, sums, made, sums.moments."end", moe_layer_expert_elements(model))
                + merged_gradient_bytes(model, scenario, sums)),
            0));
-- (A layer that is recomputed stands beside its input, but where the norm keeps that input itself.)
CREATE OR REPLACE MACRO last_mixer_work(model, scenario, stage, sums, made) AS
    step_tokens(scenario) * (sums.score_gradients - sums.freed
        + iif(scenario.checkpointing = 'full' AND scenario.residual_bytes = 2 AND model.norm_form <> 'layer',
            2 * model.hidden_size, 0))
    + made * model.largest_layer_elements + gathered_next(model, scenario)
    + gradients_first(iif(made > 0, 0, model.largest_layer_elements
        - 2 * model.hidden_size * (model.query_max + model.key_max)), model, scenario, stage, sums);

-- The first layer, while the gradients of all later ones exist: its feed-forward block, or its attention.
CREATE OR REPLACE MACRO first_block_moment(model, scenario, stage, sums, made, gradients, elements) AS
    step_tokens(scenario) * gradients + made * elements
    + gradients_before(model.largest_layer_elements - iif(made > 0, 0, elements), model, scenario, stage, sums);
CREATE OR REPLACE MACRO first_block_work(model, scenario, stage, sums, made) AS
    step_tokens(scenario) * (packed_inputs(model, scenario) + scenario.work + sums.block_work
        + iif(scenario.checkpointing = 'none', 0, sums.mask))
    + greatest(
        first_block_moment(model, scenario, stage, sums, made, sums.moments.plain, sums.moments.plain_down),
        coalesce(greatest(
            first_block_moment(model, scenario, stage, sums, made, sums.moments.start, 0),
            first_block_moment(model, scenario, stage, sums, made, sums.moments.down, down_expert_elements(model, sums))
                + merged_gradient_bytes(model, scenario, sums),
            first_block_moment(model, scenario, stage, sums, made, sums.moments."end", moe_layer_expert_elements(model))
                + merged_gradient_bytes(model, scenario, sums)),
            0));
CREATE OR REPLACE MACRO first_mixer_work(model, scenario, stage, sums, made) AS
    step_tokens(scenario) * (packed_inputs(model, scenario) + scenario.work + sums.mixer_work - sums.freed
        + iif(scenario.checkpointing = 'none', 0, sums.mask))
    + made * model.largest_layer_elements
    + gradients_before(iif(made > 0, model.largest_layer_elements,
        model.hidden_size * (model.query_max + 2 * model.key_max)), model, scenario, stage, sums);

-- Adapters of all linear layers under autocast: a recomputed layer comes to its way down with the block's product and
-- its copy in the adapter's fp32 (three tensors of its width in 16 bits), five more of the hidden state, and autocast's
-- copies of the layer's adapters. Where a prepared base makes all of these fp32, the product's gradient stands beside
-- those of both factors instead, when nothing is unpacked and the adapter's own input is gone.
CREATE OR REPLACE MACRO has_adapter_copies(model, scenario) AS scenario.is_adapter AND scenario.precision = 'amp'
    AND scenario.checkpointing = 'full' AND adapts_all_linear(scenario) AND scenario.compute_bytes = 2
    AND scenario.tensor_parallel = 1 AND NOT scenario.has_fused_kernels AND NOT is_cast_base(scenario)
    -- (Unsloth's adapters cast nothing, and those that are in 16 bits read what is)
    AND NOT scenario.offloads_checkpoints AND model.expert_elements = 0
    AND adapter_bytes_each(scenario) > scenario.compute_bytes;
CREATE OR REPLACE MACRO recomputed_work(model, scenario, sums) AS iif(has_adapter_copies(model, scenario),
    step_tokens(scenario) * (sums.layer + sums.block_work
        -- (and what dropout gives of that copy)
        + iif(scenario.has_adapter_dropout, sums.block_gradients, 0) + iif(is_quantised_base(scenario),
        5 * sums.block_gradients / 2 + model.hidden_size,
        3 * sums.block_gradients / 2 + 5 * scenario.compute_bytes * model.hidden_size))
    + iif(is_quantised_base(scenario), -scenario.dequantised,
        scenario.compute_bytes * scenario.trained_elements / greatest(model.layer_count, 1)), 0);

CREATE OR REPLACE MACRO backward_moment(model, scenario, stage, sums, made) AS
    held_throughout(stage)
    + greatest(
        step_tokens(scenario) * (scenario.work + stage.share * stage.flights * kept_by_layers(model, scenario, sums)
            + kept_packed_inputs(model, scenario) + kept_by_embedding_norm(model, scenario)
            - kept_by_one_layer(model, scenario, sums))
        + greatest(
            last_block_work(model, scenario, stage, sums, made),
            last_mixer_work(model, scenario, stage, sums, made),
            recomputed_work(model, scenario, sums) - step_tokens(scenario) * (scenario.work
                - kept_by_one_layer(model, scenario, sums))),
        recomputed_work(model, scenario, sums) + gradients_before(0, model, scenario, stage, sums),
        first_block_work(model, scenario, stage, sums, made) + gathered_second(model, scenario, sums),
        first_mixer_work(model, scenario, stage, sums, made) + gathered_second(model, scenario, sums))
    + CASE
        WHEN scenario.is_autocast OR is_cast_base(scenario) AND scenario.checkpointing <> 'none'
            THEN 2 * iif(model.expert_elements > 0 AND NOT model.runs_all_experts,
                cast_elements(model) // greatest(model.layer_count, 1), model.largest_layer_elements)
        WHEN scenario.checkpointing <> 'none'
            THEN 2.0 * cast_base_elements(model, scenario) / greatest(model.layer_count, 1)
        ELSE 0
    END + rope_bytes(model, scenario)
    + stage.is_last * held_logits(model, scenario) + dora_work(model, scenario)
    + merged_experts_work(model, scenario, sums) + tiled_layer_work(model, scenario, sums);

CREATE OR REPLACE MACRO end_moment(model, scenario, stage) AS
    held_throughout(stage) + stage.gradients + step_tokens(scenario) * model.hidden_size * scenario.residual_bytes
    + held_logits(model, scenario) + embedding_gradient_bytes(model, scenario)
    + step_tokens(scenario) * packed_inputs(model, scenario)
    + CASE
        -- (of sharded gradients sharding/gathered.sql counts it)
        WHEN scenario.is_adapter OR scenario.gradient_shards > 1 OR scenario.pipeline_parallel > 1 THEN 0
        WHEN is_tied(model, scenario) THEN model.embedding_elements * scenario.trained_bytes_each
            / scenario.tensor_parallel * (iif(scenario.precision = 'amp' OR is_fused(scenario), 1, 2)
                + iif(scenario.has_standing_gradients, 1, 0))
        WHEN scenario.has_standing_gradients
            THEN model.embedding_elements * scenario.trained_bytes_each / scenario.tensor_parallel
        ELSE 0
    END;

CREATE OR REPLACE MACRO optimizer_moment(model, scenario, optimizer, stage) AS
    held_throughout(stage) + stage.gradients + optimizer.step_copies * stage.gradients + held_logits(model, scenario)
    + step_tokens(scenario) * packed_inputs(model, scenario)
    + optimizer.step_largest_fp32_copies * 4 * iif(scenario.is_adapter, 0,
        model.largest_parameter_elements / scenario.tensor_parallel / scenario.optimizer_shards);

-- The moments of a step on one stage, with what several GPUs add to each.
CREATE OR REPLACE MACRO moments(model, scenario, optimizer, stage) AS iif(scenario.graph IS NOT NULL,
    graph_moments(model, scenario, stage), {
    'loss': iif(scenario.has_own_blocks, own_loss_moment(model, scenario, stage),
        loss_moment(model, scenario, stage) + gathered_at_loss(model, scenario, stage)
        + gathered_for_tiles(model, scenario, stage) + model.mask_buffer_bytes + images_held(model, scenario)),
    'forward': iif(scenario.has_own_blocks, 0, greatest(
            forward_moment(model, scenario, stage) + text_beside_tower_bytes(model, scenario),
            tower_moment(model, scenario, stage)) + gathered_at_forward(model, scenario, stage)
        + model.mask_buffer_bytes + images_held(model, scenario)),
    'backward': iif(scenario.has_own_blocks, own_block_moment(model, scenario, stage),
        backward_moment(model, scenario, stage, scenario.sums, scenario.made_in_layer)
        + gathered_at_backward(model, scenario, stage) + scenario.dequantised
        + last_unpacking_bytes(model, scenario, scenario.sums) + model.mask_buffer_bytes
        + images_held(model, scenario)),
    'end': end_moment(model, scenario, stage) + gathered_at_end(model, scenario, stage) + model.mask_buffer_bytes
        + images_at_end(model, scenario) + own_standing_bytes(model, scenario),
    'optimizer': optimizer_moment(model, scenario, optimizer, stage) + converted_gradients(scenario, stage)
        + iif(scenario.scheme = 'ddp', stage.gradients, 0) + model.mask_buffer_bytes + pixel_bytes(model, scenario)
        + own_standing_bytes(model, scenario)
});

CREATE OR REPLACE MACRO largest_moment(moments) AS
    greatest(moments.loss, moments.forward, moments.backward, moments."end", moments.optimizer);
