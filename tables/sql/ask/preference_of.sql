-- Training on preferences: DPO, ORPO, KTO, GRPO and reward models as TRL does them, over any training that footprint_of
-- takes (objective.sql says what they add to it).
--
-- preference_of('dpo', 'Qwen/Qwen3-8B', phase_id := 'lora', ...): what the question does not say is the default of the
-- row's program (TRL: fp32 under autocast, 1024 tokens, 8 pairs, checkpoints); dropout is off where TRL has it off.
--
-- Units: bytes per GPU. Source: objective, each row with its own; footprints. Not covered: as in objective.sql.

CREATE OR REPLACE MACRO preference_of(objective_id, {parameters}) AS TABLE
WITH wished AS (SELECT lower(objective_id::VARCHAR) AS objective_asked),
preference_said AS (SELECT {arguments}),
named AS (
    SELECT {'ids': string_agg(DISTINCT rule.objective_id, ', ' ORDER BY rule.objective_id),
        'versions': string_agg(iif(rule.objective_id = wished.objective_asked, counted_range(rule), NULL), ', '
            ORDER BY version_number(rule.max_version))} AS known
    FROM objective AS rule CROSS JOIN wished
),
chosen AS (
    SELECT arg_max(rule, objective_rank(said, rule)) AS rule FROM preference_said AS said CROSS JOIN wished
    JOIN objective AS rule ON rule.objective_id = wished.objective_asked
),
preference_asked AS (
    SELECT said.* REPLACE (asked.sequences AS sequences, asked.loss AS loss, asked.program AS program,
        asked.program_version AS program_version, asked.lora_dropout AS lora_dropout)
    FROM (
        SELECT said, asked_of_objective(said, chosen.rule) AS asked FROM preference_said AS said CROSS JOIN chosen
    )
),
worked AS (
    SELECT footprint.*, wished.objective_asked, rule.rows_each, objective_holds_for(rule, model) AS rule_holds_for,
        preference_reason(rule, wished.objective_asked, named.known, said, model, footprint) AS reason,
        objective_bytes(rule, model, footprint) AS beside,
        version_told(said, rule, footprint) AS version_told
    FROM wished CROSS JOIN named CROSS JOIN chosen CROSS JOIN (SELECT said AS said FROM preference_said AS said)
    LEFT JOIN (SELECT footprint AS footprint FROM footprints_in('preference_asked', phase_id) AS footprint) ON true
    LEFT JOIN shape_row AS own ON own.model_id = footprint.model_id
),
summed AS (SELECT *, beside.reference_bytes::BIGINT AS reference_bytes, beside.logits_bytes::BIGINT AS logits_bytes,
    beside.unused_bytes::BIGINT AS unused_bytes FROM worked)
SELECT summed.* EXCLUDE (objective_asked, rows_each, rule_holds_for, reason, logits_bytes, reference_bytes,
        unused_bytes, beside, version_told)
    REPLACE (
        summed.sequences // coalesce(summed.rows_each, 1) AS sequences, version_told AS program_version,
        iif(reason IS NULL, summed.weights_bytes + reference_bytes, NULL)::BIGINT AS weights_bytes,
        iif(reason IS NULL, summed.activations_bytes + logits_bytes, NULL)::BIGINT AS activations_bytes,
        iif(reason IS NULL, summed.gradients_bytes, NULL)::BIGINT AS gradients_bytes,
        iif(reason IS NULL, summed.optimizer_bytes, NULL)::BIGINT AS optimizer_bytes,
        iif(reason IS NULL, summed.adapters_bytes, NULL)::BIGINT AS adapters_bytes,
        iif(reason IS NULL, summed.overhead_bytes + unused_bytes, NULL)::BIGINT AS overhead_bytes,
        iif(reason IS NULL, summed.total_bytes + reference_bytes + logits_bytes + unused_bytes, NULL)::BIGINT
            AS total_bytes,
        iif(reason IS NULL, summed.error_band, NULL)::DOUBLE AS error_band,
        iif(reason IS NULL, rule_holds_for, NULL)::VARCHAR AS holds_for, reason AS unknown_reason),
    summed.objective_asked AS objective_id,
    iif(reason IS NULL, reference_bytes, NULL)::BIGINT AS reference_bytes
FROM summed;
