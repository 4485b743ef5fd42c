-- verdicts, limits, layers beside the CPU, rules of thumb, and what fits a card, over a lookup of three models
PRAGMA enable_optimizer;
CREATE OR REPLACE TEMP TABLE golden_served AS
FROM no_scenario UNION ALL BY NAME SELECT model_id, dtype_id, engine_id, 'inference' AS phase_id, context_tokens,
    sequences, gpu_count
FROM (VALUES ('google/gemma-2b', 'gguf-q4_k_m', NULL), ('google/gemma-2b', 'bf16', 'vllm'), ('google/gemma-2b', 'bf16',
    NULL), ('microsoft/phi-4', 'bf16', NULL),
    ('microsoft/phi-4', 'gguf-q4_k_m', NULL), ('microsoft/phi-4', 'awq-int4', NULL),
        ('allenai/OLMoE-1B-7B-0125-Instruct', 'gguf-q8_0', NULL)) AS named(model_id, dtype_id, engine_id),
    (VALUES (512, 1, 1), (4096, 1, 1), (8192, 1, 1), (8192, 8, 1), (8192, 64, 1), (8192, 1, 2), (8192, 1,
        4)) AS asked(context_tokens, sequences, gpu_count);
CREATE OR REPLACE TEMP TABLE golden_trained AS
FROM no_scenario UNION ALL BY NAME SELECT model_id, phase_id, dtype_id, 'adamw' AS optimizer_id, precision,
    checkpointing, 2048 AS context_tokens, sequences, gpu_count, sharding
FROM (VALUES ('google/gemma-2b'), ('microsoft/phi-4')) AS named(model_id),
    (VALUES ('lora', 'bf16', NULL), ('qlora', 'nf4', NULL), ('full-finetune', 'bf16', NULL), ('pretrain', 'fp32',
        'pure')) AS done(phase_id, dtype_id, precision),
    (VALUES ('none', 1, 1, NULL), ('none', 8, 1, NULL), ('full', 1, 1, NULL), ('full', 1, 8,
        'zero2')) AS asked(checkpointing, sequences, gpu_count, sharding);
DELETE FROM footprint; DELETE FROM ladder; DELETE FROM layer_weight;
INSERT INTO footprint BY NAME SELECT {footprint} FROM footprints_in('golden_served', 'inference');
INSERT INTO footprint BY NAME SELECT {footprint} FROM footprints_in('golden_trained', 'lora');
INSERT INTO ladder BY NAME SELECT {ladder} FROM footprints_in('golden_served', 'inference') WHERE gpu_count = 1
    AND context_tokens = 512;
INSERT INTO layer_weight BY NAME
WITH layered AS (SELECT DISTINCT model_id, dtype_id FROM footprint WHERE engine_id = 'llama.cpp') {weighed};
SELECT 'verdict' AS what, model_id, dtype_id, phase_id, engine_id, concat_ws(' ', context_tokens, sequences,
    checkpointing, gpu_id) AS asked, total_bytes,
    concat_ws(' ', verdict, gpu_count_needed, sharding, max_context_tokens, max_sequences, unknown_reason) AS told
FROM compatibility WHERE gpu_id IN ('rtx-3060-12gb', 'gtx-1050-ti', 'h100-sxm', 'mi50-16gb')
UNION ALL SELECT 'rule', model_id, NULL, NULL, NULL, rule_id, our_bytes::BIGINT,
    round(rule_bytes::DOUBLE) || ' ' || round(error::DOUBLE, 6) FROM rule_error
UNION ALL SELECT 'thumb', NULL, NULL, NULL, NULL, rule_id, model_count, concat_ws(' ', round(median_error::DOUBLE, 6),
    round(worst_under::DOUBLE, 6), round(worst_over::DOUBLE, 6),
    round(near_share::DOUBLE, 4), round(under_share::DOUBLE, 4), lowest_model_id, highest_model_id) FROM rule_of_thumb
UNION ALL SELECT 'split', model_id, dtype_id, NULL, engine_id, gpu_layers || ' ' || cpu_expert_layers, gpu_bytes,
    host_bytes || ' ' || error_band FROM cpu_split
UNION ALL SELECT 'fits', model_id, dtype_id, phase_id, engine_id, concat_ws(' ', context_tokens, sequences,
    checkpointing), total_bytes, headroom_bytes || ' ' || verdict FROM what_fits('rtx-3060-12gb')
UNION ALL SELECT 'fits', model_id, dtype_id, phase_id, engine_id, concat_ws(' ', context_tokens, sequences,
    checkpointing), total_bytes, headroom_bytes || ' ' || verdict
    FROM what_fits('RTX-3060-12GB', dtype_id := 'GGUF-Q4_K_M', sequences := 8, engine_id := 'llama.cpp')
UNION ALL SELECT 'fits', model_id, dtype_id, phase_id, engine_id, concat_ws(' ', context_tokens, sequences,
    checkpointing), total_bytes, headroom_bytes || ' ' || verdict FROM what_fits('h100-sxm', phase_id := 'lora',
        context_tokens := 2048, sequences := 8)
UNION ALL SELECT 'beside', model_id, dtype_id, NULL, engine_id, concat_ws(' ', context_tokens, sequences, layer_count,
    gpu_layers, cpu_expert_layers), gpu_bytes, host_bytes::VARCHAR FROM what_fits_beside('gtx-1050-ti', 34359738368)
UNION ALL SELECT 'beside', model_id, dtype_id, NULL, engine_id, concat_ws(' ', context_tokens, sequences, layer_count,
    gpu_layers, cpu_expert_layers), gpu_bytes, host_bytes::VARCHAR
    FROM what_fits_beside('rtx-3060-12gb', 16000000000, context_tokens := 4096, free_bytes := 6000000000)
UNION ALL SELECT 'beside', model_id, dtype_id, NULL, engine_id, concat_ws(' ', context_tokens, sequences, layer_count,
    gpu_layers, cpu_expert_layers), gpu_bytes, host_bytes::VARCHAR
    FROM what_fits_beside('rtx-3060-12gb', 64000000000, sequences := 8, free_bytes := 10500000000)
ORDER BY ALL
