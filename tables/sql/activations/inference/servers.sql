-- What the servers hold at their peak beside weights and cache.
--
--   vLLM    what the profiling run reserves: a forward over the batched tokens, or the sampler over max_num_seqs rows
--           of logits, whichever is larger, and the table of rotations
--   SGLang  a forward over a chunk of prompts, and the same table
--
-- Units: bytes per GPU. Source: measured-rows (vLLM logs; which groups set a constant and which judge it is said in
-- constant.csv).
-- Not covered: prefix caching; speculative decoding (ask/speculative_of.sql).

-- Tokens of the forward that the server profiles: the first engine takes a whole prompt where it does not cut it into
-- chunks.
CREATE OR REPLACE MACRO profiled_tokens(scenario, constants) AS iif(scenario.reads_prompt = 'profile-of-prompts',
    iif(scenario.context_tokens > constants.vllm_chunked_above_tokens, constants.vllm_chunk_tokens,
        greatest(scenario.context_tokens, constants.vllm_chunk_tokens)),
    constants.vllm_batched_tokens);

-- Rotations of every position that the model allows, once: the server loads them with the weights.
CREATE OR REPLACE MACRO rotation_table_bytes(model, scenario) AS
    iif(is_server(scenario) AND NOT model.has_position_embedding, coalesce(model.max_context_tokens, 0)
        * model.head_dim_max * 2, 0);

-- The sampler works on the logits of all ranks; long prompts are cut into chunks without it in the first engine.
CREATE OR REPLACE MACRO profile_bytes_vllm(model, scenario, constants) AS greatest(
    iif(scenario.reads_prompt = 'profile-of-prompts'
            AND scenario.context_tokens > constants.vllm_chunked_above_tokens, 0,
        constants.vllm_sampler_bytes_per_logit * greatest(scenario.sequences, constants.vllm_default_sequences)
            * head_columns(model, scenario) * scenario.tensor_parallel),
    profiled_tokens(scenario, constants) * feed_forward_bytes_per_token(model, scenario) / scenario.tensor_parallel)
        + rotation_table_bytes(model, scenario);

-- SGLang does not profile: a chunk of prompts, or the logits of all requests with their copy in fp32 and the
-- probabilities.
CREATE OR REPLACE MACRO chunk_bytes_sglang(model, scenario, constants) AS greatest(
    constants.sglang_prefill_tokens * feed_forward_bytes_per_token(model, scenario) / scenario.tensor_parallel,
    scenario.sequences * (scenario.compute_bytes + 8) * head_columns(model, scenario) * scenario.tensor_parallel)
        + rotation_table_bytes(model, scenario);
