-- What recurrent layers hold in a step of Transformers: kept for the backward pass, and the most of backward and
-- prefill beside it.
--
--   bytes per token = token + (padded × tokens in whole chunks + sequence) ÷ context tokens
--
-- Units: bytes per token of one layer. Source: recurrence.csv by way of model/recurrence.sql, 
-- Not covered: what that file does not cover.

-- What runs: all weights, adapters, or adapters over a quantised base that was prepared in fp32, and in which
-- precision.
CREATE OR REPLACE MACRO recurrent_regime(scenario) AS CASE
    WHEN scenario.phase_id = 'inference' THEN iif(scenario.compute_bytes = 4, 'prefill-32', 'prefill-16')
    ELSE iif(scenario.is_adapter, iif(is_prepared(scenario), 'qlora-', 'lora-'), 'full-')
        || iif(scenario.precision = 'amp', 'amp', iif(scenario.compute_bytes = 4, '32', '16'))
END;

-- layer: one of shape's recurrences
CREATE OR REPLACE MACRO recurrent_bytes(layer, moment_asked, scenario) AS list_max(list_transform(
    list_filter(layer.moments, lambda held: held.regime = recurrent_regime(scenario) AND held.moment = moment_asked),
    lambda held: held.token + (held.padded * ceil(scenario.context_tokens / layer.chunk_tokens) * layer.chunk_tokens
        + held.sequence) / scenario.context_tokens));

-- as the parts of attention in kept.sql: layers, what one keeps, and the most that backward holds beside it
CREATE OR REPLACE MACRO recurrent_parts(model, scenario) AS
    list_transform(coalesce(model.recurrences, []), lambda layer: {
        'layer_count': layer.layer_count,
        'kept': recurrent_bytes(layer, 'kept', scenario)::DOUBLE,
        'gradients': recurrent_bytes(layer, 'backward', scenario)::DOUBLE});

-- beside the layer's input, the residual and the embeddings, and what else the class has names for (residual_extra)
CREATE OR REPLACE MACRO recurrent_prefill_bytes(model, scenario) AS iif(len(coalesce(model.recurrences, [])) = 0, 0,
    step_tokens(scenario) * ((3 + model.residual_extra) * scenario.compute_bytes * model.hidden_size
        + list_max(list_transform(model.recurrences, lambda layer: recurrent_bytes(layer, 'prefill', scenario)))));

CREATE OR REPLACE MACRO has_unknown_recurrence(model) AS coalesce(list_bool_or(list_transform(model.caches,
    lambda layer: layer.mechanism = 'recurrent')), false) AND model.recurrences IS NULL;
