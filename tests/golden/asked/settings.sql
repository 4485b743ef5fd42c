-- what an engine has to be told, on small and large cards
WITH said AS (
    FROM no_scenario UNION ALL BY NAME
    SELECT model_id, engine.dtype_id, 'inference' AS phase_id, engine_id, context_tokens, sequences, gpu_count
    FROM (VALUES ('microsoft/phi-4'), ('google/gemma-4-12B-it'),
        ('ibm-granite/granite-4.0-tiny-preview')) AS named(model_id),
        (VALUES ('vllm', 'bf16'), ('sglang', 'bf16'), ('llama.cpp', 'gguf-q4_k_m'), ('mlx-lm', 'mlx-4bit'), ('vllm-0.8',
            'awq-int4'), ('transformers', 'bf16')) AS engine(engine_id, dtype_id),
        (VALUES (2048, 1, 1), (16384, 7, 1), (4096, 300, 1), (8192, 2, 4)) AS asked(context_tokens, sequences,
            gpu_count)
),
told AS (
    SELECT told.*, model.vocab_size, true AS has_windows, told.model_id = 'google/gemma-4-12B-it' AS sees,
        iif(told.model_id = 'google/gemma-4-12B-it', told.context_tokens > 2048, NULL) AS has_counted_tower,
        sharing.data_setting, sharing.expert_setting, sharing.context_setting,
        cache_setting(kv, told.program) AS kv_setting
    FROM footprints_in('said', 'inference') AS told JOIN model ON model.model_id = told.model_id
    LEFT JOIN data_parallel_rule AS sharing ON sharing.engine_id = told.engine_id
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = told.kv_dtype_id
        WHERE told.total_bytes IS NOT NULL
)
SELECT footprint.model_id, footprint.engine_id, footprint.context_tokens, footprint.sequences, footprint.gpu_count,
    asked.gpu_id,
    engine_setting(footprint, card, constants) AS engine_setting
FROM (SELECT told AS footprint FROM told)
CROSS JOIN (FROM card_row WHERE gpu_id IN ('rtx-4090', 'h100-sxm', 'mi300x', 'rtx-3060-12gb', 'm2-max-64gb',
    'b200')) AS asked
CROSS JOIN constants_row
ORDER BY ALL
