-- Objectives: what DPO, ORPO, KTO, GRPO and reward models make of a training that footprint_of takes.
--
--   asked_of_objective(said, rule)  the scenario that is worked out
--       rows         = pairs × rows_each (chosen and rejected): `sequences` counts pairs, of KTO answers
--   objective_bytes(rule, model, footprint)  what stands beside its footprint
--       reference    = the weights again where they are trained and it has one; adapters are switched off for it
--       logits       = rows × context × vocabulary × (bytes_per_logit − what the model's own loss has at its peak);
--                      a reward model has none (loss = score of the objective)
--   preference_reason(…)            why nobody counted it, else null
--
-- It is an upper bound where the loss is not the peak: whatever is, stands before the logits that it adds.
-- Units: bytes per GPU. Source: objective, each row with its own; held to TRL's own loss on fake tensors
-- (tests/oracle/preference.csv).
-- Not covered: sharded references (ZeRO, FSDP), a reference worked out before the training, pictures, Liger's loss.

CREATE OR REPLACE MACRO own_bytes_per_logit(model) AS
    kept_per_logit(model, {'loss': 'full', 'precision': 'amp', 'compute_bytes': 2, 'keeps_logits': false,
        'keeps_unpacked': false, 'loss_chunk_tokens': NULL::INTEGER})
    + gradients_per_logit(model, {'loss': 'full', 'precision': 'amp', 'compute_bytes': 2, 'keeps_unpacked': false});

-- What a row's program has by default is that of its oldest version, for all that it holds for.
CREATE OR REPLACE MACRO is_within(version, rule) AS coalesce(version_number(version::VARCHAR)
    BETWEEN version_number(rule.program_version) AND version_after(rule.max_version) - 1, false);
CREATE OR REPLACE MACRO is_rows_program(program, rule) AS
    coalesce(lower(program::VARCHAR) = rule.program_id, false);
CREATE OR REPLACE MACRO takes_rows_version(said, rule) AS is_rows_program(coalesce(said.program, rule.program_id), rule)
    AND (said.program_version IS NULL OR is_within(said.program_version, rule));

CREATE OR REPLACE MACRO preference_reason(rule, objective_asked, known, footprint) AS CASE
    WHEN rule.objective_id IS NULL
        THEN 'no such objective: ' || coalesce(objective_asked, 'none') || ' (' || known || ')'
    WHEN rule.unknown_reason IS NOT NULL THEN rule.unknown_reason
    WHEN footprint.phase_id = 'inference'
        THEN rule.name || ' is a training: phase_id := lora, qlora, full-finetune or pretrain'
    WHEN footprint.unknown_reason IS NOT NULL THEN footprint.unknown_reason
    WHEN NOT (is_rows_program(footprint.program, rule) AND is_within(footprint.program_version, rule))
        THEN 'how ' || footprint.program || coalesce(' ' || footprint.program_version, '') || ' does ' || rule.name
            || ' was not counted; known: program := ' || rule.program_id || ', program_version := '
            || version_range(rule.program_version, rule.max_version)
    WHEN footprint.precision <> 'amp' THEN rule.name || ' is counted as TRL runs it, under autocast: precision := amp'
    WHEN footprint.loss <> rule.loss THEN 'the loss of ' || rule.name || ' is its own: without loss'
    WHEN footprint.gpu_count > 1 AND footprint.sharding <> 'ddp'
        THEN 'how the reference of ' || rule.name || ' is shared among GPUs was not counted: sharding := ddp'
END;

-- the scenario that is worked out: rows for pairs, and the row's defaults (what is no number is refused as it was asked)
CREATE OR REPLACE MACRO asked_of_objective(said, rule) AS {
    'sequences': iif(said.sequences IS NOT NULL AND asked_number(said.sequences) IS NULL, said.sequences::VARCHAR,
        (coalesce(rule.rows_each, 1) * coalesce(asked_number(said.sequences), rule.sequences))::VARCHAR),
    'loss': coalesce(said.loss, rule.loss),
    'program': iif(said.phase_id = 'inference', said.program, coalesce(said.program, rule.program_id)),
    'program_version': iif(said.phase_id <> 'inference' AND takes_rows_version(said, rule), rule.program_version,
        said.program_version),
    'lora_dropout': iif(said.phase_id IN ('lora', 'qlora'), coalesce(said.lora_dropout,
        iif(rule.keeps_dropout, NULL, 0)), said.lora_dropout)
};
-- what stands beside the footprint of that scenario
CREATE OR REPLACE MACRO objective_bytes(rule, model, footprint) AS {
    'reference_bytes': iif(footprint.phase_id IN ('lora', 'qlora') OR NOT rule.has_reference, 0,
        footprint.weights_bytes),
    'logits_bytes': ceil(footprint.sequences * footprint.context_tokens::DOUBLE * model.vocab_size * greatest(0,
        rule.bytes_per_logit + iif(model.has_logit_cap, 2, 0) - own_bytes_per_logit(model)))
};
