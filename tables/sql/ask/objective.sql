-- Objectives: what DPO, ORPO, KTO, GRPO and reward models make of a training that footprint_of takes.
--
--   objective_rank(said, rule)  of the rows of an objective, each for releases of its program, the one to take is the
--       highest: that of the version asked for, else the newest that has numbers
--   asked_of_objective(said, rule)  the scenario that is worked out
--       rows         = pairs × rows_each (chosen and rejected): `sequences` counts pairs, of KTO answers
--   objective_bytes(rule, model, footprint)  what stands beside its footprint
--       reference    = the weights again where they are trained and it has one, in parts where these are, with what
--                      stays gathered of it; adapters are switched off for it
--       logits       = rows × context × vocabulary × (bytes_per_logit − what the model's own loss has at its peak)
--                      + 4 × beside_tokens × vocabulary (what is worked out of so many rows at a time);
--                      a reward model has none (loss = score of the objective), nor has one of a head in tiles; where
--                      a reference of its own reads under autocast, its copies of the weights, if that is more; where
--                      a model writes its answers, what it holds meanwhile beyond the step, if that is more
--       unused       = rows × context × vocabulary × (unused_bytes_per_logit − what the footprint's own loss leaves),
--                      where that is less: blocks of logits that the allocator holds and that are free at the peak; and
--                      generation_unused_share × cache, where a model writes its answers, which each of its tokens adds
--                      generation_bytes_per_token to that lie outside the allocator
--   preference_reason(…)            why nobody counted it, else null
--
-- It is an upper bound where the loss is not the peak: whatever is, stands before the logits that it adds.
-- Units: bytes per GPU. Source: objective, each row with its own; held to TRL's own loss on fake tensors
-- (tests/oracle/preference.csv) and to its trainers on a card (tests/oracle/card.csv).
-- Not covered: load-balancing losses of Transformers before 5.16, a reference worked out before the training or in the
-- host's memory, pictures, Liger's loss. Of sharded references the sources are TRL's own prepare_deepspeed and
-- prepare_fsdp (trl-1.16.0): the former makes ZeRO-1 and ZeRO-2 none for it.

CREATE OR REPLACE MACRO own_bytes_per_logit(model, loss, precision) AS
    kept_per_logit(model, {'loss': loss, 'precision': precision, 'compute_bytes': 2, 'keeps_logits': false,
        'keeps_unpacked': false, 'loss_chunk_tokens': NULL::INTEGER})
    + gradients_per_logit(model, {'loss': loss, 'precision': precision, 'compute_bytes': 2, 'keeps_unpacked': false});

CREATE OR REPLACE MACRO is_within(version, rule) AS coalesce(version_number(version::VARCHAR)
    BETWEEN version_number(rule.program_version) AND version_after(rule.max_version) - 1, false);
CREATE OR REPLACE MACRO is_rows_program(program, rule) AS
    coalesce(lower(program::VARCHAR) = rule.program_id, false);
CREATE OR REPLACE MACRO takes_rows_version(said, rule) AS is_rows_program(coalesce(said.program, rule.program_id), rule)
    AND (said.program_version IS NULL OR is_within(said.program_version, rule));

CREATE OR REPLACE MACRO is_shared_out_asked(said) AS
    coalesce(starts_with(lower(said.sharding::VARCHAR), 'zero'), false)
    OR coalesce(lower(said.engine_id::VARCHAR) = 'deepspeed', false)
    OR said.sharding IS NULL AND coalesce(asked_number(said.gpu_count) > 1, false);

CREATE OR REPLACE MACRO is_trls(rule) AS rule.program_id = 'trl';

CREATE OR REPLACE MACRO objective_rank(said, rule) AS version_number(rule.max_version)
    + CASE
        WHEN is_rows_program(coalesce(said.program, rule.program_id), rule) AND is_within(said.program_version, rule)
            THEN 3
        -- (of a program of which nobody counted it its own reason)
        WHEN is_rows_program(said.program, rule) AND said.program_version IS NULL AND NOT is_trls(rule) THEN 2
        -- (a loss of TRL's own is not counted where weights are shared out: of an earlier release it is)
        WHEN rule.unknown_reason IS NULL AND NOT (is_shared_out_asked(said) AND rule.loss NOT IN ('full', 'score'))
            THEN 1
        ELSE 0
    END * version_number('1000000');

-- of an objective: what its rows with numbers hold for
CREATE OR REPLACE MACRO counted_range(rule) AS
    iif(rule.unknown_reason IS NULL, version_range(rule.program_version, rule.max_version), NULL);

CREATE OR REPLACE MACRO uncounted_words(said, rule, known) AS
    'how ' || lower(coalesce(said.program, rule.program_id)::VARCHAR)
        || coalesce(' ' || said.program_version::VARCHAR, '') || ' does ' || rule.name
        || ' was not counted; known: program := ' || rule.program_id
        || ', program_version := ' || coalesce(known.versions, 'none');

-- Shared as TRL does it: the reference in parts under ZeRO-3 and FSDP2, whole on each GPU under ZeRO-1 and ZeRO-2.
CREATE OR REPLACE MACRO is_shared_objective(footprint) AS
    footprint.sharding IN ('zero1', 'zero2', 'zero3') OR footprint.engine_id = 'deepspeed';
CREATE OR REPLACE MACRO has_own_reference(rule, footprint) AS
    rule.has_reference AND footprint.phase_id NOT IN ('lora', 'qlora');
CREATE OR REPLACE MACRO shared_objective_reason(rule, footprint) AS CASE
    WHEN footprint.gpu_count > 1 AND footprint.sharding NOT IN ('ddp', 'zero1', 'zero2', 'zero3')
        THEN 'how ' || rule.name || ' is shared among GPUs is known of sharding := ddp, zero1, zero2 and zero3'
    WHEN rule.generates AND footprint.sharding = 'zero3'
        THEN rule.name || ' gathers all weights to write answers (ds3_gather_for_generation), which is not counted: '
            || 'sharding := ddp or zero2'
    WHEN has_own_reference(rule, footprint) AND footprint.offload = 'all'
        THEN 'what of the reference of ' || rule.name || ' waits in the host''s memory was not counted: offload := none'
END;

-- What of a reference stays gathered when it has read: of FSDP2 the head, which is resharded in no backward pass, of
-- ZeRO-3 what it leaves alive.
CREATE OR REPLACE MACRO reference_gathered_bytes(rule, model, footprint) AS CASE
    WHEN NOT has_own_reference(rule, footprint) OR footprint.sharding <> 'zero3' THEN 0
    WHEN footprint.engine_id = 'deepspeed' THEN 2 * least(model.parameter_count, rule.reference_live_elements)
    ELSE 2 * iif(model.is_head_tied, model.input_elements, model.output_elements)
END;

-- known: the objectives there are (ids), and the releases that the asked one was counted for (versions)
CREATE OR REPLACE MACRO preference_reason(rule, objective_asked, known, said, model, footprint) AS CASE
    WHEN rule.objective_id IS NULL
        THEN 'no such objective: ' || coalesce(objective_asked, 'none') || ' (' || known.ids || ')'
    WHEN footprint.phase_id = 'inference'
        THEN rule.name || ' is a training: phase_id := lora, qlora, full-finetune or pretrain'
    WHEN rule.unknown_reason IS NOT NULL AND takes_rows_version(said, rule)
        THEN rule.unknown_reason || '; known: ' || iif(is_trls(rule), '', 'program := trl, ') || 'program_version := '
            || coalesce(known.versions, 'none')
    -- (another program that is known, before what its own defaults lack; one that is not known has a reason of its own)
    WHEN NOT takes_rows_version(said, rule) AND (is_rows_program(coalesce(said.program, rule.program_id), rule)
        OR NOT starts_with(coalesce(footprint.unknown_reason, ''), 'no such program'))
        THEN uncounted_words(said, rule, known)
    WHEN footprint.unknown_reason IS NOT NULL THEN footprint.unknown_reason
    WHEN NOT takes_rows_version(said, rule) THEN uncounted_words(said, rule, known)
    WHEN footprint.precision <> 'amp' AND NOT (footprint.precision = 'mixed' AND is_shared_objective(footprint))
        THEN rule.name || ' is counted as TRL runs it, under autocast: precision := amp'
    WHEN footprint.loss <> rule.loss THEN 'the loss of ' || rule.name || ' is its own: without loss'
    ELSE shared_objective_reason(rule, footprint)
END;

-- the scenario that is worked out: rows for pairs, and the row's defaults (what is no number is refused as
-- it was asked)
CREATE OR REPLACE MACRO asked_of_objective(said, rule) AS {
    'sequences': iif(said.sequences IS NOT NULL AND asked_number(said.sequences) IS NULL, said.sequences::VARCHAR,
        (coalesce(rule.rows_each, 1) * coalesce(asked_number(said.sequences), rule.sequences))::VARCHAR),
    'loss': coalesce(said.loss, rule.loss),
    'program': iif(said.phase_id = 'inference', said.program, coalesce(said.program, rule.program_id)),
    'program_version': iif(said.phase_id <> 'inference' AND takes_rows_version(said, rule), rule.defaults_version,
        said.program_version),
    'lora_dropout': iif(said.phase_id IN ('lora', 'qlora'), coalesce(said.lora_dropout,
        iif(rule.keeps_dropout, NULL, 0)), said.lora_dropout)
};
-- autocast's copies of the weights of a reference while it reads, when there is a 16-bit tensor of the logits less than
-- at the peak of the loss (of a loss in tiles they are in its moment)
CREATE OR REPLACE MACRO reference_copies_bytes(rule, model, footprint) AS
    iif(rule.has_reference AND rule.loss IN ('full', 'one-pass') AND footprint.phase_id NOT IN ('lora', 'qlora')
        AND footprint.peak_moment = 'loss', 2 * cast_elements(model) - 2 * footprint.sequences
        * footprint.context_tokens::DOUBLE * model.vocab_size, 0);
-- What the model that writes the answers holds meanwhile: its cache of all of them. One layer's is there twice while it
-- grows; beyond a step's activations it counts. Since each token's is larger than what the one before let go, blocks of
-- it lie unused.
CREATE OR REPLACE MACRO generation_cache_bytes(rule, model, footprint) AS iif(rule.generates,
    kv_cache_bytes(model, {'engine_id': 'transformers', 'kv_dtype_id': NULL::VARCHAR,
        'rank_sequences': footprint.sequences, 'context_tokens': footprint.context_tokens,
        'kv_element_bits': 8 * iif(footprint.dtype_id = 'fp32', 4, 2), 'gpu_count': 1, 'stage_share': 1.0,
        'tensor_parallel': 1, 'pipeline_parallel': 1, 'decode_context_parallel': 1, 'cross_tokens': 0,
        'reads_prompt': 'whole'}), 0);
CREATE OR REPLACE MACRO generation_beyond_bytes(rule, model, footprint) AS greatest(0,
    generation_cache_bytes(rule, model, footprint) * (1 + 1 / greatest(model.layer_count, 1))
        - footprint.activations_bytes);
CREATE OR REPLACE MACRO generation_unused_bytes(rule, model, footprint) AS
    ceil(coalesce(rule.generation_unused_share, 0) * generation_cache_bytes(rule, model, footprint))
    + coalesce(rule.generation_bytes_per_token, 0) * footprint.context_tokens;
-- Blocks of the loss that lie unused beside the live ones, beyond those that the footprint has.
CREATE OR REPLACE MACRO loss_unused_bytes(rule, model, footprint) AS
    ceil(footprint.sequences * footprint.context_tokens::DOUBLE * model.vocab_size
        * greatest(0, rule.unused_bytes_per_logit - freed_bytes_per_logit(rule.loss, 2)));
-- what stands beside the footprint of that scenario
CREATE OR REPLACE MACRO objective_bytes(rule, model, footprint) AS {
    'reference_bytes': iif(has_own_reference(rule, footprint), footprint.weights_bytes
        + reference_gathered_bytes(rule, model, footprint), 0),
    'unused_bytes': loss_unused_bytes(rule, model, footprint) + generation_unused_bytes(rule, model, footprint),
    'logits_bytes': ceil(greatest(
        footprint.sequences * footprint.context_tokens::DOUBLE * model.vocab_size * greatest(0,
            rule.bytes_per_logit + iif(model.has_logit_cap, 2, 0)
            - own_bytes_per_logit(model, rule.loss, footprint.precision))
            + 4 * rule.beside_tokens * model.vocab_size,
        reference_copies_bytes(rule, model, footprint), generation_beyond_bytes(rule, model, footprint))
        + balance_bytes(model, footprint.sequences * footprint.context_tokens::DOUBLE, rule.balance_bytes_per_expert))
};
-- the release that is answered for; whose line of the table program the footprint is, the row says
CREATE OR REPLACE MACRO version_told(said, rule, footprint) AS iif(takes_rows_version(said, rule),
    coalesce(said.program_version::VARCHAR, rule.max_version), footprint.program_version);
-- (with another generator the words of that take the place of generation_words)
CREATE OR REPLACE MACRO generation_words(rule) AS iif(rule.generates, ', generating with Transformers', '');
CREATE OR REPLACE MACRO objective_holds_for(rule, model) AS rule.holds_for
    || balance_words(model, rule.balance_bytes_per_expert) || generation_words(rule);
