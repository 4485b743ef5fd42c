-- What the servers hold at their peak beside weights and cache.
--
--   vLLM    what the profiling run reserves: a forward over the batched tokens, or the sampler over max_num_seqs rows
--           of logits beside the work space of experts, whichever is larger, and the table of rotations
--   SGLang  a forward over a chunk of prompts, and the same table
--   data-parallel ranks that share experts: that over the tokens of a rank and, gathered, of all of them
--
-- Units: bytes per GPU. Source: measured-rows (vLLM logs; which groups set a constant and which judge it is said in
-- constant.csv).
-- Not covered: prefix caching; speculative decoding (ask/speculative_of.sql).

-- Tokens of the forward that the server profiles: the first engine takes a whole prompt where it does not cut it into
-- chunks. The second takes what it is told to read in a step.
CREATE OR REPLACE MACRO profiled_tokens(scenario, constants) AS iif(scenario.reads_prompt = 'profile-of-prompts',
    iif(scenario.context_tokens > constants.vllm_chunked_above_tokens, constants.vllm_chunk_tokens,
        greatest(scenario.context_tokens, constants.vllm_chunk_tokens)),
    coalesce(scenario.batched_tokens, constants.vllm_batched_tokens));

-- Rotations of every position that the model allows, once: the server loads them with the weights.
CREATE OR REPLACE MACRO rotation_table_bytes(model, scenario) AS
    iif(is_server(scenario) AND NOT model.has_position_embedding, coalesce(model.max_context_tokens, 0)
        * iif(has_pool(model, scenario.engine_id), model.pool.rotation_bytes_each, model.head_dim_max * 2), 0);

-- Where data-parallel ranks share experts: what a rank does alone with its tokens, and with those of all ranks before
-- and behind the experts. Work spaces have a row for each token and expert that it is sent to, wherever that lies:
-- twice what is wider, the hidden state or what is inside an expert. Some kernels take less: an upper bound (of GLM-4.6
-- on 16 ranks it gives the 20 GiB that vllm-project/vllm pull request 57270 says for the worst case).
CREATE OR REPLACE MACRO inner_width(model, scenario) AS
    model.routed_max / greatest(model.experts_per_token_max, 1) / scenario.expert_tensor_parallel;
CREATE OR REPLACE MACRO workspace_width(model, scenario) AS model.experts_per_token_max
    * (greatest(inner_width(model, scenario), model.hidden_size)
        + greatest(iif(model.is_gated, 2, 1) * inner_width(model, scenario), model.hidden_size));

CREATE OR REPLACE MACRO gathered_bytes_per_token(model, scenario) AS scenario.compute_bytes * (2 * model.hidden_size
    + greatest(workspace_width(model, scenario),
        iif(scenario.sharing.is_dense_over_all, 3 * greatest(model.gated_max, model.shared_max) / scenario.gpu_count,
            0)));
CREATE OR REPLACE MACRO rank_bytes_per_token(model, scenario) AS scenario.compute_bytes
    * ((hidden_tensors(model) + model.residual_extra) * model.hidden_size + greatest(
        greatest(wide_tensors(model.alive_tensors, true) * model.gated_max,
            wide_tensors(model.alive_tensors, false) * model.plain_max) / scenario.tensor_parallel,
        model.hidden_size + 3 * model.shared_max / shared_expert_shards(scenario)));

-- tokens: those of a rank, or of all where the engine divides what it reads at a time
CREATE OR REPLACE MACRO spread_step_bytes(model, scenario, tokens) AS
    ceil(tokens / iif(scenario.sharing.divides_chunk, scenario.data_parallel, 1)) * (
        rank_bytes_per_token(model, scenario)
        + iif(model.expert_count_max > 0, scenario.data_parallel * gathered_bytes_per_token(model, scenario), 0));

