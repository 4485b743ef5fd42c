-- What recurrent layers hold in a step of Transformers: kept for the backward pass, and the most of backward and prefill beside it.
--
--   bytes per token = token + (padded × tokens in whole chunks + sequence) ÷ context tokens
--
-- Units: bytes per token of one layer. Source: recurrence.csv by way of model/recurrence.sql, which says what is not covered.

-- What runs: all weights, adapters, or adapters over a quantised base that was prepared in fp32, and in which precision.
CREATE OR REPLACE MACRO recurrent_regime(x) AS CASE
    WHEN x.phase_id = 'inference' THEN iif(x.compute_bytes = 4, 'prefill-32', 'prefill-16')
    ELSE iif(x.is_adapter, iif(is_prepared(x), 'qlora-', 'lora-'), 'full-')
        || iif(x.precision = 'amp', 'amp', iif(x.compute_bytes = 4, '32', '16'))
END;

-- c: one of shape's recurrences
CREATE OR REPLACE MACRO recurrent_bytes(c, moment_asked, x) AS list_max(list_transform(
    list_filter(c.moments, lambda q: q.regime = recurrent_regime(x) AND q.moment = moment_asked),
    lambda q: q.token + (q.padded * ceil(x.context_tokens / c.chunk) * c.chunk + q.sequence) / x.context_tokens));

-- as the parts of attention: layers, kept, and the most that backward holds beside it
CREATE OR REPLACE MACRO recurrent_parts(m, x) AS list_transform(coalesce(m.recurrences, []), lambda c: [
    c.layers, recurrent_bytes(c, 'kept', x), recurrent_bytes(c, 'backward', x)]);

-- beside the layer's input, the residual and the embeddings
CREATE OR REPLACE MACRO recurrent_prefill_bytes(m, x) AS iif(len(coalesce(m.recurrences, [])) = 0, 0,
    step_tokens(x) * (3 * x.compute_bytes * m.hidden_size
        + list_max(list_transform(m.recurrences, lambda c: recurrent_bytes(c, 'prefill', x)))));

CREATE OR REPLACE MACRO has_unknown_recurrence(m) AS coalesce(list_bool_or(list_transform(m.caches,
    lambda cache: cache.mechanism = 'recurrent')), false) AND m.recurrences IS NULL;
