SELECT 1 AS place, * FROM limits_on('rtx-4090', 'microsoft/phi-4', dtype_id := 'awq-int4')
UNION ALL SELECT 2, * FROM limits_on('rtx-3060-12gb', 'google/gemma-2b', phase_id := 'qlora', dtype_id := 'nf4',
    checkpointing := 'full')
UNION ALL SELECT 3, * FROM limits_on('h100-sxm', 'google/gemma-4-12B-it', context_tokens := 5000,
    engine_id := 'llama.cpp', dtype_id := 'gguf-q4_k_m')
UNION ALL SELECT 4, * FROM limits_on('gtx-1050-ti', 'deepseek-ai/DeepSeek-V3-0324')
-- (a context that two cards divide, to the last pair of tokens)
UNION ALL SELECT 5, * FROM limits_on('h100-sxm', 'google/gemma-2b', phase_id := 'full-finetune',
    checkpointing := 'full', context_parallel := 2, gpu_count := 2, engine_id := 'megatron',
    max_context_tokens := 5003)
-- (a format by a name that is none: those that are most like it)
UNION ALL SELECT 6, * FROM limits_on('rtx-4090', 'microsoft/phi-4', dtype_id := 'bf61')
ORDER BY place
