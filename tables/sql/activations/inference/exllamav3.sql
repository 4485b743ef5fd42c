-- ExLlamaV3: what it holds of a chunk of a prompt, whose matrices are taken apart into 16 bits one at a time.
--
-- The largest moment of a chunk of T tokens, of one sequence (the others wait):
--     feed-forward  T × (14 × hidden + width × 10, 6 or 4) + 2 × hidden × width: the residual, what attention put
--         out and what the block puts out in fp32, its input in 16 bits; gate and up in fp32 and their product in 16,
--         all three in 16, or gate and product; the matrix that takes the product back
--     attention     T × (6 × hidden + 6 × queries + 4 × keys) + partial results of what is divided along the
--         context + of a packed cache keys and values of 65,536 tokens of a layer in 16 bits
--     its output    T × (10 × hidden + 6 × queries + 4 × keys) + 2 × hidden × queries
--     logits        of each sequence's last token in 16 bits
--
-- Beside it (exllamav3_standing_bytes): work spaces of its extension, what is left of the blocks of 128 MiB that
-- weights are laid into, and what its loader wants free beyond the largest step: it refuses a model otherwise, and that
-- takes in what the allocator keeps unused.
--
-- Units: bytes. Sources: exllamav3-1.6.5 by file, exllamav3-counted: its classes on fake tensors.
-- Not covered: routed experts, latent and recurrent layers, rings of windowed ones (other classes than those of
-- engine_memory.csv), pictures, drafts, LoRAs, several GPUs, what a sampler holds, kernels below capability 8.0.

CREATE OR REPLACE MACRO chunk_tokens_exl3(scenario, constants) AS least(scenario.context_tokens,
    coalesce(scenario.program_base.prompt_chunk_tokens, constants.exl3_chunk_tokens));

CREATE OR REPLACE MACRO feed_forward_width(model) AS greatest(model.gated_max, model.plain_max);

-- bytes of each element of a feed-forward block's width (engine_gap says of which classes they are fewer)
CREATE OR REPLACE MACRO wide_bytes_each(model, engine_id) AS CASE
    WHEN list_contains(model.in_place_engines, engine_id) THEN 4
    WHEN list_contains(model.in_half_engines, engine_id) THEN 6
    ELSE 10
END;

-- (of a short chunk, such as a prompt's last one, a copy of what is multiplied is rotated)
CREATE OR REPLACE MACRO feed_forward_bytes_exl3(model, scenario, tokens, constants) AS
    greatest(tokens * (14 * model.hidden_size + feed_forward_width(model) * wide_bytes_each(model, scenario.engine_id)),
        least(tokens, constants.exl3_folded_from_tokens - 1) * (14 * model.hidden_size
            + feed_forward_width(model) * (wide_bytes_each(model, scenario.engine_id) + 2)))
    + 2 * model.hidden_size * feed_forward_width(model);

-- Keys and values of a packed cache, unpacked for a layer: the loader wants room for all of it whatever the cache.
CREATE OR REPLACE MACRO staged_cache_bytes(model, scenario, constants) AS iif(scenario.kv_element_bits < 16,
    2 * constants.exl3_staged_tokens * coalesce(list_max(list_transform(model.caches,
        lambda layer: layer.elements_per_token)), 0), 0);

-- Attention that is divided along the context, whose kernels take heads of a power of two.
CREATE OR REPLACE MACRO partial_attention_bytes(model, scenario, tokens, constants) AS
    iif(scenario.context_tokens >= constants.exl3_divided_from_tokens OR scenario.kv_element_bits < 16,
        greatest(constants.exl3_partial_bytes,
            4 * tokens * model.head_max * pow(2, ceil(log2(model.head_dim_max)))), 0);

CREATE OR REPLACE MACRO attention_bytes_exl3(model, scenario, tokens, constants) AS
    tokens * (6 * model.hidden_size + 6 * model.query_max + 4 * model.key_max) + greatest(
        partial_attention_bytes(model, scenario, tokens, constants) + staged_cache_bytes(model, scenario, constants),
        4 * tokens * model.hidden_size + 2 * model.hidden_size * model.query_max);

CREATE OR REPLACE MACRO chunk_bytes_exl3(model, scenario, constants) AS greatest(
    feed_forward_bytes_exl3(model, scenario, chunk_tokens_exl3(scenario, constants), constants),
    attention_bytes_exl3(model, scenario, chunk_tokens_exl3(scenario, constants), constants),
    scenario.sequences * 2 * model.vocab_size);

CREATE OR REPLACE MACRO exllamav3_standing_bytes(scenario, constants) AS constants.exl3_workspace_bytes
    + constants.exl3_load_block_bytes
    + 1048576 * greatest(constants.exl3_margin_mib, coalesce(scenario.program_base.loader_free_mib, 0));
