-- Stages before the text: towers of images and sound, encoders of encoder-decoders. Added to `shape` as one list per
-- model.
--
--   activations_bytes = the larger of
--     tower   tokens × bytes × (the widest moment of a layer + inputs + positions + outputs kept) − the cache, which is
--         not there yet
--     text    the prefill of the prompt, or a decoder's step beside the encoder's output, + inputs and outputs of the
--         tower
--   the widest moment: feed-forward block and hidden tensors, or queries and keys while they are rotated in fp32
--       (16-bit models)
--   or the convolutions before the first layer, where they hold more
--
-- What an input is: `images` of each sequence, their tokens part of context_tokens; how many there are of an image of
-- image_width × image_height pixels is in activations/images/image_tokens.sql. Models that only read images or sound
-- have no other input: one image each, or as many tokens of sound as context_tokens (audio_seconds says otherwise). Who
-- reads sound beside text reads it in whole windows (Voxtral: 30 seconds), whose tokens are part of context_tokens. The
-- encoder of an encoder-decoder reads context_tokens, and its decoder writes as many; Whisper's reads its window of 30
-- seconds and writes context_tokens.
--
-- Units: bytes per GPU; every GPU holds a whole tower. Source: tower (from configs), transformers-step-oracle:
--   transformers 5.23.0 on tensors that hold nothing, tests/oracle/inference.csv.
-- vLLM with images sets aside what its largest image takes (profiled_tower_bytes, encoder_cache_bytes): that it does is
--   read from its code, how much from the towers of transformers (queries and keys of some are rotated by a kernel). It
--   was held to one log (vllm-few-requests: 1.5 GiB with all that is outside PyTorch, 1.8 are told without): the
--   band is wider (error_band_vllm_images). With video, which is larger, it sets aside more: fits_on names the setting
--   that leaves it out.
-- Not covered: video, masks of padded batches beside a tower. (llama.cpp: llama_cpp.sql; training: images.sql there.)

-- images of each sequence: none in a prompt unless somebody says so, one where an image is all that there is to read,
-- or what all of the text is about (attends to an image of one size)
CREATE OR REPLACE MACRO images_of(model, images) AS coalesce(images,
    iif(model.tower.component = 'vision', iif(model.tower.reader = 'none' OR model.tower.reader = 'cross-attention'
        AND model.tower.grid = 'fixed', 1, 0), NULL));

-- sides of a picture where nobody says
CREATE OR REPLACE MACRO picture_side(tower, asked, constants) AS
    coalesce(asked, iif(tower.default_pixels > 0, round(sqrt(tower.default_pixels)),
        constants.default_image_side_pixels))::DOUBLE;

-- windows that the sound of one sequence is cut into, the last one filled up: none unless somebody says so
CREATE OR REPLACE MACRO sound_windows(tower, scenario, constants) AS coalesce(
    ceil(scenario.audio_seconds * constants.audio_samples_per_second / tower.samples_each), 0);

-- tokens of the tower for one sequence: whole groups of patches where they are merged
CREATE OR REPLACE MACRO tower_tokens(tower, scenario, constants) AS CASE
    WHEN tower.component = 'vision' THEN scenario.images * CASE tower.grid
        WHEN 'dynamic' THEN tower.class_tokens + iif(tower.processor.rule IS NULL,
            ceil(scenario.picture_width * scenario.picture_height / tower.pixels_each),
            scenario.picture_rows * scenario.picture_columns * greatest(tower.merged_tokens, 1))
        WHEN 'tiles' THEN image_tiles(tower, scenario.picture_rows, scenario.picture_columns)
            * (tower.class_tokens + tower.tokens_each)
        ELSE tower.class_tokens + tower.tokens_each
    END
    WHEN tower.samples_each > 0 THEN sound_windows(tower, scenario, constants) * tower.tokens_each
    WHEN tower.grid = 'fixed' THEN tower.tokens_each
    WHEN tower.component = 'audio'
        THEN coalesce(ceil(scenario.audio_seconds * constants.audio_samples_per_second / tower.input_elements),
            scenario.context_tokens)
    ELSE scenario.context_tokens
