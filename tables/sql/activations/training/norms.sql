-- What everything as wide as the hidden state keeps for the backward pass: norms, the residual stream, embeddings per layer.
--
-- Units: bytes per GPU, or per token of one layer. Source: transformers-step-oracle, read as kept.sql says.
-- Not covered: norms inside towers.

-- GPUs that divide the residual stream between the layers (sequence parallelism)
CREATE OR REPLACE MACRO residual_parallel(x) AS iif(x.is_sequence_parallel, x.tensor_parallel, 1);

-- autocast over fp32 weights that are trained: norms run in fp32, linear layers keep 16-bit copies
CREATE OR REPLACE MACRO is_autocast(x) AS x.precision = 'amp' AND NOT x.is_adapter;

-- bytes of an element between the layers
-- (QLoRA's preparation holds embeddings and norms in fp32: so is all that flows between the layers, and into their activations)
CREATE OR REPLACE MACRO residual_bytes(x) AS iif(x.is_autocast OR is_prepared(x), 4, x.compute_bytes);
CREATE OR REPLACE MACRO is_prepared(x) AS x.phase_id = 'qlora' AND x.precision <> 'pure';

-- What one norm keeps per element besides its output. RMS norms in Python: the fp32 copy of the input and, for the weight's
-- gradient, the normalised tensor in 16 bits (rms, and rms-copy with the input in 16 bits too) or in fp32 (rms-fp32). Fused layer norms: the input. Layer norms written out
-- (layer-fp32): the centred input twice and the normalised tensor. Without weights (layer-plain): the fp32 copy.
CREATE OR REPLACE MACRO norm_form(m, x) AS
    iif(x.engine_norm_form IS NOT NULL AND m.norm_form IN ('rms', 'rms-copy', 'rms-fp32'), x.engine_norm_form, m.norm_form);

CREATE OR REPLACE MACRO kept_by_norm(m, x) AS CASE iif(x.has_fused_kernels, 'layer', norm_form(m, x))
    WHEN 'rms' THEN iif(x.is_adapter, 4, 4 + x.residual_bytes)
    WHEN 'rms-copy' THEN iif(x.is_adapter, 4, 4 + x.residual_bytes) + iif(x.residual_bytes = 2, 2, 0)
    WHEN 'rms-fp32' THEN iif(x.is_adapter, 4, 8)
    WHEN 'layer-fp32' THEN iif(x.is_adapter, 8, 12)
    WHEN 'layer-plain' THEN 4
    -- autocast runs fused norms in fp32, frozen or not
    ELSE iif(x.precision = 'amp', 4, x.compute_bytes)
END;

-- Norms of `width` elements, of which `outputs` feed linear layers: their input is kept for the weights' gradients, once, or under
-- autocast as a 16-bit copy for every linear layer (counted apart). Layer norms of a parallel block share their input.
CREATE OR REPLACE MACRO kept_by_norms(width, outputs, m, x) AS
    iif(m.norm_form = 'layer' AND m.is_block_parallel, outputs_of_blocks(width, m), width) * x.norm_bytes
    + iif(x.is_adapter OR x.is_autocast, 0, x.compute_bytes * outputs);

CREATE OR REPLACE MACRO outputs_of_blocks(width, m) AS least(width, m.layer_count * m.hidden_size);

-- everything that is as wide as the hidden state: norms with their statistics, 16-bit copies for linear layers, dropout masks
CREATE OR REPLACE MACRO hidden_kept_sum(m, x) AS
    kept_by_norms(m.norm_width_sum, m.norm_output_sum, m, x) + 8 * m.layer_count
    + m.latent_norm_sum * (x.norm_bytes + iif(x.is_adapter, 0, x.compute_bytes))
    + iif(x.is_autocast, 2 * m.hidden_input_sum, 0)
    -- norms inside blocks: that of the feed-forward block's width, and the output of the one before attention's last projection
    + iif(m.inner_norm_sum > 0, m.inner_norm_sum * x.norm_bytes
        + iif(x.is_adapter OR x.is_autocast, 0, x.compute_bytes * m.layer_count * m.hidden_size), 0)
    + per_layer_inputs_kept(m, x)
    + iif(m.hidden_dropout > 0, (m.mixer_layer_count + coalesce(m.block_layer_count, 0)) * m.hidden_size, 0);

-- Embeddings per layer: their sum with a projection of the hidden state; in each layer a gate, its activation and their product, and what
-- the gate reads.
CREATE OR REPLACE MACRO per_layer_inputs_kept(m, x) AS iif(m.per_layer_input_sum = 0, 0,
    x.compute_bytes * iif(x.is_adapter, 2, 4) * m.per_layer_input_sum
    + iif(x.is_adapter, 0, x.norm_bytes * m.per_layer_input_sum + x.compute_bytes * m.layer_count * m.hidden_size));
