-- how fast a card can be, and is likely to be
SELECT 1 AS place, * FROM speed_on('rtx-4090', 'google/gemma-4-12B-it', dtype_id := 'gguf-q4_k_m')
UNION ALL SELECT 2, * FROM speed_on('h100-sxm', 'microsoft/phi-4', dtype_id := 'bf16', sequences := 16,
    engine_id := 'vllm')
UNION ALL SELECT 4, * FROM speed_on('h100-sxm', 'deepseek-ai/DeepSeek-V3-0324', dtype_id := 'fp8',
    context_tokens := 2048, sequences := 64, engine_id := 'sglang', gpu_count := 8)
UNION ALL SELECT 8, * FROM speed_on('h100-sxm', 'nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16', gpu_count := 16,
    sequences := 4, engine_id := 'vllm')
UNION ALL SELECT 9, * FROM speed_on('no-such-card', 'google/gemma-2b')
UNION ALL SELECT 11, * FROM speed_on('h100-sxm', 'google/embeddinggemma-300m')
ORDER BY place
