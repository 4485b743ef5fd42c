-- The key-value cache: what attention can ever read, and what the engine sets aside beyond it.
--
--   kv_cache_bytes   = sequences × Σ layers × elements_per_token × min(context, window) × kv bits ÷ 8
--   kv_padding_bytes = what the engine allocates for the same sequences less that
--
-- Units: bytes per GPU. elements_per_token is 2 × kv_heads × head_dim, or the latent of MLA; cross-attention caches the
--   encoder's tokens: as many as the context, or the window that the encoder reads whatever it is asked.
-- Sources: arithmetic over attention_layer (every layer's own window); padding by engine from its allocator:
--   transformers keeps the whole prompt of a windowed layer alive through prefill, and repeated heads where it repeats them
--   before it caches them; vLLM rounds to blocks and keeps window − 1 + batched tokens of a windowed layer; llama.cpp rounds the
--   cells to a multiple and keeps window + micro-batch, of architectures whose windows it knows (engine_window), else the whole context;
--   MLX LM grows a cache in steps of 256 tokens and keeps window − 1 + the tokens that it reads at a time, of such architectures.
-- Tensor parallelism divides the heads, never below one a GPU; a latent is held whole by every rank. Pipelines and layer
--   splits take the GPU with the most layers (stage_share).
-- Not covered: prefix sharing, grouped block sizes of hybrid models in vLLM, beam search.

-- share of a layer's cache that one GPU holds
CREATE OR REPLACE MACRO kv_share(cache, x) AS CASE
    WHEN x.gpu_count = 1 THEN 1.0
    WHEN cache.mechanism = 'mla' THEN x.stage_share
    ELSE x.stage_share * ceil(cache.kv_heads / x.tensor_parallel) / greatest(cache.kv_heads, 1)
END;

-- tokens that a layer can ever read
CREATE OR REPLACE MACRO read_tokens(cache, x) AS iif(cache.mechanism = 'cross', x.cross_tokens,
    least(x.context_tokens, coalesce(cache.win, x.context_tokens)));

CREATE OR REPLACE MACRO kv_cache_bytes(m, x) AS try_cast(ceil(
    x.sequences * x.kv_element_bits / 8.0 * coalesce(list_sum(list_transform(m.caches, lambda cache:
        cache.layers * cache.elements * kv_share(cache, x) * read_tokens(cache, x))), 0)
) AS BIGINT);

-- tokens that the engine holds memory for in one layer and sequence
CREATE OR REPLACE MACRO reserved_tokens(cache, m, x, k) AS CASE
    WHEN starts_with(x.engine_id, 'transformers') THEN x.context_tokens
    WHEN is_server(x) AND cache.win IS NULL
        THEN k.vllm_block_tokens * ceil(x.context_tokens / k.vllm_block_tokens)
    WHEN is_server(x)
        THEN k.vllm_block_tokens * (1 + ceil(least(x.context_tokens, cache.win - 1 + k.vllm_batched_tokens) / k.vllm_block_tokens))
    WHEN x.engine_id = 'llama.cpp'
        THEN k.llama_cpp_cell_multiple * ceil(
            least(x.context_tokens, coalesce(iif(has_windows(m, 'llama.cpp'), cache.win, NULL) + k.llama_cpp_micro_batch_tokens, x.context_tokens)) / k.llama_cpp_cell_multiple)
    -- a rotating cache holds the window and what is read at a time; any other grows in steps
    WHEN x.engine_id = 'mlx-lm'
        THEN k.mlx_cell_multiple * ceil(least(x.context_tokens,
            coalesce(iif(has_windows(m, 'mlx-lm'), cache.win, NULL) - 1 + k.mlx_prefill_tokens, x.context_tokens)) / k.mlx_cell_multiple)
    ELSE x.context_tokens
END;

-- heads that are repeated before they are cached
CREATE OR REPLACE MACRO cached_copies(cache, m, x) AS iif(
    starts_with(x.engine_id, 'transformers') AND m.attention_form = 'broadcast' AND cache.kv_heads > 1, m.head_max / cache.kv_heads, 1);

CREATE OR REPLACE MACRO kv_padding_bytes(m, x, k) AS try_cast(ceil(
    x.sequences * x.kv_element_bits / 8.0 * coalesce(list_sum(list_transform(m.caches, lambda cache:
        cache.layers * cache.elements * kv_share(cache, x) * greatest(0, iif(cache.mechanism = 'cross', 0,
            reserved_tokens(cache, m, x, k) * cached_copies(cache, m, x) - read_tokens(cache, x))))), 0)
) AS BIGINT);
