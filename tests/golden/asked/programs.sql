-- what programs take where nothing is said, by name, version and phase, of models whose classes are old and new
WITH said AS (
    FROM no_scenario UNION ALL BY NAME SELECT model_id, program, version AS program_version, phase_id, gpu_count,
        engine_id
    FROM (VALUES ('ollama', NULL), ('vllm', NULL), ('LM Studio', NULL), ('llama-factory', NULL), ('axolotl', NULL),
        ('unsloth', NULL), ('sglang', NULL), ('llama.cpp', NULL),
        ('torchtune', NULL), ('mlx-lm', NULL), ('trl', NULL), ('litgpt', NULL), ('no such program', NULL), (NULL,
            '0.8'), ('vllm', '0.8.3'), ('vllm', '0.27'), ('vllm', '99.1'),
        ('vllm', 'newest'), ('sglang', '0.4.6'), ('transformers', '4.44.2'), ('transformers', '5.1'), ('ollama',
            '0.1.9')) AS one(program, version),
        (VALUES ('microsoft/phi-4'), ('Qwen/Qwen3.5-9B'), ('google/gemma-4-12B-it'),
            ('No/Such-Model')) AS named(model_id),
        (VALUES ('inference', 1, NULL), ('lora', 1, NULL), ('qlora', 16, NULL), ('full-finetune', 2, NULL),
            ('inference', 1, 'torchtune')) AS done(phase_id, gpu_count, engine_id)
)
SELECT program, program_version, model_id, phase_id, gpu_count, regexp_replace(concat_ws(' ', engine_id, dtype_id,
    kv_dtype_id, optimizer_id, checkpointing, precision, loss, attention, lora_targets,
    sharding, to_json(program_numbers), program_share), '"[a-z_]+":null,?', '', 'g') AS taken, program_holds_for,
        program_reason
FROM with_program('said') ORDER BY ALL
