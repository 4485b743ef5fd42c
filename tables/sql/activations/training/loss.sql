-- The loss of a training step: what it keeps for the backward pass, and what it works with at its own peak.
--
--   full     the model's own: the logits of all tokens, their fp32 log-softmax (kept), and the gradients of both
--   logged-copy  full, and for what is logged a copy of the logits without each sequence's last, gone before the
--       backward pass (TRL up to 1.2): no more live bytes, but a block of its own (overhead/unused.sql)
--   chunked  projection and loss for one of loss_chunks parts of the tokens at a time: the log-softmax of all is kept,
--            the gradients are those of a chunk. Engines with chunks_logits project all tokens first and let the logits
--                go after the loss
--            Engines with loss_chunk_tokens take so many tokens of each sequence at a time, and hold the logits of all
--                in fp32 until the next step's are there
--   fused    the gradients are taken in the forward pass, chunk by chunk: the hidden states' and the head's are kept,
--       no logits
--   fused-by-free  fused, by chunks that the memory decides which is free at the first step: half of it, and no more
--       than a bound. fused-at-once: half of it and no bound, rounded down to one chunk where it takes two. What is
--       counted is what a card needs so that no chunk is too large for it, whatever its size; what the process shows
--       grows with the card
--   cut      fused by tiles that no memory keeps (Unsloth 2025.7): the hidden states' gradient alone is made, in the
--       backward pass; of up to unsloth_whole_tokens the logits, over which their gradient is written
--   logged   full, and a copy of the logits in fp32 for what is logged of them (TRL 1.3 to 1.5); logged-blocks: of
--       trl_block_tokens, three times (TRL 1.6)
--   recomputed  projection and loss for trl_chunk_tokens at a time, each a checkpoint: a copy of the last hidden state
--            is kept, and no logits (TRL 1.13, 1.14). recomputed-fp32: the head is cast to fp32 for it (1.7 to 1.12)
--   one-pass what is needed of the logits (a log-probability for each token, the entropy) is worked out by one kernel,
--            which keeps their fp32 copy; the backward pass writes that copy's gradient
--   tiled    the head is multiplied by tiles of trl_tile_tokens × trl_tile_columns, in both passes, and the logits of a
--       tile are gone with the next: a copy of the last hidden state is kept, and gradients are summed in fp32
--   tiled-reference  the same, and then a reference of its own (where all weights are trained) reads the same rows
--       under autocast, whose copies of that model's weights are there until it is through
--   score    one number for a sequence, as reward models are trained: no logits, and no head but a vector, which is
--       left out
--
-- Units: bytes per GPU; `per_logit` macros bytes per token and column of the vocabulary. Sources: full as kept.sql;
--   chunked: torchtune's LinearCrossEntropyLoss (loss_chunks of constant.csv, not compiled), with chunks_logits its
--   CEWithChunkedOutputLoss; fused: Liger's fused linear cross-entropy, whose chunk has as
--   many tokens that its logits are about as large as the hidden states of all, and which sums the head's gradient over
--   an fp32 product; with fused_loss = unsloth the chunks and the fp32 logits of unsloth_zoo's fused_linear.py;
--   fused-by-free, fused-at-once: _get_chunk_multiplier of its cross_entropy_loss.py (source unsloth-chunked-loss), and
--   the buffers of the kernels that PyTorch compiles of compute_fused_ce_loss: logits and their gradients, in 16 bits.
--   cut: cut_cross_entropy's cce_backward.py, of a head that is not trained (source cut-cross-entropy-25.1.1);
--   one-pass: TRL's selective_log_softmax_and_entropy over Transformers' logits (source trl-1.14.2), in fp32 as
--   accelerate hands them on; tiled: TRL's add_fused_lm_head with its Triton kernels (source trl-1.16.0), its steps in
--   tests/oracle/preference.csv, under FSDP2 in sharded_peaks.csv; under ZeRO it gathers the head by itself, in both
--   passes (maybe_gather_lm_head_ctx); logged and recomputed: TRL's SFTTrainer (source trl-1.16.0-losses), its steps in
--   tests/oracle/card.csv, and of recomputed under FSDP2 in sharded_peaks.csv;
--   score: TRL's RewardTrainer (source trl-1.0.0-reward), its steps in tests/oracle/preference.csv.
-- Not covered: compiled losses.

