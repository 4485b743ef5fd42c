-- Stages before the text: towers of images and sound, encoders of encoder-decoders. Added to `shape` as one list per model.
--
--   activations_bytes = the larger of
--     tower   tokens × bytes × (the widest moment of a layer + inputs + positions + outputs kept) − the cache, which is not there yet
--     text    the prefill of the prompt, or a decoder's step beside the encoder's output, + inputs and outputs of the tower
--   the widest moment: feed-forward block and hidden tensors, or queries and keys while they are rotated in fp32 (16-bit models)
--   or the convolutions before the first layer, where they hold more
--
-- What an input is: `images` of each sequence, their tokens part of context_tokens; how many there are of an image of image_width ×
-- image_height pixels is in activations/images/image_tokens.sql. Models that only read images or sound have no other
-- input: one image each, or as many tokens of sound as context_tokens (audio_seconds says otherwise). The encoder of an
-- encoder-decoder reads context_tokens, and its decoder writes as many; Whisper's reads its window of 30 seconds and writes context_tokens.
--
-- Units: bytes per GPU; every GPU holds a whole tower. Source: tower (from configs), transformers-step-oracle: transformers 5.23.0 on
--   tensors that hold nothing, tests/oracle/inference.csv.
-- vLLM with images sets aside what its largest image takes (profiled_tower_bytes, encoder_cache_bytes): that it does is read from its code, how
--   much from the towers of transformers, and no measurement confirms it, so that the band is wider (error_band_vllm_images). With video,
--   which is larger, it sets aside more: fits_on names the setting that leaves it out.
-- Not covered: video, masks of padded batches beside a tower, images in llama.cpp, training with images.

-- images of each sequence: none in a prompt unless somebody says so, one where an image is all that there is to read, or what all of the
-- text is about (attends to an image of one size)
CREATE OR REPLACE MACRO images_of(m, images) AS coalesce(images,
    iif(m.tower.component = 'vision', iif(m.tower.reader = 'none' OR m.tower.reader = 'cross-attention' AND m.tower.grid = 'fixed', 1, 0), NULL));

-- sides of a picture where nobody says
CREATE OR REPLACE MACRO picture_side(t, asked, k) AS coalesce(asked, iif(t.default_pixels > 0, round(sqrt(t.default_pixels)), k.default_image_side_pixels))::DOUBLE;

-- tokens of the tower for one sequence: whole groups of patches where they are merged
CREATE OR REPLACE MACRO tower_tokens(t, x, k) AS CASE
    WHEN t.component = 'vision' THEN x.images * CASE t.grid
        WHEN 'dynamic' THEN t.class_tokens + iif(t.processor.rule IS NULL, ceil(x.picture_width * x.picture_height / t.pixels),
            x.picture_rows * x.picture_columns * greatest(t.merged, 1))
        WHEN 'tiles' THEN image_tiles(t, x.picture_rows, x.picture_columns) * (t.class_tokens + t.tokens)
        ELSE t.class_tokens + t.tokens
    END
    WHEN t.grid = 'fixed' THEN t.tokens
    WHEN t.component = 'audio' THEN coalesce(ceil(x.audio_seconds * k.audio_samples_per_second / t.inputs), x.context_tokens)
    ELSE x.context_tokens
END;

-- tokens of the prompt for the images of one sequence; null where the processor is not known
CREATE OR REPLACE MACRO prompt_image_tokens(t, x) AS iif(t.component <> 'vision' OR t.reader <> 'language-model' OR x.images = 0, 0,
    x.images * image_tokens(t, t.processor, x.picture_width, x.picture_height, x.picture_rows, x.picture_columns));

-- Everything below reads x.tower_tokens. Per token the widest moment; a mask over all images in one row, or a bias that all sequences
-- share; the prompt's embeddings, which wait for the tokens of its images.
CREATE OR REPLACE MACRO tower_bytes_of(t, m, x) AS x.compute_bytes * (
    x.sequences * x.tower_tokens * (t.inputs + t.kept + greatest(
        wide_tensors(t.activation, t.is_gated) * t.width + t.hidden_tensors * t.hidden + t.tables,
        iif(x.compute_bytes = 2, t.rotary_tensors * t.hidden + t.tables, 0),
        t.stem))
    + t.square * x.tower_tokens * x.tower_tokens * iif(t.component = 'vision', x.sequences * x.sequences, 1)
) + iif(t.reader = 'language-model', step_tokens(x) * (x.compute_bytes * m.hidden_size + 8), 0);

