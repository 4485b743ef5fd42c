-- What an engine's allocator holds at its peak beside weights and cache.
--
-- transformers: the largest moment of prefilling all sequences at once; T = sequences × context tokens:
--   feed-forward  T × (6 × width + 8 × hidden), eager attention  T × (10 × heads × context + ...), and the last token's logits
-- vLLM, SGLang: what the profiling run reserves: a forward over the batched tokens, or the sampler over max_num_seqs rows of fp32
--   logits, whichever is larger
-- llama.cpp: the compute buffer with flash attention, micro-batch × (vocabulary + hidden) × 4
--
-- Units: bytes per GPU. Sources: transformers-prefill-oracle (transformers 5.23.0 under fake tensors; Llama-shaped models within
--   0.2 %), vllm-logs (38.5 bytes per row and vocabulary entry), llama-cpp-logs; constants in constant.csv.
-- Not covered: recurrent layers in transformers, images and audio, speculative decoding, prefix caching.

CREATE OR REPLACE MACRO eager_attention_bytes(m, x) AS step_tokens(x) * (
    10 * m.head_max * x.context_tokens + 2 * x.context_tokens + 3 * x.compute_bytes * m.hidden_size
    + x.compute_bytes * m.query_max * iif(m.has_grouped_heads, 3, 1));

CREATE OR REPLACE MACRO feed_forward_bytes_per_token(m, x) AS
    x.compute_bytes * (4 * m.hidden_size + 3 * m.gated_max + 2 * m.plain_max + 3 * m.shared_max)
    + iif(m.routed_max > 0, x.compute_bytes * (3 * m.routed_max + 2 * m.experts_per_token_max * m.hidden_size), 0);

CREATE OR REPLACE MACRO prefill_bytes_transformers(m, x) AS greatest(
    step_tokens(x) * feed_forward_bytes_per_token(m, x),
    iif(x.attention = 'eager' OR NOT m.has_flash_attention, eager_attention_bytes(m, x), 0),
    x.sequences * logit_width(m, x) * (x.compute_bytes + 4)
) + x.context_tokens * (2 * m.head_dim_max * x.compute_bytes + 8);

CREATE OR REPLACE MACRO profile_bytes_vllm(m, x, k) AS greatest(
    k.vllm_sampler_bytes_per_logit * greatest(x.sequences, k.vllm_default_sequences) * logit_width(m, x),
    k.vllm_batched_tokens * feed_forward_bytes_per_token(m, x) / tensor_parallel(x));

CREATE OR REPLACE MACRO compute_buffer_bytes_llama_cpp(m, k) AS
    k.llama_cpp_micro_batch_tokens * (m.vocab_size + m.hidden_size) * 4;

CREATE OR REPLACE MACRO inference_activations_bytes(m, x, k) AS ceil(CASE
    WHEN starts_with(x.engine_id, 'transformers') THEN prefill_bytes_transformers(m, x)
    WHEN is_server(x) THEN profile_bytes_vllm(m, x, k)
    WHEN x.engine_id = 'llama.cpp' THEN compute_buffer_bytes_llama_cpp(m, k)
END)::BIGINT;
