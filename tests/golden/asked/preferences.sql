FROM preference_of('dpo', 'google/gemma-2b', phase_id := 'qlora', sequences := 2);
FROM preference_of('dpo', 'microsoft/phi-4', phase_id := 'full-finetune', checkpointing := 'full',
    context_tokens := 1000);
FROM preference_of('orpo', 'unsloth/gemma-2-2b-it-bnb-4bit', phase_id := 'lora');
FROM preference_of('kto', 'allenai/OLMo-2-0425-1B', phase_id := 'lora', sequences := 3);
FROM preference_of('grpo', 'Qwen/Qwen3-0.6B', phase_id := 'full-finetune');
FROM preference_of('reward', 'Qwen/Qwen3-0.6B', phase_id := 'lora', context_tokens := 512);
FROM preference_of('dpo', 'Qwen/Qwen3-0.6B');
FROM preference_of('dpo', 'Qwen/Qwen3-0.6B', phase_id := 'lora', gpu_count := 4, sharding := 'zero2');
FROM preference_of('ppo', 'Qwen/Qwen3-0.6B', phase_id := 'lora')
