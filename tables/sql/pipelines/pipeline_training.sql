-- LoRA training of a diffusion pipeline as a whole, and against one card: the question about training.sql.
--
--   pipeline_training_of        total_bytes of each placement (cached, resident) and what it is made of
--   pipeline_training_fits_on   the verdict: fits with its error band, tight, no
--
-- Null with a reason where the class has no counted step, a part of resident is not known, or nothing says that the
-- card runs the format. Units: bytes, one GPU. overhead_bytes: the process's context, cuBLAS, blocks that lie unused.
-- Sources: training.sql, gpu, runs_on. Not covered: several cards; what training.sql does not cover.

CREATE OR REPLACE MACRO training_sum(weights, step, resident_activations, constants) AS {
    'weights_bytes': weights::BIGINT, 'adapters_bytes': step.adapters_bytes::BIGINT,
    'gradients_bytes': step.adapters_bytes::BIGINT, 'optimizer_bytes': step.optimizer_bytes::BIGINT,
    'activations_bytes': greatest(step.activations_bytes, resident_activations - step.adapters_bytes)::BIGINT,
    'overhead_bytes': (constants.process_context_bytes + constants.cublas_workspace_bytes
        + ceil(constants.unused_blocks_training * (step.adapters_bytes
            + greatest(step.activations_bytes, resident_activations - step.adapters_bytes))))::BIGINT,
    'error_band': constants.error_band_training
};
CREATE OR REPLACE MACRO training_total(whole) AS whole.weights_bytes + whole.adapters_bytes + whole.gradients_bytes
    + whole.optimizer_bytes + whole.activations_bytes + whole.overhead_bytes;

-- Activations beside the gradients: at the end of the forward pass nothing has gradients, at the end of the backward
-- pass all have, and the optimizer's step copies what its form says.
CREATE OR REPLACE MACRO trained_step(part, rule, blocks, asked, optimizer, packed) AS {
    'weights_bytes': iif(rule.is_packed, packed.weights_bytes, 2 * part.parameter_count),
    'adapters_bytes': asked.lora_rank * blocks.adapter_elements * adapter_bytes_of(asked, rule),
    'optimizer_bytes': ceil(asked.lora_rank * blocks.adapter_elements * adapter_state_bytes(asked, rule, optimizer)),
    'activations_bytes': greatest(
        iif(rule.is_packed, packed.working_bytes, 0) + greatest(
            ceil(step_activations(part, rule, blocks, asked))
                - asked.lora_rank * blocks.adapter_elements * adapter_bytes_of(asked, rule),
            ceil(step_working(part, rule, blocks, asked))),
        optimizer.step_copies * asked.lora_rank * blocks.adapter_elements * adapter_bytes_of(asked, rule))
};

-- which row of denoiser_training holds: of the class and its layout, and of what was asked
CREATE OR REPLACE MACRO is_class_rule(rule, component, blocks) AS rule.class_name = component.class_name
    AND rule.plan IN ('any', coalesce(component.plan, blocks.plan));
CREATE OR REPLACE MACRO is_asked_rule(rule, asked) AS rule.checkpointing = asked.checkpointing
    AND rule.is_packed = coalesce(asked.denoiser_dtype_id IN ('nf4', 'nf4-double'), false)
    AND (rule.is_packed OR asked.denoiser_dtype_id IS NULL);

-- all that a model's denoiser can be asked by
CREATE OR REPLACE VIEW pipeline_trained AS
SELECT blocks.model_id, blocks, list(rule ORDER BY rule.checkpointing, rule.is_packed) AS rules
FROM denoiser_adapted AS blocks
JOIN component ON component.model_id = blocks.model_id AND component.pipeline_part = 'denoiser'
JOIN denoiser_training AS rule ON is_class_rule(rule, component, blocks)
GROUP BY blocks.model_id, blocks;