-- A decoder's steps, one token a sequence: beside the encoder's output, its new keys and values are there twice while they are added to
-- the cache, all of the encoder's at the first step, one layer's own at the last; or the logits.
CREATE OR REPLACE MACRO decoder_step_bytes(m, x) AS greatest(logit_bytes(m, x), x.sequences * x.compute_bytes * greatest(
    list_max(list_transform(m.caches, lambda c: iif(c.mechanism = 'cross', 0, c.elements / 2 * x.context_tokens))),
    list_max(list_transform(m.caches, lambda c: iif(c.mechanism = 'cross', c.elements * x.cross_tokens, 0)))
        - list_sum(list_transform(m.caches, lambda c: iif(c.mechanism = 'cross', 0, c.layers * c.elements * x.context_tokens)))));

CREATE OR REPLACE MACRO text_stage_bytes(m, x) AS CASE
    WHEN m.caches IS NULL THEN 0
    WHEN m.tower.component = 'encoder' THEN decoder_step_bytes(m, x)
    ELSE prefill_bytes_transformers(m, x)
END
    -- what the caller and the model still hold of a tower's inputs and outputs
    + coalesce(x.compute_bytes * x.sequences * x.tower_tokens * (m.tower.inputs + m.tower.outputs), 0)
    -- text that reads images by cross-attention has a mask over both
    + iif(m.tower.component = 'vision' AND m.tower.reader = 'cross-attention',
        x.compute_bytes * step_tokens(x) * coalesce(x.tower_tokens, 0), 0);

-- vLLM runs its encoder at start on as many of the largest images as a step's tokens hold, one at least, and keeps what they became while it
-- runs the text. What reads images by cross-attention has no such tokens.
CREATE OR REPLACE MACRO reads_images_in_vllm(x) AS coalesce(starts_with(x.engine_id, 'vllm') AND x.images > 0, false);
CREATE OR REPLACE MACRO profiled_images(m, k) AS greatest(1, floor(k.vllm_batched_tokens / m.largest_image_tokens));

CREATE OR REPLACE MACRO profiled_tower_tokens(t, m, k) AS profiled_images(m, k) * CASE t.grid
    WHEN 'dynamic' THEN t.class_tokens + m.largest_image_tokens * greatest(t.merged, 1)
    WHEN 'tiles' THEN m.largest_image_tiles * (t.class_tokens + t.tokens)
    ELSE t.class_tokens + t.tokens
END;

CREATE OR REPLACE MACRO encoder_cache_bytes(t, m, x, k) AS coalesce(try_cast(ceil(x.compute_bytes * profiled_images(m, k) * m.largest_image_tokens
    * (m.hidden_size + t.kept * greatest(t.merged, 1))) AS BIGINT), 0);

CREATE OR REPLACE MACRO profiled_tower_bytes(t, m, x, k) AS x.compute_bytes * profiled_tower_tokens(t, m, k) * (t.inputs + t.kept + greatest(
    wide_tensors(t.activation, t.is_gated) * t.width + t.hidden_tensors * t.hidden + t.tables,
    iif(x.compute_bytes = 2, t.rotary_tensors * t.hidden + t.tables, 0),
    t.stem));

-- `held`: cache and states, which a server has set aside before anything runs; what is null is passed over
CREATE OR REPLACE MACRO stage_activations_bytes(m, x, k, held) AS greatest(
    inference_activations_bytes(m, x, k) + iif(reads_images_in_vllm(x), encoder_cache_bytes(m.tower, m, x, k), 0),
    iif(reads_images_in_vllm(x), try_cast(ceil(profiled_tower_bytes(m.tower, m, x, k)) AS BIGINT), NULL),
    iif(x.engine_id IN ('llama.cpp', 'mlx-lm') OR x.tower_tokens = 0, NULL,
        try_cast(ceil(tower_bytes_of(m.tower, m, x)) AS BIGINT) - iif(is_server(x), 0, held)));

CREATE OR REPLACE MACRO inference_activations_bytes(m, x, k) AS try_cast(ceil(CASE
    WHEN starts_with(x.engine_id, 'transformers') THEN text_stage_bytes(m, x)
    WHEN x.engine_id = 'sglang' THEN chunk_bytes_sglang(m, x, k)
    WHEN is_server(x) THEN profile_bytes_vllm(m, x, k)
    WHEN x.engine_id = 'llama.cpp' THEN compute_buffer_bytes_llama_cpp(m, x, k)
    WHEN x.engine_id = 'mlx-lm' THEN chunk_bytes_mlx(m, x, k)
END) AS BIGINT);
