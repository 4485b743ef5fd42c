-- The key-value cache: what attention can ever read, and what the engine sets aside beyond it.
--
--   kv_cache_bytes   = sequences × Σ layers × elements_per_token × min(context, window) × kv bits ÷ 8
--   kv_padding_bytes = what the engine allocates for the same sequences less that
--
-- Units: bytes per GPU. elements_per_token is 2 × kv_heads × head_dim, or the latent of MLA; cross-attention caches the
--   encoder's tokens: as many as the context, or the window that the encoder reads whatever it is asked.
-- Sources: arithmetic over attention_layer (every layer's own window); padding by engine from its allocator:
--   transformers keeps the whole prompt of a windowed layer alive through prefill, and repeated heads where it repeats
--   them
--   before it caches them; vLLM rounds to blocks and keeps window − 1 + batched tokens of a windowed layer; llama.cpp
--   rounds the
--   cells to a multiple and keeps window + micro-batch, of architectures whose windows it knows (engine_window), else
--   the whole context;
--   MLX LM grows a cache in steps of 256 tokens and keeps window − 1 + the tokens that it reads at a time, of such
--   architectures.
-- Tensor parallelism divides the heads, never below one a GPU; a latent is held whole by every rank. Pipelines and
--   layer splits take the GPU with the most layers (stage_share).
-- Not covered: prefix sharing, grouped block sizes of hybrid models in vLLM, beam search.

-- share of a layer's cache that one GPU holds
CREATE OR REPLACE MACRO kv_share(layer, scenario) AS CASE
    WHEN scenario.gpu_count = 1 THEN 1.0
    WHEN layer.mechanism = 'mla' THEN scenario.stage_share
    ELSE scenario.stage_share * ceil(layer.kv_head_count / scenario.tensor_parallel) / greatest(layer.kv_head_count, 1)
END;

-- tokens that a layer can ever read
CREATE OR REPLACE MACRO read_tokens(layer, scenario) AS iif(layer.mechanism = 'cross', scenario.cross_tokens,
    least(scenario.context_tokens, coalesce(layer.window_tokens, scenario.context_tokens)));

CREATE OR REPLACE MACRO kv_cache_bytes(model, scenario) AS try_cast(ceil(
    scenario.sequences * scenario.kv_element_bits / 8.0 * coalesce(list_sum(list_transform(model.caches, lambda layer:
        layer.layer_count * layer.elements_per_token * kv_share(layer, scenario) * read_tokens(layer, scenario))), 0)
) AS BIGINT);

-- tokens that the engine holds memory for in one layer and sequence
CREATE OR REPLACE MACRO reserved_tokens(layer, model, scenario, constants) AS CASE
    WHEN starts_with(scenario.engine_id, 'transformers') THEN scenario.context_tokens
    WHEN is_server(scenario) AND layer.window_tokens IS NULL
        THEN constants.vllm_block_tokens * ceil(scenario.context_tokens / constants.vllm_block_tokens)
    WHEN is_server(scenario)
        THEN constants.vllm_block_tokens
            * (1 + ceil(least(scenario.context_tokens, layer.window_tokens - 1 + constants.vllm_batched_tokens)
                / constants.vllm_block_tokens))
    WHEN scenario.engine_id = 'llama.cpp'
        THEN constants.llama_cpp_cell_multiple * ceil(
            least(scenario.context_tokens, coalesce(iif(has_windows(model, 'llama.cpp'), layer.window_tokens, NULL)
                + constants.llama_cpp_micro_batch_tokens, scenario.context_tokens)) / constants.llama_cpp_cell_multiple)
    -- a rotating cache holds the window and what is read at a time; any other grows in steps
    WHEN scenario.engine_id = 'mlx-lm'
        THEN constants.mlx_cell_multiple * ceil(least(scenario.context_tokens,
            coalesce(iif(has_windows(model, 'mlx-lm'), layer.window_tokens, NULL) - 1 + constants.mlx_prefill_tokens,
                scenario.context_tokens)) / constants.mlx_cell_multiple)
    ELSE scenario.context_tokens
END;

-- heads that are repeated before they are cached
CREATE OR REPLACE MACRO cached_copies(layer, model, scenario) AS iif(
    starts_with(scenario.engine_id, 'transformers') AND model.attention_form = 'broadcast' AND layer.kv_head_count > 1,
    model.head_max / layer.kv_head_count, 1);

CREATE OR REPLACE MACRO kv_padding_bytes(model, scenario, constants) AS try_cast(ceil(
    scenario.sequences * scenario.kv_element_bits / 8.0 * coalesce(list_sum(list_transform(model.caches, lambda layer:
        layer.layer_count * layer.elements_per_token * kv_share(layer, scenario)
            * greatest(0, iif(layer.mechanism = 'cross', 0,
            reserved_tokens(layer, model, scenario, constants) * cached_copies(layer, model, scenario)
                - read_tokens(layer, scenario))))), 0)
) AS BIGINT);
