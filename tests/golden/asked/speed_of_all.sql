-- how fast cards are, by the parts that speed_on is made of (in whole numbers, whose sum knows no order)
WITH said AS (
    FROM no_scenario UNION ALL BY NAME SELECT model_id, engine.dtype_id, 'inference' AS phase_id, engine_id,
        context_tokens, sequences, gpu_count
    FROM (VALUES ('microsoft/phi-4'), ('google/gemma-4-12B-it'), ('allenai/OLMoE-1B-7B-0125-Instruct'),
        ('ibm-granite/granite-4.0-tiny-preview'), ('tiiuae/falcon-mamba-7b'),
        ('deepseek-ai/DeepSeek-V3-0324'), ('google/t5gemma-2b-2b-ul2-it'), ('google/embeddinggemma-300m'),
            ('openai/gpt-oss-20b')) AS named(model_id),
        (VALUES ('vllm', 'bf16'), ('vllm', 'fp8'), ('vllm', 'awq-int4'), ('sglang', 'bf16'), ('llama.cpp',
            'gguf-q4_k_m'), ('llama.cpp', 'gguf-q8_0'), ('mlx-lm', 'mlx-4bit'), ('transformers', 'bf16'))
            AS engine(engine_id, dtype_id),
        (VALUES (1000, 1, 1), (8000, 16, 1), (2000, 1, 8), (3000, 4, 16)) AS asked(context_tokens, sequences, gpu_count)
),
told AS (FROM footprints_in('said', 'inference') WHERE total_bytes IS NOT NULL),
timed AS (
    SELECT told, card, model, weight, dtype, speed, decode_likely(model, weight, dtype, told, card, speed) AS likely
    FROM told
    CROSS JOIN (FROM gpu WHERE gpu_id IN ('rtx-4090', 'h100-sxm', 'm2-max-64gb', 'rtx-3060-12gb', 'a100-sxm-80gb',
        'mi300x', 'gtx-1080-ti')) AS card
    JOIN shape AS model ON model.model_id = told.model_id
    JOIN weight ON weight.model_id = told.model_id AND weight.dtype_id = told.dtype_id
    JOIN dtype ON dtype.dtype_id = told.dtype_id
    LEFT JOIN engine_speed AS speed ON is_speed_of(speed, told.engine_id, card, coalesce(model.expert_count_max > 0,
        false))
)
SELECT told.model_id, told.dtype_id, told.engine_id, told.context_tokens, count(*) AS cards,
    sum(weight.read_bytes) AS read_bytes,
    sum(cache_read_bytes(model, told)) AS cache_bytes, sum((1000 * decode_most(model, weight, told,
        card))::BIGINT) AS decode_most, sum(prefill_most(model, dtype, told, card)::BIGINT) AS prefill_most,
    sum((1000 * likely)::BIGINT) AS likely, sum(prefill_likely(model, dtype, told, card,
        speed)::BIGINT) AS prefill_likely,
    array_to_string(list_sort(list_distinct(list(coalesce(decode_reason(model, weight, told, card), likely_reason(speed,
        told, share_tflops(card, dtype.product_bits, speed)))))), '; ') AS reasons
FROM timed GROUP BY ALL ORDER BY ALL
