-- Techniques of training compared on one model and card: what each saves or costs, in bytes and in seconds.
--
--   techniques_for('h100-sxm', 'Qwen/Qwen3-8B')   one row per technique of technique.csv, the plain one first
--     saved_bytes       what a card holds less than with the plain one; less than 0 where it holds more
--     operations_ratio  operations of a token ÷ those of the plain one: recomputing adds a third of those of the
--         layers, frozen weights save a third. Eight cards share them
--     token_seconds_least, token_seconds_likely   a token on the cards of the row, its part of the update included:
--         operations ÷ (cards × rate × share) + update ÷ (tokens of a step × cards that have steps of their own)
--     update_seconds    moving states, gradients and weights of an update once through the card's memory:
--         (2 × optimizer_bytes + gradients_bytes + trained weights) ÷ bandwidth; with offload gradients and weights
--         go over the bus instead: (gradients + weights) ÷ host_link
--
-- share is that of training_share for the number of cards, so that all on one card have the same: what a technique
-- does to kernels is not in it. All in the context and micro-batch that are asked for: full fine-tuning in mixed
-- precision with AdamW on one card is the plain one, of which each changes one thing.
-- Units: bytes of each card, seconds. Source: technique.csv, footprints, training_operations, training_share,
-- pcie-rates. Not covered: what a technique does to quality; kernels that are slower or faster for the same operations
-- (4-bit weights that are unpacked, 8-bit states, scores that eager attention writes and reads); what cards send one
-- another; the CPU's own update with offload. Null where the card has no such rate.

CREATE OR REPLACE MACRO update_seconds(footprint, card, constants) AS
    iif(footprint.offload = 'none', (2 * footprint.optimizer_bytes + footprint.gradients_bytes
            + iif(footprint.phase_id IN ('lora', 'qlora'), footprint.adapters_bytes, footprint.weights_bytes))
        / (card.memory_bandwidth_gb_s * 1e9),
        2 * footprint.weights_bytes / footprint.gpu_count / (host_link_gb_s(card, constants) * 1e9));

-- share: of the rate; 1 gives the bound. Divided layers and stages share the tokens of one copy
CREATE OR REPLACE MACRO token_seconds(footprint, operations, card, share, constants) AS
    operations / (footprint.gpu_count * product_tflops(card, 16) * 1e12 * share)
    + update_seconds(footprint, card, constants) / (footprint.context_tokens * footprint.sequences
        * footprint.gradient_accumulation
        * (footprint.gpu_count // (footprint.tensor_parallel * footprint.pipeline_parallel)));

CREATE OR REPLACE MACRO techniques_for(gpu_id, model_id, context_tokens := 2048, sequences := 1) AS TABLE
WITH technique_card AS (
    SELECT asked.named_id, card FROM (SELECT gpu_id::VARCHAR AS named_id) AS asked
    LEFT JOIN gpu AS card ON card.gpu_id = lower(asked.named_id)
),
technique_said AS (
    SELECT technique.technique_id, known_model(model_id) AS model_id, technique.dtype_id, technique.phase_id,
        technique.engine_id, context_tokens AS context_tokens, sequences AS sequences, technique.optimizer_id,
        technique.precision, technique.checkpointing, technique.attention, technique.sharding, technique.gpu_count,
        technique.tensor_parallel, technique.pipeline_parallel, technique.offload, technique.loss,
        technique.gradient_accumulation
    FROM technique
),
technique_asked AS (FROM no_scenario UNION ALL BY NAME SELECT * EXCLUDE (technique_id) FROM technique_said),
technique_placed AS MATERIALIZED (
    FROM footprints_in('technique_asked', 'training')
),
technique_told AS (
    SELECT technique, footprint, named_id, card, card_reason(running) AS not_there,
        training_operations(multiplied_elements(shape), shape.token_elements,
            attended_elements(shape, footprint.context_tokens),
            footprint.phase_id, footprint.checkpointing) AS operations
    FROM technique CROSS JOIN technique_card
    JOIN technique_placed AS footprint ON footprint.dtype_id = technique.dtype_id
        AND footprint.phase_id = technique.phase_id AND footprint.engine_id = technique.engine_id
        AND footprint.optimizer_id = technique.optimizer_id AND footprint.precision = technique.precision
        AND footprint.checkpointing = technique.checkpointing AND footprint.attention = technique.attention
        AND footprint.sharding = coalesce(technique.sharding, footprint.sharding)
        AND footprint.gpu_count = technique.gpu_count AND footprint.tensor_parallel = technique.tensor_parallel
        AND footprint.pipeline_parallel = technique.pipeline_parallel AND footprint.offload = technique.offload
        AND footprint.loss = technique.loss AND footprint.gradient_accumulation = technique.gradient_accumulation
    LEFT JOIN shape ON shape.model_id = footprint.model_id
    LEFT JOIN model AS known ON known.model_id = footprint.model_id
    LEFT JOIN runs_on_kind AS running
        ON running.engine_id = footprint.engine_id
            AND running.running_id = running_format(known, footprint.dtype_id, footprint.engine_id)
            AND running.phase_id = footprint.phase_id
        AND running.attention = footprint.attention AND running.card_kind = card_kind(card)
),
technique_judged AS (
    SELECT told.*, share, constants, no_verdict_reason(card.gpu_id, named_id, footprint.total_bytes,
        footprint.unknown_reason, footprint.model_id, not_there) AS reason,
        -- of fp32 no rate is kept
        iif(footprint.dtype_id = 'fp32', NULL, operations) AS timed_operations
    FROM technique_told AS told
    CROSS JOIN constants_row
    LEFT JOIN training_share AS share ON share.scale = cards_scale(footprint.gpu_count, constants)
        AND share.architecture = card.architecture AND share.segment = card.segment
        AND share.is_adapter = (footprint.phase_id IN ('lora', 'qlora'))
)
SELECT technique.technique_rank, technique.technique_id, technique.name, coalesce(judged.card.gpu_id, named_id)
        AS gpu_id, footprint.model_id, footprint.gpu_count, footprint.total_bytes, footprint.host_bytes,
    first_value(footprint.total_bytes) OVER (ORDER BY technique.technique_rank) - footprint.total_bytes AS saved_bytes,
    iif(reason IS NULL, card_verdict(footprint.total_bytes, footprint.error_band, judged.card.capacity_bytes,
        footprint.gpu_count), NULL) AS verdict,
    operations / first_value(operations) OVER (ORDER BY technique.technique_rank) AS operations_ratio,
    iif(reason IS NULL, token_seconds(footprint, timed_operations, judged.card, 1, constants), NULL)
        AS token_seconds_least,
    iif(reason IS NULL, token_seconds(footprint, timed_operations, judged.card, share.likely, constants), NULL)
        AS token_seconds_likely,
    iif(reason IS NULL, update_seconds(footprint, judged.card, constants), NULL) AS update_seconds,
    technique.why, coalesce(reason, iif(footprint.dtype_id = 'fp32', 'no rate of 32-bit products is kept', NULL),
        iif(operations IS NULL, 'how many of its parameters a token passes is not known', NULL),
        iif(product_tflops(judged.card, 16) IS NULL, 'no rate of 16-bit products is known for this card', NULL))
        AS unknown_reason
FROM technique_judged AS judged
ORDER BY technique.technique_rank;
