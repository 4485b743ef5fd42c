-- Encoders of a window of their own: tokens that they have for each of the decoder's, and what that adds.
--
-- Units: a ratio; bytes per token of the decoder. Source: transformers-step-oracle, read as kept.sql says.
-- Not covered: the convolutions before them, which keep six times the hidden state.

-- Encoders of a window of their own have encoder_ratio tokens for each of the decoder's: what that adds to the sums
-- over both. Their norms are two a layer of the decoder's three. (The convolutions before them keep six times the
-- hidden state.)
CREATE OR REPLACE MACRO encoder_ratio(model, scenario) AS
    iif(coalesce(model.tower.component = 'encoder' AND model.tower.grid = 'fixed', false),
        model.tower.tokens_each::DOUBLE / scenario.context_tokens, 1);

CREATE OR REPLACE MACRO encoder_hidden_kept(model, scenario) AS
    iif(scenario.encoder_ratio = 1, 0, (scenario.encoder_ratio - 1) * (
        2 * model.encoder_layer_count
            * (model.hidden_size * (scenario.norm_bytes + iif(scenario.is_adapter OR scenario.is_autocast, 0,
                scenario.compute_bytes)
            + iif(model.hidden_dropout > 0, 1, 0)) + 8)
        + iif(scenario.is_autocast, 2 * (model.encoder_hidden_input_sum + 2 * model.cross_layer_count
            * model.hidden_size), 0)));

CREATE OR REPLACE MACRO encoder_adapter_share(model, scenario) AS
    iif(scenario.is_adapter AND scenario.encoder_ratio <> 1,
        (of_targets(scenario, model.encoder_attention_sum, model.encoder_query_value_sum, model.encoder_linear_sum)
            + iif(scenario.lora_targets = 'query-value', 1, 2) * model.cross_layer_count * model.hidden_size)
                / greatest(adapted_inputs(model, scenario), 1), 0);
