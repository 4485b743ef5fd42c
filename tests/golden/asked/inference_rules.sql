-- scores and moments that few models reach, by each form of attention, MLX LM's where a window has more heads than
-- the whole context, and what vLLM beside a training says
SELECT softmax_form AS said, compute_bytes AS bytes, mechanism,
    score_bytes_eager({'softmax_form': softmax_form, 'caches': [{'mechanism': mechanism}]},
        {'compute_bytes': compute_bytes})::DOUBLE AS scores,
    hidden_tensors({'caches': [{'mechanism': mechanism}], 'rotary_form': iif(compute_bytes = 4, 'fp32', 'plain'),
        'has_learned_positions': softmax_form = 'named', 'tower': NULL::INTEGER, 'embedding_elements': 7000,
        'vocab_size': 100, 'hidden_size': 10, 'norm_kind': iif(compute_bytes = 4, 'rms', 'layer'),
        'is_gated': softmax_form IN ('kept', 'sinks'), 'is_block_parallel': softmax_form = 'sinks',
        'activation': iif(softmax_form = 'clamped', 'silu', 'gelu_new'), 'layer_count': 12,
        'attention_form': iif(softmax_form = 'kept-scores', 'disentangled', 'grouped')})::DOUBLE AS tensors,
    NULL AS words
FROM (VALUES ('compute'), ('sinks'), ('named'), ('kept'), ('kept-scores'), ('clamped'), ('fp32')) AS forms(softmax_form)
CROSS JOIN (VALUES (2), (4)) AS widths(compute_bytes)
CROSS JOIN (VALUES ('full'), ('bidirectional')) AS mechanisms(mechanism) ORDER BY ALL;
SELECT 'mlx-lm' AS said, 2 AS bytes, mechanism,
    scores_bytes_mlx({'mixers': [
            {'mechanism': mechanism, 'head_count': 64, 'query_width': 6144, 'context_width': 6144,
                'window_tokens': window_tokens},
            {'mechanism': mechanism, 'head_count': 8, 'query_width': 768, 'context_width': 768,
                'window_tokens': NULL}],
        'windowed_engines': ['mlx-lm'], 'has_score_cap': false},
        {'compute_bytes': 2, 'context_tokens': context_tokens}, {'mlx_prefill_tokens': 2048})::DOUBLE AS scores,
    context_tokens::DOUBLE AS tensors, NULL AS words
FROM (VALUES ('full', NULL), ('sliding', 512), ('sliding', 4096)) AS layers(mechanism, window_tokens)
CROSS JOIN (VALUES (1000::BIGINT), (4096), (8192)) AS contexts(context_tokens) ORDER BY ALL;
SELECT starts AS said, tokens AS bytes, NULL AS mechanism, least_share::DOUBLE AS scores, most_share::DOUBLE AS tensors,
    start_words(starts, needed, share, tokens, least_share, most_share) || ' / '
        || room_words(tokens, true, least_share, most_share) || ' / ' || room_words(tokens, false, least_share,
            most_share) AS words
FROM (VALUES ('no', 5000000000, 3333333333, 4096, 0.3, 0.5), ('perhaps', 1610612736, 1073741824, 100, 0.4, 0.4),
    ('no', 7000000000, 600000000, 7, 0.5, 0.3),
    -- (1.05 GiB and less than a byte more)
    ('no', 1127428916, 1127428915, 8, 0.5, 0.3)) AS starting(starts, needed, share, tokens, least_share, most_share)
ORDER BY ALL;
-- what a vLLM beside a training is refused for, the first of several reasons, where all else is as it should be
SELECT 'asleep' AS said, parallel AS bytes, generator AS mechanism, NULL AS scores, NULL AS tensors,
    generator_reason({'generator_asked': generator, 'version_asked': NULL, 'share_asked': NULL, 'share': NULL::DOUBLE,
            'sleeps_asked': 'true', 'sleeps': sleeps, 'parallel_asked': parallel::VARCHAR, 'parallel': parallel,
            'tokens_asked': NULL},
        {'generator_id': generator, 'unknown_reason': NULL, 'takes_share': true, 'program_version': '1.0',
            'max_version': '2.0', 'sleeps_with_expandable_segments': false},
        {'generator_ids': 'vllm-colocate, vllm-server'},
        {'name': 'GRPO', 'generates': generates, 'program_version': '1.5'},
        {'unknown_reason': NULL, 'program': 'trl', 'phase_id': 'lora', 'expandable_segments': expandable,
            'gpu_count': 4}, false, tokens, 'why') AS words
FROM (VALUES ('vllm-colocate', true, 1, true, false, '4096'), ('vllm-colocate', true, 2, true, false, '4096'),
    ('vllm-colocate', false, 2, true, true, '4096'), ('vllm-colocate', true, 3, true, true, '4096'),
    ('vllm-colocate', false, 3, true, true, '4096'), ('vllm-colocate', true, 2, true, false, NULL),
    ('vllm-server', true, 2, false, false, '4096'), ('vllm', true, 2, true, false, '4096'))
    AS asked(generator, sleeps, parallel, generates, expandable, tokens)
ORDER BY ALL
