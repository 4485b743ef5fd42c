-- forward passes that were counted: what they hold, and what they were not counted for
WITH model AS (
    SELECT {
        'max_context_tokens': 512, 'passes': [
            {'element_bytes': 2, 'constant_bytes': 7, 'added_tokens': 3, 'bytes_per_position': 11, 'sequence_bytes': 13,
                'bytes_per_token': 17, 'bytes_per_square': 19, 'bytes_per_group': 23},
            {'element_bytes': kind, 'constant_bytes': 70000, 'added_tokens': 0, 'bytes_per_position': 1,
                'sequence_bytes': 2, 'bytes_per_token': 3, 'bytes_per_square': 4, 'bytes_per_group': 5}]
    } AS model FROM (VALUES (2), (4)) AS kinds(kind)
),
scenario AS (
    SELECT {
        'phase_id': phase_id, 'engine_id': engine_id, 'compute_bytes': compute_bytes, 'gpu_count_asked': gpu_count,
        'images': images, 'audio_seconds': seconds, 'context_tokens': context_tokens, 'sequences': sequences
    } AS scenario
    FROM (VALUES ('inference', 'transformers', 2, 1, 0, 0.0, 512, 1),
        ('inference', 'transformers', 2, 1, 0, NULL, 7, 3),
        ('inference', 'transformers', 4, 2, 0, NULL, 7, 3), ('inference', 'transformers', 2, 1, 1, NULL, 7, 1),
        ('inference', 'transformers', 2, 1, 0, 1.0, 7, 1), ('inference', 'transformers', 2, 1, 0, 0.5, 7, 2),
        ('inference', 'transformers', 2, 1, NULL, NULL, 513, 1), ('lora', 'transformers', 2, 1, 0, NULL, 7, 1),
        ('inference', 'vllm', 2, 1, 0, NULL, 7, 1), ('inference', 'transformers', 1, 1, 0, NULL, 7, 1),
        ('inference', 'transformers', 2, 1, 2, 3.0, 7, 1)) AS scenarios(phase_id, engine_id, compute_bytes, gpu_count,
            images, seconds, context_tokens, sequences)
)
SELECT model.passes[2].element_bytes AS second_bytes, scenario, is_trainable,
    counted_pass_bytes(model, scenario)::BIGINT AS pass_bytes,
    pass_reason(model, {'is_trainable': is_trainable}, scenario) AS reason
FROM model CROSS JOIN scenario CROSS JOIN (VALUES (true), (false)) AS formats(is_trainable) ORDER BY ALL
