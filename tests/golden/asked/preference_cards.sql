FROM preference_fits_on('h100-sxm', 'grpo', 'Qwen/Qwen3-8B', phase_id := 'lora', generator := 'vllm-colocate');
FROM preference_fits_on('h100-sxm', 'grpo', 'Qwen/Qwen3-0.6B', phase_id := 'full-finetune', sequences := 4,
    gradient_accumulation := 4, generator := 'vllm-colocate', generator_share := 0.25,
    generator_context_tokens := 2048, generator_sleeps := true);
FROM preference_fits_on('a100-sxm-80gb', 'grpo', 'google/gemma-3-4b-it', phase_id := 'lora',
    dtype_id := 'bf16', gpu_count := 2, sharding := 'ddp', generator := 'vllm-colocate',
    generator_context_tokens := 4096, generator_tensor_parallel := 2);
FROM preference_fits_on('rtx-4090', 'grpo', 'Qwen/Qwen3-0.6B', phase_id := 'lora', sequences := 2,
    generator := 'vllm-server');
FROM preference_fits_on('rtx-4090', 'dpo', 'google/gemma-2b', phase_id := 'qlora', sequences := 2);
FROM preference_fits_on('rtx-4090', 'grpo', 'google/gemma-2b', phase_id := 'qlora', sequences := 2,
    generator := 'vllm-colocate');
FROM preference_fits_on('gtx-1080-ti', 'grpo', 'Qwen/Qwen3-0.6B', phase_id := 'lora',
    generator := 'vllm-colocate');
-- (a context that takes the tokens of one image, as many as a training that says no number has, and not of two)
FROM preference_fits_on('h100-sxm', 'grpo', 'google/gemma-3-4b-it', phase_id := 'lora', dtype_id := 'bf16',
    generator := 'vllm-colocate', generator_context_tokens := 300)
