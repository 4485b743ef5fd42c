-- Training on preferences: DPO, ORPO, KTO, GRPO and reward models as TRL does them, over any training that footprint_of
-- takes.
--
--   rows         = pairs × rows_each (chosen and rejected): `sequences` counts pairs, of KTO answers
--   reference    = the weights again where they are trained and it has one; adapters are switched off for it
--   activations  = those of the same rows with the model's own loss
--                  + rows × context × vocabulary × (bytes_per_logit − what the model's own loss has at its peak)
--                  a reward model has no logits (loss = score of the objective)
--
-- preference_of('dpo', 'Qwen/Qwen3-8B', phase_id := 'lora', ...): what the question does not say is the default of the
-- row's program (TRL 1.0: fp32 under autocast, 1024 tokens, 8 pairs, checkpoints); dropout is off where TRL has it off.
--
-- It is an upper bound where the loss is not the peak: whatever is, stands before the logits that it adds.
-- Units: bytes per GPU. Source: objective, each row with its own; held to TRL's own loss on fake tensors
-- (tests/oracle/preference.csv).
-- Not covered: sharded references (ZeRO, FSDP), a reference worked out before the training, pictures, Liger's loss.

CREATE OR REPLACE MACRO own_bytes_per_logit(model) AS
    kept_per_logit(model, {'loss': 'full', 'precision': 'amp', 'compute_bytes': 2, 'keeps_logits': false,
        'keeps_unpacked': false, 'loss_chunk_tokens': NULL::INTEGER})
    + gradients_per_logit(model, {'loss': 'full', 'precision': 'amp', 'compute_bytes': 2, 'keeps_unpacked': false});

CREATE OR REPLACE MACRO preference_reason(rule, objective_asked, known, footprint) AS CASE
    WHEN rule.objective_id IS NULL
        THEN 'no such objective: ' || coalesce(objective_asked, 'none') || ' (' || known || ')'
    WHEN rule.unknown_reason IS NOT NULL THEN rule.unknown_reason
    WHEN footprint.phase_id = 'inference'
        THEN rule.name || ' is a training: phase_id := lora, qlora, full-finetune or pretrain'
    WHEN footprint.unknown_reason IS NOT NULL THEN footprint.unknown_reason
    WHEN footprint.precision <> 'amp' THEN rule.name || ' is counted as TRL runs it, under autocast: precision := amp'
    WHEN footprint.loss <> rule.loss THEN 'the loss of ' || rule.name || ' is its own: without loss'
    WHEN footprint.gpu_count > 1 AND footprint.sharding <> 'ddp'
        THEN 'how the reference of ' || rule.name || ' is shared among GPUs was not counted: sharding := ddp'
END;

-- What a row's program has by default is that of its oldest version, for all that it holds for.
CREATE OR REPLACE MACRO is_within(version, rule) AS coalesce(version_number(version::VARCHAR)
    BETWEEN version_number(rule.program_version) AND version_after(rule.max_version) - 1, false);
CREATE OR REPLACE MACRO takes_rows_version(said, rule) AS
    lower(coalesce(said.program, rule.program_id)::VARCHAR) = rule.program_id AND (is_within(said.program_version, rule)
        OR said.program IS NULL AND said.program_version IS NULL);

CREATE OR REPLACE MACRO preference_of(objective_id, {parameters}) AS TABLE
WITH wished AS (SELECT lower(objective_id::VARCHAR) AS objective_asked),
preference_said AS (SELECT {arguments}),
preference_asked AS (
    SELECT said.* REPLACE (
        -- (what is no number is refused as it was asked)
        iif(said.sequences IS NOT NULL AND asked_number(said.sequences) IS NULL, said.sequences::VARCHAR,
            (coalesce(rule.rows_each, 1) * coalesce(asked_number(said.sequences), rule.sequences))::VARCHAR)
                AS sequences,
        coalesce(said.loss, rule.loss) AS loss,
        iif(said.phase_id = 'inference', said.program, coalesce(said.program, rule.program_id)) AS program,
        iif(said.phase_id <> 'inference' AND takes_rows_version(said, rule), rule.program_version,
            said.program_version) AS program_version,
        iif(said.phase_id IN ('lora', 'qlora'), coalesce(said.lora_dropout,
            iif(rule.keeps_dropout, NULL, 0)), said.lora_dropout) AS lora_dropout)
    FROM preference_said AS said CROSS JOIN wished
    LEFT JOIN objective AS rule ON rule.objective_id = wished.objective_asked
),
named AS (SELECT string_agg(rule.objective_id, ', ' ORDER BY rule.objective_id) AS known FROM objective AS rule),
worked AS (
    SELECT footprint.*, wished.objective_asked, rule.rows_each, rule.generates, rule.holds_for AS rule_holds_for,
        preference_reason(rule, wished.objective_asked, named.known, footprint) AS reason,
        iif(footprint.phase_id IN ('lora', 'qlora') OR NOT rule.has_reference, 0,
            footprint.weights_bytes) AS reference_bytes,
        ceil(footprint.sequences * footprint.context_tokens::DOUBLE * model.vocab_size * greatest(0,
            rule.bytes_per_logit + iif(model.has_logit_cap, 2, 0) - own_bytes_per_logit(model)))::BIGINT AS logits_bytes
    FROM wished CROSS JOIN named
    LEFT JOIN objective AS rule ON rule.objective_id = wished.objective_asked
    LEFT JOIN footprints_in('preference_asked', phase_id) AS footprint ON true
    LEFT JOIN shape AS model ON model.model_id = footprint.model_id
)
SELECT worked.* EXCLUDE (objective_asked, rows_each, generates, rule_holds_for, reason, logits_bytes, reference_bytes)
    REPLACE (
        worked.sequences // coalesce(worked.rows_each, 1) AS sequences,
        iif(reason IS NULL, worked.weights_bytes + reference_bytes, NULL)::BIGINT AS weights_bytes,
        iif(reason IS NULL, worked.activations_bytes + logits_bytes, NULL)::BIGINT AS activations_bytes,
        iif(reason IS NULL, worked.gradients_bytes, NULL)::BIGINT AS gradients_bytes,
        iif(reason IS NULL, worked.optimizer_bytes, NULL)::BIGINT AS optimizer_bytes,
        iif(reason IS NULL, worked.adapters_bytes, NULL)::BIGINT AS adapters_bytes,
        iif(reason IS NULL, worked.overhead_bytes, NULL)::BIGINT AS overhead_bytes,
        iif(reason IS NULL, worked.total_bytes + reference_bytes + logits_bytes, NULL)::BIGINT AS total_bytes,
        iif(reason IS NULL, worked.error_band, NULL)::DOUBLE AS error_band,
        iif(reason IS NULL, rule_holds_for || iif(generates, ', generating with Transformers', ''), NULL)::VARCHAR
            AS holds_for, reason AS unknown_reason),
    worked.objective_asked AS objective_id,
    iif(reason IS NULL, reference_bytes, NULL)::BIGINT AS reference_bytes
FROM worked;
