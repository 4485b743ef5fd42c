-- What mixes tokens in a model, summed over its layers: part of `shape`.
--
--   caches   what every layer of the text caches, as a list so that each keeps its own window
--            (pool_share: layers of a kind where kinds share one pool, as multiples of its groups, over the layers)
--   mixers   widths of what attention works on in one layer of each group; an expanded key or value has one head per
--       query head
--
-- Units: elements, elements per token, layers, heads, tokens. `_sum` columns are summed over layers, `_max` columns are
-- of the one layer that has most. Source: arithmetic over attention_layer. Not covered: towers, which are not run in a
-- step of text.

-- Layers of each kind in a pool that all kinds share: groups are as large as the rarest kind, or as the most frequent
-- one where it is not much more frequent, and the last group of each kind is padded.
CREATE OR REPLACE TEMP TABLE pool_kind AS
WITH kinds AS (
    SELECT model_id, window_tokens, elements_per_token > 0 AS has_tokens, sum(layer_count) AS kind_layers
    FROM attention_layer
    WHERE component IN ('text', 'decoder') AND mechanism NOT IN ('cross', 'bidirectional')
        AND greatest(elements_per_token, state_elements, conv_state_elements) > 0
    GROUP BY ALL
),
grouped AS (
    SELECT model_id, iif(max(kind_layers) < min(kind_layers) * any_value(spread.value), max(kind_layers),
        min(kind_layers)) AS group_layers
    FROM kinds CROSS JOIN (FROM constant WHERE constant_id = 'vllm_group_spread') AS spread GROUP BY model_id
)
SELECT model_id, window_tokens, has_tokens, ceil(kind_layers / group_layers) * group_layers / kind_layers AS pool_share
FROM kinds JOIN grouped USING (model_id);

CREATE OR REPLACE TEMP TABLE mixer_shape AS
SELECT
    model_id,
    list({
        'mechanism': mechanism, 'layer_count': layer_count, 'is_spoken': component = 'decoder',
        'elements_per_token': iif(mechanism = 'bidirectional', 0, elements_per_token),
        -- cached by a decoder's class, though nothing reads them again
        'unread_elements': iif(mechanism = 'bidirectional', elements_per_token, 0),
        -- what is cached beside keys and values (the keys that an index looks tokens up by): of one head, so that no
        -- rank has a part of it
        'whole_share': iif(mechanism = 'mla', 0, greatest(0.0, elements_per_token
            - kv_head_count * (head_dim + value_head_dim)) / greatest(elements_per_token, 1)),
        -- of a latent: the key of an index beside it
        'index_elements': coalesce(iif(mechanism = 'mla', greatest(elements_per_token - latent_elements, 0), 0), 0),
        'window_tokens': window_tokens,
        'kv_head_count': kv_head_count, 'state_elements': state_elements, 'conv_state_elements': conv_state_elements,
        'state_bytes_each': iif(state_dtype_id IN ('bf16', 'fp16'), 2, 4),
        'pool_share': pool_share,
        'blocks': list_transform(string_split(blocks, ' '), lambda block: block::BIGINT)
    } ORDER BY kind) FILTER (component IN ('text', 'decoder')) AS caches,
    list({
        'mechanism': mechanism, 'layer_count': layer_count, 'window_tokens': window_tokens, 'head_count': head_count,
        'kv_head_count': kv_head_count,
        'query_width': head_count * head_dim, 'key_width': kv_head_count * head_dim, 'value_width': kv_head_count
            * value_head_dim,
        'context_width': head_count * value_head_dim, 'gate_width': iif(has_output_gate, head_count * value_head_dim,
            0),
        'has_qk_norm': has_qk_norm,
        'expanded_key_width': iif(kv_head_count > 1, head_count, kv_head_count) * head_dim,
        'expanded_value_width': iif(kv_head_count > 1, head_count, kv_head_count) * value_head_dim
    } ORDER BY kind) FILTER (head_count > 0) AS mixers,
    coalesce(sum(layer_count) FILTER (head_count > 0), 0)::BIGINT AS attention_layer_count,
    coalesce(sum(layer_count), 0)::BIGINT AS mixer_layer_count,
    coalesce(sum(layer_count * head_count * value_head_dim), 0)::BIGINT AS context_sum,
    coalesce(sum(layer_count * head_count) FILTER (mechanism <> 'cross'), 0)::BIGINT AS biased_head_sum,
    coalesce(sum(layer_count) FILTER (mechanism = 'cross' AND component = 'decoder'), 0)::BIGINT AS cross_layer_count,
    coalesce(sum(layer_count) FILTER (component = 'encoder'), 0)::BIGINT AS encoder_layer_count,
    coalesce(max(head_count * head_dim), 0)::BIGINT AS query_max,
    coalesce(max(kv_head_count * head_dim), 0)::BIGINT AS key_max,
    coalesce(max(head_count), 0)::BIGINT AS head_max,
    coalesce(max(kv_head_count), 0)::BIGINT AS kv_head_max,
    coalesce(max(head_dim), 0)::BIGINT AS head_dim_max,
    min(window_tokens) FILTER (component IN ('text', 'decoder') AND head_count > 0) AS shortest_window,
    -- masks that eager attention adds: one for the whole context, one for each window
    greatest(count(DISTINCT coalesce(window_tokens, 0))
        FILTER (head_count > 0 AND mechanism NOT IN ('cross', 'bidirectional')), 1) AS mask_count,
    coalesce(bool_or(has_qk_norm), false) AS has_qk_norm,
    coalesce(bool_and(mechanism = 'bidirectional'), false) AS is_encoder,
    coalesce(max(head_count) > max(kv_head_count), false) AS has_grouped_heads
FROM (
    SELECT attention_layer.*, iif(mechanism IN ('cross', 'bidirectional'), 1.0, coalesce(pool_share, 1.0)) AS pool_share
    FROM attention_layer
    LEFT JOIN pool_kind ON pool_kind.model_id = attention_layer.model_id
        AND pool_kind.has_tokens = (attention_layer.elements_per_token > 0)
        AND pool_kind.window_tokens IS NOT DISTINCT FROM attention_layer.window_tokens
)
LEFT JOIN (SELECT model_id, max(out_features) AS latent_elements FROM tensor WHERE role = 'mla_kv_a' GROUP BY model_id)
    USING (model_id)
WHERE component IN ('text', 'encoder', 'decoder')
GROUP BY model_id;