END;

-- tokens of the prompt for the images of one sequence; null where the processor is not known
CREATE OR REPLACE MACRO prompt_image_tokens(tower, scenario) AS
    iif(tower.component <> 'vision' OR tower.reader <> 'language-model' OR scenario.images = 0, 0,
        scenario.images * image_tokens(tower, tower.processor, scenario.picture_width, scenario.picture_height,
            scenario.picture_rows, scenario.picture_columns));

-- and for its sound
CREATE OR REPLACE MACRO prompt_sound_tokens(tower, scenario, constants) AS
    iif(tower.samples_each > 0, sound_windows(tower, scenario, constants) * tower.text_tokens_each, 0);

-- Everything below reads x.tower_tokens. Per token the widest moment; a mask over all images in one row, or a bias that
-- all sequences share; the prompt's embeddings, which wait for the tokens of its images.
CREATE OR REPLACE MACRO tower_bytes_of(tower, model, scenario) AS scenario.compute_bytes * (
    scenario.sequences * scenario.tower_tokens * (tower.input_elements + tower.kept_elements + greatest(
        wide_tensors(tower.alive_tensors, tower.is_gated) * tower.width + tower.hidden_tensors * tower.hidden_size
            + tower.table_elements,
        iif(scenario.compute_bytes = 2, tower.rotary_tensors * tower.hidden_size + tower.table_elements, 0),
        tower.stem_elements))
    + tower.square_elements * scenario.tower_tokens * scenario.tower_tokens * iif(tower.component = 'vision',
        scenario.sequences * scenario.sequences, 1)
) + iif(tower.reader = 'language-model', step_tokens(scenario) * (scenario.compute_bytes * model.hidden_size + 8), 0);

-- A decoder's steps, one token a sequence: beside the encoder's output, its new keys and values are there twice while
-- they are added to the cache, all of the encoder's at the first step, one layer's own at the last; or the logits.
CREATE OR REPLACE MACRO decoder_step_bytes(model, scenario) AS
    greatest(logit_bytes(model, scenario), scenario.sequences * scenario.compute_bytes * greatest(
        list_max(list_transform(model.caches, lambda layer: iif(layer.mechanism = 'cross', 0, layer.elements_per_token
            / 2 * scenario.context_tokens))),
        list_max(list_transform(model.caches, lambda layer: iif(layer.mechanism = 'cross', layer.elements_per_token
            * scenario.cross_tokens, 0)))
            - list_sum(list_transform(model.caches, lambda layer: iif(layer.mechanism = 'cross', 0, layer.layer_count
                * layer.elements_per_token * scenario.context_tokens)))));

CREATE OR REPLACE MACRO text_stage_bytes(model, scenario, constants) AS CASE
    WHEN model.caches IS NULL THEN 0
    WHEN model.tower.component = 'encoder' THEN decoder_step_bytes(model, scenario)
    ELSE prefill_bytes_transformers(model, scenario, constants)
END
    -- what the caller and the model still hold of a tower's inputs and outputs
    + coalesce(scenario.compute_bytes * scenario.sequences * scenario.tower_tokens
        * (model.tower.input_elements + model.tower.output_elements), 0)
    -- text that reads images by cross-attention has a mask over both
    + iif(model.tower.component = 'vision' AND model.tower.reader = 'cross-attention',
        scenario.compute_bytes * step_tokens(scenario) * coalesce(scenario.tower_tokens, 0), 0);

-- vLLM runs its encoder at start on as many of the largest images as a step's tokens hold, one at least, and keeps what
-- they became while it runs the text; however many are asked for, a step runs no more. What reads images by
-- cross-attention has no such tokens.
CREATE OR REPLACE MACRO reads_images_in_vllm(scenario) AS
    coalesce(starts_with(scenario.reads_prompt, 'profile') AND scenario.images > 0, false);
