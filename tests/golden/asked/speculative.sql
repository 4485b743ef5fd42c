-- a model and what drafts for it, in each engine
FROM speculative_of('Qwen/Qwen3-32B', 'Qwen/Qwen3-0.6B', dtype_id := 'gguf-q4_k_m', draft_dtype_id := 'gguf-q8_0');
FROM speculative_of('Qwen/Qwen3-8B', 'RedHatAI/Qwen3-8B-speculator.eagle3', engine_id := 'vllm',
    context_tokens := 20000, sequences := 3, gpu_count := 2);
FROM speculative_of('openai/gpt-oss-20b', 'RedHatAI/gpt-oss-20b-speculator.eagle3', dtype_id := 'stored',
    engine_id := 'vllm');
FROM speculative_of('Qwen/Qwen3-8B', 'Qwen/Qwen3-0.6B', engine_id := 'transformers', context_tokens := 3000);
FROM speculative_of('Qwen/Qwen3-8B', 'Qwen/Qwen3-0.6B', engine_id := 'sglang', sequences := 8, kv_dtype_id := 'fp8');
FROM speculative_of('Qwen/Qwen3-8B', 'Qwen/Qwen3-0.6B', dtype_id := 'mlx-4bit', engine_id := 'mlx-lm',
    context_tokens := 30000);
FROM speculative_of('Qwen/Qwen3-8B', 'google/gemma-2b', engine_id := 'vllm');
FROM speculative_of('google/gemma-4-12B-it', 'google/gemma-4-E4B-it', engine_id := 'llama.cpp',
    dtype_id := 'gguf-q4_k_m', draft_kv_dtype_id := 'q8_0');
FROM speculative_of('Qwen/Qwen3-8B', 'RedHatAI/Qwen3-8B-speculator.eagle3', engine_id := 'llama.cpp');
FROM speculative_of('Qwen/Qwen3-8B', 'Qwen/Qwen3-0.6B', engine_id := 'torchtune');
FROM speculative_of('deepseek-ai/DeepSeek-V3-0324', 'Qwen/Qwen3-0.6B', engine_id := 'transformers');
FROM speculative_of('Qwen/Qwen3.5-9B', 'Qwen/Qwen3-0.6B', engine_id := 'vllm', gpu_count := 4);
-- its own layers that predict further tokens
FROM speculative_of('deepseek-ai/DeepSeek-V3-0324', 'mtp', dtype_id := 'fp8', engine_id := 'sglang', gpu_count := 8,
    sequences := 3);
FROM speculative_of('deepseek-ai/DeepSeek-V3-0324', 'mtp', dtype_id := 'fp8', engine_id := 'vllm', gpu_count := 16);
FROM speculative_of('Qwen/Qwen3.5-9B', 'mtp', dtype_id := 'gguf-q8_0', engine_id := 'llama.cpp',
    context_tokens := 20000, sequences := 2);
FROM speculative_of('Qwen/Qwen3.5-9B', 'mtp', dtype_id := 'gguf-q4_k_m', engine_id := 'llama.cpp',
    context_tokens := 500);
FROM speculative_of('Qwen/Qwen3.5-9B', 'mtp', engine_id := 'vllm', context_tokens := 8192, sequences := 4);
FROM speculative_of('Qwen/Qwen3.5-9B', 'mtp', engine_id := 'sglang');
FROM speculative_of('Qwen/Qwen3-8B', 'mtp', engine_id := 'vllm');
FROM speculative_of('Qwen/Qwen3-8B', 'RedHatAI/Qwen3-8B-speculator.eagle3', engine_id := 'sglang', dtype_id := 'fp8',
    context_tokens := 9000, sequences := 300, gpu_count := 2)
