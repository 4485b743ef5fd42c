-- llama.cpp: the compute buffer of models whose attention is picked by an index (DeepSeek-V3.2 and V4, GLM-5,
-- Qwen4-Exp, MiniMax-M3), which grows with the context as that of others does not.
--
--   given    cells × (micro-batch × (graph_input_bytes_each + layer_input_bytes_each × layers with an index)
--            + graph_cell_bytes_each)
--   picking  cells × micro-batch × picking_bytes_each, more with each further sequence
--            + micro-batch × 4 × (picking_queries × queries + picking_hidden × hidden + picking_elements)
--   buffer   the larger of given + picking and of the logits
--   scores   without flash attention instead: cells × micro-batch × (score_head_bytes_each × heads
--            + score_bytes_each) + micro-batch × 4 × score_queries × queries
--   several GPUs: four copies of what is given and of what goes from one to the next
--
-- Units: bytes per GPU. Source: engine_index.csv, fitted by tests/oracle/fit_index_buffer.py to llama.cpp's own account
--   of its buffers (tests/oracle/compute_buffer.csv, but for rows that are held back). Not covered: other
--   micro-batches, layers on the CPU (their weights are brought over: capacity/cpu_split.sql).

CREATE OR REPLACE MACRO has_engine_index(model, scenario) AS coalesce(
    model.engine_index.engine_id = scenario.engine_id
    AND NOT (model.engine_index.is_for_one_sequence AND scenario.sequences > 1), false);

-- Layers of a GPU that have an index of their own.
CREATE OR REPLACE MACRO has_index(layer) AS layer.index_elements > 0 OR layer.whole_share > 0;
CREATE OR REPLACE MACRO indexed_layers(model, scenario) AS ceil(scenario.stage_share * coalesce(list_sum(
    list_transform(model.caches, lambda layer: iif(has_index(layer), layer.layer_count, 0))), 0));

-- A byte for each token of a micro-batch and each cell of the context.
CREATE OR REPLACE MACRO token_cells_llama_cpp(scenario, constants) AS
    constants.llama_cpp_micro_batch_tokens * context_cells_llama_cpp(scenario, constants);

CREATE OR REPLACE MACRO given_bytes_llama_cpp(rule, model, scenario, constants) AS
    token_cells_llama_cpp(scenario, constants)
        * (rule.graph_input_bytes_each + rule.layer_input_bytes_each * indexed_layers(model, scenario))
    + context_cells_llama_cpp(scenario, constants) * rule.graph_cell_bytes_each;

CREATE OR REPLACE MACRO picking_width_bytes_llama_cpp(rule, model, constants) AS
    constants.llama_cpp_micro_batch_tokens * 4
        * (rule.picking_queries * model.query_max + rule.picking_hidden * model.hidden_size + rule.picking_elements);

CREATE OR REPLACE MACRO picking_bytes_llama_cpp(rule, model, scenario, constants) AS
    token_cells_llama_cpp(scenario, constants)
        * (rule.picking_bytes_each + rule.picking_sequence_bytes_each * (scenario.sequences - 1))
    + picking_width_bytes_llama_cpp(rule, model, constants)
    + unpacked_cache_bytes_llama_cpp(model, scenario, constants);

CREATE OR REPLACE MACRO scored_bytes_llama_cpp(rule, model, scenario, constants) AS
    token_cells_llama_cpp(scenario, constants) * (rule.score_head_bytes_each * model.head_max + rule.score_bytes_each)
    + constants.llama_cpp_micro_batch_tokens * 4 * rule.score_queries * model.query_max;

CREATE OR REPLACE MACRO indexed_logits_llama_cpp(rule, model, constants) AS constants.llama_cpp_micro_batch_tokens * 4
    * (model.vocab_size + (1 + rule.logit_hidden) * model.hidden_size);

-- What several GPUs hold more: copies of what the graph is given, and of what goes from one to the next.
CREATE OR REPLACE MACRO handed_bytes_llama_cpp(rule, model, constants) AS constants.llama_cpp_pipeline_copies
    * constants.llama_cpp_micro_batch_tokens * 4 * rule.handed_hidden * model.hidden_size;
CREATE OR REPLACE MACRO handed_layers_llama_cpp(rule, model, scenario, constants) AS constants.llama_cpp_pipeline_copies
    * token_cells_llama_cpp(scenario, constants) * rule.handed_layer_bytes_each * indexed_layers(model, scenario);

CREATE OR REPLACE MACRO unfused_index_buffer_of(rule, model, scenario, constants) AS
    greatest(indexed_logits_llama_cpp(rule, model, constants),
        scored_bytes_llama_cpp(rule, model, scenario, constants))
    + iif(scenario.pipeline_parallel = 1, 0, handed_bytes_llama_cpp(rule, model, constants)
        + (constants.llama_cpp_pipeline_copies - 1) * rule.score_input_bytes_each
            * token_cells_llama_cpp(scenario, constants));

CREATE OR REPLACE MACRO indexed_buffer_of(rule, model, scenario, constants) AS CASE
    WHEN scenario.attention = 'eager' THEN unfused_index_buffer_of(rule, model, scenario, constants)
    WHEN scenario.pipeline_parallel > 1 THEN
        constants.llama_cpp_pipeline_copies * given_bytes_llama_cpp(rule, model, scenario, constants)
        + handed_bytes_llama_cpp(rule, model, constants)
        + handed_layers_llama_cpp(rule, model, scenario, constants)
        + greatest(indexed_logits_llama_cpp(rule, model, constants),
            layer_buffer_bytes_llama_cpp(model, scenario, constants),
            picking_bytes_llama_cpp(rule, model, scenario, constants))
    ELSE greatest(indexed_logits_llama_cpp(rule, model, constants),
        given_bytes_llama_cpp(rule, model, scenario, constants)
            + greatest(layer_buffer_bytes_llama_cpp(model, scenario, constants),
                picking_bytes_llama_cpp(rule, model, scenario, constants)))
END;
CREATE OR REPLACE MACRO indexed_buffer_bytes_llama_cpp(model, scenario, constants) AS
    indexed_buffer_of(model.engine_index, model, scenario, constants);