-- the model's own loss, whatever is logged beside it
CREATE OR REPLACE MACRO is_own_loss(scenario) AS coalesce(scenario.loss IN ('full', 'logged-copy'), false);

-- tokens of one micro-batch on one GPU
CREATE OR REPLACE MACRO step_tokens(scenario) AS
    scenario.sequences::DOUBLE * scenario.context_tokens / scenario.context_parallel;

-- A head of one number stands in place of the model's own, and the embedding is tied to none.
CREATE OR REPLACE MACRO is_scored(scenario) AS coalesce(scenario.loss = 'score', false);
CREATE OR REPLACE MACRO is_tied(model, scenario) AS
    model.is_head_tied AND NOT is_scored(scenario) AND NOT scenario.unties_head;
CREATE OR REPLACE MACRO logit_columns(model, scenario) AS iif(is_scored(scenario), 0, model.logit_columns);
CREATE OR REPLACE MACRO head_matrix_elements(model, scenario) AS logit_columns(model, scenario) * model.hidden_size;

-- columns of the logits; 0 where the model has no output head
CREATE OR REPLACE MACRO logit_width(model, scenario) AS logit_columns(model, scenario) / scenario.tensor_parallel;

-- bytes of an element of the log-softmax, and of all that is kept per logit: the tanh of a cap; where autocast runs the
-- log-softmax in 16 bits and the loss in fp32, both
CREATE OR REPLACE MACRO takes_logits_in_16_bits(model, scenario) AS model.loss_form IN ('compute', 'cast')
    OR model.loss_form = 'given' AND scenario.keeps_unpacked;
CREATE OR REPLACE MACRO loss_bytes(model, scenario) AS
    iif(takes_logits_in_16_bits(model, scenario) AND scenario.precision <> 'amp' AND is_own_loss(scenario),
        scenario.compute_bytes, 4);

CREATE OR REPLACE MACRO kept_per_logit(model, scenario) AS CASE scenario.loss
    WHEN 'fused' THEN 0
    WHEN 'fused-by-free' THEN 0
    WHEN 'fused-at-once' THEN 0
    WHEN 'cut' THEN 0
    WHEN 'tiled' THEN 0
    WHEN 'tiled-reference' THEN 0
    WHEN 'recomputed' THEN 0
    WHEN 'recomputed-fp32' THEN 0
    WHEN 'one-pass' THEN 4 + iif(model.has_logit_cap, scenario.compute_bytes, 0)
    WHEN 'chunked' THEN iif(scenario.loss_chunk_tokens IS NULL, 4, 8)
    ELSE loss_bytes(model, scenario) + iif(scenario.keeps_logits, scenario.compute_bytes, 0)
        + iif(model.loss_form = 'compute' AND scenario.precision = 'amp', 2, 0)
            + iif(model.has_logit_cap, scenario.compute_bytes, 0)
END;

CREATE OR REPLACE MACRO gradients_per_logit(model, scenario) AS
    iif(scenario.loss = 'one-pass', 4, iif(model.loss_form = 'compute' AND scenario.precision = 'amp', 4,
        2 * loss_bytes(model, scenario)));

-- logits that a loop holds beyond the loss
CREATE OR REPLACE MACRO held_logits(model, scenario) AS
    iif(scenario.keeps_logits AND is_own_loss(scenario), scenario.compute_bytes * logit_width(model, scenario)
        * step_tokens(scenario), 0)
    + iif(scenario.loss_chunk_tokens IS NOT NULL AND scenario.loss = 'chunked',
        4 * logit_width(model, scenario) * step_tokens(scenario), 0);

-- the power of two at or above the tokens that a vocabulary's share of the hidden size leaves to a chunk; Unsloth takes
-- the one below, but as many as make a number of logits, and neither too few nor too many
CREATE OR REPLACE MACRO power_of_two_below(number) AS pow(2, floor(log2(greatest(number, 1))));
CREATE OR REPLACE MACRO fused_chunk_tokens(model, scenario) AS CASE
    WHEN scenario.loss = 'cut' THEN least(step_tokens(scenario), scenario.unsloth_whole_tokens)
    WHEN scenario.fused_loss = 'unsloth' THEN least(step_tokens(scenario), scenario.unsloth_chunk_rows_most, greatest(
        power_of_two_below(step_tokens(scenario) * model.hidden_size / logit_width(model, scenario)),
        power_of_two_below(scenario.unsloth_chunk_logits / logit_width(model, scenario)),
        scenario.unsloth_chunk_rows_least))
    ELSE pow(2, ceil(log2(ceil(step_tokens(scenario) / ceil(logit_width(model, scenario) / model.hidden_size)))))
