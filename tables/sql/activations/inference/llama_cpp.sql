-- llama.cpp: the compute buffer, the largest moment of a micro-batch (all in fp32 but the masks of flash attention).
--
--   logits   micro-batch × 4 × (vocabulary + hidden)
--   layer    masks + micro-batch × 4 × (the widest moment of a block or of attention); masks: micro-batch × 2 × the cells of all
--            sequences, and of all windows; a cache of other than 16 bits: one layer's keys and values unpacked to 16
--   scores   without flash attention: micro-batch × 4 × ((heads + 1) × context + 4 × hidden), 6 × hidden where blocks are parallel
--   several GPUs: four copies of masks and of what goes from one to the next, kept all the while
--
-- Units: bytes per GPU. Sources: measured-rows (llama.cpp logs), llama-cpp-graph (llama.cpp's own account of the buffers of its graphs,
--   tests/oracle/compute_buffer.csv).
-- Not covered: images, other micro-batches; llama.cpp before its masks were made in 16 bits, its servers that reserve fewer logits than tokens
--   (they need less), masks of window and micro-batch without flash attention.

-- Cells that attention in llama.cpp reads: those of the context, or of the window and a micro-batch. One cache for all sequences, as its
-- server sets it up where nobody says how many there are, has a mask over the cells of all; a cache for each has a smaller one.
CREATE OR REPLACE MACRO whole_cells(tokens, k) AS k.llama_cpp_cell_multiple * ceil(tokens / k.llama_cpp_cell_multiple);
CREATE OR REPLACE MACRO context_cells_llama_cpp(x, k) AS x.sequences * whole_cells(x.context_tokens, k);

CREATE OR REPLACE MACRO window_cells_llama_cpp(win, x, k) AS whole_cells(
    least(x.sequences * x.context_tokens, x.sequences * win + k.llama_cpp_micro_batch_tokens), k);

-- A mask of the whole context, and one of the windows of architectures whose windows it knows.
CREATE OR REPLACE MACRO mask_bytes_llama_cpp(m, x, k) AS k.llama_cpp_micro_batch_tokens * 2 * (
    context_cells_llama_cpp(x, k)
    + iif(has_windows(m, 'llama.cpp'), coalesce(window_cells_llama_cpp(m.shortest_window, x, k), 0), 0));

-- Keys and values of the layer that has most, in 16 bits: CUDA's kernels unpack a quantised cache behind their result.
CREATE OR REPLACE MACRO unpacked_cache_bytes_llama_cpp(m, x, k) AS iif(x.kv_element_bits = 16, 0, 2.0 * coalesce(list_max(list_transform(m.caches,
    lambda cache: cache.elements * coalesce(iif(has_windows(m, 'llama.cpp'), window_cells_llama_cpp(cache.win, x, k), NULL),
        context_cells_llama_cpp(x, k)))), 0));

-- Elements per token of a block's widest moment beside its residual stream: a gated block has gate, up and their product, a plain one
-- works its activation out in place; experts their outputs, the same weighed, and their products.
CREATE OR REPLACE MACRO block_elements_llama_cpp(m) AS greatest(
    3 * greatest(m.gated_max, m.shared_max) + 3 * m.hidden_size,
    m.plain_max + 3 * m.hidden_size,
    iif(m.routed_max > 0, 2 * m.experts_per_token_max * m.hidden_size + m.routed_max + 4 * m.hidden_size, 0));

-- Logits of a micro-batch, or the widest moment of a layer. Without flash attention the scores of one layer.
CREATE OR REPLACE MACRO layer_buffer_bytes_llama_cpp(m, x, k) AS greatest(
    k.llama_cpp_micro_batch_tokens * 4 * block_elements_llama_cpp(m),
    k.llama_cpp_micro_batch_tokens * 4 * (2 * m.query_max + 2 * m.hidden_size) + unpacked_cache_bytes_llama_cpp(m, x, k));

CREATE OR REPLACE MACRO compute_buffer_bytes_llama_cpp(m, x, k) AS CASE
    -- (masks are fp32 here)
    WHEN x.attention = 'eager' THEN k.llama_cpp_micro_batch_tokens * 4 * greatest(
        m.vocab_size + m.hidden_size, block_elements_llama_cpp(m),
        (m.head_max + 1) * reserved_tokens({'win': NULL}, m, x, k) + iif(m.is_block_parallel, 6, 4) * m.hidden_size)
        + iif(x.pipeline_parallel > 1,
            k.llama_cpp_pipeline_copies * (2 * mask_bytes_llama_cpp(m, x, k) + k.llama_cpp_micro_batch_tokens * 8 * m.hidden_size), 0)
    WHEN x.pipeline_parallel > 1 THEN
        k.llama_cpp_pipeline_copies * (mask_bytes_llama_cpp(m, x, k) + k.llama_cpp_micro_batch_tokens * 8 * m.hidden_size)
        + greatest(k.llama_cpp_micro_batch_tokens * 4 * (m.vocab_size + m.hidden_size), layer_buffer_bytes_llama_cpp(m, x, k))
    ELSE greatest(
        k.llama_cpp_micro_batch_tokens * 4 * (m.vocab_size + m.hidden_size),
        mask_bytes_llama_cpp(m, x, k) + layer_buffer_bytes_llama_cpp(m, x, k))
END;
