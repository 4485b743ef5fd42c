-- Gradients: what training holds of them for each trained parameter.
--
--   gradients = trained × bytes of a gradient
--             = largest parameter × bytes of a gradient where the optimizer steps in the backward pass
--
-- Units: bytes, whole model; sharding/held.sql says what one GPU of several holds of them. trained is every parameter
--   in pretraining and full fine-tuning, the adapter's in LoRA and QLoRA.
-- precision: mixed keeps 16-bit weights and gradients; amp keeps fp32 weights and gradients; pure keeps everything in
-- the dtype.
-- Source: the ZeRO paper for the accounting; sharding_rule.csv for frameworks that keep gradients in another precision.
-- Not covered: gradients of activations (activations/training).

CREATE OR REPLACE MACRO trained_elements(model, scenario) AS
    iif(scenario.phase_id IN ('lora', 'qlora'), adapter_elements(model, scenario),
        -- (MLX LM unfreezes layers, and never embedding, head or last norm)
        iif(scenario.graph IS NOT NULL, of_trained_layers(model.layer_elements, model, scenario)::BIGINT,
            model.parameter_count - iif(is_scored(scenario), model.output_elements, 0)
                + iif(scenario.unties_head AND model.is_head_tied, model.embedding_elements, 0)));

CREATE OR REPLACE MACRO trained_bytes_each(scenario) AS CASE
    WHEN scenario.phase_id IN ('lora', 'qlora') THEN adapter_bytes_each(scenario)
    WHEN scenario.precision = 'amp' THEN 4
    ELSE scenario.compute_bytes
END;

-- (Of a step that is one graph the optimizer's part of each weight runs as its gradient comes: those that wait are
-- counted with the tensors of that moment, activations/training/graph.sql.)
CREATE OR REPLACE MACRO gradients_bytes(model, scenario) AS CASE
    WHEN scenario.graph IS NOT NULL AND scenario.gradient_accumulation = 1 THEN 0
    WHEN scenario.steps_in_backward THEN model.largest_parameter_elements
    ELSE scenario.trained_elements
END * scenario.gradient_bytes_each + saved_bytes(model, scenario) + embedding_gradient_bytes(model, scenario);
