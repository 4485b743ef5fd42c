-- Blocks that PyTorch's allocator holds and that lie unused while a training step is at its peak.
--
--   adapters   unused = share × least(running layer, work of the loss) + the logits, where they are let go + what the
--              inputs of layers waste
--              share: unused_layer_share where layers are recomputed, unused_layer_kept_share where all is kept,
--              unused_layer_expandable_share with expandable segments, in which free blocks join
--              waste, of packed weights where layers are recomputed: inputs × (ratio ÷ whole part of ratio − 1),
--              ratio: width of a feed-forward block ÷ that of a layer's input
--              beside these, of layers that an engine runs itself (activations/training/own_blocks.sql): one tensor of
--              the block's width (measured on an H200: 49 to 184 MB, 577 MB of 16,384 tokens of an 8B, card.csv)
--   all weights, one GPU, optimizer with states:
--              unused = (peak at the loss + logits, where they are let go + gradients − room) − peak
--              room   = reused_gradients_share × least(gradients, reused_kept_share × what layers keep)
--   beside these, of a trainer that logs a copy of the logits without each sequence's last: a block of it, where that
--              has fewer whole segments than the logits have
--   all else   unused = unused_blocks_training × (activations + gradients)
--
-- A layer that runs takes blocks anew, and so does the loss: blocks of the one are too small or too large for the
-- other, so that at the peak of either the other's lie unused. The logits in the precision of the computation are gone
-- when their gradients are made, and none of these is small enough for their block. Where all weights are trained, the
-- optimizer's states cut the blocks of the first forward pass: the next one's logits are taken anew, and gradients find
-- no room in them, but in the blocks that the layers kept. A copy of the logits that is a row of each sequence shorter
-- gets a segment of its own, into which neither logits nor their gradients fit: it lies unused at the peak.
--
-- Units: bytes per GPU. Source: the shares are held to an emulated allocator under real steps
--   (tests/oracle/reserved.csv, reserved_trl.csv) and to measured pairs of reserved and allocated peaks (group
-- fitcheck-t4).
-- Not covered: weights that are gathered anew, optimizers that keep nothing of their size (Adafactor, SGD, 8 bits), and
--   encoders, whose blocks follow no rule that was found; lengths that change from step to step.

-- adapters over weights that stay on the GPU as they are
CREATE OR REPLACE MACRO has_standing_weights(scenario) AS scenario.is_adapter AND scenario.weight_shards = 1
    AND scenario.offload <> 'all' AND scenario.tensor_parallel * scenario.pipeline_parallel = 1;

-- What one layer takes while it is differentiated, as far as the loss takes as much in blocks of its own. (A reward
-- model, whose loss takes next to nothing, was measured to leave as much of a layer unused.)
CREATE OR REPLACE MACRO running_blocks(model, scenario, stage) AS iif(has_standing_weights(scenario),
    least(iif(is_scored(scenario), NULL, stage.kept - step_tokens(scenario)
            * inputs_on_card(model, scenario, scenario.sums) + loss_work(model, scenario, 0)
            - held_logits(model, scenario)),
        step_tokens(scenario) * (scenario.sums.layer + greatest(
            scenario.sums.block_work + scenario.sums.block_gradients,
            scenario.sums.score_gradients - scenario.sums.freed, scenario.sums.mixer_work - scenario.sums.freed))),
    NULL);

-- Inputs of layers that are recomputed are kept in free blocks, and the smallest that are large enough are those of a
-- feed-forward block: what they leave of one is too small for another, and where the block is needed again it is taken
-- anew. So it is where the residual stream is in fp32; the norms of one in 16 bits make blocks of just two inputs.
CREATE OR REPLACE MACRO wasted_block_bytes(model, scenario, width) AS
    iif(has_standing_weights(scenario) AND is_quantised_base(scenario) AND scenario.checkpointing = 'full'
        AND NOT scenario.expandable_segments AND model.expert_elements = 0 AND width >= 1,
        step_tokens(scenario) * inputs_on_card(model, scenario, scenario.sums) * (width / floor(width) - 1), 0)
    + iif(scenario.has_own_blocks, own_hole_bytes(model, scenario), 0);

