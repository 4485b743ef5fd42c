-- Optimizer: what training holds per trained parameter beside weights and gradients.
--
--   optimizer = trained × (bytes of state + 4 where fp32 master weights are kept apart + 4 or 2 where ema keeps their average)
--
-- Units: bytes, whole model; sharding/held.sql says what one GPU of several holds of them.
-- precision: mixed keeps 16-bit weights and gradients with fp32 master weights in the optimizer (2 + 2 + 4 + 8 = 16 bytes per
--   parameter with AdamW); amp keeps fp32 weights and gradients; pure keeps everything, states included, in the dtype.
-- Sources: optimizer.csv (states, each cited); the ZeRO paper for the accounting.
-- Not covered: states paged to the CPU.

-- States of plain optimizers have the precision of the parameter they belong to where precision is pure.
CREATE OR REPLACE MACRO state_bytes_each(x, o) AS
    iif(o.follows_parameter_dtype AND x.precision = 'pure', o.state_count * trained_bytes_each(x), o.state_bytes_per_parameter);

-- elementwise: so many bytes an element. factored: a row and a column of fp32 for every matrix, all of a vector. blockwise: tensors below
-- 4096 elements keep fp32. matrices: one state for matrices, AdamW's two for embeddings, head and vectors. projected: of a linear layer's
-- matrix two moments of optimizer_rank × its longer side, with GaLore also the projection, optimizer_rank × its shorter side; AdamW elsewhere.
CREATE OR REPLACE MACRO optimizer_states(m, x, o) AS CASE
    WHEN o.state_form = 'factored' AND x.is_adapter THEN 4 * (trained_elements(m, x) / x.lora_rank
        + 2 * x.lora_rank * adapted_modules(m, x))
    WHEN o.state_form = 'factored' THEN 4 * m.factored_elements
    WHEN o.state_form = 'matrices' AND NOT x.is_adapter THEN state_bytes_each(x, o) * (2 * m.parameter_count - m.matrix_elements)
    WHEN o.state_form = 'projected' THEN state_bytes_each(x, o) * (m.parameter_count - m.projected_elements
        + x.optimizer_rank * (m.projected_longer_sum + iif(o.keeps_projection, m.projected_shorter_sum / 2, 0)))
    ELSE trained_elements(m, x) * state_bytes_each(x, o)
        + iif(o.state_form = 'blockwise' AND NOT x.is_adapter, m.small_elements * (4 * o.state_count - o.state_bytes_per_parameter), 0)
END;

-- (weights that are fp32 masters themselves need none beside them)
CREATE OR REPLACE MACRO optimizer_bytes(m, x, o) AS ceil(optimizer_states(m, x, o)
    + iif(x.precision = 'mixed' AND x.phase_id IN ('pretrain', 'full-finetune') AND x.compute_bytes < 4 AND NOT x.are_masters_weights,
        4 * m.parameter_count, 0)
    + iif(x.ema, x.trained_elements * iif(x.precision = 'mixed', 4, trained_bytes_each(x)), 0));
