-- What everything as wide as the hidden state keeps for the backward pass: norms, the residual stream, embeddings per
-- layer.
--
-- Units: bytes per GPU, or per token of one layer. Source: transformers-step-oracle, read as kept.sql says.
-- Not covered: norms inside towers.

-- GPUs that divide the residual stream between the layers (sequence parallelism)
CREATE OR REPLACE MACRO residual_parallel(scenario) AS iif(scenario.is_sequence_parallel, scenario.tensor_parallel, 1);

-- autocast over fp32 weights that are trained: norms run in fp32, linear layers keep 16-bit copies
CREATE OR REPLACE MACRO is_autocast(scenario) AS scenario.precision = 'amp' AND NOT scenario.is_adapter;

-- bytes of an element between the layers (embeddings and norms in fp32, which QLoRA's preparation makes them and the
-- base of a LoRA may have under autocast: so is all that flows between the layers, and into their activations)
CREATE OR REPLACE MACRO residual_bytes(scenario) AS
    iif(scenario.is_autocast OR is_prepared(scenario), 4, scenario.compute_bytes);
CREATE OR REPLACE MACRO is_quantised_base(scenario) AS
    scenario.phase_id = 'qlora' AND scenario.precision <> 'pure' AND scenario.prepares_base;
CREATE OR REPLACE MACRO is_prepared(scenario) AS is_quantised_base(scenario) OR is_cast_base(scenario);
-- a frozen base in fp32 under autocast, which keeps no copies of weights that are not trained: each product has its own
CREATE OR REPLACE MACRO is_cast_base(scenario) AS scenario.phase_id <> 'qlora' AND scenario.is_adapter
    AND scenario.precision = 'amp' AND scenario.prepares_base;

-- What one norm keeps per element besides its output. RMS norms in Python: the fp32 copy of the input and, for the
-- weight's gradient, the normalised tensor in 16 bits (rms, and rms-copy with the input in 16 bits too) or in fp32
-- (rms-fp32). Fused layer norms: the input. Layer norms written out (layer-fp32): the centred input twice and the
-- normalised tensor. Without weights (layer-plain): the fp32 copy.
CREATE OR REPLACE MACRO norm_form(model, scenario) AS
    iif(scenario.engine_norm_form IS NOT NULL AND model.norm_form IN ('rms', 'rms-copy', 'rms-fp32'),
        scenario.engine_norm_form, model.norm_form);

CREATE OR REPLACE MACRO kept_by_norm(model, scenario) AS CASE iif(scenario.has_fused_kernels, 'layer',
    norm_form(model, scenario))
    WHEN 'rms' THEN iif(has_frozen_norms(scenario), 4, 4 + scenario.residual_bytes)
    WHEN 'rms-copy' THEN iif(has_frozen_norms(scenario), 4, 4 + scenario.residual_bytes)
        + iif(scenario.residual_bytes = 2, 2, 0)
    WHEN 'rms-fp32' THEN iif(has_frozen_norms(scenario), 4, 8)
    WHEN 'layer-fp32' THEN iif(has_frozen_norms(scenario), 8, 12)
    WHEN 'layer-plain' THEN 4
    -- autocast runs fused norms in fp32, frozen or not
    ELSE iif(scenario.precision = 'amp', 4, scenario.compute_bytes)
END;

-- Norms of `width` elements, of which `outputs` feed linear layers: their input is kept for the weights' gradients,
-- once, or under autocast as a 16-bit copy for every linear layer (counted apart). Layer norms of a parallel block
-- share their input.
CREATE OR REPLACE MACRO kept_by_norms(width, outputs, model, scenario) AS
    iif(model.norm_form = 'layer' AND model.is_block_parallel, outputs_of_blocks(width, model), width)
        * scenario.norm_bytes
    + iif(scenario.is_adapter OR scenario.is_autocast, 0, scenario.compute_bytes * outputs);

CREATE OR REPLACE MACRO outputs_of_blocks(width, model) AS least(width, model.layer_count * model.hidden_size);

-- everything that is as wide as the hidden state: norms with their statistics, 16-bit copies for linear layers, dropout
-- masks
CREATE OR REPLACE MACRO hidden_kept_sum(model, scenario) AS
    kept_by_norms(model.norm_width_sum, model.norm_output_sum, model, scenario) + 8 * model.layer_count
    + model.latent_norm_sum * (scenario.norm_bytes + iif(scenario.is_adapter, 0, scenario.compute_bytes))
    + iif(scenario.is_autocast, 2 * model.hidden_input_sum, 0)
    -- norms inside blocks: that of the feed-forward block's width, and the output of the one before attention's last
    -- projection
    + iif(model.inner_norm_sum > 0, model.inner_norm_sum * scenario.norm_bytes
        + iif(scenario.is_adapter OR scenario.is_autocast, 0, scenario.compute_bytes * model.layer_count
            * model.hidden_size), 0)
    + per_layer_inputs_kept(model, scenario)
    + iif(model.hidden_dropout > 0, (model.mixer_layer_count + coalesce(model.block_layer_count, 0))
        * model.hidden_size, 0);

-- Embeddings per layer: their sum with a projection of the hidden state; in each layer a gate, its activation and their
-- product, and what the gate reads.
CREATE OR REPLACE MACRO per_layer_inputs_kept(model, scenario) AS iif(model.per_layer_input_sum = 0, 0,
    scenario.compute_bytes * iif(scenario.is_adapter, 2, 4) * model.per_layer_input_sum
    + iif(scenario.is_adapter, 0, scenario.norm_bytes * model.per_layer_input_sum + scenario.compute_bytes
        * model.layer_count * model.hidden_size));
