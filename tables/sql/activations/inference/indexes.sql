-- What vLLM sets aside to pick latents by an index: DeepSeek-V3.2, GLM-5.
--
--   index_logits_bytes    logits of the index in the profiled step
--   index_standing_bytes  what stands beside the cache whatever is asked of the server:
--       context × (gathered_contexts × unpacked latents, of a packed cache, or indexed_contexts × index keys,
--           whichever is larger: one work space serves both)
--       + context × 4 bytes × rows: logits of the index over the whole context in captured graphs
--       + tokens of a step × padded_heads × value_elements × 4 bytes × value_copies: what its kernel keeps
--           of a packed cache where a GPU has few heads
--
--   index_spread_bytes    what ROCm sets aside more: logits of every token of a step over the whole context. A
--       footprint is of no card, so it is part of the band
--
-- Units: bytes per GPU; no rank has a part of it. Source: latent_index.csv. Not covered: drafts, which have rows of
--   their own.

CREATE OR REPLACE MACRO index_logits_bytes(model, scenario) AS
    iif(has_latent_index(model, scenario.engine_id), model.latent_index.index_logit_bytes, 0);

CREATE OR REPLACE MACRO index_bytes_per_token(rule, scenario) AS greatest(
        iif(scenario.kv_dtype_id = rule.kv_dtype_id, rule.gathered_contexts * rule.gathered_entry_bytes, 0),
        rule.indexed_contexts * rule.index_entry_bytes)
    + 4 * greatest(scenario.rank_sequences, rule.captured_rows);

CREATE OR REPLACE MACRO value_copies_bytes(model, scenario, constants) AS
    iif(scenario.kv_dtype_id = model.latent_index.kv_dtype_id
            AND model.head_max / scenario.tensor_parallel < model.latent_index.least_heads,
        4 * profiled_tokens(scenario, constants) * model.latent_index.padded_heads
            * model.latent_index.value_elements * model.latent_index.value_copies, 0);

CREATE OR REPLACE MACRO index_standing_bytes(model, scenario, constants) AS
    iif(has_latent_index(model, scenario.engine_id),
        scenario.context_tokens * index_bytes_per_token(model.latent_index, scenario)
            + value_copies_bytes(model, scenario, constants), 0);

CREATE OR REPLACE MACRO index_spread_bytes(model, scenario, constants) AS
    iif(has_latent_index(model, scenario.engine_id),
        4 * profiled_tokens(scenario, constants) * scenario.context_tokens, 0);