-- what was asked, with the rows that it is answered by
CREATE OR REPLACE MACRO training_asked(
    model_id, dtype_id := 'bf16', width := 1024, height := 1024, frames := 1, images := 1, text_tokens := NULL,
    lora_rank := 16, checkpointing := 'none', optimizer_id := 'adamw-foreach', denoiser_dtype_id := NULL
) AS TABLE
WITH said AS (
    SELECT known_model(model_id) AS model_id, lower(coalesce(dtype_id, 'bf16')::VARCHAR) AS dtype_id,
        coalesce(pipeline_number(width, constants.most_image_side), 1024) AS width,
        coalesce(pipeline_number(height, constants.most_image_side), 1024) AS height,
        coalesce(pipeline_number(frames, constants.most_image_side), 1) AS frames,
        coalesce(pipeline_number(images, constants.most_images), 1) AS images, false AS is_tiled,
        pipeline_number(text_tokens, constants.most_context_tokens) AS text_asked,
        coalesce(pipeline_number(lora_rank, constants.most_rank), 16) AS lora_rank,
        lower(coalesce(checkpointing, 'none')::VARCHAR) AS checkpointing,
        lower(coalesce(optimizer_id, 'adamw-foreach')::VARCHAR) AS optimizer_id,
        nullif(lower(denoiser_dtype_id::VARCHAR), lower(coalesce(dtype_id, 'bf16')::VARCHAR)) AS denoiser_dtype_id,
        NULL::VARCHAR AS text_dtype_id,
        coalesce(number_reason('width', width, constants.most_image_side),
            number_reason('height', height, constants.most_image_side),
            number_reason('frames', frames, constants.most_image_side),
            number_reason('images', images, constants.most_images),
            number_reason('text_tokens', text_tokens, constants.most_context_tokens),
            number_reason('lora_rank', lora_rank, constants.most_rank)) AS argument_reason
    FROM constants_row
)
-- (a column named like a table that is joined later would be read in its place)
SELECT said.*, part AS trained, rule, optimizer, blocks,
    coalesce(said.text_asked, rule.text_tokens, part.text_tokens) AS text_tokens
FROM said JOIN part_of_pipeline AS part ON part.model_id = said.model_id AND part.pipeline_part = 'denoiser'
JOIN component ON component.model_id = said.model_id AND component.pipeline_part = 'denoiser'
LEFT JOIN denoiser_adapted AS blocks ON blocks.model_id = said.model_id
LEFT JOIN denoiser_training AS rule ON is_class_rule(rule, component, blocks) AND is_asked_rule(rule, said)
LEFT JOIN optimizer ON optimizer.optimizer_id = said.optimizer_id;

-- What a step does besides where nothing was made before: pictures and words are encoded.
CREATE OR REPLACE MACRO encoder_reason(part) AS part.pipeline_part || ': ' || coalesce(part.unknown_reason,
    iif(part.stage IS NULL OR part.stage = 'decode' AND part.encoded_16 IS NULL,
        'what ' || coalesce(part.class_name, 'this part') || ' holds while it encodes is not established yet', NULL));
CREATE OR REPLACE MACRO encoder_weights(part, rule) AS
    part.parameter_count * iif(part.stage = 'decode', rule.autoencoder_bytes_each, 2);
CREATE OR REPLACE MACRO encoder_activations(part, asked) AS iif(part.stage = 'decode',
    encoding_bytes(part, asked, asked.rule.autoencoder_bytes_each),
    stage_activations(part, asked, 2, 0, part.text_tokens, 1));

