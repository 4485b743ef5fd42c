-- A cache whose layers of all kinds share one pool of pages: DeepSeek-V4 in vLLM.
--
--   pool_bytes  = sequences × pages × tuple_count × page_bytes
--   pages       = ⌈context ÷ page⌉ + window_groups × window pages + pages of the states of both kinds of compressors
--   each of these windows holds its own tokens but one and what is in flight, never more than the context:
--       ⌈min(window − 1 + in flight, context) ÷ tokens of its page⌉ + 1
--
-- Units: bytes per GPU, pages, tokens. Source: cache_pool.csv (vLLM's own rule, which gives the 6.66 GiB that its log
--   says of 30,000 tokens of DeepSeek-V4-Flash, and the 13,528 tokens for 5.44 GiB, to the last digit).
-- A page is whole on every tensor-parallel rank. In flight are the tokens of a step, from 0.26 on of two: counted are
--   vllm_batched_tokens in all.
-- Not covered: caches in 16 bits (Blackwell alone), prefix sharing.

CREATE OR REPLACE MACRO has_pool(model, engine_id) AS coalesce(model.pool.engine_id = engine_id, false);

-- pages of a window
CREATE OR REPLACE MACRO window_pages(window_tokens, page_tokens, scenario) AS
    ceil(least(window_tokens + scenario.tokens_beyond_window, scenario.context_tokens) / page_tokens) + 1;

CREATE OR REPLACE MACRO pool_pages(pool, scenario) AS ceil(scenario.context_tokens / pool.page_tokens)
    + pool.window_groups * window_pages(pool.window_tokens, pool.window_page_tokens, scenario)
    + window_pages(pool.sparse_state_tokens, pool.sparse_state_page_tokens, scenario)
    + window_pages(pool.compressed_state_tokens, pool.compressed_state_page_tokens, scenario);

CREATE OR REPLACE MACRO pool_bytes(model, scenario) AS scenario.rank_sequences * pool_pages(model.pool, scenario)
    * ceil(model.pool.tuple_count * scenario.stage_share) * model.pool.page_bytes;

-- What is set aside beyond what attention can ever read and the states, which are counted by themselves.
CREATE OR REPLACE MACRO pool_padding_bytes(model, scenario) AS try_cast(ceil(greatest(0,
    pool_bytes(model, scenario) - kv_cache_bytes(model, scenario) - state_bytes(model, scenario))) AS BIGINT);
