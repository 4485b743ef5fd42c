-- What the recurrent layers of a model hold in Transformers, in bytes of one layer, by what runs and when.
--
--   token, padded, sequence = Σ over the widths of the layer: bytes for each element (recurrence.csv) × width
--
-- Units: bytes per token, per token of whole chunks, and per sequence. Widths: hidden size, convolution channels, keys and values of
--   all heads, heads, heads × tokens of a chunk, and the state: once for every chunk (padded) or sequence.
-- Source: recurrence.csv, fitted to single layers of transformers 5.23.0 under fake tensors (tests/oracle/count_mixers.py).
-- The code is the plain PyTorch one, which runs where causal-conv1d, mamba-ssm and flash-linear-attention are not installed. With these
--   kernels a layer holds less, so that what is said to fit fits with them too.
-- Not covered: kernels; the packages' own buffers; layers whose code was not read (recurrence is null).

CREATE OR REPLACE TEMP TABLE recurrent_shape AS
WITH layer AS (
    SELECT
        a.model_id, a.kind, a.layer_count, a.recurrence, greatest(a.chunk_tokens, 1) AS chunk, model.hidden_size AS hidden,
        a.convolution_width AS channels, a.recurrent_head_count * a.recurrent_key_dim AS keys,
        a.recurrent_head_count * a.recurrent_value_dim AS "values", a.recurrent_head_count AS heads
    FROM attention_layer AS a JOIN model USING (model_id)
    WHERE a.mechanism = 'recurrent' AND a.component IN ('text', 'decoder')
),
part AS (
    SELECT
        layer.*, r.regime, r.moment, r.part, r.per,
        r.per_hidden * hidden + r.per_convolution * channels + r.per_key * keys + r.per_value * "values" + r.per_head * heads
            + r.per_chunk * heads * chunk
            + r.per_state * keys * "values" / greatest(heads, 1) / iif(r.per = 'padded', chunk, 1) AS amount
    FROM layer JOIN recurrence AS r USING (recurrence)
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
    iif(bool_and(moments IS NOT NULL), list({'layers': layer_count, 'chunk': chunk, 'moments': moments} ORDER BY kind), NULL) AS recurrences
FROM layer LEFT JOIN held USING (model_id, kind)
GROUP BY model_id;
