-- Latents with an index that picks what is read (DeepSeek sparse attention), as a server keeps them: part of `shape`.
--
-- Units: bytes, heads, tokens. Source: latent_index.csv. Not covered: indexes beside keys and values (MiniMax-M3), over
-- pools of keys (GLM-5.3-Flash) or of compressed entries (kv-cache/pool.sql).

CREATE OR REPLACE TEMP TABLE index_shape AS
SELECT model_id, {
    'engine_id': rule.engine_id, 'kv_dtype_id': rule.kv_dtype_id, 'entry_bytes': rule.entry_bytes,
    'index_entry_bytes': rule.index_entry_bytes, 'gathered_contexts': rule.gathered_contexts,
    'gathered_entry_bytes': rule.gathered_entry_bytes, 'indexed_contexts': rule.indexed_contexts,
    'index_logit_bytes': rule.index_logit_bytes, 'captured_rows': rule.captured_rows,
    'least_heads': rule.least_heads, 'padded_heads': rule.padded_heads, 'value_elements': rule.value_elements,
    'value_copies': rule.value_copies
} AS latent_index
FROM model JOIN latent_index AS rule ON list_contains(string_split(rule.model_types, ' '), model.model_type);

-- What an engine without a server's memory makes of an index (activations/inference/llama_cpp_index.sql).
CREATE OR REPLACE TEMP TABLE engine_index_shape AS
SELECT model_id, {
    'engine_id': rule.engine_id, 'is_for_one_sequence': rule.is_for_one_sequence,
    'added_index_elements': rule.added_index_elements, 'graph_input_bytes_each': rule.graph_input_bytes_each,
    'picking_bytes_each': rule.picking_bytes_each, 'picking_sequence_bytes_each': rule.picking_sequence_bytes_each,
    'graph_cell_bytes_each': rule.graph_cell_bytes_each, 'layer_input_bytes_each': rule.layer_input_bytes_each,
    'handed_layer_bytes_each': rule.handed_layer_bytes_each, 'picking_queries': rule.picking_queries,
    'picking_hidden': rule.picking_hidden, 'picking_elements': rule.picking_elements,
    'logit_hidden': rule.logit_hidden, 'handed_hidden': rule.handed_hidden,
    'score_queries': rule.score_queries,
    'score_head_bytes_each': rule.score_head_bytes_each, 'score_bytes_each': rule.score_bytes_each,
    'score_input_bytes_each': rule.score_input_bytes_each
} AS engine_index
FROM model JOIN engine_index AS rule ON list_contains(string_split(rule.model_types, ' '), model.model_type);

-- What graphs of an architecture keep alive beside what all do (activations/inference/llama_cpp.sql).
CREATE OR REPLACE TEMP TABLE engine_graph_shape AS
SELECT model_id, {
    'logit_elements': rule.logit_elements, 'logit_streams': rule.logit_streams,
    'has_masks_below_logits': rule.has_masks_below_logits, 'layer_streams': rule.layer_streams,
    'early_logit_elements': rule.early_logit_elements,
    'unfused_streams': rule.unfused_streams, 'handed_streams': rule.handed_streams,
    'hands_layer_inputs': rule.hands_layer_inputs, 'holds_layer_inputs': rule.holds_layer_inputs,
    'server_streams': rule.server_streams
} AS engine_graph
FROM model JOIN engine_graph AS rule ON list_contains(string_split(rule.model_types, ' '), model.model_type);
