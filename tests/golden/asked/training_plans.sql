-- how long a training takes, and what finishes in time
-- (one by one: all in one statement take more than 4 GB without an optimizer)
SELECT 1 AS place, * FROM plan_training_for('h100-sxm', 'google/gemma-2b', data_bytes := 1000000000,
    price_per_gpu_hour := 2)
ORDER BY ALL;
SELECT 2 AS place, * FROM plan_training_for('rtx-4090', 'microsoft/phi-4', phase_id := 'qlora',
    data_tokens := 50000000, days := 3, epochs := 2)
ORDER BY ALL;
SELECT 3 AS place, * FROM plan_training_for('h100-sxm', 'allenai/OLMoE-1B-7B-0125-Instruct', phase_id := 'pretrain',
    data_bytes := 100000000000, days := 30, global_batch_tokens := 4000000, bytes_per_token := 4)
ORDER BY ALL;
SELECT 4 AS place, * FROM plan_training_for('rtx-4090', 'google/gemma-2b', data_bytes := -1)
ORDER BY ALL;
SELECT 5 AS place, * FROM plan_training_for('h100-sxm', 'google/gemma-2b', data_tokens := 1000,
    global_batch_tokens := 1)
ORDER BY ALL;
SELECT 6 AS place, * FROM plan_training_for('h100-sxm', 'google/gemma-2b', data_tokens := 1000,
    global_batch_tokens := 0)
ORDER BY ALL;
SELECT 7 AS place, * FROM plan_training_for('rtx-4090', 'google/gemma-2b', data_tokens := 1000,
    price_per_gpu_hour := 0)
ORDER BY ALL;
SELECT 8 AS place, * FROM plan_training_for('rtx-4090', 'google/gemma-2b', data_tokens := 1000,
    price_per_gpu_hour := -1)
ORDER BY ALL
