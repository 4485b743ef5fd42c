-- what Unsloth's repositories keep in 16 bits: told by a total, by a run, by neither (of text, and of what sees), and
-- of what it packs by itself
SELECT asked.model_id, told.weights_bytes, told.total_bytes, told.error_band, told.more_bytes, told.holds_for
FROM (VALUES ('meta-llama/Llama-3.1-8B-Instruct'), ('meta-llama/Llama-3.1-8B'), ('microsoft/phi-4'),
    ('google/gemma-3-27b-it'), ('google/gemma-3-12b-it'), ('Qwen/Qwen3-32B'), ('Qwen/Qwen3.5-4B')) AS asked(model_id),
    LATERAL footprint_of(asked.model_id, phase_id := 'qlora', program := 'unsloth', context_tokens := 2048) AS told
UNION ALL
-- and of copies that makers pack in several ways, whole and in part
SELECT asked.model_id, told.weights_bytes, told.total_bytes, told.error_band, told.more_bytes, told.holds_for
FROM (VALUES ('mistralai/Mixtral-8x7B-Instruct-v0.1', 'awq-int4', 1),
    ('mistralai/Mixtral-8x7B-Instruct-v0.1', 'nvfp4', 2),
    ('openai/gpt-oss-20b', 'gptq-int4', 1), ('openai/gpt-oss-20b', 'mxfp4', 1), ('Qwen/Qwen3.5-4B', 'fp8', 1),
    ('Qwen/Qwen3-8B', 'fp8', 1)) AS asked(model_id, dtype_id, gpu_count),
    LATERAL footprint_of(asked.model_id, dtype_id := asked.dtype_id, engine_id := 'vllm',
        gpu_count := asked.gpu_count, context_tokens := 4096) AS told
ORDER BY ALL
