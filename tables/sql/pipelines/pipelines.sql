-- Diffusion pipelines: what each stage holds on the card, and the whole under each way to place its parts.
--
--   stage        activations = pictures × sequences × bytes × (tokens × (tensors × hidden size + latent) + text ×
--                (tensors × hidden size + its width)) + tables, which all pictures share;   tokens = pixels ÷ pixels of
--                    a token × (1 + (frames − 1) ÷ frames of a token)
--   decode       pictures × bytes × (pixels × hidden size × (tensors × frames at once + tensors that stay) + pixels ×
--                frames × tensors of the result); tiled: the first pixels are those of a tile, and no less than what
--                lies there while tiles are put together
--   sound        pictures × bytes × frames × hidden size × tensors: what the sound of a frame takes
--   resident     all weights and the largest activations
--   model        one part on the card at a time (enable_model_cpu_offload): the largest sum of a part and its
--       activations
--   group        one module at a time, the next one on its way (enable_group_offload by leaf_level with use_stream):
--       the largest sum of twice a part's largest module and its activations
--   sequential   one module at a time (enable_sequential_cpu_offload): the largest sum of a part's largest module and
--       its activations
--   all three begin when the parts are loaded: bitsandbytes packs them on the card, where all that it packs lies
--       together until then, and beside that the largest module in 16 bits (peak_part: loading, where that is most)
--
-- images: pictures made at once; sequences_each and text_tokens: what the pipeline does unless somebody says otherwise.
-- Units: bytes, one GPU. Source: pipeline_stage.csv and component; diffusers-step-oracle: real stages within 1.5 % of
--   what they hold (tests/oracle/pipelines.csv), the work space of convolutions among it: cuDNN's kernels hold input
--   and result a second time, of pictures in fp32 the result alone (measured-card, diffusion-fast). Weights in the
--   format asked for, fp32, bf16 or fp16, and so is what runs, but for the autoencoder of fp16, which is counted in
--   fp32 whether its config forces that or not, and for those that are loaded in fp32 always (least_bytes).
-- denoiser_dtype_id: the denoisers in a format that packs them (table denoiser_format: bitsandbytes, GGUF files,
--   layerwise casting), the rest in dtype_id. text_dtype_id: the text encoders but CLIP in one of bitsandbytes'
--   formats, as Transformers packs their classes (denoiser_part) since its release 5.0: before, a T5 kept what it
--   leaves in 32 bits; or in fp8 by layerwise casting. What lies beside while a matrix is multiplied is part of the
--   activations.
-- overhead_bytes: the process's context, cuBLAS, blocks that lie unused. error_band: from the total to where the
--   highest of all parts ends, each with error_band_pipeline of its total and the spread of its unused blocks.
-- Not covered: tiled decoding of pictures; sliced decoding; classes without a row in pipeline_stage; language models
--   as text encoders but those with a row; pictures and videos as inputs; text encoders in GGUF files.

-- bytes of an element; an autoencoder in fp16 decodes in fp32 (force_upcast), as SDXL's does
CREATE OR REPLACE MACRO part_bytes(dtype_id, part) AS CASE
    WHEN dtype_id = 'fp32' OR dtype_id = 'fp16' AND part.stage = 'decode' THEN 4
    WHEN dtype_id IN ('bf16', 'fp16') THEN part.least_bytes
END;

-- A part of a pipeline as the rule of its class reads it. side_multiple: of all parts, a size that the pipeline's own
-- check refuses, or rounds: its latent has no half places.
CREATE OR REPLACE VIEW part_of_pipeline AS
SELECT component.model_id, component.pipeline_part, component.class_name, component.parameter_count,
    component.unknown_reason, component.leaf_element_count, coalesce(component.hidden_size, 0) AS hidden_size,
    coalesce(component.width, 0) AS block_width, coalesce(component.head_count, 0) AS head_count,
    coalesce(component.text_width, 0) AS text_width, component.latent_elements,
    coalesce(stage_row.token_side * stage_row.token_side, component.token_pixels) AS token_pixels,
    stage_row.stage, stage_row.token_frames, stage_row.hidden_16, stage_row.hidden_32, stage_row.width_tensors,
    stage_row.block_hidden, coalesce(stage_row.block_hidden_32, stage_row.block_hidden) AS block_hidden_32,
    stage_row.text_hidden, stage_row.table_heads, stage_row.attention_hidden, stage_row.attention_scores,
    stage_row.block_scores, stage_row.mask_scores, stage_row.sequences_each, stage_row.text_tokens,
    coalesce(stage_row.least_bytes, 2) AS least_bytes, stage_row.first_frames, stage_row.frames_at_once,
    stage_row.kept_16, stage_row.kept_32, stage_row.result_tensors, stage_row.tile_width, stage_row.tile_height,
    stage_row.tiled_result_tensors, stage_row.blended_tensors, stage_row.encoded_16, stage_row.encoded_32,
    packed.formats,
    max(stage_row.side_multiple) OVER (PARTITION BY component.model_id) AS side_multiple
