-- Diffusion pipelines: what each stage holds on the card, and the whole under each way to place its parts.
--
--   stage        activations = pictures × sequences × bytes × (tokens × (tensors × hidden size + latent) + text ×
--                (tensors × hidden size + its width)) + tables, which all pictures share;   tokens = pixels ÷ pixels of
--                    a token × (1 + (frames − 1) ÷ frames of a token)
--   resident     all weights and the largest activations
--   model        one part on the card at a time (enable_model_cpu_offload): the largest sum of a part and its
--       activations
--   sequential   one module at a time (enable_sequential_cpu_offload): the largest sum of a part's largest module and
--       its activations
--
-- images: pictures made at once; sequences_each and text_tokens: what the pipeline does unless somebody says otherwise.
-- Units: bytes, one GPU. Source: pipeline_stage.csv and component; diffusers-step-oracle: real stages within 1.5 % of
--   what they hold (tests/oracle/pipelines.csv). Weights in the format asked for, fp32, bf16 or fp16, and so is what
--   runs, but for the
--   autoencoder of fp16, which is counted in fp32 whether its config forces that or not.
-- overhead_bytes: the process's context, cuBLAS, blocks that lie unused, and the work space of convolutions, which is
--   no tensor of a stage (constant.csv: measured on one pipeline). error_band: error_band_pipeline, and the spread of
--   unused blocks.
-- Not covered: what convolutions take for pictures of other sizes; tiled and sliced decoding; classes without a row in
--   pipeline_stage; language models as text encoders but that of Qwen-Image; quantised parts; pictures as inputs;
--   autoencoders of video.

-- bytes of an element; an autoencoder in fp16 decodes in fp32 (force_upcast), as SDXL's does
CREATE OR REPLACE MACRO part_bytes(dtype_id, stage) AS CASE
    WHEN dtype_id = 'fp32' OR dtype_id = 'fp16' AND stage = 'decode' THEN 4
    WHEN dtype_id IN ('bf16', 'fp16') THEN 2
END;

CREATE OR REPLACE MACRO pipeline_number(value, most) AS
    iif(abs(try_cast(value AS DOUBLE)) <= most, asked_number(value), NULL);

