-- how a training is shared
SELECT 1 AS place, * FROM plans_for('h100-sxm', 'microsoft/phi-4')
UNION ALL SELECT 2, * FROM plans_for('rtx-4090', 'openai/gpt-oss-20b', phase_id := 'lora', checkpointing := 'full',
    engine_id := 'megatron')
UNION ALL SELECT 3, * FROM plans_for('rtx-3060-12gb', 'google/gemma-2b', phase_id := 'qlora', dtype_id := 'nf4',
    sequences := 4)
-- (a context that is divided too)
UNION ALL SELECT 5, * FROM plans_for('h100-sxm', 'meta-llama/Llama-4-Scout-17B-16E-Instruct', phase_id := 'lora',
    checkpointing := 'full', engine_id := 'megatron', context_tokens := 65536)
UNION ALL SELECT 4, * FROM plans_for('no-such-card', 'google/gemma-2b')
ORDER BY ALL
