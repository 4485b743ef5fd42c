-- The key-value cache: what attention can ever read, and what the engine sets aside beyond it.
--
--   kv_cache_bytes   = sequences × Σ layers × elements_per_token × min(context, window) × kv bits ÷ 8
--   kv_padding_bytes = what the engine allocates for the same sequences less that
--
-- Units: bytes per GPU. elements_per_token is 2 × kv_heads × head_dim, or the latent of MLA; cross-attention caches the
--   encoder's tokens: as many as the context, or the window that the encoder reads whatever it is asked.
-- Sources: arithmetic over attention_layer (every layer's own window); engine_memory.csv for what an engine's allocator
--   sets aside (cells, and how much of a window), engine_window.csv for the architectures whose windows it knows.
--   transformers-5.23.0 for encoders with a decoder's class (use_cache is true unless it is told otherwise, as
--   sentence-transformers does by itself since 6.2: without it the cache is not there).
--   Transformers keeps repeated heads where it repeats them before it caches them, LitGPT before 0.5.5 always
--   (keeps_all_heads).
-- Tensor parallelism divides the heads, never below one a GPU; a latent is held whole by every rank, and so is the key
--   of an index beside keys and values (vllm-0.26.0-index-key). Pipelines and layer splits take the GPU with the most
--   layers (stage_share); where the last layers read what earlier ones cache, the GPU with the most layers of each kind
--   that cache (as llama-cpp-graph deals layers out). Data-parallel ranks have a cache each, for their own sequences
--   (rank_sequences). Decode context parallelism deals tokens out among tensor-parallel ranks that would hold copies:
--   each has whole cells of its share.
-- Latents with an index are kept as the row of latent_index says: packed with scales in 8 bits, index keys in 8 bits
--   whatever the cache is in (vllm-latent-index: 53,940 bytes a token of GLM-5.3 on every rank, 61,464 of GLM-5).
-- Where layers of all kinds share one pool of pages it is worked out in kv-cache/pool.sql.
-- Where layers of each kind are grouped in one pool (shared_state_pages), groups are padded, and pages of hybrids are
-- larger: kv-cache/shared_pages.sql.
-- Not covered: prefix sharing, beam search.

-- share of a layer's cache that one GPU of those that divide its heads holds
CREATE OR REPLACE MACRO head_share(layer, scenario) AS iif(scenario.gpu_count = 1 OR layer.mechanism = 'mla', 1.0,
    layer.whole_share + (1 - layer.whole_share)
        * ceil(layer.kv_head_count / scenario.tensor_parallel) / greatest(layer.kv_head_count, 1));
CREATE OR REPLACE MACRO kv_share(layer, model, scenario) AS iif(scenario.gpu_count = 1, 1.0,
    kind_share(layer, model, scenario) * head_share(layer, scenario));

-- tokens that a layer can ever read
CREATE OR REPLACE MACRO read_tokens(layer, scenario) AS iif(layer.mechanism = 'cross', scenario.cross_tokens,
    least(scenario.context_tokens, coalesce(layer.window_tokens, scenario.context_tokens)))
        / scenario.decode_context_parallel;

-- elements of one token: a decoder that was made an encoder caches too where the class is Transformers', though nothing
-- reads them again
CREATE OR REPLACE MACRO cached_elements(layer, scenario) AS layer.elements_per_token
    + iif(scenario.reads_prompt = 'whole', layer.unread_elements, 0);

-- bytes of one token in one layer; nothing of layers that an engine leaves out with what speaks
CREATE OR REPLACE MACRO has_latent_index(model, engine_id) AS coalesce(model.latent_index.engine_id = engine_id, false);
-- (what an engine keeps of an index beside its key: engine_index)
CREATE OR REPLACE MACRO added_index_elements(layer, model, scenario) AS iif(has_index(layer)
    AND model.engine_index.engine_id = scenario.engine_id, model.engine_index.added_index_elements, 0);
CREATE OR REPLACE MACRO layer_token_bytes(layer, model, scenario) AS
    iif(has_latent_index(model, scenario.engine_id) AND layer.mechanism = 'mla',
        iif(scenario.kv_dtype_id = model.latent_index.kv_dtype_id, model.latent_index.entry_bytes,
            scenario.kv_element_bits / 8.0 * (layer.elements_per_token - layer.index_elements))
            + iif(layer.index_elements > 0, model.latent_index.index_entry_bytes, 0),
        scenario.kv_element_bits / 8.0
            * (cached_elements(layer, scenario) + added_index_elements(layer, model, scenario)));
CREATE OR REPLACE MACRO cached_bytes(layer, model, scenario) AS
    iif(layer.is_spoken AND leaves_speech(model, scenario.engine_id), 0, layer_token_bytes(layer, model, scenario));

CREATE OR REPLACE MACRO caches_unread(model) AS
    coalesce(list_bool_or(list_transform(model.caches, lambda layer: layer.unread_elements > 0)), false);

CREATE OR REPLACE MACRO kv_cache_bytes(model, scenario) AS try_cast(ceil(
    scenario.rank_sequences * coalesce(list_sum(list_transform(model.caches, lambda layer:
        layer.layer_count * cached_bytes(layer, model, scenario) * kv_share(layer, model, scenario)
            * read_tokens(layer, scenario))), 0)
) AS BIGINT);

-- the window that the engine's cache makes use of; null where it holds the whole context
CREATE OR REPLACE MACRO window_used(layer, model, scenario) AS iif(scenario.window_use = 'always'
    OR scenario.window_use = 'listed' AND has_windows(model, scenario.engine_id), layer.window_tokens, NULL);

-- tokens that the engine holds memory for in one layer and sequence, in whole cells
CREATE OR REPLACE MACRO reserved_tokens(layer, model, scenario) AS scenario.cell_tokens * (
    ceil(least(scenario.context_tokens, window_used(layer, model, scenario) + scenario.tokens_beyond_window)
        / (scenario.cell_tokens * scenario.decode_context_parallel))
    + iif(window_used(layer, model, scenario) IS NULL, 0, scenario.extra_window_cells));

-- heads that are repeated before they are cached
CREATE OR REPLACE MACRO cached_copies(layer, model, scenario) AS iif(layer.kv_head_count > 1
        AND (scenario.ways.keeps_all_heads
            OR scenario.reads_prompt = 'whole' AND model.attention_form = 'broadcast'),
    model.head_max / layer.kv_head_count, 1);

CREATE OR REPLACE MACRO kv_padding_bytes(model, scenario) AS try_cast(ceil(
    scenario.rank_sequences * coalesce(list_sum(list_transform(model.caches, lambda layer:
        layer.layer_count * cached_bytes(layer, model, scenario) * kv_share(layer, model, scenario)
            * greatest(0, iif(layer.mechanism = 'cross', 0,
            reserved_tokens(layer, model, scenario) * cached_copies(layer, model, scenario)
                * padded_layers(layer, scenario) - read_tokens(layer, scenario))))), 0)
    + shared_page_bytes(model, scenario)
) AS BIGINT);
