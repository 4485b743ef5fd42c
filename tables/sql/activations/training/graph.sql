-- What a training step holds that is evaluated as one graph (MLX): the program is ahead of the GPU by so many command
-- buffers, and what their operations read and make is there until they are through.
--
--   step = weights + adapters + optimizer + T × (layers trained × what one keeps)
--       + the loss's tensors, or the attention of the layer that is differentiated
--       + layers in flight × what one makes anew + gradients of matrices in flight
--   layers in flight = (waiting buffers + 1) × (elements of a buffer ÷ elements that a layer touches
--       + 1 ÷ operations of a layer)
--
-- A buffer is committed when the arrays that its operations touch have more than so many elements, packed weights in
-- words of 32 bits; of large arrays each operation is a buffer. Layers before the first that is trained keep nothing.
-- Norms keep what they read, rotations what they give, a gated block both projections, the sigmoid and its product,
-- adapters copies of what they read in fp32, which layers that read the same share; attention is written out, since
-- Metal's fused kernel has no gradient, and its softmax is kept. The loss holds logits, the same less their largest,
-- the softmax and the gradient that is scattered into; that of MLX 0.32.4 is one kernel and holds less. Recomputed
-- layers keep their input, and one at a time is in flight whole.
--
-- Units: bytes; widths in elements. Source: steps of mlx_lm.tuner.trainer over MLX 0.32.2 with a Metal backend that
--   allocates and computes nothing, tests/oracle/mlx_training.csv (source mlx-lm-training); constant.csv (mlx_*).
-- Not covered: routed experts, recurrent layers, windows, DoRA, dropout, what sees or hears (counted_reason).

CREATE OR REPLACE MACRO graph_block_width(model) AS greatest(model.gated_max, model.plain_max);
CREATE OR REPLACE MACRO graph_score_bytes(model, scenario) AS
    2.0 * model.head_max * scenario.context_tokens * step_tokens(scenario);

-- per token of a layer: what adapters, or weights that are trained, keep of their inputs
CREATE OR REPLACE MACRO graph_inputs(model, scenario) AS CASE
    WHEN NOT scenario.is_adapter OR scenario.lora_targets = 'all-linear' THEN 2 * model.hidden_size + model.query_max
        + graph_block_width(model)
    WHEN scenario.lora_targets = 'attention' THEN model.hidden_size + model.query_max
    ELSE model.hidden_size
END;
CREATE OR REPLACE MACRO kept_by_graph_layer(model, scenario) AS graph_score_bytes(model, scenario)
    + step_tokens(scenario) * (2 * (2 * model.hidden_size + model.query_max + 2 * model.key_max
        + 4 * graph_block_width(model))
        + iif(list_bool_or(list_transform(model.mixers, lambda layer: layer.has_qk_norm)),
            2 * (model.query_max + model.key_max), 0)
        + iif(scenario.is_adapter, 4, 2) * graph_inputs(model, scenario));

-- and what it makes that nothing keeps: results of products, of adapters' in fp32, norms and the block's product
CREATE OR REPLACE MACRO made_by_graph_layer(model, scenario) AS step_tokens(scenario) * (2 * (4 * model.hidden_size
        + model.query_max + 2 * model.key_max + 3 * graph_block_width(model))
        + iif(scenario.is_adapter, 2.0 * (adapted_elements(model, scenario) - adapted_inputs(model, scenario))
            / greatest(model.layer_count, 1), 0));

-- In flight: of layers that are recomputed all of it, and while the loss's tensors are there one of these at least.
CREATE OR REPLACE MACRO graph_layer_recomputed(model, scenario) AS
    iif(scenario.checkpointing = 'full', kept_by_graph_layer(model, scenario), 0);
CREATE OR REPLACE MACRO graph_in_flight(model, scenario, layers, least_recomputed) AS
    layers * made_by_graph_layer(model, scenario)
    + greatest(layers, least_recomputed) * graph_layer_recomputed(model, scenario);

-- elements that a layer touches: activations, and weights as they are stored
CREATE OR REPLACE MACRO graph_layer_elements(model, scenario) AS graph_score_bytes(model, scenario)
    + step_tokens(scenario) * (8 * model.hidden_size + 4 * model.query_max + 8 * model.key_max
        + 8 * graph_block_width(model))
    + model.layer_elements / greatest(model.layer_count, 1) * iif(scenario.phase_id = 'qlora',
        scenario.whole_weights / model.parameter_count / 4, 1);
CREATE OR REPLACE MACRO layers_in_flight(model, scenario, buffers) AS least(trained_layers(model, scenario),
    buffers * scenario.graph.buffer_elements / graph_layer_elements(model, scenario)
    + (scenario.graph.waiting_buffers + 1) / scenario.graph.layer_operations);

-- (the loss's own operations fill buffers too)
CREATE OR REPLACE MACRO buffers_beside_loss(model, scenario) AS scenario.graph.waiting_buffers + 1 - least(2,
    8 * logit_width(model, scenario) * step_tokens(scenario) / scenario.graph.buffer_elements);

CREATE OR REPLACE MACRO kept_by_graph(model, scenario) AS trained_layers(model, scenario)
    * iif(scenario.checkpointing = 'full', 2 * model.hidden_size * step_tokens(scenario),
        kept_by_graph_layer(model, scenario));

-- gradients of whole matrices, each a buffer of its own, until the optimizer's part of them is through
CREATE OR REPLACE MACRO graph_gradients(model, scenario) AS iif(scenario.is_adapter, 0,
    2.0 * (scenario.graph.waiting_buffers + 1) * model.hidden_size * graph_block_width(model));

CREATE OR REPLACE MACRO graph_moments(model, scenario, stage) AS {
    'loss': held_throughout(stage) + stage.gradients + kept_by_graph(model, scenario)
        + scenario.graph.logit_bytes * logit_width(model, scenario) * step_tokens(scenario)
        + graph_in_flight(model, scenario, layers_in_flight(model, scenario, buffers_beside_loss(model, scenario)), 1)
        + graph_gradients(model, scenario),
    'forward': held_throughout(stage) + stage.gradients,
    'backward': held_throughout(stage) + stage.gradients + kept_by_graph(model, scenario)
        + 3 * graph_score_bytes(model, scenario)
        + graph_layer_recomputed(model, scenario)
        + graph_in_flight(model, scenario, layers_in_flight(model, scenario, scenario.graph.waiting_buffers + 1), 0)
        + graph_gradients(model, scenario),
    'end': held_throughout(stage) + stage.gradients,
    'optimizer': held_throughout(stage) + stage.gradients
};