-- Six tensors as wide as the block are the peak of a layer that an engine runs in functions of its own, taken one after
-- the other among holes that narrower ones leave: these join, and stay free as long as they are less than one more.
CREATE OR REPLACE MACRO own_hole_bytes(model, scenario) AS
    step_tokens(scenario) * scenario.compute_bytes * model.blocks[1].width;

-- (A loss that takes logits apart which are all there leaves a block of them in fp32.)
CREATE OR REPLACE MACRO freed_bytes_per_logit(loss, compute_bytes) AS
    iif(loss IN ('full', 'logged', 'logged-blocks', 'logged-copy', 'one-pass'), compute_bytes, 0);
CREATE OR REPLACE MACRO freed_logits(model, scenario) AS logit_width(model, scenario) * step_tokens(scenario) * CASE
    WHEN scenario.chunks_logits THEN 4
    WHEN NOT scenario.keeps_logits THEN freed_bytes_per_logit(scenario.loss, scenario.compute_bytes)
    ELSE 0
END;

-- The copy that is logged, and whether it leaves a block: where a row of each sequence less makes a segment less.
CREATE OR REPLACE MACRO logged_copy_bytes(model, scenario) AS iif(
    scenario.loss IN ('logged', 'logged-blocks', 'logged-copy'),
    4 * logit_width(model, scenario) * step_tokens(scenario), 0);
CREATE OR REPLACE MACRO logged_block_bytes(scenario, constants) AS iif(
    ceil(scenario.logged_copy_bytes * (1 - 1 / scenario.context_tokens) / constants.allocator_segment_bytes)
        < ceil(scenario.logged_copy_bytes / constants.allocator_segment_bytes), scenario.logged_copy_bytes, 0);

-- Weights that are trained where they stand, on one GPU, by an optimizer that keeps states of their size: at its first
-- step these come to lie where the activations of the forward pass had lain.
CREATE OR REPLACE MACRO trains_standing_weights(model, scenario, optimizer) AS NOT scenario.is_adapter
    AND scenario.gpu_count = 1 AND scenario.scheme = 'plain' AND scenario.offload = 'none'
    AND NOT scenario.has_master_weights AND NOT is_encoder(model)
    AND optimizer.state_form = 'elementwise' AND optimizer.state_count > 0 AND optimizer.follows_parameter_dtype
    AND NOT optimizer.steps_in_backward;

-- what the layers keep until they are differentiated, autocast's copies included
CREATE OR REPLACE MACRO kept_blocks(model, scenario, optimizer) AS
    iif(trains_standing_weights(model, scenario, optimizer),
        step_tokens(scenario) * kept_by_layers(model, scenario, scenario.sums)
            + iif(scenario.is_autocast AND scenario.checkpointing = 'none', 2 * cast_elements(model), 0), NULL);

-- Without whole logits there is no block that the gradient of the embedding, the last of a step, finds room in.
CREATE OR REPLACE MACRO embedding_block_bytes(model, scenario, optimizer) AS
    iif(trains_standing_weights(model, scenario, optimizer) AND (is_scored(scenario) OR is_tiled(scenario)),
        gradient_bytes(model.embedding_elements, scenario), 0);

CREATE OR REPLACE MACRO trained_blocks(scenario, constants, gradients) AS
    iif(scenario.kept_blocks IS NULL, NULL, greatest(0, scenario.loss_bytes + scenario.freed_logits
        + logged_block_bytes(scenario, constants) - scenario.peak_bytes
        + iif(scenario.has_standing_gradients, 0, gradients
            - constants.reused_gradients_share * least(gradients, constants.reused_kept_share
                * scenario.kept_blocks))) + scenario.embedding_blocks);

CREATE OR REPLACE MACRO unused_training_bytes(scenario, constants, gradients) AS coalesce(
    CASE
        WHEN scenario.expandable_segments THEN constants.unused_layer_expandable_share
        WHEN scenario.checkpointing = 'none' THEN constants.unused_layer_kept_share
        ELSE constants.unused_layer_share
    END * scenario.running_blocks + scenario.freed_logits + scenario.wasted_blocks
        + logged_block_bytes(scenario, constants),
    trained_blocks(scenario, constants, gradients),
    -- (a base that is loaded takes no blocks of a step)
    (scenario.activations - greatest(0, coalesce(scenario.loading - ceil(scenario.peak_bytes), 0)) + gradients)
        * constants.unused_blocks_training);
