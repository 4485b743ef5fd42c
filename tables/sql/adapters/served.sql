-- Adapters that a server holds ready: slots that it sets aside when it starts, whatever is loaded into them.
--
--   adapters_bytes = slots × rank × bytes of an element × Σ over adapted matrices (inputs + outputs of this GPU)
--     column-parallel (queries, gate, up): all inputs, outputs ÷ tensor_parallel; keys and values by their heads, of
--     which a GPU has one at least
--     row-parallel (output, down): inputs ÷ tensor_parallel, all outputs
--     routers, and embedding and head where the class adapts them: both sides whole on every GPU
--     routed experts: each of them as above, inside ÷ tensor_parallel
--   Beside them a step holds what A makes of its tokens in fp32, at most for three matrices at once, the indices of its
--     tokens, and in mixtures of experts a row for each token and expert, slot by slot.
--
-- Units: bytes per GPU. Source: vLLM 0.20.0, 0.27.0 and 0.33.0 (vllm-0.33.0-lora): --enable-lora, --max-loras (default
--   1), --max-lora-rank (16), in the precision of the model; served_adapter.csv says for which models. Graphs are
--   captured twice, with adapters and without (overhead.sql).
-- Not covered: --fully-sharded-loras, --lora-target-modules, --specialize-active-lora, adapters of towers; what a
--   Blackwell card's kernels of experts hold besides the work spaces that are counted of all.

-- Who says a rank alone has one slot, and who says slots alone those of rank 16, as vLLM has by itself.
CREATE OR REPLACE MACRO slots_asked(asked) AS
    coalesce(asked.max_loras, iif(asked.max_lora_rank IS NULL, NULL, 1))::BIGINT;
CREATE OR REPLACE MACRO slot_rank_asked(asked) AS
    coalesce(asked.max_lora_rank, iif(asked.max_loras IS NULL, NULL, 16))::BIGINT;

CREATE OR REPLACE MACRO serves_adapters(scenario) AS scenario.max_loras IS NOT NULL;

-- the part of all heads of keys and values that a GPU has
CREATE OR REPLACE MACRO key_head_share(model, scenario) AS
    ceil(model.kv_head_max / scenario.tensor_parallel) / greatest(model.kv_head_max, 1);

CREATE OR REPLACE MACRO served_elements(model, scenario) AS model.served_adapter.whole_elements
    + model.served_adapter.divided_elements / scenario.tensor_parallel
    + model.served_adapter.key_elements * key_head_share(model, scenario)
    + model.served_adapter.joined_elements * (model.head_max / scenario.tensor_parallel
        + 2 * model.kv_head_max * key_head_share(model, scenario)) / (model.head_max + 2 * model.kv_head_max);

CREATE OR REPLACE MACRO served_adapter_bytes(model, scenario) AS iif(serves_adapters(scenario),
    ceil(scenario.max_loras * scenario.max_lora_rank * scenario.compute_bytes * served_elements(model, scenario)), 0);

-- (indices: four of 8 bytes for each token, and four of 4; of ranks, where each token's logit comes to lie)
CREATE OR REPLACE MACRO served_step_bytes(model, scenario, constants) AS CASE
    WHEN NOT serves_adapters(scenario) THEN 0
    ELSE profiled_tokens(scenario, constants) * (3 * 4 * scenario.max_lora_rank + 4 * 8 + 4 * 4)
        + iif(model.served_adapter.has_head AND scenario.tensor_parallel > 1, 8 * model.vocab_size, 0)
        + iif(model.served_adapter.has_experts, scenario.max_loras
            * (profiled_tokens(scenario, constants) * model.experts_per_token_max
                + model.expert_count_max * constants.vllm_lora_block_rows)
            * (2 * scenario.max_lora_rank * scenario.compute_bytes + 4), 0)
END;

-- What they take of activations and overhead: a first start holds as much more.
CREATE OR REPLACE MACRO served_beside_bytes(model, scenario, constants) AS iif(serves_adapters(scenario),
    served_step_bytes(model, scenario, constants) + graphs_bytes_vllm(model, scenario, constants)
        * (1 - 1 / constants.vllm_lora_graph_sets), 0);

-- Why there is no answer with adapters.
CREATE OR REPLACE MACRO served_reason(model, dtype, scenario) AS CASE
    WHEN NOT serves_adapters(scenario) THEN NULL
    WHEN model.served_adapter IS NULL OR model.served_adapter.engine_id <> scenario.engine_id
        THEN 'which matrices vLLM sets adapters aside for is not described for models of type ' || model.model_type
            || ' (max_loras)'
    WHEN NOT is_from(scenario.program_version, model.served_adapter.min_version)
        THEN 'what vLLM ' || scenario.program_version || ' sets aside for adapters of this model is not described: '
            || 'known from ' || model.served_adapter.min_version || ' on (program_version := '
            || model.served_adapter.min_version || ')'
    WHEN model.served_adapter.is_vocab_refused
        THEN 'vLLM adapts no head of ' || model.vocab_size || ' tokens, and does not start with --enable-lora'
    WHEN model.logit_columns = 0 OR model.is_embedder
        THEN 'what vLLM sets aside for adapters of a model that writes no text is not described (max_loras)'
    WHEN scenario.pipeline_parallel > 1 OR is_spread(scenario) OR scenario.decode_context_parallel > 1
        THEN 'adapters are counted on one GPU and in tensor parallelism: without pipeline_parallel, data_parallel, '
            || 'expert_parallel and decode_context_parallel'
    WHEN model.served_adapter.has_experts AND dtype.dtype_id NOT IN ('bf16', 'fp16', 'fp32')
        THEN 'adapters of packed routed experts are not described: dtype_id := bf16'
END;
