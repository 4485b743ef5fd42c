-- Techniques of training compared on one model and card: what each saves or costs, in bytes and in operations.
--
--   techniques_for('h100-sxm', 'Qwen/Qwen3-8B')   one row per technique of technique.csv, the plain one first
--     saved_bytes       what a card holds less than with the plain one; less than 0 where it holds more
--     operations_ratio  operations of a token ÷ those of the plain one: recomputing adds a third, frozen weights save
--         a third. Eight cards share them
--
-- All in the context and micro-batch that are asked for: full fine-tuning in mixed precision with AdamW on one card
-- is the plain one, of which each changes one thing.
-- Units: bytes of each card. Source: technique.csv, footprints, training_operations. Not covered: what a technique
-- does to quality; kernels that are slower or faster for the same operations (4-bit weights that are unpacked, 8-bit
-- states).

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
    FROM footprints_in('technique_asked', 'full-finetune', is_plain := false)
),
technique_told AS (
    SELECT technique, footprint, named_id, card, card_reason(running) AS not_there,
        training_operations(multiplied_elements(shape), (SELECT sum(layer.layer_count * layer.head_count
            * (layer.head_dim + layer.value_head_dim) * least(footprint.context_tokens, coalesce(layer.window_tokens,
                footprint.context_tokens))) FROM attention_layer AS layer WHERE layer.model_id = footprint.model_id
                AND layer.component = 'text' AND layer.elements_per_token > 0),
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
    LEFT JOIN runs_on AS running
        ON running.engine_id = footprint.engine_id AND running.dtype_id = running_format(known, footprint.dtype_id)
            AND running.phase_id = footprint.phase_id
        AND running.attention = footprint.attention AND running.gpu_id = card.gpu_id
),
technique_judged AS (
    SELECT told.*, no_verdict_reason(card.gpu_id, named_id, footprint.total_bytes, footprint.unknown_reason,
        footprint.model_id, not_there) AS reason
    FROM technique_told AS told
)
SELECT technique.technique_rank, technique.technique_id, technique.name, coalesce(judged.card.gpu_id, named_id)
        AS gpu_id, footprint.model_id, footprint.gpu_count, footprint.total_bytes, footprint.host_bytes,
    first_value(footprint.total_bytes) OVER (ORDER BY technique.technique_rank) - footprint.total_bytes AS saved_bytes,
    iif(reason IS NULL, card_verdict(footprint.total_bytes, footprint.error_band, judged.card.capacity_bytes,
        footprint.gpu_count), NULL) AS verdict,
    operations / first_value(operations) OVER (ORDER BY technique.technique_rank) AS operations_ratio,
    technique.why, reason AS unknown_reason
FROM technique_judged AS judged
ORDER BY technique.technique_rank;
