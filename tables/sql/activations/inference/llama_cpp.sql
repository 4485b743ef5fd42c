-- llama.cpp: the compute buffer, the largest moment of a micro-batch (all in fp32 but the masks of flash attention).
--
--   logits   micro-batch × 4 × (vocabulary + hidden)
--   layer    masks + micro-batch × 4 × (the widest moment of a block or of attention); masks: micro-batch × 2 × the
--            cells of all sequences, and of all windows; a cache of other than 16 bits: one layer's keys and values
--                unpacked to 16
--   scores   without flash attention: micro-batch × 4 × ((heads + 1) × context + 4 × hidden), 6 × hidden where blocks
--       are parallel
--   several GPUs: four copies of masks and of what goes from one to the next, kept all the while
--
-- Units: bytes per GPU. Sources: measured-rows (llama.cpp logs), llama-cpp-graph (llama.cpp's own account of the
--   buffers of its graphs, tests/oracle/compute_buffer.csv).
-- Not covered: images, other micro-batches; llama.cpp before its masks were made in 16 bits, its servers that reserve
--   fewer logits than tokens (they need less), masks of window and micro-batch without flash attention.

-- Cells that attention in llama.cpp reads: those of the context, or of the window and a micro-batch. One cache for all
-- sequences, as its server sets it up where nobody says how many there are, has a mask over the cells of all; a cache
-- for each has a smaller one.
CREATE OR REPLACE MACRO whole_cells(tokens, constants) AS
    constants.llama_cpp_cell_multiple * ceil(tokens / constants.llama_cpp_cell_multiple);
CREATE OR REPLACE MACRO context_cells_llama_cpp(scenario, constants) AS
    scenario.sequences * whole_cells(scenario.context_tokens, constants);

CREATE OR REPLACE MACRO window_cells_llama_cpp(win, scenario, constants) AS whole_cells(
    least(scenario.sequences * scenario.context_tokens, scenario.sequences * win
        + constants.llama_cpp_micro_batch_tokens), constants);

-- A mask of the whole context, and one of the windows of architectures whose windows it knows.
CREATE OR REPLACE MACRO mask_bytes_llama_cpp(model, scenario, constants) AS
    constants.llama_cpp_micro_batch_tokens * 2 * (
        context_cells_llama_cpp(scenario, constants)
        + iif(has_windows(model, 'llama.cpp'),
            coalesce(window_cells_llama_cpp(model.shortest_window, scenario, constants), 0), 0));

-- Keys and values of the layer that has most, in 16 bits: CUDA's kernels unpack a quantised cache behind their result.
CREATE OR REPLACE MACRO unpacked_cache_bytes_llama_cpp(model, scenario, constants) AS
    iif(scenario.kv_element_bits = 16, 0, 2.0 * coalesce(list_max(list_transform(model.caches,
        lambda layer: layer.elements_per_token
            * coalesce(iif(has_windows(model, 'llama.cpp'), window_cells_llama_cpp(layer.window_tokens, scenario,
                constants), NULL),
            context_cells_llama_cpp(scenario, constants)))), 0));

-- Elements per token of a block's widest moment beside its residual stream: a gated block has gate, up and their
-- product, a plain one works its activation out in place; experts their outputs, the same weighed, and their products.
CREATE OR REPLACE MACRO block_elements_llama_cpp(model) AS greatest(
    3 * greatest(model.gated_max, model.shared_max) + 3 * model.hidden_size,
    model.plain_max + 3 * model.hidden_size,
    iif(model.routed_max > 0, 2 * model.experts_per_token_max * model.hidden_size + model.routed_max + 4
        * model.hidden_size, 0));

-- Logits of a micro-batch, or the widest moment of a layer. Without flash attention the scores of one layer.
CREATE OR REPLACE MACRO layer_buffer_bytes_llama_cpp(model, scenario, constants) AS greatest(
    constants.llama_cpp_micro_batch_tokens * 4 * block_elements_llama_cpp(model),
    constants.llama_cpp_micro_batch_tokens * 4 * (2 * model.query_max + 2 * model.hidden_size)
        + unpacked_cache_bytes_llama_cpp(model, scenario, constants));

CREATE OR REPLACE MACRO compute_buffer_bytes_llama_cpp(model, scenario, constants) AS CASE
    -- (masks are fp32 here)
    WHEN scenario.attention = 'eager' THEN constants.llama_cpp_micro_batch_tokens * 4 * greatest(
        model.vocab_size + model.hidden_size, block_elements_llama_cpp(model),
        (model.head_max + 1) * reserved_tokens({'window_tokens': NULL}, model, scenario, constants)
            + iif(model.is_block_parallel, 6, 4) * model.hidden_size)
        + iif(scenario.pipeline_parallel > 1,
            constants.llama_cpp_pipeline_copies * (2 * mask_bytes_llama_cpp(model, scenario, constants)
                + constants.llama_cpp_micro_batch_tokens * 8 * model.hidden_size), 0)
    WHEN scenario.pipeline_parallel > 1 THEN
        constants.llama_cpp_pipeline_copies * (mask_bytes_llama_cpp(model, scenario, constants)
            + constants.llama_cpp_micro_batch_tokens * 8 * model.hidden_size)
        + greatest(constants.llama_cpp_micro_batch_tokens * 4 * (model.vocab_size + model.hidden_size),
            layer_buffer_bytes_llama_cpp(model, scenario, constants))
    ELSE greatest(
        constants.llama_cpp_micro_batch_tokens * 4 * (model.vocab_size + model.hidden_size),
        mask_bytes_llama_cpp(model, scenario, constants) + layer_buffer_bytes_llama_cpp(model, scenario, constants))
END;
