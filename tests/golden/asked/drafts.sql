SELECT 1 AS place, * FROM drafted_on('h100-sxm', 'microsoft/phi-4', 'google/gemma-2b')
UNION ALL SELECT 2, * FROM drafted_on('h100-sxm', 'Qwen/Qwen3-32B', 'Qwen/Qwen3-0.6B', sequences := 2,
    draft_tokens := 4, step_tokens := 2.5)
UNION ALL SELECT 3, * FROM drafted_on('rtx-4090', 'Qwen/Qwen3-8B', 'Qwen/Qwen3-0.6B', dtype_id := 'gguf-q4_k_m',
    context_tokens := 4096)
UNION ALL SELECT 4, * FROM drafted_on('h100-sxm', 'Qwen/Qwen3-0.6B', 'Qwen/Qwen3-0.6B')
UNION ALL SELECT 5, * FROM drafted_on('h100-sxm', 'Qwen/Qwen3-32B', 'Qwen/Qwen3-0.6B', sequences := 500)
UNION ALL SELECT 6, * FROM drafted_on('no-such-card', 'Qwen/Qwen3-32B', 'Qwen/Qwen3-0.6B')
ORDER BY place
