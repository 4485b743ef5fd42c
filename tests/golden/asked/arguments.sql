-- numbers at the most that is worked out and beyond it, alone and in products, and arguments of the other phase
WITH limit_of AS (
    SELECT constants.most_gpu_count::BIGINT AS most, constants.most_audio_seconds AS most_audio_seconds
    FROM constants_row
),
said AS (
    FROM no_scenario UNION ALL BY NAME
    FROM (SELECT 'inference' AS phase_id, most AS tensor_parallel, NULL AS pipeline_parallel, NULL AS context_parallel,
            NULL AS data_parallel FROM limit_of
        UNION ALL SELECT 'inference', most // 2, 2, NULL, NULL FROM limit_of
        UNION ALL SELECT 'inference', most // 2, 2, 2, NULL FROM limit_of
        UNION ALL SELECT 'inference', NULL, most // 2, 2, NULL FROM limit_of
        UNION ALL SELECT 'pretrain', NULL, most // 2, 2, NULL FROM limit_of
        UNION ALL SELECT 'pretrain', NULL, most // 2 + 1, 2, NULL FROM limit_of
        UNION ALL SELECT 'pretrain', 2, NULL, most // 2, NULL FROM limit_of
        UNION ALL SELECT 'pretrain', -2, -2, most, NULL FROM limit_of
        UNION ALL SELECT 'inference', NULL, NULL, most, NULL FROM limit_of
        UNION ALL SELECT 'inference', 2, NULL, NULL, most // 2 FROM limit_of
        UNION ALL SELECT 'inference', 2, 2, NULL, most // 2 FROM limit_of
        UNION ALL SELECT 'inference', NULL, 2, NULL, most // 2 FROM limit_of
        UNION ALL SELECT 'inference', NULL, NULL, NULL, most FROM limit_of
        UNION ALL SELECT 'inference', NULL, NULL, NULL, most + 1 FROM limit_of
        UNION ALL SELECT 'inference', -most - 1, NULL, NULL, NULL FROM limit_of
        UNION ALL SELECT 'inference', -most, NULL, NULL, NULL FROM limit_of)
    UNION ALL BY NAME
    SELECT phase_id, seconds AS audio_seconds, dropout AS lora_dropout
    FROM (VALUES ('inference'), ('lora'), ('pretrain')) AS phases(phase_id)
    CROSS JOIN (SELECT most_audio_seconds AS seconds, 0.0 AS dropout FROM limit_of
        UNION ALL SELECT most_audio_seconds + 0.5, NULL FROM limit_of UNION ALL SELECT NULL, 1.0
        UNION ALL SELECT NULL, 0.99 UNION ALL SELECT NULL, -0.01)
)
SELECT said.phase_id, said.tensor_parallel, said.pipeline_parallel, said.context_parallel, said.data_parallel,
    said.audio_seconds, said.lora_dropout, numbers_reason(said, constants) AS number_reason,
    phase_reason(said) AS phase_reason
FROM said CROSS JOIN constants_row ORDER BY ALL
