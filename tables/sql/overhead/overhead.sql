-- What lies outside the framework's live tensors, so that the total is what the driver shows for the process.
--
--   overhead_bytes = process context + workspace + communication buffers (from two GPUs)
--     + transformers: what the allocator rounds large weights up to, and cached but unused blocks, a share of
--       what every step allocates anew (of training: overhead/unused.sql)
--     + Unsloth: the kernels that Triton compiles, where it runs layers itself
--     + what loading through bitsandbytes leaves cached (measured-rows, group glm4 in 4 bits: 0.6 to 1.3 GB beyond all
--         else, its head has 1.2)
--     + vLLM: the same rounding, non-torch memory (NCCL's buffers included) and CUDA graphs; of a checkpoint in MXFP4
--       what its kernels add to the experts (weights/kernels.sql); with a cache in fp8 what FlashInfer works in;
--       what picks latents by an index (activations/inference/indexes.sql)
--     + llama.cpp within a program that tells it no number of layers: what is left free of each card, for which layers
--         go to the CPU that would fit (program, kept_free_mib)
--     + ExLlamaV3: work spaces, what is left of the blocks of its weights, and what its loader wants free
--         (activations/inference/exllamav3.sql; before 0.0.5, exllamav3_first.sql)
--     + SGLang: communication buffers, captured graphs and standing buffers by its own rules of thumb, its table of
--         requests
--
-- Units: bytes per GPU. Source: constant.csv, each with its own; what a card's driver keeps is on the card's side
-- (capacity).
-- Not covered: other processes on the card, a display, MIG slices; that a Hopper card leaves out delta_warmup_bytes.

CREATE OR REPLACE MACRO communication_bytes(scenario, constants) AS CASE
    WHEN scenario.gpu_count = 1 OR scenario.sharding = 'none' OR scenario.pipeline_parallel = scenario.gpu_count THEN 0
    WHEN scenario.gpu_count = 2 THEN constants.nccl_two_gpus_bytes
    ELSE constants.nccl_many_gpus_bytes
END;

-- what a server holds outside PyTorch beyond the process's context
CREATE OR REPLACE MACRO non_torch_bytes(scenario, constants) AS CASE
    WHEN scenario.gpu_count > 1 THEN constants.vllm_non_torch_parallel_bytes
    WHEN scenario.engine_id = 'vllm-0.8' THEN constants.vllm_08_non_torch_bytes
    ELSE constants.vllm_non_torch_bytes
END;

-- What the autotuner of Triton leaves outside PyTorch where a release warms up the kernels of a gated delta rule in its
-- profiling run with several lengths: on all cards but Hopper, whose kernels are others.
CREATE OR REPLACE MACRO delta_warmup_bytes(model, scenario, constants) AS iif(scenario.engine_id = 'vllm'
        AND coalesce(version_place(scenario.program_version, 2) BETWEEN constants.vllm_delta_warmup_from_release
            AND constants.vllm_delta_warmup_to_release, false)
        AND coalesce(list_bool_or(list_transform(model.recurrences, lambda layer:
            len(list_filter(layer.moments, lambda held: held.regime = 'vllm-16')) > 0)), false),
    constants.vllm_delta_warmup_bytes, 0);

-- CUDA graphs of every length that is captured, a part for each layer: what vLLM takes after the profiling run. It
-- captures up to twice as many as it runs requests at once, and none where it is told to run eagerly. Where it serves
-- adapters it captures all of them twice.
CREATE OR REPLACE MACRO captured_share(scenario, constants) AS
    iif(coalesce(scenario.max_num_seqs <= constants.vllm_few_sequences, false), constants.vllm_few_graphs_share, 1);
CREATE OR REPLACE MACRO graphs_bytes_vllm(model, scenario, constants) AS CASE
    WHEN coalesce(scenario.enforce_eager, false) THEN 0
    WHEN scenario.engine_id = 'vllm-0.8' THEN constants.vllm_cuda_graph_bytes
    ELSE captured_share(scenario, constants) * iif(serves_adapters(scenario), constants.vllm_lora_graph_sets, 1)
        * (constants.vllm_graphs_bytes
        + constants.vllm_graphs_bytes_per_layer * ceil(model.layer_count / scenario.pipeline_parallel)
        + iif(model.expert_count_max > 0, constants.vllm_graphs_experts_bytes, 0))
END;

-- what tensor-parallel ranks hold more of it on some machines (NVSwitch: 2.2 GiB; two RTX 3090: 0.7)
CREATE OR REPLACE MACRO parallel_spread_bytes(scenario, constants) AS
    iif(is_server(scenario) AND scenario.engine_id = 'vllm' AND scenario.tensor_parallel > 1,
        constants.vllm_non_torch_parallel_spread_bytes, 0);

-- What some builds leave free of a card once more for what a model sees with: its weights and its buffer.
CREATE OR REPLACE MACRO kept_free_spread_bytes(model, scenario) AS iif(
    coalesce(scenario.program_base.keeps_tower_free, false),
    scenario.kept_tower_bytes + coalesce(tower_buffer_bytes_llama_cpp(model.tower, scenario), 0), 0);

-- What the figure lacks of what a first start holds: torch.compile runs within the profiling run, and the cache is
-- given less for what it takes there. A server that is started again has compiled. (Of tensor-parallel ranks what was
-- read is within their spread by the machine.) Told to run eagerly it compiles nothing. `told` is what stands beside
-- weights and cache, the context included.
CREATE OR REPLACE MACRO first_start_spread_bytes(scenario, told, constants) AS
    iif(is_server(scenario) AND scenario.engine_id = 'vllm' AND scenario.tensor_parallel = 1
        AND NOT coalesce(scenario.enforce_eager, false)
        AND coalesce(version_place(scenario.program_version, 2) >= constants.vllm_first_start_from_release, true),
        greatest(0, least(constants.vllm_first_start_spread_bytes, constants.vllm_first_start_bytes
            - told + coalesce(scenario.engine_context_bytes, constants.process_context_bytes))), 0);

-- What FlashInfer, which reads a cache in fp8 in vLLM, works in: each group of layers with a cache of its own has one.
CREATE OR REPLACE MACRO reader_workspace_bytes(model, scenario, constants) AS
    iif(scenario.engine_id = 'vllm' AND scenario.kv_dtype_id = 'fp8' AND NOT has_pool(model, scenario.engine_id),
        constants.vllm_flashinfer_workspace_bytes
        * len(list_distinct(list_transform(list_filter(model.caches, lambda layer: layer.elements_per_token > 0
            AND layer.mechanism <> 'mla'), lambda layer: coalesce(layer.window_tokens, 0)))), 0);

-- Cached but unused blocks. Where the logits of a whole prompt are the peak (x.layer_bytes is known), they are blocks
-- of their own, taken anew from the driver: what lies unused beside them are at most all blocks of a layer, which were
-- there before.
CREATE OR REPLACE MACRO unused_blocks_bytes(scenario, constants) AS
    least(constants.unused_blocks_inference * scenario.inference_activations,
        coalesce((1 + constants.unused_blocks_inference) * scenario.layer_bytes, constants.unused_blocks_inference
            * scenario.inference_activations));

-- Rows of SGLang's table of requests to tokens: it runs no more requests than it has recurrent states for.
CREATE OR REPLACE MACRO sglang_rows(model, scenario, constants) AS
    least(iif(model.recurrences IS NULL, NULL, scenario.rank_sequences), constants.sglang_requests);

-- What stands in SGLang beside the tensors of a forward: buffers of the attention backend, captured graphs, and its
-- table of requests to tokens, a row of the model's whole context each.
CREATE OR REPLACE MACRO graphs_mib_sglang(scenario, model, constants) AS iif(coalesce(scenario.enforce_eager, false), 0,
    constants.sglang_graph_mib + iif(scenario.tensor_parallel >= 4, constants.sglang_graph_four_gpus_mib, 0)
        + iif(list_bool_or(list_transform(model.caches, lambda layer: layer.mechanism = 'mla')),
            constants.sglang_graph_latent_mib, 0));
CREATE OR REPLACE MACRO sglang_standing_bytes(scenario, model, constants) AS communication_bytes(scenario, constants)
    + 1048576 * (constants.sglang_metadata_mib + graphs_mib_sglang(scenario, model, constants))
        + 4 * sglang_rows(model, scenario, constants) * coalesce(scenario.max_context_tokens, model.max_context_tokens,
            scenario.context_tokens);

CREATE OR REPLACE MACRO overhead_bytes(scenario, constants, model, gradients) AS try_cast(ceil(
    coalesce(scenario.engine_context_bytes, constants.process_context_bytes)
        + iif(is_server(scenario), 0, communication_bytes(scenario, constants))
        -- (of ranks that talk through groups of their own)
        + communication_bytes(scenario, constants) * (iif(is_spread(scenario) AND scenario.data_parallel > 1, 1, 0)
            + iif(scenario.decode_context_parallel > 1, 1, 0))
    + CASE
        -- (MLX gives back what it keeps for reuse before Metal's limit is reached)
        WHEN scenario.phase_id <> 'inference' AND scenario.graph IS NOT NULL THEN 0
        WHEN scenario.phase_id <> 'inference' THEN
            constants.cublas_workspace_bytes + unused_training_bytes(scenario, constants, gradients)
            + iif(scenario.has_own_blocks, constants.unsloth_kernels_bytes, 0)
        WHEN scenario.reads_prompt = 'whole' THEN constants.cublas_workspace_bytes
            + rounding_bytes(model, scenario)
            + unused_blocks_bytes(scenario, constants) + packing_bytes(model, scenario)
        WHEN scenario.engine_id = 'sglang' THEN sglang_standing_bytes(scenario, model, constants)
        WHEN is_server(scenario) THEN non_torch_bytes(scenario, constants)
            + delta_warmup_bytes(model, scenario, constants)
            + graphs_bytes_vllm(model, scenario, constants)
            + rounding_bytes(model, scenario) + kernel_overhead_bytes(model, scenario, constants)
            + reader_workspace_bytes(model, scenario, constants) + index_standing_bytes(model, scenario, constants)
        WHEN scenario.engine_id = 'llama.cpp' THEN constants.llama_cpp_workspace_bytes
            + 1048576 * coalesce(scenario.program_base.kept_free_mib, 0)
        WHEN scenario.reads_prompt = 'matrix-by-matrix' THEN exllamav3_standing_bytes(scenario, constants)
        WHEN scenario.reads_prompt = 'matrix-by-matrix-rotated'
            THEN exllamav3_first_standing_bytes(model, scenario, constants)
        -- (what it keeps for reuse MLX gives back before Metal's limit is reached)
        WHEN scenario.engine_id IN ('mlx-lm', 'mlx-vlm') THEN 0
    END
) AS BIGINT);

-- What loading through bitsandbytes leaves cached: about as much as the head that it does not pack.
CREATE OR REPLACE MACRO packing_bytes(model, scenario) AS
    iif(scenario.dtype_id IN ('nf4', 'nf4-double', 'int8', 'nf4-experts', 'nf4-double-experts'),
        2 * model.vocab_size * model.hidden_size, 0);
