-- servers that share routed experts among data-parallel ranks, and what they refuse
WITH said AS (
    FROM no_scenario UNION ALL BY NAME
    SELECT model_id, dtype_id, 'inference' AS phase_id, engine_id, 8192 AS context_tokens, sequences, gpu_count,
        data_parallel, expert_parallel
    FROM (VALUES ('deepseek-ai/DeepSeek-V3-0324', 'fp8'), ('deepseek-ai/DeepSeek-V3-0324', 'bf16'),
        ('allenai/OLMoE-1B-7B-0125-Instruct', 'bf16'), ('openai/gpt-oss-20b', 'mxfp4'), ('microsoft/phi-4', 'fp8'))
        AS named(model_id, dtype_id),
        (VALUES ('vllm'), ('sglang'), ('transformers')) AS engine(engine_id),
        (VALUES (5, 4, 4, 4), (5, 4, 2, 4), (5, 4, 2, 1), (5, 4, 1, 4), (5, 4, 4, 2), (200, 24, 24, 24), (5, 5, 5, 1))
            AS asked(sequences, gpu_count, data_parallel, expert_parallel)
),
-- (and the cache of a request dealt out among cards)
dealt AS (
    FROM no_scenario UNION ALL BY NAME
    SELECT model_id, 'bf16' AS dtype_id, 'inference' AS phase_id, 'vllm' AS engine_id, 9001 AS context_tokens,
        3 AS sequences, 8 AS gpu_count, unnest([1, 2, 4, 3]) AS decode_context_parallel
    FROM (VALUES ('deepseek-ai/DeepSeek-V3-0324'), ('Qwen/Qwen3-8B'), ('google/gemma-2b'), ('openai/gpt-oss-20b'))
        AS named(model_id)
)
SELECT model_id, dtype_id, engine_id, sharding, sequences, gpu_count, tensor_parallel, data_parallel, expert_parallel,
    decode_context_parallel, weights_bytes, kv_cache_bytes, kv_padding_bytes, activations_bytes,
    overhead_bytes, total_bytes, error_band, unknown_reason
FROM (FROM footprints_in('said', 'inference') UNION ALL BY NAME FROM footprints_in('dealt', 'inference'))
ORDER BY ALL
