-- many questions against one card, or an amount of memory
WITH said AS (
    FROM no_scenario UNION ALL BY NAME SELECT *, 'inference' AS phase_id FROM (VALUES
        ('microsoft/phi-4', 'gguf-q4_k_m', 8192, 1, NULL, NULL, NULL), ('google/gemma-4-12B-it', 'gguf-q8_0', 40000, 2,
            'q8_0', NULL, NULL),
        ('google/gemma-2b', 'bf16', NULL, 1, NULL, NULL, 'vllm'), ('openai/gpt-oss-20b', 'stored', 4096, 1, NULL,
            'vllm', NULL),
        ('microsoft/phi-4', NULL, NULL, NULL, NULL, NULL, 'ollama'), ('llava-hf/llava-1.5-7b-hf', 'nf4', 2000, 1, NULL,
            NULL, NULL),
        ('No/Such-Model', 'bf16', 4096, 1, NULL, NULL, NULL), ('microsoft/phi-4', 'awq-int4', 16384, 4, 'fp8', 'sglang',
            NULL)
    ) AS one(model_id, dtype_id, context_tokens, sequences, kv_dtype_id, engine_id, program)
)
SELECT 'card' AS against, * EXCLUDE (unknown_reason), split_part(unknown_reason, ' (nearest', 1) AS reason
    FROM fits_in('said', 'rtx-3060-12gb', is_plain := false)
UNION ALL SELECT 'part', * EXCLUDE (unknown_reason), split_part(unknown_reason, ' (nearest', 1) FROM fits_in('said',
    'rtx-4090', free_bytes := 20000000000, is_plain := false)
UNION ALL SELECT 'memory', * EXCLUDE (unknown_reason), split_part(unknown_reason, ' (nearest', 1) FROM fits_in('said',
    NULL, free_bytes := 9000000000, is_plain := false, with_limits := false)
-- files that hold more than their format: so many bytes, and a share of the weights
UNION ALL SELECT 'file', * EXCLUDE (unknown_reason), split_part(unknown_reason, ' (nearest', 1) FROM fits_in('said',
    'rtx-3060-12gb', is_plain := false, with_limits := false, beyond_bytes := 300000000, more_share := 0.125)
ORDER BY ALL
