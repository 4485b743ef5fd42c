-- what attention keeps and what its gradients take, by kernel, form and way to train, whatever model has them
WITH form AS (
    SELECT {
        'has_flash_attention': attention_form <> 'none', 'attention_form': attention_form, 'softmax_form': softmax_form,
        'attention_dropout': dropout, 'has_score_cap': has_score_cap, 'rotary_form': rotary_form, 'rotary_width': 64,
        'has_fused_qkv': has_fused_qkv, 'value_norm_bytes': 4, 'norm_form': norm_form, 'norm_kind': 'rms'
    } AS model
    FROM (VALUES ('none', 'fp32', 0.0, false, 'none', false, 'layer'),
        ('plain', 'clamped', 0.1, true, 'concatenated', true, 'layer'),
        ('plain', 'clamped', 0.0, false, 'fp32', true, 'rms-fp32'),
        ('biased', 'compute', 0.1, false, 'none', true, 'rms'),
        ('broadcast', 'fp32', 0.1, false, 'plain', false, 'rms'),
        ('broadcast', 'sinks', 0.0, true, 'concatenated', false, 'rms-fp32'),
        ('plain', 'compute', 0.0, false, 'concatenated', false, 'layer'),
        ('plain', 'sinks', 0.1, false, 'plain', true, 'rms')) AS forms(attention_form, softmax_form, dropout,
            has_score_cap, rotary_form, has_fused_qkv, norm_form)
),
way AS (
    SELECT {
        'attention': attention, 'context_tokens': context_tokens, 'sequences': sequences, 'precision': precision,
        'compute_bytes': compute_bytes, 'is_half': is_half, 'joins_projections': joins, 'repeats_keys': repeats,
        'is_adapter': is_adapter, 'has_adapter_dropout': has_dropout, 'lora_targets': targets, 'score_bytes': 6,
        'engine_norm_form': NULL::VARCHAR, 'trains_embeddings': false, 'has_fused_sinks': false,
        'flex_mask_bytes_each': 0.0
    } AS scenario
    FROM (VALUES ('eager', 1000, 1, 'pure', 2, true, false, false, true, false, 'attention'),
        (NULL, 1024, 2, 'amp', 2, false, false, false, false, false, NULL),
        (NULL, 1023, 1, 'pure', 4, false, false, false, false, false, NULL),
        (NULL, 512, 1, 'pure', 2, false, false, true, true, false, 'all-linear'),
        (NULL, 511, 3, 'pure', 2, false, true, false, true, false, 'attention'),
        (NULL, 300, 1, 'pure', 2, false, false, false, true, false, 'attention-experts'),
        (NULL, 300, 1, 'pure', 2, false, false, false, true, true, 'attention'),
        (NULL, 300, 2, 'pure', 2, true, true, false, false, false, NULL),
        ('masked', 300, 2, 'mixed', 2, false, false, false, true, false, 'query-value'),
        ('eager', 300, 1, 'amp', 4, false, false, false, false, false, NULL)) AS ways(attention, context_tokens,
            sequences, precision, compute_bytes, is_half, joins, repeats, is_adapter, has_dropout, targets)
),
layers AS (
    SELECT {
        'mechanism': mechanism, 'window_tokens': window_tokens, 'head_count': heads, 'kv_head_count': kv_heads,
        'query_width': heads * head_dim, 'key_width': kv_heads * head_dim, 'value_width': kv_heads * value_dim,
        'context_width': heads * value_dim, 'expanded_key_width': heads * head_dim,
        'expanded_value_width': iif(kv_heads = heads, heads, kv_heads + 1) * value_dim, 'gate_width': gate_width,
        'has_qk_norm': has_qk_norm, 'read_tokens': 700
    } AS layer
    FROM (VALUES ('full', NULL, 8, 2, 128, 128, 0, false), ('full', NULL, 8, 8, 256, 128, 0, true),
        ('full', NULL, 4, 4, 257, 96, 24, false), ('sliding', 512, 6, 3, 64, 64, 0, true),
        ('bidirectional', 1024, 6, 6, 64, 64, 0, false), ('mla', NULL, 16, 16, 192, 128, 0, false),
        ('full', NULL, 8, 1, 64, 64, 0, true), ('full', NULL, 1, 1, 64, 64, 32, false),
        ('sliding', 1024, 4, 2, 64, 64, 0, true)) AS layers(mechanism, window_tokens, heads, kv_heads, head_dim,
            value_dim, gate_width, has_qk_norm)
),
asked AS (
    SELECT model, scenario, layer, attention_kernel(layer, model, scenario) AS runs_in, kernel,
        struct_insert(layer, kernel := kernel) AS held
    FROM form CROSS JOIN way CROSS JOIN layers
    CROSS JOIN (VALUES ('eager'), ('biased'), ('broadcast'), ('masked'), ('wide'), ('repeated'), ('math'), ('fused'))
        AS kernels(kernel)
)
SELECT kernel, model.attention_form, model.softmax_form, sum(kept_by_attention(held, model, scenario)) AS kept,
    sum(score_gradients(held, model, scenario)) AS gradients, sum(kept_per_score(model, scenario)) AS per_score,
    count(*) FILTER (runs_in = kernel) AS layers,
    sum(scenario.context_tokens * layer.query_width) FILTER (runs_in = kernel) AS run_widths,
    count(*) FILTER (is_window_masked(layer, scenario)) AS masked_layers
FROM asked GROUP BY ALL ORDER BY ALL
