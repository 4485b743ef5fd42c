SELECT 1 AS place, * FROM fits_on('rtx-4090', 'microsoft/phi-4', dtype_id := 'awq-int4', context_tokens := 8192)
UNION ALL SELECT 2, * FROM fits_on('RTX-3060-12GB', 'openai/gpt-oss-20b', program := 'ollama')
UNION ALL SELECT 3, * FROM fits_on('h100-sxm', 'google/gemma-4-12B-it', program := 'vllm', program_version := '0.27',
    context_tokens := 8192)
UNION ALL SELECT 4, * FROM fits_on('no-such-card', 'google/gemma-2b')
UNION ALL SELECT 8, * FROM fits_on('t4', 'google/gemma-2b', dtype_id := 'fp16', program := 'vllm',
    program_version := '0.10.0')
UNION ALL SELECT 9, * FROM fits_on('t4', 'google/gemma-2b', dtype_id := 'fp16', program := 'vllm',
    program_version := '0.33')
UNION ALL SELECT 10, * FROM fits_on('gtx-1080-ti', 'Qwen/Qwen3-8B', program := 'unsloth', program_version := '2025.7.5',
    phase_id := 'lora')
UNION ALL SELECT 7, * FROM fits_on('rtx-3060-12gb', 'google/gemma-2b', phase_id := 'lora', checkpointing := 'full',
    context_tokens := 2048)
ORDER BY place
