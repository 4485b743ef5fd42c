-- How far a total may be off: a share of it, by what was measured of its kind.
--
-- Units: shares of the total. Source: constant.csv (error_band_*; engine_memory names that of each engine, and engine
-- that of one whose training is another), each from measurements beyond those that set a constant.
-- Not covered: engines' versions other than those of the table engine.

-- What the allocator keeps unused is known as a spread, which the band of a total takes in. Held to a card were
-- decoders of the library that read text (engine_memory's unused_spread_constant); encoders and what brings its own
-- code left more.
CREATE OR REPLACE MACRO unused_spread(model, scenario, constants) AS
    iif(is_encoder(model) OR model.has_own_code OR coalesce(scenario.images, 0) > 0
        OR scenario.audio_seconds IS NOT NULL, constants.unused_blocks_spread, scenario.ways.unused_spread);
CREATE OR REPLACE MACRO unused_spread_bytes(model, scenario, constants) AS
    iif(scenario.phase_id = 'inference' AND scenario.reads_prompt = 'whole',
        unused_spread(model, scenario, constants) * least(scenario.inference_activations,
            coalesce(scenario.layer_bytes, scenario.inference_activations)), 0);

-- a shape that is another's, with nothing to compare: so much more than the count a model may have
CREATE OR REPLACE MACRO shape_band(model, constants) AS
    iif(model.is_shape_confirmed, 0, constants.error_band_unconfirmed);

-- a training step of code that nobody counted
CREATE OR REPLACE MACRO own_code_band(model, scenario, constants) AS
    iif(scenario.phase_id <> 'inference' AND model.has_own_code, constants.error_band_own_code, 0);

-- Of steps on one GPU what the allocator keeps unused follows a rule (overhead/unused.sql), and of adapters no spread
-- of it has to be taken in but that of one block (lost_logits_bytes). (Of encoders, recurrent layers, DoRA, trained
-- embeddings and adapters over experts no step was counted with an allocator; engines that take the logits by chunks
-- have bands of their own, engine.training_error_band_constant.)
CREATE OR REPLACE MACRO has_counted_blocks(model, scenario) AS
    scenario.scheme = 'plain' AND NOT scenario.has_master_weights
    AND NOT is_encoder(model) AND model.cross_layer_count = 0 AND model.recurrences IS NULL
    AND scenario.graph IS NULL AND NOT scenario.chunks_logits AND is_own_loss(scenario)
    AND scenario.checkpointing <> 'selective';
CREATE OR REPLACE MACRO has_known_blocks(model, scenario) AS has_standing_weights(scenario)
    AND has_counted_blocks(model, scenario) AND model.expert_elements = 0 AND scenario.adapter <> 'dora'
    AND NOT coalesce(scenario.trains_embeddings, false);
CREATE OR REPLACE MACRO one_gpu_band(model, scenario, constants, optimizer) AS CASE
    WHEN has_known_blocks(model, scenario) THEN constants.error_band_adapters
    WHEN trains_standing_weights(model, scenario, optimizer) AND has_counted_blocks(model, scenario)
        THEN constants.error_band_standing
    ELSE constants.error_band_training
END;

-- The work space of cuBLAS for autograd's thread is taken at the first product of the first backward pass, out of the
-- smallest free block that it fits into, and stays there. Where no block of a layer is as large, that is the logits' in
-- fp32, and those of the next step find no room in it: they are taken anew. What a feed-forward block makes lies free
-- then; of 99 counted steps where it is as large as the work space of Hopper none lost the logits (none reserved more
-- than 4.2 % beyond what is told), of 39 smaller ones half (tests/oracle/reserved.csv). From the power of two on at
-- which one sequence makes such a block, the margin for them falls by a token for each token, so that it grows with
-- the context all the same: limits are read off lines between points that are powers of two. LitGPT's steps, whose
-- logits come by chunks and are joined, lost them too (tests/oracle/litgpt_peaks.csv).
-- (of blocks that differ by layer the smallest: which of them lies free is not known)
CREATE OR REPLACE MACRO least_block_width(model) AS
    greatest(list_min(list_transform(model.blocks, lambda block: block.width)), 1);
CREATE OR REPLACE MACRO workspace_tokens(model, scenario, constants) AS pow(2, ceil(log2(
    constants.cublas_workspace_bytes / (scenario.compute_bytes * least_block_width(model)))));
CREATE OR REPLACE MACRO lost_logits_share(model, scenario, constants) AS iif(scenario.chunks_logits, 1, least(1,
    greatest(0, 2 * workspace_tokens(model, scenario, constants) / scenario.context_tokens - 1)));
CREATE OR REPLACE MACRO may_lose_logits(model, scenario) AS has_known_blocks(model, scenario)
    OR scenario.phase_id <> 'inference' AND scenario.chunks_logits AND scenario.training_error_band IS NOT NULL;
CREATE OR REPLACE MACRO lost_logits_bytes(model, scenario, constants) AS CASE
    -- (of a copy that is logged the block is told, or as near as a few tokens more)
    WHEN scenario.logged_copy_bytes > 0 THEN scenario.logged_copy_bytes - logged_block_bytes(scenario, constants)
    WHEN may_lose_logits(model, scenario) THEN 4 * logit_width(model, scenario) * step_tokens(scenario)
        * lost_logits_share(model, scenario, constants)
    ELSE 0
END;

-- full training shared by FSDP without a pipeline: measured runs are within the band of one GPU
CREATE OR REPLACE MACRO is_measured_sharding(scenario) AS
    scenario.scheme = 'fsdp2' AND scenario.pipeline_parallel = 1 AND NOT scenario.is_adapter;

CREATE OR REPLACE MACRO training_band(model, scenario, constants, optimizer) AS CASE
    WHEN scenario.gpu_count > 1 AND NOT is_measured_sharding(scenario)
        THEN greatest(constants.error_band_training_parallel, coalesce(scenario.training_error_band, 0))
    WHEN scenario.training_error_band IS NOT NULL THEN scenario.training_error_band
    ELSE one_gpu_band(model, scenario, constants, optimizer)
END;

CREATE OR REPLACE MACRO error_band(model, scenario, constants, optimizer) AS CASE
    WHEN scenario.phase_id <> 'inference' THEN training_band(model, scenario, constants, optimizer)
    WHEN has_counted_pass(model) THEN constants.error_band_pipeline
    WHEN reads_images_in_vllm(scenario) THEN constants.error_band_vllm_images
    ELSE scenario.inference_error_band
END;
