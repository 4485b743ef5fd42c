-- Engines: by kind, and with what they set aside for a cache.
--
-- Units: tokens. Source: the tables engine and engine_memory, whose numbers are constants. Not covered: servers beyond
-- vLLM and SGLang; engines that only train have no cache, and are counted as if they held single tokens.

-- engines that set aside a share of the card at start
CREATE OR REPLACE MACRO is_server(scenario) AS is_serving_engine(scenario.engine_id);

CREATE OR REPLACE TABLE engine_row AS
SELECT
    engine.*, coalesce(memory.window_use, 'never') AS window_use,
    coalesce(memory.reads_prompt, 'none') AS reads_prompt, memory.logits_of, memory.rotations_in,
    coalesce(memory.copies_tied_head, false) AS copies_tied_head,
    coalesce(memory.inputs_on_host, false) AS inputs_on_host, band.value AS inference_error_band,
    {
        'keeps_all_heads': coalesce(memory.keeps_all_heads, false),
        'mask_bytes_each': coalesce(memory.mask_bytes_each, 0),
        'attends_unfused': coalesce(memory.attends_unfused, false),
        'joins_while_loading': coalesce(memory.joins_while_loading, false), 'model_types': memory.model_types,
        'shared_state_pages': coalesce(memory.shared_state_pages, 0),
        'dtype_ids': memory.dtype_ids,
        'reads_windows': coalesce(memory.reads_windows, false), 'unused_spread': unused.value
    } AS ways,
    sharing.rule AS sharing, memory.adapter_ranks, memory.image_reason, memory.several_gpus_reason,
    memory.encoder_reason,
    training.value AS training_error_band,
    -- a training step that is one graph, and how it is run
    iif(waiting.value IS NULL, NULL, {'waiting_buffers': waiting.value,
        'buffer_elements': constants.mlx_buffer_elements, 'layer_operations': constants.mlx_layer_operations,
        'logit_bytes': constants.mlx_logit_bytes}) AS graph,
    coalesce(cell.value, 1) AS cell_tokens,
    beyond.value - memory.window_overlap_tokens AS tokens_beyond_window, memory.extra_window_cells,
    most.value AS most_sequences
FROM engine
LEFT JOIN engine_memory AS memory USING (engine_id)
LEFT JOIN (SELECT engine_id, data_parallel_rule AS rule FROM data_parallel_rule) AS sharing USING (engine_id)
LEFT JOIN constant AS cell ON cell.constant_id = memory.cell_constant
LEFT JOIN constant AS most ON most.constant_id = memory.most_sequences_constant
LEFT JOIN constant AS beyond ON beyond.constant_id = memory.beyond_constant
LEFT JOIN constant AS band ON band.constant_id = memory.error_band_constant
LEFT JOIN constant AS unused ON unused.constant_id = memory.unused_spread_constant
LEFT JOIN constant AS waiting ON waiting.constant_id = engine.waiting_buffers_constant
LEFT JOIN constant AS training ON training.constant_id = engine.training_error_band_constant
CROSS JOIN constants_row;
