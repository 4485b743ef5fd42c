-- how cards share users
WITH question AS (
    SELECT gpu_id, model_id, dtype_id, users, context_tokens, kv_dtype_id, engine_id
    FROM (VALUES ('h100-sxm', 'microsoft/phi-4', 'bf16', 8, 8192, NULL, NULL), ('rtx-4090', 'openai/gpt-oss-20b',
        'stored', 100, 4096, 'fp8', 'vllm'),
        ('h100-sxm', 'deepseek-ai/DeepSeek-V3-0324', 'stored', 64, 16000, NULL, NULL), ('rtx-3060-12gb',
            'google/gemma-4-12B-it', 'gguf-q4_k_m', 3, 8192, NULL, NULL),
        ('mi300x', 'zai-org/GLM-4.5-Air', 'bf16', 16, 8192, NULL, NULL), ('rtx-4090', 'microsoft/phi-4', 'awq-int4', 0,
            8192, NULL, NULL),
        ('no-such-card', 'microsoft/phi-4', 'bf16', 8, 8192, NULL, NULL), ('rtx-4090', 'google/gemma-2b', 'bf16', 5000,
            2048, NULL, 'sglang'),
        -- (a card that has no fp8 of its own)
        ('a100-sxm-80gb', 'Qwen/Qwen3-8B', 'bf16', 8, 8192, 'fp8', 'vllm')
    ) AS said(gpu_id, model_id, dtype_id, users, context_tokens, kv_dtype_id, engine_id)
)
FROM serving_plans_in('question') ORDER BY ALL
