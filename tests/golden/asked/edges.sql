-- what only few models or the least of an argument feel: rank 1, heads that share one key, a rotation in fp32,
-- one layer, layers that stages do not share alike
SELECT 1 AS place, * FROM footprint_of('google/gemma-2b', phase_id := 'pretrain', optimizer_id := 'galore-adamw',
    optimizer_rank := 1);
SELECT 2 AS place, * FROM footprint_of('tiiuae/falcon-7b', engine_id := 'transformers', context_tokens := 2000);
SELECT 3 AS place, * FROM footprint_of('Alibaba-NLP/gte-reranker-modernbert-base', engine_id := 'transformers',
    dtype_id := 'bf16', context_tokens := 8192);
SELECT 4 AS place, * FROM footprint_of('arnir0/Tiny-LLM', phase_id := 'full-finetune', engine_id := 'torchtune',
    sharding := 'zero3', gpu_count := 4, context_tokens := 64);
SELECT 5 AS place, * FROM footprint_of('deepseek-ai/DeepSeek-V3-0324', engine_id := 'vllm', gpu_count := 16);
SELECT 6 AS place, * FROM footprint_of('google/gemma-2b', phase_id := 'full-finetune',
    optimizer_id := 'galore-adamw-layerwise', optimizer_rank := 1);
-- of how many cards nobody says, the degrees say; images that text alone leaves out, and none
SELECT 7 AS place, * FROM footprint_of('google/gemma-2b', phase_id := 'pretrain', engine_id := 'megatron',
    context_parallel := 2, tensor_parallel := 2);
SELECT 8 AS place, * FROM footprint_of('Qwen/Qwen3.5-9B', engine_id := 'llama.cpp', text_only := true, images := 1);
SELECT 9 AS place, * FROM footprint_of('Qwen/Qwen3.5-9B', engine_id := 'llama.cpp', text_only := true, images := 0);
-- as many tokens as a packed kernel takes another way from
SELECT 10 AS place, * FROM footprint_of('microsoft/phi-4', dtype_id := 'awq-int4', engine_id := 'transformers',
    context_tokens := 1024);
SELECT 11 AS place, * FROM footprint_of('microsoft/phi-4', dtype_id := 'gptq-int8', engine_id := 'transformers',
    context_tokens := 128);
-- adapters served over experts that have a gate; a repository that Unsloth loads, of which nobody read what it packs
SELECT 12 AS place, * FROM footprint_of('Qwen/Qwen3-30B-A3B', engine_id := 'vllm', gpu_count := 2, max_loras := 2);
SELECT 13 AS place, * FROM footprint_of('Qwen/Qwen3-8B', phase_id := 'qlora', program := 'unsloth')
