-- What a step of a model with a pool of pages holds in vLLM beside that of any other: DeepSeek-V4.
--
--   beside the step   tokens × (live_streams × residual streams × hidden size + 3 × heads × head dimension) elements:
--                     the residual streams, and queries twice and the output of attention for as many heads as its
--                     kernel takes at least
--   standing          tokens × (residual streams × hidden size elements + 4 bytes for each token that is chosen), and
--                     two tables of 4 bytes for each token of a step and entry of the heavier compressors
--   work space        entries that are gathered for several prompts, or the index keys of several contexts, whichever
--                     is larger; logits of the index
--
-- Units: bytes per GPU. Source: cache_pool.csv. Nothing of it is divided among tensor-parallel ranks but heads above
--   what the kernel takes. Not covered: FlashInfer's kernels on Blackwell, which take less.

CREATE OR REPLACE MACRO pool_attention_bytes_per_token(model, scenario) AS scenario.compute_bytes * (
    (model.pool.live_streams + 1) * model.pool.residual_streams * model.hidden_size
    + 3 * greatest(model.pool.padded_heads, model.head_max / scenario.tensor_parallel) * model.head_dim_max)
    + 4 * model.pool.chosen_tokens
    + 8 * ceil(scenario.context_tokens / model.pool.compressed_state_tokens);

CREATE OR REPLACE MACRO pool_work_bytes(model, scenario, tokens) AS greatest(
    model.pool.gathered_sequences * model.head_dim_max * scenario.compute_bytes
        * (ceil(scenario.context_tokens / model.pool.gathered_tokens_per_entry) + model.pool.window_tokens + tokens),
    model.pool.indexed_contexts * scenario.context_tokens * model.pool.index_entry_bytes)
    + model.pool.index_logit_bytes;

CREATE OR REPLACE MACRO pool_step_bytes(model, scenario, constants) AS
    profiled_tokens(scenario, constants) * pool_attention_bytes_per_token(model, scenario)
        + pool_work_bytes(model, scenario, profiled_tokens(scenario, constants));
