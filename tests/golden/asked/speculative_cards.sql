FROM speculative_fits_on('rtx-4090', 'Qwen/Qwen3-32B', 'Qwen/Qwen3-0.6B', dtype_id := 'gguf-q4_k_m',
    draft_dtype_id := 'gguf-q8_0')
UNION ALL FROM speculative_fits_on('h100-sxm', 'Qwen/Qwen3-8B', 'RedHatAI/Qwen3-8B-speculator.eagle3',
    engine_id := 'vllm', sequences := 20)
UNION ALL FROM speculative_fits_on('gtx-1080-ti', 'Qwen/Qwen3-8B', 'Qwen/Qwen3-0.6B', engine_id := 'sglang')
UNION ALL FROM speculative_fits_on('no-such-card', 'Qwen/Qwen3-8B', 'Qwen/Qwen3-0.6B')