-- (the row of its plan goes before that of any)
FROM (SELECT component.*, coalesce(own.plan, 'any') AS row_plan FROM component LEFT JOIN pipeline_stage AS own
        ON own.class_name = component.class_name AND own.plan = component.plan) AS component
LEFT JOIN pipeline_stage AS stage_row ON stage_row.class_name = component.class_name
    AND stage_row.plan = component.row_plan
-- (of the denoiser, and of a second one of the same size; of text encoders each its own)
LEFT JOIN (SELECT held.model_id, held.pipeline_part,
        iif(held.pipeline_part = 'denoiser', any_value(model.parameter_count), NULL) AS parameter_count,
        list({'dtype_id': dtype_id, 'weights_bytes': weights_bytes, 'working_bytes': working_bytes,
            'first_bytes': first_bytes, 'token_bytes': token_bytes, 'holds_for': holds_for} ORDER BY dtype_id)
            AS formats
    FROM denoiser_weight AS held JOIN model ON model.model_id = held.model_id
    GROUP BY held.model_id, held.pipeline_part)
    AS packed ON packed.model_id = component.model_id AND iif(stage_row.stage = 'denoise',
        packed.parameter_count = component.parameter_count, packed.pipeline_part = component.pipeline_part);

-- asked: dtype_id, width, height, frames, images, is_tiled; text_tokens and sequences_each where somebody says them
CREATE OR REPLACE MACRO stage_text(part, asked) AS coalesce(asked.text_tokens, part.text_tokens);
CREATE OR REPLACE MACRO stage_passes(part, asked) AS coalesce(asked.sequences_each, part.sequences_each);
CREATE OR REPLACE MACRO stage_tokens(part, asked) AS asked.width::DOUBLE * asked.height / part.token_pixels
    * (1 + (asked.frames - 1) // part.token_frames);
CREATE OR REPLACE MACRO stage_hidden(part, bytes_each) AS iif(bytes_each = 4, part.hidden_32, part.hidden_16);

-- what an autoencoder makes: frames of all latents, some of which the pipeline may drop; at once, those of a step
CREATE OR REPLACE MACRO decoded_frames(part, asked) AS
    part.first_frames + (asked.frames - 1) // part.token_frames * part.token_frames;
CREATE OR REPLACE MACRO decoded_at_once(part, asked) AS
    iif(part.frames_at_once = 0, decoded_frames(part, asked), least(decoded_frames(part, asked), part.frames_at_once));
-- (tiles that are done wait for the others, and are put together at the end)
CREATE OR REPLACE MACRO is_cut(part, asked) AS asked.is_tiled AND part.tile_width > 0
    AND (asked.width > part.tile_width OR asked.height > part.tile_height);
CREATE OR REPLACE MACRO decoded_pixels(part, asked) AS iif(is_cut(part, asked),
    least(asked.width, part.tile_width)::DOUBLE * least(asked.height, part.tile_height),
    asked.width::DOUBLE * asked.height);
CREATE OR REPLACE MACRO result_elements(part, asked, tensors) AS
    asked.width::DOUBLE * asked.height * decoded_frames(part, asked) * tensors;
CREATE OR REPLACE MACRO decode_activations(part, asked, bytes_each) AS bytes_each * asked.images * greatest(
    decoded_pixels(part, asked) * part.hidden_size * (iif(bytes_each = 4, part.kept_32, part.kept_16)
            + stage_hidden(part, bytes_each) * decoded_at_once(part, asked))
        + result_elements(part, asked, iif(is_cut(part, asked), part.tiled_result_tensors, part.result_tensors)),
    result_elements(part, asked, iif(is_cut(part, asked), part.blended_tensors, 0)));

-- an autoencoder that makes latents of a picture
CREATE OR REPLACE MACRO encoding_bytes(part, asked, bytes_each) AS bytes_each * asked.images * asked.width::DOUBLE
    * asked.height * part.hidden_size * iif(bytes_each = 4, part.encoded_32, part.encoded_16);

CREATE OR REPLACE MACRO stage_activations(part, asked, bytes_each, tokens, text, passes) AS CASE
    WHEN part.stage = 'decode' THEN decode_activations(part, asked, bytes_each)
    WHEN part.stage = 'sound' THEN bytes_each * asked.images * asked.frames * part.hidden_size
        * stage_hidden(part, bytes_each)
    -- (biases of positions are the same for all sequences)
    WHEN part.stage = 'encode' THEN bytes_each * text * greatest(
        asked.images * passes * (stage_hidden(part, bytes_each) * part.hidden_size
            + part.width_tensors * part.block_width + part.text_hidden * part.text_width)
            + part.block_scores * part.head_count * text,
        asked.images * passes * part.attention_hidden * part.hidden_size
            + part.attention_scores * part.head_count * text)
    -- (in its feed-forward block, where that is wide; or, of a small picture, while the text is read)
    ELSE bytes_each * asked.images * passes * greatest(tokens * (part.latent_elements
            + greatest(stage_hidden(part, bytes_each) * part.hidden_size,
                iif(bytes_each = 4, part.block_hidden_32, part.block_hidden) * part.hidden_size
                    + part.width_tensors * part.block_width))
            + text * (part.text_hidden * part.hidden_size + part.text_width)
            + part.mask_scores * (tokens + text) * (tokens + text), text * part.attention_hidden * part.hidden_size)
        + 2 * part.table_heads * iif(part.head_count = 0, 0, part.hidden_size / part.head_count) * (tokens + text)
END;

-- A packed denoiser or text encoder, and what lies beside while a matrix is multiplied. What of a denoiser runs once,
-- before the blocks do, lies beside the latents and what the blocks read of them.
CREATE OR REPLACE MACRO packed_format(part, asked) AS
    CASE part.stage WHEN 'denoise' THEN asked.denoiser_dtype_id WHEN 'encode' THEN asked.text_dtype_id END;
CREATE OR REPLACE MACRO is_packed(part, asked) AS packed_format(part, asked) IS NOT NULL;
CREATE OR REPLACE MACRO packed_as(part, asked) AS
    list_filter(part.formats, lambda format: format.dtype_id = packed_format(part, asked))[1];
-- bitsandbytes packs on the card whatever is loaded without a device_map; what else packs does so on the CPU
CREATE OR REPLACE MACRO loads_on_card(dtype_id) AS coalesce(dtype_id IN ('int8', 'nf4', 'nf4-double'), false);
CREATE OR REPLACE MACRO part_weights(part, asked, bytes_each, packed) AS iif(is_packed(part, asked),
    packed.weights_bytes, (part.parameter_count * bytes_each)::BIGINT);
CREATE OR REPLACE MACRO packed_activations(part, asked, bytes_each, packed, tokens, text, passes, activations) AS
    iif(is_packed(part, asked), greatest(
        activations + packed.working_bytes
            + packed.token_bytes * asked.images * passes * (iif(part.stage = 'encode', 0, tokens) + text),
        iif(part.stage = 'encode', 0, packed.first_bytes
            + bytes_each * asked.images * passes * tokens * (part.latent_elements + part.hidden_size))),
        activations);

CREATE OR REPLACE MACRO stage_reason(part, asked, bytes_each, text, passes, activations, packed) AS CASE
    WHEN asked.argument_reason IS NOT NULL THEN asked.argument_reason
    WHEN bytes_each IS NULL THEN 'pipelines are counted in fp32, bf16 and fp16'
    WHEN is_packed(part, asked) AND part.stage = 'encode' AND asked.dtype_id <> 'bf16'
        THEN part.pipeline_part || ': packed text encoders are counted beside bf16'
    WHEN is_packed(part, asked) AND bytes_each = 4
        THEN part.pipeline_part || ': packed denoisers are counted beside bf16 and fp16'
    WHEN least(asked.width, asked.height, asked.frames, asked.images) < 1
        THEN 'width, height, frames and images start at 1'
    WHEN text <= 0 AND part.stage = 'encode' OR passes < 1 THEN 'text_tokens and sequences_each start at 1'
    WHEN asked.width % part.side_multiple <> 0 OR asked.height % part.side_multiple <> 0
        THEN 'width and height are multiples of ' || part.side_multiple || ' in this pipeline'
    WHEN part.parameter_count IS NULL THEN part.pipeline_part || ': ' || part.unknown_reason
    WHEN part.stage IS NULL THEN part.pipeline_part || ': what ' || coalesce(part.class_name, 'this part')
        || ' holds while it runs is not established yet'
    WHEN activations IS NULL THEN part.pipeline_part || ': its config does not say what a token is'
    WHEN part.stage = 'encode' AND starts_with(packed_format(part, asked), 'gguf-')
        THEN part.pipeline_part || ': Transformers unpacks a GGUF file as it loads, so that it takes what 16 bits do; '
            || 'what programs that keep it packed (ComfyUI-GGUF, stable-diffusion.cpp) take is not known'
    WHEN is_packed(part, asked) AND packed.weights_bytes IS NULL
        THEN part.pipeline_part || ': how ' || part.class_name || ' is held in ' || packed_format(part, asked)
            || ' is not known (table denoiser_format)'
    WHEN part.stage = 'decode' AND asked.frames > 1 AND part.frames_at_once = 1
        THEN part.pipeline_part || ': decodes single pictures'
    WHEN part.stage = 'decode' AND asked.is_tiled AND part.tile_width = 0
        THEN part.pipeline_part || ': what it holds decoding in tiles is not counted yet'
END;

CREATE OR REPLACE MACRO stage_told(part, asked, bytes_each, text, passes, activations, packed) AS {
    'pipeline_part': part.pipeline_part, 'class_name': part.class_name, 'stage': part.stage,
    'weights_bytes': part_weights(part, asked, bytes_each, packed),
    'leaf_bytes': (part.leaf_element_count * bytes_each)::BIGINT,
    'activations_bytes': iif(asked.argument_reason IS NOT NULL OR bytes_each IS NULL OR least(asked.width, asked.height,
        asked.frames, asked.images) < 1 OR (part.stage = 'decode' AND asked.frames > 1 AND part.frames_at_once = 1)
        OR (part.stage = 'decode' AND asked.is_tiled AND part.tile_width = 0), NULL,
        try_cast(ceil(packed_activations(part, asked, bytes_each, packed, stage_tokens(part, asked), text, passes,
            activations)) AS BIGINT)),
    'unknown_reason': stage_reason(part, asked, bytes_each, text, passes, activations, packed),
    -- (at the end: who reads columns by their place finds them where they were)
    -- (8 bits are moved off the card from these releases on)
    'holds_for': CASE
        WHEN packed_format(part, asked) = 'int8' THEN 'bitsandbytes 0.48 and later with Transformers 5'
        WHEN is_packed(part, asked) THEN packed.holds_for
    END,
    'loaded_bytes': iif(loads_on_card(packed_format(part, asked)) AND packed.weights_bytes < 2 * part.parameter_count,
        packed.weights_bytes, 0)
};
CREATE OR REPLACE MACRO stage_of(part, asked) AS stage_told(part, asked, part_bytes(asked.dtype_id, part),
    stage_text(part, asked), stage_passes(part, asked),
    stage_activations(part, asked, part_bytes(asked.dtype_id, part), stage_tokens(part, asked),
        stage_text(part, asked), stage_passes(part, asked)), packed_as(part, asked));

-- the whole of all stages: what stays on the card of each, and the stage that needs most beside what stays
CREATE OR REPLACE MACRO stays(stage, placement) AS CASE placement
    WHEN 'resident' THEN 0 WHEN 'model' THEN stage.weights_bytes WHEN 'group' THEN 2 * stage.leaf_bytes
    ELSE stage.leaf_bytes END;
-- what activations take with the blocks that lie unused beside them: a part with fewer weights may need more
CREATE OR REPLACE MACRO stage_needs(stage, placement, constants) AS stays(stage, placement) + stage.activations_bytes
    + ceil(constants.unused_blocks_inference * stage.activations_bytes);
CREATE OR REPLACE MACRO peak_of(stages, placement, constants) AS list_filter(stages, lambda stage:
    stage_needs(stage, placement, constants)
        = list_max(list_transform(stages, lambda other: stage_needs(other, placement, constants))))[1];
-- all that lies there, and the end of its band
CREATE OR REPLACE MACRO pipeline_total(weights, activations, constants) AS weights + activations
    + constants.process_context_bytes + constants.cublas_workspace_bytes
    + ceil(constants.unused_blocks_inference * activations);
CREATE OR REPLACE MACRO pipeline_end(weights, activations, constants) AS
    pipeline_total(weights, activations, constants) * (1 + constants.error_band_pipeline)
        + constants.unused_blocks_spread * activations;
CREATE OR REPLACE MACRO pipeline_sum(weights, activations, ends_at, peak_part, constants) AS {
    'weights_bytes': weights::BIGINT, 'activations_bytes': activations::BIGINT,
    'overhead_bytes': (constants.process_context_bytes + constants.cublas_workspace_bytes
        + ceil(constants.unused_blocks_inference * activations))::BIGINT,
    'total_bytes': pipeline_total(weights, activations, constants)::BIGINT,
    'error_band': ends_at / pipeline_total(weights, activations, constants) - 1,
    'peak_part': peak_part
};
-- (another part than that of the largest total may end higher, where more of it are activations)
CREATE OR REPLACE MACRO lies_there(stage, placement, all_weights) AS
    iif(placement = 'resident', all_weights, stays(stage, placement));
CREATE OR REPLACE MACRO pipeline_peak_sum(stages, placement, peak, all_weights, constants) AS pipeline_sum(
    lies_there(peak, placement, all_weights), peak.activations_bytes,
    list_max(list_transform(stages, lambda stage:
        pipeline_end(lies_there(stage, placement, all_weights), stage.activations_bytes, constants))),
    peak.pipeline_part, constants);
-- (while parts are loaded nothing else lies there: what is packed together, and the module that is being packed)
CREATE OR REPLACE MACRO pipeline_loading(loaded, module, constants) AS pipeline_sum(loaded, module,
    pipeline_end(loaded, module, constants), 'loading', constants);
CREATE OR REPLACE MACRO whole_end(whole) AS whole.total_bytes * (1 + whole.error_band);
CREATE OR REPLACE MACRO whole_until(whole, ends_at) AS {
    'weights_bytes': whole.weights_bytes, 'activations_bytes': whole.activations_bytes,
    'overhead_bytes': whole.overhead_bytes, 'total_bytes': whole.total_bytes,
    'error_band': ends_at / whole.total_bytes - 1, 'peak_part': whole.peak_part
};
CREATE OR REPLACE MACRO larger_whole(running, loading) AS iif(
    loading.weights_bytes > 0 AND loading.total_bytes > running.total_bytes,
    whole_until(loading, greatest(whole_end(running), whole_end(loading))),
    whole_until(running, greatest(whole_end(running), iif(loading.weights_bytes > 0, whole_end(loading), 0))));
CREATE OR REPLACE MACRO stage_weights_of(stages) AS list_sum(list_transform(stages, lambda stage: stage.weights_bytes));
CREATE OR REPLACE MACRO stage_loaded_of(stages) AS list_sum(list_transform(stages, lambda stage: stage.loaded_bytes));
CREATE OR REPLACE MACRO largest_loading_of(stages) AS
    list_max(list_transform(stages, lambda stage: iif(stage.loaded_bytes > 0, stage.leaf_bytes, 0)));
CREATE OR REPLACE MACRO pipeline_whole(stages, placement, constants) AS larger_whole(
    pipeline_peak_sum(stages, placement, peak_of(stages, placement, constants), stage_weights_of(stages), constants),
    pipeline_loading(stage_loaded_of(stages), largest_loading_of(stages), constants));

CREATE OR REPLACE MACRO pipeline_number(value, most) AS
    iif(abs(try_cast(value AS DOUBLE)) <= most, asked_number(value), NULL);

CREATE OR REPLACE MACRO pipeline_stages(
    model_id, dtype_id := 'bf16', width := 1024, height := 1024, frames := 1, images := 1, text_tokens := NULL,
    sequences_each := NULL, is_tiled := false, denoiser_dtype_id := NULL, text_dtype_id := NULL
) AS TABLE
WITH asked AS (
    SELECT known_model(model_id) AS model_id, lower(coalesce(dtype_id, 'bf16')::VARCHAR) AS dtype_id,
        coalesce(pipeline_number(width, constants.most_image_side), 1024) AS width,
        coalesce(pipeline_number(height, constants.most_image_side), 1024) AS height,
        coalesce(pipeline_number(frames, constants.most_image_side), 1) AS frames,
        coalesce(pipeline_number(images, constants.most_images), 1) AS images,
        pipeline_number(text_tokens, constants.most_context_tokens) AS text_tokens,
        pipeline_number(sequences_each, constants.most_sequences) AS sequences_each,
        coalesce(try_cast(is_tiled AS BOOLEAN), false) AS is_tiled,
        nullif(lower(denoiser_dtype_id::VARCHAR), lower(coalesce(dtype_id, 'bf16')::VARCHAR)) AS denoiser_dtype_id,
        nullif(lower(text_dtype_id::VARCHAR), lower(coalesce(dtype_id, 'bf16')::VARCHAR)) AS text_dtype_id,
        coalesce(number_reason('width', width, constants.most_image_side),
            number_reason('height', height, constants.most_image_side),
            number_reason('frames', frames, constants.most_image_side),
            number_reason('images', images, constants.most_images),
            number_reason('text_tokens', text_tokens, constants.most_context_tokens),
            number_reason('sequences_each', sequences_each, constants.most_sequences))
            AS argument_reason
    FROM constants_row
),
-- (rows packed once, and a step for each value that the next reads several times: see model/rows.sql)
paired AS (
    SELECT asked, part
    FROM (SELECT asked AS asked FROM asked) JOIN (SELECT part AS part FROM part_of_pipeline AS part)
        ON part.model_id = asked.model_id
),
sized AS (
    SELECT *, part_bytes(asked.dtype_id, part) AS bytes_each, stage_text(part, asked) AS text,
        stage_passes(part, asked) AS passes, stage_tokens(part, asked) AS tokens, packed_as(part, asked) AS packed
    FROM paired
),
active AS (SELECT *, stage_activations(part, asked, bytes_each, tokens, text, passes) AS activations FROM sized),
told AS (
    SELECT asked.model_id, asked.dtype_id, stage_told(part, asked, bytes_each, text, passes, activations, packed)
        AS stage
    FROM active
)
SELECT told.model_id, told.dtype_id, unnest(told.stage) FROM told ORDER BY told.stage.pipeline_part;

CREATE OR REPLACE MACRO pipeline_of(
    model_id, dtype_id := 'bf16', width := 1024, height := 1024, frames := 1, images := 1, text_tokens := NULL,
    sequences_each := NULL, is_tiled := false, denoiser_dtype_id := NULL, text_dtype_id := NULL
) AS TABLE
WITH part_told AS MATERIALIZED (
    FROM pipeline_stages(model_id, dtype_id := dtype_id, width := width, height := height, frames := frames,
        images := images, text_tokens := text_tokens, sequences_each := sequences_each, is_tiled := is_tiled,
        denoiser_dtype_id := denoiser_dtype_id, text_dtype_id := text_dtype_id)
),
known AS (
    SELECT count(*) AS parts, string_agg(DISTINCT unknown_reason, '; ' ORDER BY unknown_reason) AS unknown_reason,
        string_agg(DISTINCT holds_for, ', ' ORDER BY holds_for) AS holds_for, list(part_told) AS stages
    FROM part_told
),
summed AS (
    SELECT placement, parts, unknown_reason, holds_for, stages, constants, stage_weights_of(stages) AS all_weights,
        peak_of(stages, placement, constants) AS peak
    FROM known CROSS JOIN (VALUES ('resident'), ('model'), ('group'), ('sequential')) AS placements(placement)
    CROSS JOIN constants_row
),
moments AS (
    SELECT *, pipeline_peak_sum(stages, placement, peak, all_weights, constants) AS running,
        pipeline_loading(stage_loaded_of(stages), largest_loading_of(stages), constants) AS loading
    FROM summed
),
placed AS (
    SELECT placement, parts, unknown_reason, holds_for,
        iif(unknown_reason IS NULL, larger_whole(running, loading), NULL) AS whole
    FROM moments
)
SELECT placement, whole.weights_bytes, whole.activations_bytes, whole.overhead_bytes, whole.total_bytes,
    whole.error_band, whole.peak_part,
    iif(parts = 0, 'no diffusion pipeline of this name in the snapshot', unknown_reason) AS unknown_reason,
    iif(unknown_reason IS NULL, holds_for, NULL) AS holds_for
FROM placed
ORDER BY list_position(['resident', 'model', 'group', 'sequential'], placement);
