-- Models whose layers of all kinds share one pool of pages in a server, with how many layers there are of each kind:
-- part of `shape`.
--
--   pool   the row of cache_pool for the model's type, and
--          window_groups   groups that the layers with a window are dealt into, as large as the most frequent kind
--          tuple_count     layers of a page: of the most frequent kind, or of a group
--
-- Units: layers, tokens, bytes. Source: cache_pool.csv; attention_layer (kinds sliding, sparse, compressed).
-- Not covered: models that see, whose classes are others (is_unread, engines.sql).

CREATE OR REPLACE TEMP TABLE pool_shape AS
WITH counted AS (
    SELECT
        model_id, coalesce(sum(layer_count) FILTER (kind = 'sliding'), 0) AS window_layers,
        max(window_tokens) FILTER (kind = 'sliding') AS window_tokens,
        greatest(coalesce(sum(layer_count) FILTER (kind = 'sparse'), 0),
            coalesce(sum(layer_count) FILTER (kind = 'compressed'), 0), 1) AS most_layers
    FROM attention_layer WHERE component = 'text'
    GROUP BY model_id
),
grouped AS (SELECT *, greatest(round(window_layers / most_layers), 1)::BIGINT AS window_groups FROM counted)
SELECT
    model_id, {
        'engine_id': pool.engine_id, 'dtype_ids': pool.dtype_ids,
        'kv_dtype_id': pool.kv_dtype_id, 'page_tokens': pool.page_tokens,
        'page_bytes': pool.page_bytes, 'window_page_tokens': pool.window_page_tokens,
        'window_tokens': window_tokens, 'window_groups': window_groups,
        'tuple_count': greatest(most_layers, ceil(window_layers / window_groups))::BIGINT,
        'sparse_state_tokens': pool.sparse_state_tokens,
        'sparse_state_page_tokens': pool.sparse_state_page_tokens,
        'compressed_state_tokens': pool.compressed_state_tokens,
        'compressed_state_page_tokens': pool.compressed_state_page_tokens,
        'gathered_sequences': pool.gathered_sequences, 'gathered_tokens_per_entry': pool.gathered_tokens_per_entry,
        'indexed_contexts': pool.indexed_contexts, 'index_entry_bytes': pool.index_entry_bytes,
        'index_logit_bytes': pool.index_logit_bytes, 'padded_heads': pool.padded_heads,
        'residual_streams': pool.residual_streams, 'live_streams': pool.live_streams,
        'chosen_tokens': pool.chosen_tokens, 'rotation_bytes_each': pool.rotation_bytes_each
    } AS pool
FROM model
JOIN cache_pool AS pool ON list_contains(string_split(pool.model_types, ' '), model.model_type)
JOIN grouped USING (model_id)
WHERE model_id NOT IN (SELECT model_id FROM tensor WHERE tensor_class = 'vision-tower');