CREATE OR REPLACE MACRO pipeline_training_of(
    model_id, dtype_id := 'bf16', width := 1024, height := 1024, frames := 1, images := 1, text_tokens := NULL,
    lora_rank := 16, checkpointing := 'none', optimizer_id := 'adamw-foreach', denoiser_dtype_id := NULL
) AS TABLE
WITH ruled AS MATERIALIZED (
    FROM training_asked(model_id, dtype_id := dtype_id, width := width, height := height, frames := frames,
        images := images, text_tokens := text_tokens, lora_rank := lora_rank, checkpointing := checkpointing,
        optimizer_id := optimizer_id, denoiser_dtype_id := denoiser_dtype_id)
),
stepped AS (
    SELECT asked.model_id,
        trained_step(asked.trained, asked.rule, asked.blocks, asked, asked.optimizer,
            packed_as(asked.trained, asked)) AS step,
        trained_reason(asked.trained, asked.rule, asked.blocks, asked, asked.optimizer,
            packed_as(asked.trained, asked)) AS unknown_reason
    FROM ruled AS asked
),
other AS (
    SELECT sum(encoder_weights(part, asked.rule)) AS weights_bytes,
        max(encoder_activations(part, asked)) AS activations_bytes,
        string_agg(encoder_reason(part), '; ' ORDER BY part.pipeline_part) AS unknown_reason
    FROM ruled AS asked JOIN part_of_pipeline AS part ON part.model_id = asked.model_id
        AND part.pipeline_part <> 'denoiser'
),
placed AS (
    SELECT placement, rank, stepped.model_id IS NULL AS is_missing,
        coalesce(stepped.unknown_reason, iif(placement = 'resident', other.unknown_reason, NULL)) AS unknown_reason,
        training_sum(step.weights_bytes + iif(placement = 'resident', other.weights_bytes, 0), step,
            iif(placement = 'resident', other.activations_bytes, 0), constants) AS whole
    FROM (VALUES ('resident', 1), ('cached', 2)) AS placements(placement, rank)
    CROSS JOIN constants_row CROSS JOIN other LEFT JOIN stepped ON true
),
told AS (SELECT * REPLACE (iif(unknown_reason IS NULL, whole, NULL) AS whole) FROM placed)
SELECT placement, whole.weights_bytes, whole.adapters_bytes, whole.gradients_bytes, whole.optimizer_bytes,
    whole.activations_bytes, whole.overhead_bytes, training_total(whole) AS total_bytes, whole.error_band,
    iif(is_missing, 'no diffusion pipeline of this name in the snapshot', unknown_reason) AS unknown_reason
FROM told
ORDER BY rank;

CREATE OR REPLACE MACRO pipeline_training_fits_on(
    gpu_id, model_id, dtype_id := 'bf16', width := 1024, height := 1024, frames := 1, images := 1, text_tokens := NULL,
    lora_rank := 16, checkpointing := 'none', optimizer_id := 'adamw-foreach', denoiser_dtype_id := NULL
) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id, lower(coalesce(dtype_id, 'bf16')::VARCHAR) AS dtype_id)
SELECT
    coalesce(gpu.gpu_id, card_asked.gpu_id) AS gpu_id, training.placement, training.total_bytes, gpu.capacity_bytes,
    gpu.capacity_bytes - training.total_bytes AS headroom_bytes,
    iif(card_reason(running) IS NULL, card_verdict(training.total_bytes, training.error_band, gpu.capacity_bytes, 1),
        NULL) AS verdict,
    no_verdict_reason(gpu.gpu_id, card_asked.gpu_id, training.total_bytes, training.unknown_reason, NULL,
        card_reason(running)) AS unknown_reason
FROM card_asked
LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
-- diffusers runs on the PyTorch that Transformers does
LEFT JOIN runs_on_kind AS running ON running.engine_id = 'transformers' AND running.running_id = card_asked.dtype_id
    AND running.phase_id = 'lora' AND running.attention = 'flash' AND running.card_kind = card_kind(gpu)
CROSS JOIN pipeline_training_of(model_id, dtype_id := dtype_id, width := width, height := height, frames := frames,
    images := images, text_tokens := text_tokens, lora_rank := lora_rank, checkpointing := checkpointing,
    optimizer_id := optimizer_id, denoiser_dtype_id := denoiser_dtype_id) AS training
ORDER BY training.total_bytes DESC;
