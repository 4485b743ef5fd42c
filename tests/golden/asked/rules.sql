-- rules of thumb beside made-up footprints: in the scenario of each rule, and beside it by one thing each
DELETE FROM footprint;
INSERT INTO footprint BY NAME
WITH asked AS (
    SELECT DISTINCT phase_id, dtype_id, context_tokens, sequences, checkpointing FROM rule_fact
    UNION SELECT phase_id, dtype_id, context_tokens, sequences, checkpointing
    FROM (VALUES ('full-finetune', 'bf16', 2048, 8, 'none'), ('full-finetune', 'fp32', 2048, 8, 'none'),
        ('full-finetune', 'bf16', 1024, 8, 'none'), ('full-finetune', 'bf16', 2048, 4, 'none'),
        ('full-finetune', 'bf16', 2048, 8, 'selective'), ('pretrain', 'bf16', 2048, 8, 'none'),
        ('inference', 'bf16', 4096, 1, NULL), ('inference', 'bf16', 8192, 3, NULL)) AS more(phase_id, dtype_id,
            context_tokens, sequences, checkpointing)
),
scenario AS (
    SELECT asked.*, model_id, gpu_count, optimizer_id, place,
        iif(is_usual, iif(asked.phase_id = 'inference', dtype.engine_id, 'transformers'), 'vllm-0.8') AS engine_id,
        row_number() OVER (ORDER BY phase_id, asked.dtype_id, context_tokens,
            sequences, checkpointing, model_id, gpu_count, optimizer_id, is_usual) AS number
    FROM asked JOIN dtype ON dtype.dtype_id = asked.dtype_id
    CROSS JOIN (VALUES ('google/gemma-2b', 1), ('microsoft/phi-4', 2), ('openai/gpt-oss-20b', 3),
        ('deepseek-ai/DeepSeek-V3-0324', 4), ('tiiuae/falcon-mamba-7b', 5)) AS named(model_id, place)
    CROSS JOIN (VALUES (1, 'adamw', true), (2, 'adamw', true), (1, 'sgd', true), (1, NULL, true),
        (1, 'adamw', false)) AS way(gpu_count, optimizer_id, is_usual)
)
SELECT scenario.* EXCLUDE (place, number), 'flash' AS attention, 'none' AS sharding,
    700000000 * place::BIGINT + 1000003 * number AS weights_bytes,
    iif(number % 7 = 0, 0, 90000000 * place::BIGINT + 10007 * number) AS kv_cache_bytes,
    50000000 * place::BIGINT + 30011 * number AS activations_bytes,
    20000000 * place::BIGINT + 7001 * number AS gradients_bytes,
    40000000 * place::BIGINT + 9001 * number AS optimizer_bytes,
    4000000000 * place::BIGINT + 2000003 * number AS total_bytes
FROM scenario;
SELECT rule_id, model_id, our_bytes::DOUBLE AS ours, rule_bytes::DOUBLE AS rules, error AS told, NULL AS lowest,
    NULL AS highest, NULL AS shares
FROM rule_error
UNION ALL SELECT rule_id, NULL, model_count, worst_under, median_error, lowest_model_id, highest_model_id,
    concat_ws(' ', round(worst_over, 6), round(near_share, 6), round(under_share, 6))
FROM rule_of_thumb ORDER BY ALL