END;

-- Chunks of half of what is free at the first loss: the chunk fits the second step too where the memory that this one
-- takes beyond the first is no more than that half. Beyond it are the adapters' gradients and two states of each (all
-- in fp32), and what longer rows keep: the inputs of layers that are on the card, and four tensors like them beside the
-- loss. So as much room as that, or as a chunk of all tokens, or as the bound, is enough. Where half of what is free
-- may be rounded to all of it, only room for all tokens is.
CREATE OR REPLACE MACRO is_fused(scenario) AS
    coalesce(scenario.loss IN ('fused', 'fused-by-free', 'fused-at-once', 'cut'), false);
CREATE OR REPLACE MACRO chunk_of_all_tokens(model, scenario) AS
    2 * scenario.compute_bytes * logit_width(model, scenario) * step_tokens(scenario);
CREATE OR REPLACE MACRO later_room(model, scenario) AS
    3 * 4 * scenario.trained_elements
    + step_tokens(scenario) * (inputs_on_card(model, scenario, scenario.sums)
        + 4 * model.hidden_size * scenario.residual_bytes);
CREATE OR REPLACE MACRO free_chunk_room(model, scenario) AS CASE scenario.loss
    WHEN 'fused-at-once' THEN chunk_of_all_tokens(model, scenario)
    WHEN 'fused-by-free' THEN least(chunk_of_all_tokens(model, scenario),
        scenario.unsloth_chunk_bytes_most * scenario.compute_bytes / 2,
        iif(scenario.compute_bytes = 2, later_room(model, scenario), NULL))
    ELSE 0
END;

-- the share of a sequence whose loss is taken at a time
CREATE OR REPLACE MACRO loss_chunk_share(scenario) AS
    least(scenario.loss_chunk_tokens / scenario.context_tokens, 1);

-- bytes of a logit in such a chunk, over which its gradient is written
CREATE OR REPLACE MACRO fused_logit_bytes(scenario) AS
    iif(coalesce(scenario.fused_loss = 'unsloth', false), 4, scenario.compute_bytes);

-- what a fused loss holds from the forward pass on: gradients of the hidden states and of a head that is trained, which
-- autocast leaves in what both are in
CREATE OR REPLACE MACRO has_wide_fused_head(scenario) AS scenario.precision = 'amp' AND NOT scenario.is_adapter;
CREATE OR REPLACE MACRO kept_by_fused_loss(model, scenario) AS
    iif(is_fused(scenario) AND logit_width(model, scenario) > 0,
        iif(has_wide_fused_head(scenario), scenario.residual_bytes, scenario.compute_bytes) * model.hidden_size
            * step_tokens(scenario) + iif(scenario.is_adapter, 0, iif(has_wide_fused_head(scenario), 4,
            scenario.compute_bytes) * head_matrix_elements(model, scenario)), 0);

-- The last hidden state once more, of a head that is multiplied by parts.
CREATE OR REPLACE MACRO is_recomputed_head(scenario) AS
    coalesce(scenario.loss IN ('recomputed', 'recomputed-fp32'), false);
CREATE OR REPLACE MACRO is_tiled(scenario) AS
    coalesce(scenario.loss IN ('tiled', 'tiled-reference'), false) OR is_recomputed_head(scenario);
-- autocast casts its columns anew for each tile
CREATE OR REPLACE MACRO copied_head_elements(model, scenario) AS
    iif(is_tiled(scenario), 0, head_matrix_elements(model, scenario));
-- and that of a head that is not trained for each product, which keeps its copy: as many as there are chunks
CREATE OR REPLACE MACRO head_products(scenario) AS CASE
    WHEN scenario.loss <> 'chunked' OR scenario.chunks_logits THEN 1
    WHEN scenario.loss_chunk_tokens IS NOT NULL THEN ceil(scenario.context_tokens / scenario.loss_chunk_tokens)
    ELSE scenario.loss_chunks
END;
CREATE OR REPLACE MACRO kept_by_tiled_loss(model, scenario) AS
    iif(is_tiled(scenario), scenario.residual_bytes * model.hidden_size * step_tokens(scenario), 0);

