-- Contexts at which a model's total bends: what the ladder needs besides the contexts that all models share.
--
-- A cache grows until the window of its layer is full: at the window in Transformers, a micro-batch later in llama.cpp, the batched tokens
-- of a step later in vLLM. The end of the ladder is the model's longest context.
-- Units: tokens. Source: kv-cache/kv_cache.sql, whose allocation rules these bends are.

CREATE OR REPLACE MACRO ladder_contexts(m, k) AS list_distinct(list_filter(
    list_append(flatten(list_transform(m.caches, lambda cache: [
        cache.win,
        ceil((cache.win + k.llama_cpp_micro_batch_tokens) / k.llama_cpp_cell_multiple) * k.llama_cpp_cell_multiple,
        ceil((cache.win - 1 + k.vllm_batched_tokens) / k.vllm_block_tokens) * k.vllm_block_tokens
    ])), m.max_context_tokens)::BIGINT[],
    lambda point: point >= 1 AND coalesce(point <= m.max_context_tokens, true)
));
