SELECT 1 AS place, * FROM on_several_gpus('h100-sxm', 'deepseek-ai/DeepSeek-V3-0324', dtype_id := 'fp8', sequences := 4,
    engine_id := 'vllm')
UNION ALL SELECT 2, * FROM on_several_gpus('rtx-3060-12gb', 'google/gemma-4-12B-it', dtype_id := 'gguf-q8_0',
    context_tokens := 20000)
UNION ALL SELECT 3, * FROM on_several_gpus('rtx-4090', 'microsoft/phi-4', sequences := 0)
UNION ALL SELECT 4, * FROM on_several_gpus('no-such-card', 'microsoft/phi-4')
UNION ALL SELECT 5, * FROM on_several_gpus('h200-sxm', 'deepseek-ai/DeepSeek-V3-0324', dtype_id := 'fp8',
    sequences := 4, data_parallel := true)
UNION ALL SELECT 6, * FROM on_several_gpus('h200-sxm', 'deepseek-ai/DeepSeek-V3-0324', dtype_id := 'fp8',
    sequences := 64, engine_id := 'sglang', data_parallel := true)
-- one sequence fits and no second, of four that were asked
UNION ALL SELECT 7, * FROM on_several_gpus('rtx-3060-12gb', 'microsoft/phi-4', dtype_id := 'gguf-q4_k_m',
    context_tokens := 12000, sequences := 4)
ORDER BY place, gpu_count