CREATE OR REPLACE MACRO pipeline_stages(
    model_id, dtype_id := 'bf16', width := 1024, height := 1024, frames := 1, images := 1, text_tokens := NULL,
    sequences_each := NULL
) AS TABLE
WITH asked AS (
    SELECT known_model(model_id) AS model_id, lower(coalesce(dtype_id, 'bf16')::VARCHAR) AS dtype_id,
        coalesce(pipeline_number(width, constants.most_image_side), 1024) AS width,
        coalesce(pipeline_number(height, constants.most_image_side), 1024) AS height,
        coalesce(pipeline_number(frames, constants.most_image_side), 1) AS frames,
        coalesce(pipeline_number(images, constants.most_images), 1) AS images,
        pipeline_number(text_tokens, constants.most_context_tokens) AS text_tokens,
        pipeline_number(sequences_each, constants.most_sequences) AS sequences_each,
        coalesce(number_reason('width', width, constants.most_image_side),
            number_reason('height', height, constants.most_image_side),
            number_reason('frames', frames, constants.most_image_side),
            number_reason('images', images, constants.most_images),
            number_reason('text_tokens', text_tokens, constants.most_context_tokens),
            number_reason('sequences_each', sequences_each, constants.most_sequences))
            AS argument_reason
    FROM constants
),
-- a size that the pipeline's own check refuses, or rounds: its latent has no half places
side AS (
    SELECT max(stage_row.side_multiple) AS multiple
    FROM asked JOIN component ON component.model_id = asked.model_id JOIN pipeline_stage AS stage_row
        ON stage_row.class_name = component.class_name AND (stage_row.plan = 'any' OR stage_row.plan = component.plan)
),
part AS (
    SELECT asked.* EXCLUDE (text_tokens, sequences_each), part_bytes(asked.dtype_id, stage_row.stage) AS bytes_each,
        coalesce(asked.text_tokens, stage_row.text_tokens) AS text,
        coalesce(asked.sequences_each, stage_row.sequences_each) AS passes, component.pipeline_part,
        component.class_name, component.parameter_count, component.unknown_reason AS part_reason,
        component.leaf_element_count,
        coalesce(component.hidden_size, 0) AS hidden_size, coalesce(component.width, 0) AS block_width,
        coalesce(component.head_count, 0) AS head_count,
        coalesce(component.text_width, 0) AS text_width, component.latent_elements, component.token_pixels,
        stage_row.stage,
        stage_row.width_tensors, stage_row.text_hidden, stage_row.table_heads, stage_row.attention_hidden,
        stage_row.attention_scores, stage_row.block_scores,
        iif(part_bytes(asked.dtype_id, stage_row.stage) = 4, stage_row.hidden_32, stage_row.hidden_16)
            AS hidden_tensors,
        asked.width::DOUBLE * asked.height / component.token_pixels
            * (1 + (asked.frames - 1) // stage_row.token_frames) AS tokens
    FROM asked
    JOIN component ON component.model_id = asked.model_id
    LEFT JOIN pipeline_stage AS stage_row ON stage_row.class_name = component.class_name
        AND (stage_row.plan = 'any' OR stage_row.plan = component.plan)
),
weighed AS (
    SELECT *, parameter_count * bytes_each AS weights_bytes, leaf_element_count * bytes_each AS leaf_bytes,
        CASE
            -- (biases of positions are the same for all sequences)
            WHEN stage = 'encode' THEN bytes_each * text * greatest(
                images * passes * (hidden_tensors * hidden_size + width_tensors * block_width) + block_scores
                    * head_count * text,
                images * passes * attention_hidden * hidden_size + attention_scores * head_count * text)
            ELSE bytes_each * images * passes * (tokens * (hidden_tensors * hidden_size + latent_elements)
                    + text * (text_hidden * hidden_size + text_width))
                + 2 * table_heads * coalesce(hidden_size / nullif(head_count, 0), 0) * (tokens + text)
        END AS activations_bytes
    FROM part
)
SELECT
    weighed.model_id, weighed.dtype_id, pipeline_part, class_name, stage, weights_bytes::BIGINT AS weights_bytes,
    leaf_bytes::BIGINT AS leaf_bytes,
    iif(weighed.argument_reason IS NOT NULL OR bytes_each IS NULL OR least(weighed.width, weighed.height,
        weighed.frames, weighed.images) < 1 OR (stage = 'decode' AND weighed.frames > 1), NULL,
    try_cast(ceil(activations_bytes) AS BIGINT))
        AS activations_bytes,
    CASE
        WHEN weighed.argument_reason IS NOT NULL THEN weighed.argument_reason
        WHEN bytes_each IS NULL THEN 'pipelines are counted in fp32, bf16 and fp16'
        WHEN least(weighed.width, weighed.height, weighed.frames, weighed.images) < 1
            THEN 'width, height, frames and images start at 1'
        WHEN weighed.text <= 0 AND stage = 'encode' OR weighed.passes < 1
            THEN 'text_tokens and sequences_each start at 1'
        WHEN weighed.width % side.multiple <> 0 OR weighed.height % side.multiple <> 0
            THEN 'width and height are multiples of ' || side.multiple || ' in this pipeline'
        WHEN parameter_count IS NULL THEN pipeline_part || ': ' || part_reason
        WHEN stage IS NULL THEN pipeline_part || ': what ' || coalesce(class_name, 'this part')
            || ' holds while it runs is not established yet'
        WHEN activations_bytes IS NULL THEN pipeline_part || ': its config does not say what a token is'
        WHEN stage = 'decode' AND weighed.frames > 1 THEN pipeline_part || ': decodes single pictures'
    END AS unknown_reason
FROM weighed CROSS JOIN side
ORDER BY pipeline_part;

CREATE OR REPLACE MACRO pipeline_of(
    model_id, dtype_id := 'bf16', width := 1024, height := 1024, frames := 1, images := 1, text_tokens := NULL,
    sequences_each := NULL
) AS TABLE
WITH stage AS MATERIALIZED (
    FROM pipeline_stages(model_id, dtype_id := dtype_id, width := width, height := height, frames := frames,
        images := images,
        text_tokens := text_tokens, sequences_each := sequences_each)
),
placed AS (
    SELECT 'resident' AS placement, 1 AS rank, sum(weights_bytes) AS weights_bytes, max(activations_bytes)
        AS activations_bytes,
        arg_max(pipeline_part, activations_bytes) AS peak_part
    FROM stage
    UNION ALL
    SELECT 'model', 2, arg_max(weights_bytes, weights_bytes + activations_bytes),
        arg_max(activations_bytes, weights_bytes + activations_bytes),
        arg_max(pipeline_part, weights_bytes + activations_bytes)
    FROM stage
    UNION ALL
    SELECT 'sequential', 3, arg_max(leaf_bytes, leaf_bytes + activations_bytes),
        arg_max(activations_bytes, leaf_bytes + activations_bytes),
        arg_max(pipeline_part, leaf_bytes + activations_bytes)
    FROM stage
),
known AS (SELECT count(*) AS parts, string_agg(DISTINCT unknown_reason, '; ' ORDER BY unknown_reason) AS unknown_reason
    FROM stage),
counted AS (
    SELECT placed.*, known.*, constants.error_band_pipeline, constants.unused_blocks_spread,
        constants.process_context_bytes + constants.cublas_workspace_bytes
        + constants.convolution_workspace_bytes + ceil(constants.unused_blocks_inference * activations_bytes)
            AS overhead
    FROM placed, known CROSS JOIN constants
)
SELECT
    placement,
    iif(unknown_reason IS NULL, weights_bytes, NULL)::BIGINT AS weights_bytes,
    iif(unknown_reason IS NULL, activations_bytes, NULL)::BIGINT AS activations_bytes,
    iif(unknown_reason IS NULL, overhead, NULL)::BIGINT AS overhead_bytes,
    iif(unknown_reason IS NULL, weights_bytes + activations_bytes + overhead, NULL)::BIGINT AS total_bytes,
    iif(unknown_reason IS NULL, error_band_pipeline + unused_blocks_spread * activations_bytes
        / (weights_bytes + activations_bytes + overhead), NULL)
        AS error_band,
    iif(unknown_reason IS NULL, peak_part, NULL) AS peak_part,
    iif(parts = 0, 'no diffusion pipeline of this name in the snapshot', unknown_reason) AS unknown_reason
FROM counted
ORDER BY rank;
