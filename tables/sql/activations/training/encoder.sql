-- Encoders of a window of their own: tokens that they have for each of the decoder's, and what that adds.
--
-- Units: a ratio; bytes per token of the decoder. Source: transformers-step-oracle, read as kept.sql says.
-- Not covered: the convolutions before them, which keep six times the hidden state.

-- Encoders of a window of their own have encoder_ratio tokens for each of the decoder's: what that adds to the sums over both. Their
-- norms are two a layer of the decoder's three. (The convolutions before them keep six times the hidden state.)
CREATE OR REPLACE MACRO encoder_ratio(m, x) AS
    iif(coalesce(m.tower.component = 'encoder' AND m.tower.grid = 'fixed', false), m.tower.tokens::DOUBLE / x.context_tokens, 1);

CREATE OR REPLACE MACRO encoder_hidden_kept(m, x) AS iif(x.encoder_ratio = 1, 0, (x.encoder_ratio - 1) * (
    2 * m.encoder_layer_count * (m.hidden_size * (x.norm_bytes + iif(x.is_adapter OR x.is_autocast, 0, x.compute_bytes)
        + iif(m.hidden_dropout > 0, 1, 0)) + 8)
    + iif(x.is_autocast, 2 * (m.encoder_hidden_input_sum + 2 * m.cross_layer_count * m.hidden_size), 0)));

CREATE OR REPLACE MACRO encoder_adapter_share(m, x) AS iif(x.is_adapter AND x.encoder_ratio <> 1,
    (of_targets(x, m.encoder_attention_sum, m.encoder_query_value_sum, m.encoder_linear_sum)
        + iif(x.lora_targets = 'query-value', 1, 2) * m.cross_layer_count * m.hidden_size) / greatest(adapted_inputs(m, x), 1), 0);
