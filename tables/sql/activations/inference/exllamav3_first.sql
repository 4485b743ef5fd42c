-- ExLlamaV3 before 0.0.5: what it holds of a chunk of a prompt, and what its loader leaves free.
--
-- Of each matrix that a chunk is multiplied with a rotated copy of the chunk and the matrix in 16 bits are made, one
-- matrix at a time. The largest moment of a chunk of T tokens, of one sequence (the others wait):
--     feed-forward  T × (hidden × 10, of blocks that put out 16 bits 8, 4 more of one that attends beside it
--         + width × 6) + 2 × hidden × width: the residual in fp32, the block's input and its rotated copy, what it puts
--         out; gate and up in 16 bits, and the copy of their product
--     attention     T × (hidden × 10 or 8 + 6 × queries + 4 × keys) + 2 × hidden × queries + of a packed cache keys
--         and values of a layer in 16 bits, all of the cache, which stand until the output is projected
--
-- Its loader reads a chunk without a cache with each layer that it has loaded, then makes logits of 32 tokens, and
-- leaves a part of the card free for as long: that counts where what a prompt takes later is less. The head is loaded
-- after all layers, into what the last one's chunk leaves.
--
-- Units: bytes. Sources: exllamav3-0.0.4 by file, exllamav3-first-counted: its classes on fake tensors.
-- Not covered: routed experts, towers, several GPUs, what a sampler holds, what the allocator leaves unused (in the
-- error band: weights come to lie in what a chunk left, and a cache of each layer among them).

CREATE OR REPLACE MACRO block_bytes_each_exl3(model, scenario) AS
    iif(list_contains(model.in_half_engines, scenario.engine_id), 8, 10);

CREATE OR REPLACE MACRO feed_forward_bytes_exl3_first(model, scenario, tokens) AS
    tokens * (model.hidden_size * (block_bytes_each_exl3(model, scenario) + iif(model.is_block_parallel, 4, 0))
        + 6 * feed_forward_width(model))
    + 2 * model.hidden_size * feed_forward_width(model);

CREATE OR REPLACE MACRO attention_bytes_exl3_first(model, scenario, tokens) AS
    tokens * (model.hidden_size * block_bytes_each_exl3(model, scenario) + 6 * model.query_max + 4 * model.key_max)
    + 2 * model.hidden_size * model.query_max;

-- keys and values of a layer, of all of a packed cache
CREATE OR REPLACE MACRO unpacked_cache_bytes_exl3(model, scenario, constants) AS iif(scenario.kv_element_bits < 16,
    2 * constants.exl3_page_tokens * ceil(scenario.context_tokens / constants.exl3_page_tokens) * scenario.sequences
        * coalesce(list_max(list_transform(model.caches, lambda layer: layer.elements_per_token)), 0), 0);

CREATE OR REPLACE MACRO chunk_bytes_exl3_first(model, scenario, constants) AS greatest(
    feed_forward_bytes_exl3_first(model, scenario, chunk_tokens_exl3(scenario, constants)),
    attention_bytes_exl3_first(model, scenario, chunk_tokens_exl3(scenario, constants))
        + unpacked_cache_bytes_exl3(model, scenario, constants),
    scenario.sequences * 2 * model.vocab_size);

-- what is alive while it loads beyond weights and cache: a chunk of the last layer without the head, logits with it
CREATE OR REPLACE MACRO loading_bytes_exl3_first(model, scenario, constants) AS greatest(
    greatest(feed_forward_bytes_exl3_first(model, scenario, loaded_tokens_exl3(scenario, constants)),
        attention_bytes_exl3_first(model, scenario, loaded_tokens_exl3(scenario, constants)))
        - constants.exl3_least_head_bits / 8 * model.vocab_size * model.hidden_size,
    2 * loaded_tokens_exl3(scenario, constants) * model.hidden_size
        + constants.exl3_loaded_logits * 2 * (model.vocab_size + model.hidden_size));

-- (a chunk as it is told, whatever the context)
CREATE OR REPLACE MACRO loaded_tokens_exl3(scenario, constants) AS
    coalesce(scenario.program_base.prompt_chunk_tokens, constants.exl3_chunk_tokens);

CREATE OR REPLACE MACRO exllamav3_first_standing_bytes(model, scenario, constants) AS constants.cublas_workspace_bytes
    + constants.exl3_locks_bytes + greatest(0, loading_bytes_exl3_first(model, scenario, constants)
        + 1048576 * coalesce(scenario.program_base.loader_free_mib, constants.exl3_reserve_mib)
        - chunk_bytes_exl3_first(model, scenario, constants));
