-- verdicts, limits, speeds, layers beside the CPU, unlike cards, preferences and drafts, as digests
PRAGMA enable_optimizer;
CREATE OR REPLACE TEMP TABLE golden_models_drawn AS FROM (VALUES {models}) AS named(model_id);
CREATE OR REPLACE TEMP TABLE golden_cards_drawn AS FROM (VALUES {cards}) AS named(gpu_id);
CREATE OR REPLACE TEMP TABLE golden_few_drawn AS FROM (VALUES {few_models}) AS named(model_id);
CREATE OR REPLACE TEMP TABLE golden_few_cards_drawn AS FROM (VALUES {few_cards}) AS named(gpu_id);
SELECT 'fits_on inference' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.dtype, asked.engine, asked.context) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, golden_cards_drawn, (VALUES
        (NULL, NULL, 8192), ('gguf-q4_k_m', NULL, 70000), ('fp8', 'vllm', 4096), ('bf16', 'sglang', 16000),
            ('fp16', 'llama.cpp', 4096)) AS way(dtype, engine, context)) AS asked,
    fits_on(asked.gpu_id, asked.model_id, phase_id := 'inference', dtype_id := asked.dtype, engine_id :=
        asked.engine, context_tokens := asked.context, sequences := 2) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'fits_on lora' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.dtype, asked.engine, asked.context) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, golden_cards_drawn, (VALUES
        (NULL, NULL, 2048), ('bf16', 'megatron', 1000)) AS way(dtype, engine, context)) AS asked,
    fits_on(asked.gpu_id, asked.model_id, phase_id := 'lora', dtype_id := asked.dtype, engine_id :=
        asked.engine, context_tokens := asked.context, sequences := 2) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'fits_on qlora' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.dtype, asked.engine, asked.context) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, golden_cards_drawn, (VALUES
        ('nf4', 'unsloth', 4096), ('int8', NULL, 512)) AS way(dtype, engine, context)) AS asked,
    fits_on(asked.gpu_id, asked.model_id, phase_id := 'qlora', dtype_id := asked.dtype, engine_id :=
        asked.engine, context_tokens := asked.context, sequences := 2) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'limits_on inference' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.dtype, asked.engine) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_few_drawn, golden_few_cards_drawn, (VALUES
        ('gguf-q4_k_m', NULL), ('bf16', 'vllm'), ('nf4', NULL)) AS way(dtype, engine)) AS asked,
    limits_on(asked.gpu_id, asked.model_id, phase_id := 'inference', dtype_id := asked.dtype, engine_id :=
        asked.engine) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'limits_on qlora' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.dtype, asked.engine) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_few_drawn, golden_few_cards_drawn, (VALUES
        ('nf4', NULL), ('nf4', 'torchtune')) AS way(dtype, engine)) AS asked,
    limits_on(asked.gpu_id, asked.model_id, phase_id := 'qlora', dtype_id := asked.dtype, engine_id :=
        asked.engine) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'limits_on full-finetune' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.dtype, asked.engine) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_few_drawn, golden_few_cards_drawn, (VALUES
        (NULL, NULL)) AS way(dtype, engine)) AS asked,
    limits_on(asked.gpu_id, asked.model_id, phase_id := 'full-finetune', dtype_id := asked.dtype, engine_id :=
        asked.engine) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'speed_on' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.dtype, asked.engine, asked.context, asked.users) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, golden_cards_drawn, (VALUES
        ('gguf-q4_k_m', NULL, 8192, 1), ('bf16', 'vllm', 2000, 16), ('fp8', 'sglang', 30000, 4), ('mlx-4bit',
            NULL, 4096, 1)) AS way(dtype, engine, context, users)) AS asked,
    speed_on(asked.gpu_id, asked.model_id, dtype_id := asked.dtype, engine_id := asked.engine, context_tokens :=
        asked.context, sequences := asked.users) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'on_several_gpus' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.dtype, asked.engine, asked.context) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, golden_cards_drawn, (VALUES
        ('bf16', 'vllm', 8192), ('gguf-q8_0', NULL, 32768)) AS way(dtype, engine, context)) AS asked,
    on_several_gpus(asked.gpu_id, asked.model_id, dtype_id := asked.dtype, engine_id := asked.engine,
        context_tokens := asked.context) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'layers_that_fit' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.dtype, asked.context) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, golden_cards_drawn, (VALUES
        ('gguf-q4_k_m', 8192), ('gguf-q8_0', 40000), ('gguf-mxfp4', 1000)) AS way(dtype, context)) AS asked,
    layers_that_fit(asked.gpu_id, asked.model_id, dtype_id := asked.dtype, context_tokens := asked.context) AS
        told
GROUP BY ALL ORDER BY ALL;
SELECT 'fits_together' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.other, asked.context) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, golden_cards_drawn, (VALUES
        ('rtx-3090', 8192), ('h100-sxm', 30000)) AS way(other, context)) AS asked,
    fits_together([asked.gpu_id, asked.other], asked.model_id, context_tokens := asked.context) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'techniques_for' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.context) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, golden_cards_drawn, (VALUES
        (2048), (500)) AS way(context)) AS asked,
    techniques_for(asked.gpu_id, asked.model_id, context_tokens := asked.context) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'preference_of lora' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.objective, asked.pairs) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, (VALUES
        ('dpo', 2), ('orpo', 1), ('kto', 4), ('grpo', 8), ('reward', 2)) AS way(objective, pairs)) AS asked,
    preference_of(asked.objective, asked.model_id, phase_id := 'lora', sequences := asked.pairs) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'preference_of qlora' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.objective, asked.pairs) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, (VALUES
        ('dpo', 2), ('orpo', 1), ('kto', 4), ('grpo', 8), ('reward', 2)) AS way(objective, pairs)) AS asked,
    preference_of(asked.objective, asked.model_id, phase_id := 'qlora', sequences := asked.pairs) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'preference_of full-finetune' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.objective, asked.pairs) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, (VALUES
        ('dpo', 2), ('orpo', 1), ('kto', 4), ('grpo', 8), ('reward', 2)) AS way(objective, pairs)) AS asked,
    preference_of(asked.objective, asked.model_id, phase_id := 'full-finetune', sequences := asked.pairs) AS
        told
GROUP BY ALL ORDER BY ALL;
SELECT 'speculative_of' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.draft, asked.dtype, asked.engine) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, (VALUES
        ('Qwen/Qwen3-0.6B', 'gguf-q4_k_m', 'llama.cpp'), ('Qwen/Qwen3-0.6B', 'bf16', 'vllm'), ('mtp', 'bf16',
            'vllm'), ('mtp', 'gguf-q8_0', 'llama.cpp')) AS way(draft, dtype, engine)) AS asked,
    speculative_of(asked.model_id, asked.draft, dtype_id := asked.dtype, engine_id := asked.engine) AS told
GROUP BY ALL ORDER BY ALL
