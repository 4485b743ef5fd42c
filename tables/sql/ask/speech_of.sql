-- Speech by seconds of sound: a language model that writes the codes of a codec, and the codec that makes sound of
-- them; or a class of its own that was run whole, one that hears too.
--
--   context_tokens = text_tokens + ceil(seconds × tokens_per_second)
--   codec_bytes    = weights of the codec + what it holds while it decodes beyond the activations of the model, with
--                    the blocks that lie unused beside it: seconds at once × decode_bytes + samples of the result
--   error_band     = the model's, and no less than that of pipelines with the spread of unused blocks
--
-- The rest is the footprint of that context in Transformers. Of a class that was run whole (sound_class):
--
--   activations_bytes = the larger of two stages' needs
--                         constant_bytes + seconds × bytes_per_second
--                         other_constant_bytes + seconds × other_bytes_per_second + seconds² × other_bytes_per_square
--   weights_bytes     = parameters × element_bytes + beside_bytes (buffers, a codec of another repository);
--                       overhead and error_band as of a stage of a pipeline
--
-- What a codec decodes at once is all of the sound, but for
-- one that cuts it (most_decode_seconds).
-- Units: bytes, one GPU. Sources: speech_model (which model writes for which codec), speech_codec (counted on the
-- codec's own class: tests/oracle/speech_codecs.csv), sound_class (tests/oracle/sound_classes.csv). Not covered: voices
-- that are copied from a recording, models that make sound otherwise (a reason says so), a server beside the codec,
-- streaming, which holds less.

CREATE OR REPLACE MACRO decoding_bytes(codec, dtype_id, seconds) AS ceil(greatest(codec.least_decode_bytes,
    least(seconds, coalesce(codec.most_decode_seconds, seconds))
        * iif(dtype_id = 'fp32', codec.decode_bytes_32, codec.decode_bytes_16))
    + iif(codec.most_decode_seconds IS NULL, 0, seconds * codec.result_samples_per_second * codec.element_bytes));

CREATE OR REPLACE MACRO sound_class_bytes(class, seconds) AS ceil(greatest(
    class.constant_bytes + least(seconds, class.most_seconds) * class.bytes_per_second,
    class.other_constant_bytes + least(seconds, class.most_seconds) * (class.other_bytes_per_second
        + least(seconds, class.most_seconds) * class.other_bytes_per_square)));

CREATE OR REPLACE MACRO speech_reason(model, asked, codec, class, counted_bits, given) AS CASE
    WHEN given IS NOT NULL THEN given
    WHEN asked.seconds IS NULL OR asked.seconds <= 0 THEN 'seconds start above 0'
    WHEN asked.engine_id <> 'transformers' THEN 'speech is counted as Transformers makes it'
    WHEN model.model_id IS NULL THEN 'no such model in the snapshot'
    WHEN counted_bits IS NOT NULL AND class.sound_type IS NULL
        THEN 'its class was counted in ' || counted_bits || ' bits; what other formats hold is not known'
    WHEN NOT class.is_cut AND asked.seconds > class.most_seconds THEN 'its class was counted with up to '
        || class.most_seconds::BIGINT || ' seconds of sound at once (table sound_class)'
    WHEN class.sound_type IS NOT NULL THEN NULL
    WHEN codec.codec_id IS NULL
        THEN 'how its speech is written as tokens is not known (table speech_model)'
    WHEN asked.context_tokens > model.max_context_tokens THEN 'the speech takes ' || asked.context_tokens
        || ' tokens, and the model reads ' || model.max_context_tokens
END;

-- What was asked, with the model, its codec or its class.
CREATE OR REPLACE MACRO speech_asked(model_id, seconds, dtype_id, engine_id, text_tokens) AS TABLE
WITH said AS (
    SELECT known_model(model_id) AS model_id, try_cast(seconds AS DOUBLE) AS seconds,
        coalesce(lower(dtype_id::VARCHAR), 'bf16') AS dtype_id,
        coalesce(lower(engine_id::VARCHAR), 'transformers') AS engine_id,
        coalesce(asked_number(text_tokens), 512) AS text_tokens,
        coalesce(number_reason('seconds', ceil(try_cast(seconds AS DOUBLE)), constants.most_audio_seconds),
            number_reason('text_tokens', text_tokens, constants.most_context_tokens)) AS argument_reason
    FROM constants_row
)
SELECT said.*, codec, model, class, counted.bits AS counted_bits,
    (said.text_tokens + ceil(said.seconds * codec.tokens_per_second))::BIGINT AS context_tokens
FROM said
LEFT JOIN model ON model.model_id = said.model_id
LEFT JOIN speech_model AS writes ON writes.writer_type = model.model_type
    AND (writes.vocab_size IS NULL OR writes.vocab_size = model.vocab_size)
LEFT JOIN speech_codec AS codec ON codec.codec_id = writes.codec_id
LEFT JOIN dtype ON dtype.dtype_id = said.dtype_id AND dtype.is_trainable
LEFT JOIN sound_class AS class ON class.sound_type = model.model_type
    AND class.parameter_count = model.parameter_count AND 8 * class.element_bytes = dtype.bits_per_weight
LEFT JOIN (
    SELECT sound_type, parameter_count, string_agg((8 * element_bytes)::VARCHAR, ' or ' ORDER BY element_bytes) AS bits
    FROM sound_class GROUP BY ALL
) AS counted ON counted.sound_type = model.model_type AND counted.parameter_count = model.parameter_count;

CREATE OR REPLACE MACRO speech_of(
    model_id, seconds := 30, dtype_id := 'bf16', engine_id := 'transformers', text_tokens := 512
) AS TABLE
WITH asked AS (FROM speech_asked(model_id, seconds, dtype_id, engine_id, text_tokens)),
scenario_asked AS (
    SELECT asked.model_id AS model_id, asked.dtype_id AS dtype_id, 'inference' AS phase_id,
        asked.engine_id AS engine_id, asked.context_tokens AS context_tokens, 1 AS sequences,
        NULL::VARCHAR AS kv_dtype_id, NULL::VARCHAR AS optimizer_id, NULL::VARCHAR AS checkpointing,
        NULL::VARCHAR AS attention, 1 AS gpu_count
    FROM asked
),
worked AS (
    SELECT asked.model_id AS asked_id, asked.seconds, asked.codec, asked.class.sound_type IS NOT NULL AS is_whole,
        pipeline_sum(asked.model.parameter_count * asked.class.element_bytes + asked.class.beside_bytes,
            sound_class_bytes(asked.class, asked.seconds),
            pipeline_end(asked.model.parameter_count * asked.class.element_bytes + asked.class.beside_bytes,
                sound_class_bytes(asked.class, asked.seconds), constants), NULL, constants) AS whole,
        footprint.* REPLACE (with_nearest(footprint.unknown_reason, footprint.model_id) AS unknown_reason),
        greatest(0, decoding_bytes(asked.codec, asked.dtype_id, asked.seconds) - footprint.activations_bytes)
            AS beyond_bytes,
        speech_reason(asked.model, asked, asked.codec, asked.class, asked.counted_bits, asked.argument_reason) AS reason
    FROM constants_row CROSS JOIN asked
    CROSS JOIN footprints_in('scenario_asked', 'inference', is_plain := true) AS footprint
)
SELECT worked.asked_id AS model_id, worked.dtype_id, worked.engine_id, worked.seconds,
    iif(reason IS NULL AND NOT is_whole, worked.context_tokens, NULL) AS context_tokens, codec.codec_id,
    iif(reason IS NULL, iif(is_whole, whole.weights_bytes, worked.weights_bytes), NULL) AS weights_bytes,
    iif(reason IS NULL AND NOT is_whole, worked.kv_cache_bytes, NULL) AS kv_cache_bytes,
    iif(reason IS NULL, iif(is_whole, whole.activations_bytes, worked.activations_bytes), NULL) AS activations_bytes,
    iif(reason IS NULL, iif(is_whole, whole.overhead_bytes, worked.overhead_bytes), NULL) AS overhead_bytes,
    iif(reason IS NULL AND worked.total_bytes IS NOT NULL, codec.codec_parameter_count * codec.element_bytes
        + beyond_bytes + ceil(constants.unused_blocks_inference * beyond_bytes), NULL)::BIGINT AS codec_bytes,
    iif(reason IS NULL, iif(is_whole, whole.total_bytes, worked.total_bytes + codec_bytes), NULL) AS total_bytes,
    iif(reason IS NULL, iif(is_whole, whole.error_band, greatest(worked.error_band, constants.error_band_pipeline
        + constants.unused_blocks_spread * (worked.activations_bytes + beyond_bytes)
            / (worked.total_bytes + codec_bytes))), NULL) AS error_band,
    coalesce(reason, iif(is_whole, NULL, worked.unknown_reason)) AS unknown_reason
FROM worked CROSS JOIN constants_row;

-- free_bytes := n is what is free of the card, or of one that nobody names (gpu_id NULL).
CREATE OR REPLACE MACRO speech_fits_on(
    gpu_id, model_id, seconds := 30, dtype_id := 'bf16', engine_id := 'transformers', text_tokens := 512,
    free_bytes := NULL
) AS TABLE
WITH card_asked AS (
    SELECT asked.gpu_id, gpu.gpu_id AS known_id, card_kind(gpu) AS card_kind,
        asked.gpu_id IS NULL AND asked.free_bytes IS NOT NULL AS is_any,
        iif(asked.gpu_id IS NULL OR gpu.gpu_id IS NOT NULL, asked_bytes(gpu, asked.free_bytes), NULL) AS bytes
    FROM (SELECT gpu_id::VARCHAR AS gpu_id, free_bytes::BIGINT AS free_bytes) AS asked
    LEFT JOIN gpu ON gpu.gpu_id = lower(asked.gpu_id)
)
SELECT coalesce(card.known_id, card.gpu_id) AS gpu_id, speech.model_id, speech.dtype_id, speech.seconds,
    speech.total_bytes, card.bytes AS capacity_bytes, card.bytes - speech.total_bytes AS headroom_bytes,
    iif(card.is_any OR card_reason(running) IS NULL,
        card_verdict(speech.total_bytes, speech.error_band, card.bytes, 1), NULL) AS verdict,
    iif(card.is_any, with_nearest(speech.unknown_reason, speech.model_id),
        no_verdict_reason(card.known_id, card.gpu_id, speech.total_bytes, speech.unknown_reason, speech.model_id,
            card_reason(running))) AS unknown_reason
FROM card_asked AS card
CROSS JOIN speech_of(model_id, seconds := seconds, dtype_id := dtype_id, engine_id := engine_id,
    text_tokens := text_tokens) AS speech
LEFT JOIN runs_on_kind AS running ON running.engine_id = speech.engine_id AND running.running_id = speech.dtype_id
    AND running.phase_id = 'inference' AND running.attention = 'flash' AND running.card_kind = card.card_kind;
