-- What lies outside the framework's live tensors, so that the total is what the driver shows for the process.
--
--   overhead_bytes = process context + workspace + communication buffers (from two GPUs)
--     + transformers: what the allocator rounds large weights up to, and cached but unused blocks, a share of
--       what every step allocates anew: activations, and gradients in training
--     + what loading through bitsandbytes leaves cached (measured-rows, group glm4 in 4 bits: 0.6 to 1.3 GB beyond all else, its head has 1.2)
--     + vLLM: the same rounding, non-torch memory (NCCL's buffers included) and CUDA graphs; of a checkpoint in MXFP4 what its kernels add
--       to the experts (weights/kernels.sql)
--     + SGLang: communication buffers, captured graphs and standing buffers by its own rules of thumb, its table of requests
--
-- Units: bytes per GPU. Source: constant.csv, each with its own; what a card's driver keeps is on the card's side (capacity).
-- Not covered: other processes on the card, a display, MIG slices.

CREATE OR REPLACE MACRO communication_bytes(x, k) AS CASE
    WHEN x.gpu_count = 1 OR x.sharding = 'none' OR x.pipeline_parallel = x.gpu_count THEN 0
    WHEN x.gpu_count = 2 THEN k.nccl_two_gpus_bytes
    ELSE k.nccl_many_gpus_bytes
END;

-- what a server holds outside PyTorch beyond the process's context
CREATE OR REPLACE MACRO non_torch_bytes(x, k) AS CASE
    WHEN x.gpu_count > 1 THEN k.vllm_non_torch_parallel_bytes
    WHEN x.engine_id = 'vllm-0.8' THEN k.vllm_08_non_torch_bytes
    ELSE k.vllm_non_torch_bytes
END;

-- Cached but unused blocks. Where the logits of a whole prompt are the peak (x.layer_bytes is known), they are blocks of their own, taken anew
-- from the driver: what lies unused beside them are at most all blocks of a layer, which were there before.
CREATE OR REPLACE MACRO unused_blocks_bytes(x, k) AS least(k.unused_blocks_inference * x.inference_activations,
    coalesce((1 + k.unused_blocks_inference) * x.layer_bytes, k.unused_blocks_inference * x.inference_activations));

-- What stands in SGLang beside the tensors of a forward: buffers of the attention backend, captured graphs, and its table of requests to
-- tokens, a row of the model's whole context each.
CREATE OR REPLACE MACRO sglang_standing_bytes(x, m, k) AS communication_bytes(x, k) + 1048576 * (k.sglang_metadata_mib + k.sglang_graph_mib
    + iif(x.tensor_parallel >= 4, k.sglang_graph_four_gpus_mib, 0)
    + iif(list_bool_or(list_transform(m.caches, lambda c: c.mechanism = 'mla')), k.sglang_graph_latent_mib, 0))
    + 4 * k.sglang_requests * coalesce(x.max_context_tokens, m.max_context_tokens, x.context_tokens);

CREATE OR REPLACE MACRO overhead_bytes(x, k, m, gradients) AS try_cast(ceil(
    coalesce(x.engine_context_bytes, k.process_context_bytes) + iif(is_server(x), 0, communication_bytes(x, k))
    + CASE
        WHEN x.phase_id <> 'inference' THEN
            k.cublas_workspace_bytes + (x.activations + gradients) * k.unused_blocks_training
        WHEN starts_with(x.engine_id, 'transformers') THEN k.cublas_workspace_bytes + rounding_bytes(m, x)
            + unused_blocks_bytes(x, k) + packing_bytes(m, x)
        WHEN x.engine_id = 'sglang' THEN sglang_standing_bytes(x, m, k)
        WHEN is_server(x) THEN non_torch_bytes(x, k) + k.vllm_cuda_graph_bytes + rounding_bytes(m, x) + kernel_overhead_bytes(m, x, k)
        WHEN x.engine_id = 'llama.cpp' THEN k.llama_cpp_workspace_bytes
        -- (what it keeps for reuse MLX gives back before Metal's limit is reached)
        WHEN x.engine_id = 'mlx-lm' THEN 0
    END
) AS BIGINT);

-- What loading through bitsandbytes leaves cached: about as much as the head that it does not pack.
CREATE OR REPLACE MACRO packing_bytes(m, x) AS iif(x.dtype_id IN ('nf4', 'nf4-double', 'int8'), 2 * m.vocab_size * m.hidden_size, 0);