-- The reference's pass: autocast's copies of its weights but the head's, and a tile.
CREATE OR REPLACE MACRO tile_bytes(model, scenario) AS
    scenario.compute_bytes * least(step_tokens(scenario), scenario.trl_tile_tokens) * scenario.trl_tile_columns
    + iif(scenario.residual_bytes = 4, scenario.compute_bytes * model.hidden_size
        * least(step_tokens(scenario), scenario.trl_tile_tokens), 0)
    + iif(scenario.residual_bytes = 4, scenario.compute_bytes * model.hidden_size
        * least(logit_width(model, scenario), scenario.trl_tile_columns), 0);
CREATE OR REPLACE MACRO reference_pass_work(model, scenario) AS
    iif(scenario.loss = 'tiled-reference' AND NOT scenario.is_adapter, 2 * cast_elements(model)
        + tile_bytes(model, scenario) + 2 * scenario.residual_bytes * model.hidden_size * step_tokens(scenario), 0);

-- A part that is a checkpoint: its logits in 16 bits and in fp32, their log-softmax and its exponent, which the entropy
-- keeps, and the gradients of both; the hidden states' gradient as it is summed, and that of a head that is trained. A
-- frozen head in fp32: that copy beside autocast's of it, before there are logits; then autocast's beside them.
CREATE OR REPLACE MACRO part_logits(model, scenario) AS
    least(step_tokens(scenario), scenario.trl_chunk_tokens) * logit_width(model, scenario);
