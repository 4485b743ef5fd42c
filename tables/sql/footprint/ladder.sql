-- Contexts at which a model's total bends: what the ladder needs besides the contexts that all models share.
--
-- A cache grows until the window of its layer is full: at the window in Transformers, a micro-batch later in llama.cpp,
-- the batched tokens of a step later in vLLM. The end of the ladder is the model's longest context.
-- Units: tokens. Source: kv-cache/kv_cache.sql, whose allocation rules these bends are. Not covered: bends of
-- totals that are none of a cache, such as the chunks of the engine vllm-0.8.

CREATE OR REPLACE MACRO ladder_contexts(model, constants) AS list_distinct(list_filter(
    list_append(flatten(list_transform(model.caches, lambda layer: [
        layer.window_tokens,
        ceil((layer.window_tokens + constants.llama_cpp_micro_batch_tokens) / constants.llama_cpp_cell_multiple)
            * constants.llama_cpp_cell_multiple,
        ceil((layer.window_tokens - 1 + constants.vllm_batched_tokens) / constants.vllm_block_tokens)
            * constants.vllm_block_tokens
    ])), model.max_context_tokens)::BIGINT[],
    lambda point: point >= 1 AND coalesce(point <= model.max_context_tokens, true)
));
