-- Optimizer: what training holds per trained parameter beside weights and gradients.
--
--   optimizer = trained × (bytes of state + 4 where fp32 master weights are kept apart + 4 or 2 where ema keeps their
--       average)
--
-- Units: bytes, whole model; sharding/held.sql says what one GPU of several holds of them.
-- precision: mixed keeps 16-bit weights and gradients with fp32 master weights in the optimizer (2 + 2 + 4 + 8 = 16
--   bytes per parameter with AdamW); amp keeps fp32 weights and gradients; pure keeps everything, states included, in
--   the dtype.
-- Sources: optimizer.csv (states, each cited); the ZeRO paper for the accounting.
-- Not covered: states paged to the CPU.

-- States of plain optimizers have the precision of the parameter they belong to where precision is pure.
CREATE OR REPLACE MACRO state_bytes_each(scenario, optimizer) AS
    iif(optimizer.follows_parameter_dtype AND scenario.precision = 'pure', optimizer.state_count
        * trained_bytes_each(scenario), optimizer.state_bytes_per_parameter);

-- elementwise: so many bytes an element. factored: a row and a column of fp32 for every matrix, all of a vector.
-- blockwise: tensors below 4096 elements keep fp32. matrices: one state for matrices, AdamW's two for embeddings, head
-- and vectors. projected: of a linear layer's matrix two moments of optimizer_rank × its longer side, with GaLore also
-- the projection, optimizer_rank × its shorter side; AdamW elsewhere.
CREATE OR REPLACE MACRO optimizer_states(model, scenario, optimizer) AS CASE
    WHEN optimizer.state_form = 'factored' AND scenario.is_adapter
        THEN 4 * (trained_elements(model, scenario) / scenario.lora_rank
        + 2 * scenario.lora_rank * adapted_modules(model, scenario))
    WHEN optimizer.state_form = 'factored' THEN 4 * model.factored_elements
    WHEN optimizer.state_form = 'matrices' AND NOT scenario.is_adapter THEN state_bytes_each(scenario, optimizer)
        * (2 * model.parameter_count - model.matrix_elements)
    WHEN optimizer.state_form = 'projected' THEN state_bytes_each(scenario, optimizer)
        * (model.parameter_count - model.projected_elements
        + scenario.optimizer_rank
            * (model.projected_longer_sum + iif(optimizer.keeps_projection, model.projected_shorter_sum / 2, 0)))
    ELSE trained_elements(model, scenario) * state_bytes_each(scenario, optimizer)
        + iif(optimizer.state_form = 'blockwise' AND NOT scenario.is_adapter, model.small_elements
            * (4 * optimizer.state_count - optimizer.state_bytes_per_parameter), 0)
END;

-- Of embeddings and heads that are trained beside adapters, in the precision of their copies.
CREATE OR REPLACE MACRO saved_states(model, scenario, optimizer) AS saved_elements(model, scenario)
    * iif(optimizer.follows_parameter_dtype, optimizer.state_count * saved_bytes_each(scenario),
        optimizer.state_bytes_per_parameter);

-- DeepSpeed's optimizers keep a copy in fp32 of weights in fp32 too (stage_1_and_2.py, stage3.py)
CREATE OR REPLACE MACRO keeps_wide_masters(scenario) AS coalesce(scenario.scheme = 'deepspeed', false)
    AND scenario.compute_bytes = 4;

-- (weights that are fp32 masters themselves need none beside them)
CREATE OR REPLACE MACRO optimizer_bytes(model, scenario, optimizer) AS ceil(optimizer_states(model, scenario, optimizer)
    + saved_states(model, scenario, optimizer)
    + iif(scenario.phase_id IN ('pretrain', 'full-finetune') AND (keeps_wide_masters(scenario)
        OR scenario.precision = 'mixed' AND scenario.compute_bytes < 4 AND NOT scenario.are_masters_weights),
        4 * trained_elements(model, scenario), 0)
    + iif(scenario.ema, scenario.trained_elements * iif(scenario.precision = 'mixed', 4, trained_bytes_each(scenario)),
        0));