CREATE OR REPLACE MACRO recomputed_loss_work(model, scenario) AS
    2 * scenario.residual_bytes * model.hidden_size * step_tokens(scenario) + greatest(
        part_logits(model, scenario) * (16 + scenario.compute_bytes)
        + head_matrix_elements(model, scenario) * CASE
            WHEN scenario.is_adapter THEN iif(scenario.loss = 'recomputed-fp32', scenario.compute_bytes, 0)
            -- (in 16 bits throughout: the sum alone while there are logits, and then that, the part's and their sum)
            WHEN scenario.precision = 'mixed' THEN scenario.compute_bytes
            ELSE 6
        END,
        CASE
            WHEN scenario.loss = 'recomputed-fp32' THEN 4 + scenario.compute_bytes
            WHEN scenario.precision = 'mixed' AND NOT scenario.is_adapter THEN 3 * scenario.compute_bytes
            ELSE 0
        END * head_matrix_elements(model, scenario));

-- In the forward pass, where nothing is kept of it: logits, log-softmax, exponent and their product in fp32.
CREATE OR REPLACE MACRO recomputed_part_bytes(model, scenario) AS 4 * 4 * part_logits(model, scenario);

-- (handed on in 16 bits where the weights are: beside the sum in fp32)
CREATE OR REPLACE MACRO handed_head_bytes(scenario) AS iif(scenario.precision = 'mixed' AND scenario.compute_bytes = 2,
    scenario.compute_bytes, 0);

-- Its backward pass: a tile of logits, 16-bit copies of the tile's hidden states and columns where these are fp32, the
-- hidden states' gradient in fp32 and as it is handed on, and the gradient of a head that is trained.
CREATE OR REPLACE MACRO tiled_loss_work(model, scenario) AS greatest(reference_pass_work(model, scenario),
    tile_bytes(model, scenario)
    + (4 + iif(scenario.residual_bytes = 2, 2, 0)) * model.hidden_size * step_tokens(scenario)
    + iif(scenario.is_adapter, 0, (4 + handed_head_bytes(scenario)) * head_matrix_elements(model, scenario)));

-- A layer that is recomputed while no logits are left: the product of a gated block beside the gradients of both its
-- factors where nothing behind it keeps it, and three 16-bit copies of the hidden state where that is fp32 (four of a
-- packed base, whose products are handed on in fp32). Adapters of all layers over a base in fp32 make the same of it
-- beside whatever loss, and dropout under autocast the input of the way down's adapter once more.
CREATE OR REPLACE MACRO has_layer_copies(model, scenario) AS is_tiled(scenario) OR is_cast_base(scenario)
    AND adapts_all_linear(scenario) AND scenario.checkpointing = 'full' AND model.expert_elements = 0;
CREATE OR REPLACE MACRO tiled_layer_work(model, scenario, sums) AS
    iif(scenario.is_adapter AND NOT has_adapter_copies(model, scenario), step_tokens(scenario)
        * (iif(has_layer_copies(model, scenario), iif(is_quantised_base(scenario), 4, scenario.compute_bytes)
            * sums.moments.plain_down / model.hidden_size
            + CASE
                WHEN is_quantised_base(scenario) THEN 8 * model.hidden_size
                WHEN scenario.residual_bytes = 4 THEN 6 * model.hidden_size
                ELSE 0
            END, 0)
        + iif(scenario.has_adapter_dropout AND scenario.precision = 'amp' AND scenario.checkpointing = 'full'
            AND adapts_all_linear(scenario), adapter_bytes_each(scenario) * sums.moments.plain_down
                / model.hidden_size, 0)), 0);

CREATE OR REPLACE MACRO logged_bytes(model, scenario) AS 4 * logit_width(model, scenario) * CASE scenario.loss
    WHEN 'logged' THEN step_tokens(scenario)
    WHEN 'logged-blocks' THEN 3 * least(step_tokens(scenario), scenario.trl_block_tokens)
    ELSE 0
END;

-- Beside what is kept. full: the gradients of the logits in the loss's precision; or, after the loss, the logits' own
-- gradient beside that of the head. chunked: the same of one chunk, the head's gradient three times (the sum before,
-- the second chunk's, the sum after). fused: the logits of a chunk, the chunk's gradient of the head and its fp32 copy.
CREATE OR REPLACE MACRO loss_work(model, scenario, head_gradient) AS CASE
    WHEN logit_width(model, scenario) = 0 THEN 0
    WHEN is_recomputed_head(scenario) THEN recomputed_loss_work(model, scenario)
    WHEN is_tiled(scenario) THEN tiled_loss_work(model, scenario)
    WHEN is_fused(scenario) THEN
        greatest(fused_chunk_tokens(model, scenario) * logit_width(model, scenario) * fused_logit_bytes(scenario),
            free_chunk_room(model, scenario))
        + iif(scenario.is_adapter, 0, iif(scenario.compute_bytes = 4, 4, 6) * head_matrix_elements(model, scenario))
    -- (where the logits are one tensor, the fp32 gradients of all chunks beside what they are joined to; else the
    -- log-softmax's gradients of a chunk; or, before the loss, fp32 logits of the step before beside both of this,
    -- and what that step's packed layers hold on to. A head that is packed is unpacked for each chunk: beside the
    -- gradients of all logits, when their log-softmax is gone, or while the last chunk's logits are made.)
    WHEN scenario.loss = 'chunked' AND scenario.loss_chunk_tokens IS NOT NULL THEN greatest(
        logit_width(model, scenario) * step_tokens(scenario) * 8 * loss_chunk_share(scenario),
        iif(scenario.is_adapter, 0, 4 * logit_width(model, scenario) * step_tokens(scenario)),
        logit_width(model, scenario) * step_tokens(scenario) * scenario.compute_bytes
            + step_tokens(scenario) * packed_inputs(model, scenario),
        unpacked_head_bytes(model, scenario) - logit_width(model, scenario) * step_tokens(scenario)
            * scenario.compute_bytes,
        unpacked_head_bytes(model, scenario) - logit_width(model, scenario) * step_tokens(scenario)
            * scenario.compute_bytes * (1 + loss_chunk_share(scenario))
            + step_tokens(scenario) * packed_inputs(model, scenario))
    WHEN scenario.loss = 'chunked' THEN logit_width(model, scenario) * step_tokens(scenario)
        * greatest(gradients_per_logit(model, scenario) / scenario.loss_chunks,
        -- (and before: the logits of all chunks beside the fp32 copy of the last)
        iif(scenario.chunks_logits, scenario.compute_bytes + 4 / scenario.loss_chunks, 0),
        3 * head_gradient / (logit_width(model, scenario) * step_tokens(scenario)) - 2
            * kept_per_logit(model, scenario) / scenario.loss_chunks)
    ELSE greatest(
        gradients_per_logit(model, scenario) * logit_width(model, scenario) * step_tokens(scenario),
        (scenario.compute_bytes - loss_bytes(model, scenario)) * logit_width(model, scenario) * step_tokens(scenario)
            + head_gradient) + logged_bytes(model, scenario)
END;