-- `asked`: a scenario or a footprint. The oldest releases sort the logits; what the newest runner holds is the most of
-- the others.
CREATE OR REPLACE MACRO logit_bytes_vllm(asked, constants) AS CASE
    WHEN asked.engine_id = 'vllm-0.8'
        OR coalesce(version_place(asked.program_version, 2) < constants.vllm_sorts_below_release, false)
        THEN constants.vllm_sorter_bytes_per_logit
    WHEN coalesce(version_place(asked.program_version, 2) < constants.vllm_one_runner_below_release, false)
        THEN constants.vllm_first_sampler_bytes_per_logit
    ELSE constants.vllm_sampler_bytes_per_logit
END;

-- Requests that the server runs at once, as it is told or by itself.
CREATE OR REPLACE MACRO run_sequences(scenario, constants) AS
    greatest(scenario.rank_sequences, coalesce(scenario.max_num_seqs, constants.vllm_default_sequences));

-- The sampler works on the logits of all ranks; long prompts are cut into chunks without it in the first engine.
CREATE OR REPLACE MACRO sampler_bytes_vllm(model, scenario, constants) AS
    iif(scenario.reads_prompt = 'profile-of-prompts'
            AND scenario.context_tokens > constants.vllm_chunked_above_tokens, 0,
        -- (logits in 32 bits are wider themselves)
        (logit_bytes_vllm(scenario, constants) + scenario.compute_bytes - 2)
            * run_sequences(scenario, constants) * head_columns(model, scenario) * scenario.tensor_parallel);
-- Beside it: what experts work in is made once and never given back.
CREATE OR REPLACE MACRO kept_workspace_bytes(model, scenario, constants) AS iif(scenario.engine_id = 'vllm'
        AND model.expert_count_max > 0, profiled_tokens(scenario, constants) * scenario.data_parallel
    * scenario.compute_bytes * workspace_width(model, scenario), 0);
-- A recurrent layer over the tokens of a step: what its kernels make, beside its input and the residual. The profiling
-- run leaves them out, and the first long prompt takes them of what the share of the card leaves free.
CREATE OR REPLACE MACRO recurrent_bytes_vllm(model, scenario, constants) AS profiled_tokens(scenario, constants) * (
    2 * scenario.compute_bytes * model.hidden_size + list_max(list_transform(model.recurrences, lambda layer:
        list_max(list_transform(list_filter(layer.moments, lambda held: held.regime = 'vllm-16'),
            lambda held: held.token + held.padded)))) / scenario.tensor_parallel);
-- of cards that share experts by no rank
CREATE OR REPLACE MACRO profile_bytes_alone(model, scenario, constants) AS greatest(
    sampler_bytes_vllm(model, scenario, constants) + kept_workspace_bytes(model, scenario, constants),
    recurrent_bytes_vllm(model, scenario, constants),
    profiled_tokens(scenario, constants) * feed_forward_bytes_per_token(model, scenario) / scenario.tensor_parallel
        + index_logits_bytes(model, scenario))
        + rotation_table_bytes(model, scenario);
CREATE OR REPLACE MACRO profile_bytes_vllm(model, scenario, constants) AS iif(is_spread(scenario),
    greatest(sampler_bytes_vllm(model, scenario, constants) + kept_workspace_bytes(model, scenario, constants),
        recurrent_bytes_vllm(model, scenario, constants),
        spread_step_bytes(model, scenario, profiled_tokens(scenario, constants)) + index_logits_bytes(model, scenario))
        + rotation_table_bytes(model, scenario),
    profile_bytes_alone(model, scenario, constants))
        + iif(has_pool(model, scenario.engine_id), pool_step_bytes(model, scenario, constants), 0);

-- SGLang does not profile: a chunk of prompts, or the logits of all requests with their copy in fp32 and the
-- probabilities.
CREATE OR REPLACE MACRO chunk_bytes_sglang(model, scenario, constants) AS greatest(
    iif(is_spread(scenario), spread_step_bytes(model, scenario, constants.sglang_prefill_tokens),
        constants.sglang_prefill_tokens * feed_forward_bytes_per_token(model, scenario) / scenario.tensor_parallel),
    scenario.sequences * (scenario.compute_bytes + 8) * head_columns(model, scenario) * scenario.tensor_parallel)
        + rotation_table_bytes(model, scenario);
