-- Blocks that PyTorch's allocator holds and that lie unused while a training step is at its peak.
--
--   adapters   unused = share × least(running layer, work of the loss) + the logits, where they are let go
--              share: unused_layer_share where layers are recomputed, unused_layer_kept_share where all is kept,
--              unused_layer_expandable_share with expandable segments, in which free blocks join
--   all else   unused = unused_blocks_training × (activations + gradients)
--
-- A layer that runs takes blocks anew, and so does the loss: blocks of the one are too small or too large for the
-- other, so that at the peak of either the other's lie unused. The logits in the precision of the computation are gone
-- when their gradients are made, and none of these is small enough for their block.
--
-- Units: bytes per GPU. Source: the shares are held to an emulated allocator under real steps
--   (tests/oracle/reserved.csv) and to measured pairs of reserved and allocated peaks (group fitcheck-t4).
-- Not covered: weights that are trained or gathered anew, whose blocks follow no rule that was found, with expandable
--   segments either; lengths that change from step to step.

-- adapters over weights that stay on the GPU as they are
CREATE OR REPLACE MACRO has_standing_weights(scenario) AS scenario.is_adapter AND scenario.weight_shards = 1
    AND scenario.offload <> 'all' AND scenario.tensor_parallel * scenario.pipeline_parallel = 1;

-- What one layer takes while it is differentiated, as far as the loss takes as much in blocks of its own.
CREATE OR REPLACE MACRO running_blocks(model, scenario, stage) AS iif(has_standing_weights(scenario),
    least(step_tokens(scenario) * (scenario.sums.layer + greatest(
            scenario.sums.block_work + scenario.sums.block_gradients,
            scenario.sums.score_gradients - scenario.sums.freed, scenario.sums.mixer_work - scenario.sums.freed)),
        stage.kept - step_tokens(scenario) * inputs_on_card(model, scenario, scenario.sums)
            + loss_work(model, scenario, 0) - held_logits(model, scenario)), NULL);

CREATE OR REPLACE MACRO freed_logits(model, scenario) AS
    iif(scenario.loss = 'full' AND NOT scenario.keeps_logits,
        scenario.compute_bytes * logit_width(model, scenario) * step_tokens(scenario), 0);

CREATE OR REPLACE MACRO unused_training_bytes(scenario, constants, gradients) AS coalesce(
    CASE
        WHEN scenario.expandable_segments THEN constants.unused_layer_expandable_share
        WHEN scenario.checkpointing = 'none' THEN constants.unused_layer_kept_share
        ELSE constants.unused_layer_share
    END * scenario.running_blocks + scenario.freed_logits,
    (scenario.activations + gradients) * constants.unused_blocks_training);
