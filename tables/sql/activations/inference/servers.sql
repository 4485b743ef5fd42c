-- What the servers hold at their peak beside weights and cache.
--
--   vLLM    what the profiling run reserves: a forward over the batched tokens, or the sampler over max_num_seqs rows of logits, whichever is
--           larger, and the table of rotations
--   SGLang  a forward over a chunk of prompts, and the same table
--
-- Units: bytes per GPU. Source: measured-rows (vLLM logs; which groups set a constant and which judge it is said in constant.csv).
-- Not covered: speculative decoding, prefix caching.

-- Tokens of the forward that the server profiles: the first engine takes a whole prompt where it does not cut it into chunks.
CREATE OR REPLACE MACRO profiled_tokens(x, k) AS iif(x.engine_id = 'vllm-0.8',
    iif(x.context_tokens > k.vllm_chunked_above_tokens, k.vllm_chunk_tokens, greatest(x.context_tokens, k.vllm_chunk_tokens)),
    k.vllm_batched_tokens);

-- Rotations of every position that the model allows, once: the server loads them with the weights.
CREATE OR REPLACE MACRO rotation_table_bytes(m, x) AS
    iif(is_server(x) AND NOT m.has_position_embedding, coalesce(m.max_context_tokens, 0) * m.head_dim_max * 2, 0);

-- The sampler works on the logits of all ranks; long prompts are cut into chunks without it in the first engine.
CREATE OR REPLACE MACRO profile_bytes_vllm(m, x, k) AS greatest(
    iif(x.engine_id = 'vllm-0.8' AND x.context_tokens > k.vllm_chunked_above_tokens, 0,
        k.vllm_sampler_bytes_per_logit * greatest(x.sequences, k.vllm_default_sequences) * head_columns(m, x) * tensor_parallel(x)),
    profiled_tokens(x, k) * feed_forward_bytes_per_token(m, x) / tensor_parallel(x)) + rotation_table_bytes(m, x);

-- SGLang does not profile: a chunk of prompts, or the logits of all requests with their copy in fp32 and the probabilities.
CREATE OR REPLACE MACRO chunk_bytes_sglang(m, x, k) AS greatest(
    k.sglang_prefill_tokens * feed_forward_bytes_per_token(m, x) / tensor_parallel(x),
    x.sequences * (x.compute_bytes + 8) * head_columns(m, x) * tensor_parallel(x)) + rotation_table_bytes(m, x);
