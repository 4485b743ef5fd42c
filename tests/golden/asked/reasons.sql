-- what is refused, and why: each argument alone, of several models
CREATE OR REPLACE TEMP TABLE golden_base AS
FROM no_scenario UNION ALL BY NAME
SELECT model_id, context_tokens + row_number() OVER (ORDER BY model_id, phase_id) AS context_tokens, phase_id
FROM (VALUES ('microsoft/phi-4', 600), ('google/gemma-4-12B-it', 4000), ('openai/gpt-oss-20b', 2000),
    ('google/t5gemma-2b-2b-ul2-it', 500), ('tiiuae/falcon-mamba-7b', 300),
    ('openai/whisper-large-v3-turbo', 100), ('sentence-transformers/all-MiniLM-L6-v2', 64), ('llava-hf/llava-1.5-7b-hf',
        1000), ('laion/clap-htsat-unfused', 32),
    ('Qwen/Qwen3-Omni-30B-A3B-Instruct', 3000), ('deepseek-ai/DeepSeek-V3-0324', 1500), ('facebook/dinov2-large', 1),
        ('unsloth/gemma-2-2b-it-bnb-4bit', 700),
    ('deepseek-ai/DeepSeek-V4.1-Flash', 900)) AS named(model_id, context_tokens),
    (VALUES ('inference'), ('lora'), ('qlora'), ('full-finetune')) AS done(phase_id);
CREATE OR REPLACE TEMP TABLE golden_said AS FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('gguf-q4_k_m' AS dtype_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('mlx-4bit' AS dtype_id, 'mlx-lm' AS engine_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('awq-int4' AS dtype_id, 'vllm' AS engine_id, 4 AS gpu_count) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('stored' AS dtype_id, 'sglang' AS engine_id, 16 AS gpu_count)
    FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (0 AS context_tokens) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (100000000 AS context_tokens) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (0 AS sequences) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (10000000 AS sequences) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('nothing' AS optimizer_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('galore-adamw' AS optimizer_id, 0 AS optimizer_rank) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('galore-adamw' AS optimizer_id, 64 AS optimizer_rank) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('adamw' AS optimizer_id, 64 AS optimizer_rank) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (0 AS lora_rank) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('experts' AS lora_targets) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('dora' AS adapter) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('masked' AS attention) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('fp32' AS dtype_id, 'amp' AS precision) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('fp16' AS dtype_id, 'pure' AS precision) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('mixed' AS precision, 'megatron' AS engine_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('selective' AS checkpointing, 'torchtune' AS engine_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('full' AS checkpointing, 'litgpt' AS engine_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('fused' AS loss) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('chunked' AS loss, 'torchtune' AS engine_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('score' AS loss) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (0 AS gradient_accumulation) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (true AS ema, 4 AS gradient_accumulation) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (2 AS tensor_parallel, 2 AS gpu_count) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (3 AS tensor_parallel, 4 AS gpu_count) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (2 AS pipeline_parallel, 4 AS gpu_count, 'megatron' AS engine_id)
    FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (500 AS pipeline_parallel, 500 AS gpu_count, 'megatron' AS engine_id)
    FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (2 AS context_parallel, 2 AS gpu_count, 'megatron' AS engine_id)
    FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (4 AS expert_parallel, 8 AS gpu_count, 'megatron' AS engine_id)
    FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (5 AS expert_parallel, 10 AS gpu_count, 'megatron' AS engine_id)
    FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (0 AS gpu_count) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (100000000 AS gpu_count) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (6 AS gpu_count, 'pp' AS sharding) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (8 AS gpu_count, 'zero3' AS sharding, 'all' AS offload,
    'deepspeed' AS engine_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (8 AS gpu_count, 'zero2' AS sharding, 'optimizer' AS offload) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (1 AS gpu_count, 'zero3' AS sharding) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (8 AS gpu_count, 'ddp' AS sharding, 50000000 AS reduce_bucket_elements)
    FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (8 AS gpu_count, 'zero1' AS sharding, 1000000 AS reduce_bucket_elements,
    'deepspeed' AS engine_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (3 AS images) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (2 AS images, 1920 AS image_width, 1080 AS image_height) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (100000 AS images) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (1 AS images, 0 AS image_width, 1080 AS image_height) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (20.5 AS audio_seconds) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (1e9 AS audio_seconds) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (0 AS lora_dropout) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (0.1 AS lora_dropout) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (1 AS lora_dropout) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (true AS expandable_segments) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (true AS trains_embeddings) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (true AS sequence_parallel, 2 AS tensor_parallel, 2 AS gpu_count,
    'megatron' AS engine_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (1 AS micro_batches_in_flight, 4 AS pipeline_parallel, 4 AS gpu_count,
    'megatron' AS engine_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE (8000 AS max_context_tokens, 'llama.cpp' AS engine_id, 'gguf-q8_0' AS dtype_id)
    FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('fp8' AS kv_dtype_id, 'vllm' AS engine_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('q4_0' AS kv_dtype_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('nothing' AS kv_dtype_id) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('ollama' AS program) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('vllm' AS program, '0.9.1' AS program_version) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('trl' AS program) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('axolotl' AS program, 4 AS gpu_count) FROM golden_base;
INSERT INTO golden_said SELECT * REPLACE ('eager' AS attention, 'transformers-4.44' AS engine_id) FROM golden_base;
SELECT model_id, phase_id, unknown_reason, count(*) AS scenarios, sum(total_bytes) AS total_bytes,
    sum(activations_bytes) AS activations_bytes,
    sum(host_bytes) AS host_bytes, round(sum(error_band), 6) AS error_band
FROM footprints('golden_said') GROUP BY ALL ORDER BY ALL
