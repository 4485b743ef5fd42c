-- llama.cpp: the compute buffer, the largest moment of a micro-batch (all in fp32 but the masks of flash attention).
--
--   logits   4 × (tokens whose logits are reserved × vocabulary + micro-batch × hidden)
--   layer    masks + micro-batch × 4 × (the widest moment of a block or of attention); masks: micro-batch × 2 × the
--            cells of all sequences, and of all windows; a cache of other than 16 bits: one layer's keys and values
--                unpacked to 16
--   scores   without flash attention: micro-batch × 4 × ((heads + 1) × cells of all sequences
--       + queries, keys, values and what a block holds beside them)
--       (also where CUDA has no kernel for its heads: table fused_attention)
--   packed   what is unpacked lies behind attention's result, above what is free again but too small for both: queries
--       before they were rotated, a fused matrix of queries, keys and values, what shared experts left; and is alive
--       while a block runs that stands beside attention and not behind it (Command-R, Falcon, GPT-NeoX)
--   latent   queries are kept as they are, rotated, taken to the latent and joined with what was rotated, all at once
--       (src/models/deepseek2.cpp); with a packed cache the result lies above all of these once it is larger than what
--       two of them left; without flash attention the latents of all cells are transposed beside the scores
--   shared   experts that see every token are alive beside those that are picked, and under the logits
--   biased   T5's attention is never fused: its buckets become biases, which are laid out anew and added to the scores,
--       and are an input of each layer of the decoder, in 32 bits
--   several GPUs: four copies of masks and of what goes from one to the next, kept all the while: streams, and keys and
--       values of the layers of another GPU that layers of this one read, for each layer anew (Gemma 4 E2B)
--   graph    of architectures whose last stream lies behind what was freed, or that keep more alive: table engine_graph
--   tower    of a model that sees a buffer of its own, reserved while it loads (for the image that it warms up
--       with) and kept, larger where a larger image is read: 4 × tokens × elements of its graph per token, + pairs of
--       tokens (masks, or scores without flash attention)
--
-- Units: bytes per GPU. Sources: measured-rows (llama.cpp logs), llama-cpp-graph (llama.cpp's own account of the
--   buffers of its graphs, tests/oracle/compute_buffer.csv), llama-cpp-tower (the same of towers, tower_buffer.csv).
-- Not covered: other micro-batches; towers that table tower_graph does not have (0 here: engine_setting says to leave
--   them out, and there is no answer for their images), kernels that Metal (heads of 32 and 48) and Vulkan (all
--   multiples of 8) have and CUDA has not, so that less is held there; video, sound of other lengths than 30 seconds;
--   llama.cpp before its masks were made in 16 bits, masks of window and micro-batch without flash attention; logits of
--   a server that drafts (all tokens' here: it needs less).

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

-- A mask of the whole context, and one of the windows of architectures whose windows it knows; none where no layer
-- attends (Mamba).
CREATE OR REPLACE MACRO mask_bytes_llama_cpp(model, scenario, constants) AS
    iif(coalesce(model.attention_layer_count, 0) > 0, 1, 0) * constants.llama_cpp_micro_batch_tokens * 2 * (
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
-- product, a plain one works its activation out in place; experts their outputs, the same weighed, and their
-- products, or before that gate, up and product of all that were picked.
CREATE OR REPLACE MACRO block_elements_llama_cpp(model) AS greatest(
    3 * greatest(model.gated_max, model.shared_max) + 3 * model.hidden_size,
    model.plain_max + 3 * model.hidden_size,
    iif(model.routed_max > 0, 2 * model.experts_per_token_max * model.hidden_size + model.routed_max + 4
        * model.hidden_size + iif(model.shared_max > 0, model.shared_max + model.hidden_size, 0), 0),
    iif(model.routed_max > 0, 3 * model.routed_max + 3 * model.hidden_size, 0));

-- What is cached of a token where attention is latent (llama-graph.cpp, build_attn_mha; 0 elsewhere).
CREATE OR REPLACE MACRO latent_elements_llama_cpp(model) AS coalesce(list_max(list_transform(model.caches,
    lambda layer: iif(layer.mechanism = 'mla', layer.elements_per_token - layer.index_elements, 0))), 0);

-- Elements per token of attention's widest moment.
CREATE OR REPLACE MACRO attention_elements_llama_cpp(model) AS model.query_max
    + iif(latent_elements_llama_cpp(model) > 0,
        (2 * model.head_max + 4) * latent_elements_llama_cpp(model) + 3 * model.hidden_size,
        model.query_max + 2 * model.hidden_size);

-- What shared experts and the streams about them leave alive (an upper bound of what was counted).
CREATE OR REPLACE MACRO shared_elements_llama_cpp(model, constants) AS
    iif(model.shared_max > 0, model.shared_max + constants.llama_cpp_shared_streams * model.hidden_size, 0);

-- Streams of the hidden size that an architecture keeps alive beside those that all do, in bytes of a micro-batch.
CREATE OR REPLACE MACRO stream_bytes_llama_cpp(streams, model, constants) AS
    constants.llama_cpp_micro_batch_tokens * 4 * coalesce(streams, 0) * model.hidden_size;

-- (of all layers, until the last has read its own)
CREATE OR REPLACE MACRO held_inputs_llama_cpp(model) AS
    iif(coalesce(model.engine_graph.holds_layer_inputs, false), coalesce(model.per_layer_input_sum, 0), 0);

-- Tokens of a micro-batch whose logits are reserved: all, or of a server that writes text one of each of its slots
-- (tools/server: server_output_limits). One that embeds reserves all, and so does one of a model with an encoder. Of an
-- architecture whose layers were not counted without the logits of all tokens above them these are counted.
CREATE OR REPLACE MACRO output_tokens_llama_cpp(model, scenario, constants) AS CASE
    WHEN scenario.program_base.server_slot_count IS NULL OR model.is_embedder OR model.cross_layer_count > 0
        OR model.engine_graph.server_streams IS NULL THEN constants.llama_cpp_micro_batch_tokens
    ELSE least(constants.llama_cpp_micro_batch_tokens,
        greatest(scenario.program_base.server_slot_count, scenario.sequences))
END;
CREATE OR REPLACE MACRO server_stream_bytes_llama_cpp(model, scenario, constants) AS iif(
    output_tokens_llama_cpp(model, scenario, constants) < constants.llama_cpp_micro_batch_tokens,
    stream_bytes_llama_cpp(model.engine_graph.server_streams, model, constants), 0);

CREATE OR REPLACE MACRO logit_bytes_llama_cpp(model, scenario, constants) AS
    output_tokens_llama_cpp(model, scenario, constants) * 4
        * (model.vocab_size + coalesce(model.engine_graph.logit_elements, 0))
    + constants.llama_cpp_micro_batch_tokens * 4
        * (model.hidden_size + held_inputs_llama_cpp(model) + shared_elements_llama_cpp(model, constants))
    + stream_bytes_llama_cpp(model.engine_graph.logit_streams, model, constants);

-- (the last stream lies behind masks that are free again, and the logits behind it)
CREATE OR REPLACE MACRO masks_below_logits_llama_cpp(model, scenario, constants) AS
    iif(coalesce(model.engine_graph.has_masks_below_logits, false),
        mask_bytes_llama_cpp(model, scenario, constants), 0);

-- What goes from one GPU to the next: two streams and those of the architecture, inputs of each layer; and keys and
-- values of layers that cache for later ones, where those all lie on another GPU.
CREATE OR REPLACE MACRO handed_stream_bytes_llama_cpp(model, constants) AS
    stream_bytes_llama_cpp(2 + coalesce(model.engine_graph.handed_streams, 0), model, constants)
    + iif(coalesce(model.engine_graph.hands_layer_inputs, false),
        constants.llama_cpp_micro_batch_tokens * 4 * coalesce(model.per_layer_input_sum, 0), 0);
-- (the head counts as a layer: llama_model_base::load_tensors; those that borrow are the last, of each kind as many as
-- of all, and each GPU has copies for its own alone)
CREATE OR REPLACE MACRO first_layer_llama_cpp(layers, gpus_before, scenario) AS
    ceil((layers + 1) * gpus_before / scenario.pipeline_parallel);
CREATE OR REPLACE MACRO is_borrowed_afar(model, gpus_before, scenario) AS borrowed_layers(model.mixers) > 0
    AND model.layer_count - borrowed_layers(model.mixers)
        <= first_layer_llama_cpp(model.layer_count, gpus_before, scenario);
CREATE OR REPLACE MACRO borrowing_layers_llama_cpp(model, scenario) AS CASE
    WHEN is_borrowed_afar(model, scenario.pipeline_parallel - 2, scenario) THEN
        ceil((model.layer_count + 1) / scenario.pipeline_parallel)
    WHEN is_borrowed_afar(model, scenario.pipeline_parallel - 1, scenario) THEN model.layer_count
        - first_layer_llama_cpp(model.layer_count, scenario.pipeline_parallel - 1, scenario)
    ELSE 0
END;
CREATE OR REPLACE MACRO borrowed_cache_bytes_llama_cpp(model, scenario, constants) AS
    scenario.kv_element_bits / 8 * coalesce(list_sum(list_transform(model.mixers,
        lambda mixer: iif(mixer.mechanism = 'shared',
            ceil(borrowing_layers_llama_cpp(model, scenario) * mixer.layer_count / borrowed_layers(model.mixers))
                * (mixer.key_width + mixer.value_width)
                * coalesce(window_cells_llama_cpp(mixer.window_tokens, scenario, constants),
                    context_cells_llama_cpp(scenario, constants)), 0))), 0);
CREATE OR REPLACE MACRO handed_bytes_of_llama_cpp(model, scenario, constants) AS
    handed_stream_bytes_llama_cpp(model, constants) + borrowed_cache_bytes_llama_cpp(model, scenario, constants);

-- Elements per token that lie below attention's result, or beside it, where what is unpacked lies behind it.
-- (where the block that was unpacked to is too small for the rest of the logits, these lie above it, too)
CREATE OR REPLACE MACRO early_logits_llama_cpp(unpacked_bytes, model, constants) AS coalesce(iif(
    unpacked_bytes > constants.llama_cpp_micro_batch_tokens * 4 * model.engine_graph.early_logit_elements,
    model.engine_graph.early_logit_elements, model.engine_graph.logit_elements), 0);
CREATE OR REPLACE MACRO packed_elements_llama_cpp(unpacked_bytes, model, constants) AS greatest(
    2 * model.query_max + 3 * model.hidden_size + shared_elements_llama_cpp(model, constants),
    iif(model.has_fused_qkv, 3 * (model.query_max + model.key_max) + model.hidden_size, 0),
    iif(model.is_block_parallel, model.query_max + block_elements_llama_cpp(model), 0),
    early_logits_llama_cpp(unpacked_bytes, model, constants) + model.query_max + 2 * model.hidden_size);
CREATE OR REPLACE MACRO packed_latent_elements_llama_cpp(model, constants) AS 3 * model.hidden_size
    + 2 * model.head_max * latent_elements_llama_cpp(model)
    + greatest(model.query_max + model.head_max * latent_elements_llama_cpp(model),
        shared_elements_llama_cpp(model, constants));

-- (a result fits below where queries were, as they are and in the latent; keys are read as values, too)
CREATE OR REPLACE MACRO packed_buffer_bytes_llama_cpp(unpacked_bytes, model, constants) AS CASE
    WHEN unpacked_bytes = 0 THEN 0
    WHEN latent_elements_llama_cpp(model) = 0 THEN
        constants.llama_cpp_micro_batch_tokens * 4 * packed_elements_llama_cpp(unpacked_bytes, model, constants)
            + unpacked_bytes
    WHEN unpacked_bytes <= constants.llama_cpp_micro_batch_tokens * 4 * model.query_max THEN
        constants.llama_cpp_micro_batch_tokens * 4 * attention_elements_llama_cpp(model)
    ELSE unpacked_bytes
        + constants.llama_cpp_micro_batch_tokens * 4 * packed_latent_elements_llama_cpp(model, constants)
END;

-- Logits of a micro-batch, or the widest moment of a layer. Without flash attention the scores of one layer.
CREATE OR REPLACE MACRO layer_buffer_bytes_llama_cpp(model, scenario, constants) AS greatest(
    constants.llama_cpp_micro_batch_tokens * 4 * block_elements_llama_cpp(model),
    constants.llama_cpp_micro_batch_tokens * 4 * attention_elements_llama_cpp(model),
    packed_buffer_bytes_llama_cpp(unpacked_cache_bytes_llama_cpp(model, scenario, constants), model, constants),
    server_stream_bytes_llama_cpp(model, scenario, constants))
    + stream_bytes_llama_cpp(model.engine_graph.layer_streams, model, constants)
    + constants.llama_cpp_micro_batch_tokens * 4 * held_inputs_llama_cpp(model);

-- Elements per token beside the scores of one layer.
CREATE OR REPLACE MACRO beside_scores_llama_cpp(model, constants) AS shared_elements_llama_cpp(model, constants)
    + held_inputs_llama_cpp(model)
    + iif(latent_elements_llama_cpp(model) > 0, attention_elements_llama_cpp(model),
        greatest(iif(model.is_block_parallel, 6, 4) * model.hidden_size,
            model.query_max + 2 * model.key_max + 3 * model.hidden_size));

-- Numbers in fp32 for each token of a micro-batch and each cell of the context: scores of all heads and a mask (of T5
-- biases and both added, too, and buckets of the layers of the first GPU, each as often as there are masks).
CREATE OR REPLACE MACRO bucketed_layers_llama_cpp(model, scenario) AS least(
    iif(model.cross_layer_count > 0, model.cross_layer_count, model.layer_count),
    ceil((model.layer_count - model.cross_layer_count + 1) / scenario.pipeline_parallel));
CREATE OR REPLACE MACRO score_elements_llama_cpp(model, scenario) AS CASE
    WHEN model.attention_form <> 'biased' THEN model.head_max + 1
    ELSE 3 * model.head_max + 1
        + iif(scenario.pipeline_parallel = 1, bucketed_layers_llama_cpp(model, scenario), 0)
END;

-- (masks are fp32 here)
CREATE OR REPLACE MACRO unfused_buffer_bytes_llama_cpp(model, scenario, constants) AS
    constants.llama_cpp_micro_batch_tokens * 4 * greatest(
        logit_bytes_llama_cpp(model, scenario, constants) / (constants.llama_cpp_micro_batch_tokens * 4),
        block_elements_llama_cpp(model),
        server_stream_bytes_llama_cpp(model, scenario, constants) / (constants.llama_cpp_micro_batch_tokens * 4),
        score_elements_llama_cpp(model, scenario)
            * context_cells_llama_cpp(scenario, constants) + beside_scores_llama_cpp(model, constants))
    + stream_bytes_llama_cpp(model.engine_graph.unfused_streams, model, constants)
    + 2 * latent_elements_llama_cpp(model) * context_cells_llama_cpp(scenario, constants)
    + iif(scenario.pipeline_parallel > 1,
        constants.llama_cpp_pipeline_copies
            * (2 * (1 + iif(model.attention_form = 'biased', bucketed_layers_llama_cpp(model, scenario), 0))
                    * mask_bytes_llama_cpp(model, scenario, constants)
                + handed_bytes_of_llama_cpp(model, scenario, constants)
                + constants.llama_cpp_micro_batch_tokens * 4 * model.key_max
                    * iif(has_windows(model, 'llama.cpp'), 3, 1)), 0);

-- (without a kernel for heads of this size llama.cpp goes without flash attention by itself: fused_attention)
CREATE OR REPLACE MACRO is_unfused_llama_cpp(model, scenario) AS scenario.attention = 'eager'
    OR model.attention_form = 'biased' OR has_unfused_class(model, scenario.engine_id);
CREATE OR REPLACE MACRO compute_buffer_bytes_llama_cpp(model, scenario, constants) AS CASE
    WHEN has_engine_index(model, scenario) THEN indexed_buffer_bytes_llama_cpp(model, scenario, constants)
    WHEN is_unfused_llama_cpp(model, scenario) THEN
        unfused_buffer_bytes_llama_cpp(model, scenario, constants)
    WHEN scenario.pipeline_parallel > 1 THEN
        constants.llama_cpp_pipeline_copies * (mask_bytes_llama_cpp(model, scenario, constants)
            + handed_bytes_of_llama_cpp(model, scenario, constants))
        + greatest(logit_bytes_llama_cpp(model, scenario, constants),
            layer_buffer_bytes_llama_cpp(model, scenario, constants))
    ELSE greatest(
        logit_bytes_llama_cpp(model, scenario, constants) + masks_below_logits_llama_cpp(model, scenario, constants),
        mask_bytes_llama_cpp(model, scenario, constants) + layer_buffer_bytes_llama_cpp(model, scenario, constants))
END;

-- Tokens of a tower for one image, or for one tile.
CREATE OR REPLACE MACRO graph_image_tokens(tower, scenario) AS coalesce(
    least(tower.graph.largest_tokens, tower.graph.merged_tokens
        * ceil(scenario.picture_width / tower.graph.token_side_pixels)
        * ceil(scenario.picture_height / tower.graph.token_side_pixels)),
    tower.class_tokens + tower.tokens_each);

-- Tokens of the prompt for the images of one sequence: as their processor makes them, or llama.cpp, which resizes
-- pictures of any size itself.
CREATE OR REPLACE MACRO engine_image_tokens(tower, scenario, run) AS coalesce(
    iif(run.reads_prompt = 'compute-buffer' AND tower.graph.token_side_pixels IS NOT NULL,
        scenario.images * (graph_image_tokens(tower, scenario) / tower.graph.merged_tokens
            + tower.processor.image_extra_tokens + tower.processor.row_extra_tokens
                * ceil(scenario.picture_height / tower.graph.token_side_pixels)), NULL),
    scenario.prompt_image_tokens);

-- What goes through the tower together: images one by one, or as many as it takes in one pass.
CREATE OR REPLACE MACRO graph_each_tokens(tower, scenario) AS greatest(
    coalesce(tower.graph.warm_tokens, tower.class_tokens + tower.tokens_each),
    iif(scenario.images > 0, graph_image_tokens(tower, scenario), 0));
CREATE OR REPLACE MACRO graph_tokens(tower, scenario) AS greatest(graph_each_tokens(tower, scenario),
    iif(scenario.images > 0, least(
        scenario.images * iif(tower.grid = 'tiles', image_tiles(tower, scenario.picture_rows,
            scenario.picture_columns), 1) * graph_image_tokens(tower, scenario), tower.graph.pass_tokens), 0));

-- (pairs: of the tokens of one image with each other, a mask, or the scores of all heads without flash attention)
CREATE OR REPLACE MACRO tower_buffer_bytes_llama_cpp(tower, scenario) AS coalesce(
    graph_tokens(tower, scenario) * (
        4 * iif(scenario.attention = 'eager', tower.graph.unfused_elements, tower.graph.token_elements)
        + graph_each_tokens(tower, scenario)
            * iif(scenario.attention = 'eager', tower.graph.unfused_pair_bytes, tower.graph.pair_bytes))
    + tower.graph.sound_bytes, 0);