CREATE OR REPLACE MACRO profiled_images(model, scenario, constants) AS
    greatest(1, floor(profiled_tokens(scenario, constants) / model.largest_image_tokens));

CREATE OR REPLACE MACRO profiled_tower_tokens(tower, model, scenario, constants) AS
    profiled_images(model, scenario, constants) * CASE tower.grid
        WHEN 'dynamic' THEN tower.class_tokens + model.largest_image_tokens * greatest(tower.merged_tokens, 1)
        WHEN 'tiles' THEN model.largest_image_tiles * (tower.class_tokens + tower.tokens_each)
        ELSE tower.class_tokens + tower.tokens_each
    END;

CREATE OR REPLACE MACRO encoder_cache_bytes(tower, model, scenario, constants) AS
    coalesce(try_cast(ceil(scenario.compute_bytes * profiled_images(model, scenario, constants)
        * model.largest_image_tokens
        * (model.hidden_size + tower.kept_elements * greatest(tower.merged_tokens, 1))) AS BIGINT), 0);

CREATE OR REPLACE MACRO profiled_tower_bytes(tower, model, scenario, constants) AS
    scenario.compute_bytes * profiled_tower_tokens(tower, model, scenario, constants)
        * (tower.input_elements + tower.kept_elements + greatest(
        wide_tensors(tower.alive_tensors, tower.is_gated) * tower.width + tower.hidden_tensors * tower.hidden_size
            + tower.table_elements,
        iif(scenario.compute_bytes = 2 AND NOT rotates_in_kernel(model, scenario, constants),
            tower.rotary_tensors * tower.hidden_size + tower.table_elements, 0),
        tower.stem_elements));

-- `held`: cache and states, which a server has set aside before anything runs; what is null is passed over
CREATE OR REPLACE MACRO stage_activations_bytes(model, scenario, constants, held) AS greatest(
    try_cast(ceil(counted_pass_bytes(model, scenario)) AS BIGINT),
    inference_activations_bytes(model, scenario, constants) + iif(reads_images_in_vllm(scenario),
        encoder_cache_bytes(model.tower, model, scenario, constants), 0),
    iif(reads_images_in_vllm(scenario), try_cast(ceil(profiled_tower_bytes(model.tower, model, scenario, constants))
        AS BIGINT), NULL),
    iif(scenario.reads_prompt IN ('compute-buffer', 'pieces') OR starts_with(scenario.reads_prompt, 'matrix-by-matrix')
            OR scenario.tower_tokens = 0
            OR reads_images_in_vllm(scenario) AND model.largest_image_tokens IS NOT NULL, NULL,
        try_cast(ceil(tower_bytes_of(model.tower, model, scenario)) AS BIGINT) - iif(is_server(scenario), 0, held)));

CREATE OR REPLACE MACRO inference_activations_bytes(model, scenario, constants) AS try_cast(ceil(CASE
    WHEN scenario.reads_prompt = 'whole' THEN text_stage_bytes(model, scenario, constants)
    WHEN scenario.reads_prompt = 'chunk' THEN chunk_bytes_sglang(model, scenario, constants)
    WHEN starts_with(scenario.reads_prompt, 'profile') THEN profile_bytes_vllm(model, scenario, constants)
    WHEN scenario.reads_prompt = 'compute-buffer' THEN compute_buffer_bytes_llama_cpp(model, scenario, constants)
        + iif(scenario.text_only, 0, tower_buffer_bytes_llama_cpp(model.tower, scenario))
    WHEN scenario.reads_prompt = 'pieces' THEN chunk_bytes_mlx(model, scenario, constants)
    WHEN scenario.reads_prompt = 'matrix-by-matrix' THEN chunk_bytes_exl3(model, scenario, constants)
    WHEN scenario.reads_prompt = 'matrix-by-matrix-rotated' THEN chunk_bytes_exl3_first(model, scenario, constants)
END) AS BIGINT);
