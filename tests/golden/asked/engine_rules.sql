-- what an engine has to be told at the very edges of its rules: shares, requests, tokens read at a time, room
WITH footprint AS (
    SELECT {
        'engine_id': engine_id, 'phase_id': phase_id, 'sequences': sequences, 'data_parallel': ranks,
        'expert_parallel': experts, 'decode_context_parallel': contexts, 'tensor_parallel': 3, 'gpu_count': 2 * ranks,
        'pipeline_parallel': stages, 'data_setting': 'data {data_parallel} of {gpu_count}',
        'expert_setting': 'experts {expert_parallel} {tensor_parallel}',
        'context_setting': 'contexts {decode_context_parallel}', 'total_bytes': total::BIGINT,
        'activations_bytes': activations::BIGINT,
        'kv_cache_bytes': 100000000::BIGINT, 'kv_padding_bytes': 1000000::BIGINT,
        'state_bytes': state::BIGINT, 'error_band': 0.04,
        'batched_tokens': iif(contexts = 2, 2048, NULL)::BIGINT, 'max_num_seqs': NULL::BIGINT,
        'vocab_size': 1000, 'has_windows': has_windows, 'context_tokens': context_tokens, 'sees': sees,
        'program_version': version, 'enforce_eager': version = '0.17'
    } AS footprint
    FROM (VALUES ('vllm', 'inference', 8, 1, 1, 1, 1, 900000000, 10000000, 0, false, 8192, false, NULL),
        ('vllm', 'inference', 7, 2, 2, 2, 2, 899999999, 10000000, 1, true, 8193, true, '0.21'),
        ('vllm', 'inference', 256, 1, 1, 1, 1, 1000000000, 5000000, 4000000, true, 8192, NULL, NULL),
        ('vllm', 'inference', 257, 1, 1, 1, 1, 895000000, 5000000, 90000000, false, 9000, false, '0.16.1'),
        ('vllm', 'inference', 511, 2, 1, 1, 1, 870000000, 1000000, 3000000, true, 9000, true, '0.17'),
        ('vllm', 'inference', 8, 1, 1, 1, 1, 870432001, 39422000, NULL, false, 9000, true, '0.12'),
        ('vllm', 'inference', 8, 1, 1, 1, 1, 883104000, 1, NULL, false, 9000, true, '0.22'),
        ('vllm', 'inference', 8, 1, 1, 1, 1, 883104001, 1, NULL, false, 9000, true, '0.33'),
        ('vllm', 'inference', 8, 1, 1, 1, 1, 887558401, 1, NULL, false, 9000, true, '0.21'),
        ('vllm', 'lora', 7, 3, 2, 2, 1, 900000001, 10000000, 0, true, 8193, false, NULL),
        ('vllm', 'inference', 3, 1, 1, 1, 1, 1000000001, 10000000, 5, true, 9000, false, NULL),
        ('sglang', 'inference', 3, 1, 1, 1, 1, 1000000000, 10000000, 5, true, 9000, true, NULL),
        ('sglang', 'inference', 5, 2, 1, 1, 1, 700000000, 10000000, 5, true, 9000, false, NULL),
        ('sglang', 'inference', 5, 1, 1, 1, 1, 500000000, 10000000, 5, true, 9000, false, NULL)
        ) AS footprints(engine_id, phase_id, sequences, ranks, experts, contexts, stages, total, activations, state,
            has_windows, context_tokens, sees, version)
),
asked AS (
    SELECT footprint, capacity::BIGINT AS capacity, read_tokens, usual, constants,
        read_beyond_bytes(footprint, read_tokens, constants)
            AS beyond
    FROM footprint CROSS JOIN (VALUES (1000000000, 2048, 1024), (1000000000, 8192, 256), (2000000000, 16384, 1024),
        (1111111111, 16384, 300), (995555555, 10000, 256)) AS cards(capacity, read_tokens, usual)
    CROSS JOIN constants_row
)
SELECT footprint.engine_id AS engine_id, footprint.phase_id AS phase_id, footprint.sequences AS sequences,
    footprint.total_bytes AS total_bytes, capacity, read_tokens, usual,
    share_needed(footprint.engine_id, footprint.total_bytes, footprint.total_bytes * 1.04, capacity,
        {'vllm_default_share': constants.vllm_default_share, 'whole': capacity + 600000000, 'apart': 500000000})
        AS share,
    sequences_of_rank(footprint)::DOUBLE AS of_rank, spread_setting(footprint) AS spread,
    requests_by_logits(footprint, footprint.vocab_size, usual, capacity, constants)::DOUBLE AS by_logits,
    cache_room(footprint, capacity, constants)::DOUBLE AS room,
    requests_by_states(footprint, usual, capacity, constants)::DOUBLE AS by_states,
    requests_needed(footprint, usual, capacity, constants) AS requests, beyond::DOUBLE AS beyond,
    tokens_needed(footprint, beyond, capacity, constants) AS tokens,
    static_share_needed(footprint, footprint.total_bytes - footprint.activations_bytes, capacity + 400000000, 3, 7,
        constants) AS static_share
FROM asked ORDER BY ALL;
-- and what it does by the size of a card
SELECT name AS engine_id, NULL AS phase_id, NULL AS sequences, NULL AS total_bytes, gib AS capacity,
    vllm_read_tokens(name, gib, constants)::BIGINT AS read_tokens, vllm_requests(name, gib, constants)::BIGINT AS usual,
    NULL AS share, sglang_reserve_mib(gib, constants)::DOUBLE AS of_rank, NULL AS spread,
    sglang_reserve_bytes(sglang_reserve_mib(gib, constants), 3, constants)::DOUBLE AS by_logits, NULL AS room,
    NULL AS by_states, NULL AS requests, NULL AS beyond, NULL AS tokens, NULL AS static_share
FROM (SELECT unnest([constants.vllm_large_card_gib, constants.vllm_largest_card_gib, constants.sglang_small_card_gib,
        constants.sglang_middle_card_gib, constants.sglang_large_card_gib, 24.0]) AS gib, constants FROM constants_row)
CROSS JOIN (VALUES ('NVIDIA A100'), ('NVIDIA H100')) AS cards(name) ORDER BY ALL
