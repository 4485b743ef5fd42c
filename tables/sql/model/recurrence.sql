-- What the recurrent layers of a model hold in Transformers, in bytes of one layer, by what runs and when.
--
--   token, padded, sequence = Σ over the widths of the layer: bytes for each element (recurrence.csv) × width
--
-- Units: bytes per token, per token of whole chunks, and per sequence. Widths: hidden size, convolution channels, keys
--   and values of all heads, heads, heads × tokens of a chunk, and the state: once for every chunk (padded) or
--   sequence.
-- Source: recurrence.csv, fitted to single layers of transformers 5.23.0 under fake tensors
-- (tests/oracle/count_mixers.py). The code is the plain PyTorch one, which runs where causal-conv1d, mamba-ssm and
--   flash-linear-attention are not installed. With these kernels a layer holds less, so that what is said to fit fits
--   with them too.
-- Not covered: kernels; the packages' own buffers; layers whose code was not read (recurrence is null).

CREATE OR REPLACE TEMP TABLE recurrent_shape AS
WITH layer AS (
    SELECT
        mixer.model_id, mixer.kind, mixer.layer_count, mixer.recurrence, greatest(mixer.chunk_tokens, 1) AS chunk,
        model.hidden_size AS hidden,
        mixer.convolution_width AS channels, mixer.recurrent_head_count * mixer.recurrent_key_dim AS keys,
        mixer.recurrent_head_count * mixer.recurrent_value_dim AS "values", mixer.recurrent_head_count AS heads,
        mixer.recurrent_value_dim AS value_dim
    FROM attention_layer AS mixer JOIN model USING (model_id)
    WHERE mixer.mechanism = 'recurrent' AND mixer.component IN ('text', 'decoder')
),
part AS (
    SELECT
        layer.*, rate.regime, rate.moment, rate.part, rate.per,
        rate.per_hidden * hidden + rate.per_convolution * channels + rate.per_key * keys + rate.per_value * "values"
            + rate.per_head * heads
            + rate.per_chunk * heads * chunk
            + rate.per_state * keys * value_dim / iif(rate.per = 'padded', chunk, 1) AS amount
    FROM layer JOIN recurrence AS rate USING (recurrence)
),
moment AS (
    SELECT
        model_id, kind, regime, moment, part,
        coalesce(sum(amount) FILTER (per = 'token'), 0) AS token,
        coalesce(sum(amount) FILTER (per = 'padded'), 0) AS padded,
        coalesce(sum(amount) FILTER (per = 'sequence'), 0) AS sequence
    FROM part GROUP BY ALL
),
held AS (
    SELECT
        model_id, kind,
        list({'regime': regime, 'moment': moment, 'token': token, 'padded': padded, 'sequence': sequence}
            ORDER BY regime, moment, part) AS moments
    FROM moment GROUP BY ALL
)
SELECT
    model_id,
    -- null where what one of the layers holds is not known
    iif(bool_and(moments IS NOT NULL), list({'layer_count': layer_count, 'chunk_tokens': chunk, 'moments': moments}
        ORDER BY kind), NULL) AS recurrences
FROM layer LEFT JOIN held USING (model_id, kind)
GROUP BY model_id;
