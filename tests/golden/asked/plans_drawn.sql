-- how cards share users, trainings and models, of several models on several cards, as digests
PRAGMA enable_optimizer;
CREATE OR REPLACE TEMP TABLE golden_models_drawn AS FROM (VALUES {models}) AS named(model_id);
CREATE OR REPLACE TEMP TABLE golden_cards_drawn AS FROM (VALUES {cards}) AS named(gpu_id);
CREATE OR REPLACE TEMP TABLE golden_few_drawn AS FROM (VALUES {few_models}) AS named(model_id);
CREATE OR REPLACE TEMP TABLE golden_few_cards_drawn AS FROM (VALUES {few_cards}) AS named(gpu_id);
SELECT 'plan_for' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.users, asked.context, asked.engine) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_models_drawn, golden_cards_drawn, (VALUES
        (3, 8192, NULL), (40, 2000, 'vllm'), (1, 100000, 'llama.cpp'), (0, 512, NULL)) AS way(users, context,
            engine)) AS asked,
    plan_for(asked.gpu_id, asked.model_id, users := asked.users, context_tokens := asked.context, engine_id :=
        asked.engine) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'plan_training_for lora' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.tokens, asked.batch, asked.days) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_few_drawn, golden_few_cards_drawn, (VALUES
        (1000000000, NULL, 3), (3000000000000, 4000000, 90), (4000, 1, 0.5)) AS way(tokens, batch, days)) AS asked,
    plan_training_for(asked.gpu_id, asked.model_id, phase_id := 'lora', data_tokens := asked.tokens,
        global_batch_tokens := asked.batch, days := asked.days) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'plan_training_for full-finetune' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.tokens, asked.batch, asked.days) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_few_drawn, golden_few_cards_drawn, (VALUES
        (1000000000, NULL, 3), (3000000000000, 4000000, 90), (4000, 1, 0.5)) AS way(tokens, batch, days)) AS asked,
    plan_training_for(asked.gpu_id, asked.model_id, phase_id := 'full-finetune', data_tokens := asked.tokens,
        global_batch_tokens := asked.batch, days := asked.days) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'plan_training_for pretrain' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.tokens, asked.batch, asked.days) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_few_drawn, golden_few_cards_drawn, (VALUES
        (1000000000, NULL, 3), (3000000000000, 4000000, 90), (4000, 1, 0.5)) AS way(tokens, batch, days)) AS asked,
    plan_training_for(asked.gpu_id, asked.model_id, phase_id := 'pretrain', data_tokens := asked.tokens,
        global_batch_tokens := asked.batch, days := asked.days) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'plans_for inference' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.engine, asked.context) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_few_drawn, golden_few_cards_drawn, (VALUES
        (NULL, 32768), ('vllm', 4096)) AS way(engine, context)) AS asked,
    plans_for(asked.gpu_id, asked.model_id, phase_id := 'inference', engine_id := asked.engine, context_tokens
        := asked.context) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'plans_for lora' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.engine, asked.context) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_few_drawn, golden_few_cards_drawn, (VALUES
        (NULL, 2048), ('torchtune', 1024)) AS way(engine, context)) AS asked,
    plans_for(asked.gpu_id, asked.model_id, phase_id := 'lora', engine_id := asked.engine, context_tokens :=
        asked.context) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'plans_for full-finetune' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.engine, asked.context) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_few_drawn, golden_few_cards_drawn, (VALUES
        ('megatron', 4096), ('deepspeed', 2048)) AS way(engine, context)) AS asked,
    plans_for(asked.gpu_id, asked.model_id, phase_id := 'full-finetune', engine_id := asked.engine,
        context_tokens := asked.context) AS told
GROUP BY ALL ORDER BY ALL;
SELECT 'plans_for qlora' AS what, asked.model_id, count(*) AS row_count,
    concat_ws(' ', asked.engine, asked.context) AS said,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.gpu_id, told::VARCHAR)) AS told
FROM (SELECT * FROM golden_few_drawn, golden_few_cards_drawn, (VALUES
        (NULL, 1024)) AS way(engine, context)) AS asked,
    plans_for(asked.gpu_id, asked.model_id, phase_id := 'qlora', engine_id := asked.engine, context_tokens :=
        asked.context) AS told
GROUP BY ALL ORDER BY ALL
