-- layers beside the CPU
SELECT 1 AS place, * FROM layers_that_fit('rtx-4090', 'openai/gpt-oss-20b', dtype_id := 'gguf-mxfp4',
    context_tokens := 32768, free_bytes := 9000000000)
UNION ALL SELECT 2, * FROM layers_that_fit('rtx-3060-12gb', 'google/gemma-4-12B-it', dtype_id := 'gguf-q8_0',
    context_tokens := 131072, sequences := 2)
UNION ALL SELECT 3, * FROM layers_that_fit('rtx-3060-12gb', 'microsoft/phi-4', dtype_id := 'bf16',
    context_tokens := 8192)
UNION ALL SELECT 4, * FROM layers_that_fit('gtx-1050-ti', 'tiiuae/falcon-mamba-7b')
UNION ALL SELECT 5, * FROM layers_that_fit('no-such-card', 'microsoft/phi-4')
UNION ALL SELECT 6, * FROM layers_that_fit('rtx-3060-12gb', 'zai-org/GLM-4.5-Air', kv_dtype_id := 'q8_0')
ORDER BY place
