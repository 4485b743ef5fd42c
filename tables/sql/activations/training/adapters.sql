-- What adapters keep for the backward pass, those of routed experts among them.
--
--   kept = bytes × (inputs of the adapted layers + rank × adapted layers)
--
-- Units: bytes per GPU, or per token of one layer. Source: transformers-step-oracle, read as kept.sql says.
-- Not covered: kernels that multiply packed experts without unpacking all of a layer (Unsloth's, scattermoe): less.

-- Adapters of queries, keys and values that are one matrix read one input, with one mask; where the keys have none,
-- what the others give is kept for its place in the matrix.
CREATE OR REPLACE MACRO kept_by_joined_adapters(model, scenario) AS CASE
    WHEN NOT scenario.joins_projections THEN 0
    ELSE iif(scenario.has_adapter_dropout, -(adapter_compute_bytes(scenario) + 1) * model.layer_count
        * model.hidden_size * iif(scenario.lora_targets = 'query-value', 1, 2), 0)
        + iif(scenario.lora_targets = 'query-value', adapter_compute_bytes(scenario)
            * (adapted_elements(model, scenario) - adapted_inputs(model, scenario)), 0)
END;

-- Inputs of the adapted layers in the adapter's precision, and the rank-wide products. Each layer makes its own copy,
-- but where the input has that precision already: then layers that read the same norm share it. Dropout gives each
-- layer an input of its own in any precision, and a mask of a byte an element.
CREATE OR REPLACE MACRO kept_by_adapters(model, scenario) AS CASE
    WHEN NOT scenario.is_adapter THEN 0
    WHEN is_prompted(scenario) THEN kept_by_prompts(model, scenario)
    ELSE adapter_compute_bytes(scenario) * (adapted_inputs(model, scenario) + scenario.lora_rank
        * adapted_modules(model, scenario)
        + iif(scenario.has_adapted_experts AND NOT adapts_routed(scenario), model.lora_beside_input_sum
            + scenario.lora_rank * model.lora_beside_module_count, 0)
        - CASE
            WHEN scenario.has_adapter_dropout THEN 0
            WHEN adapter_bytes_each(scenario) <> scenario.compute_bytes OR scenario.lora_targets = 'experts' THEN 0
            WHEN scenario.lora_targets IN ('attention', 'query-value') OR scenario.has_adapted_experts THEN
                iif(has_joined_query(model, scenario), 0, iif(scenario.lora_targets = 'query-value', 1, 2)
                    * model.layer_count * model.hidden_size)
            ELSE model.hidden_input_sum + split_adapters(model, scenario) * model.hidden_size - model.norm_output_sum
        END)
        + iif(scenario.has_adapter_dropout, adapted_inputs(model, scenario), 0)
        + kept_by_joined_adapters(model, scenario)
        + kept_by_dora(model, scenario)
END;

-- DoRA: what the base layer and the adapter give, for the magnitude's gradient. What the base layer gives is less its
-- bias, which makes it fp32 under autocast where the bias is.
CREATE OR REPLACE MACRO has_fp32_biases(scenario) AS coalesce(scenario.adapter = 'dora', false)
    AND scenario.precision = 'amp' AND scenario.compute_bytes = 2
    AND (scenario.dtype_id = 'fp32' OR is_prepared(scenario));

CREATE OR REPLACE MACRO kept_by_dora(model, scenario) AS iif(scenario.adapter = 'dora',
    (adapted_elements(model, scenario) - adapted_inputs(model, scenario))
        * (scenario.compute_bytes + adapter_compute_bytes(scenario))
    + iif(scenario.has_fp32_biases, 2 * least(model.layer_bias_sum,
        adapted_elements(model, scenario) - adapted_inputs(model, scenario)), 0), 0);

-- An adapter of the head, per token: what it reads, and the product of its rank.
CREATE OR REPLACE MACRO kept_by_head_adapter(model, scenario) AS iif(adapts_head(scenario),
    adapter_compute_bytes(scenario) * (model.hidden_size + scenario.lora_rank)
        + iif(scenario.has_adapter_dropout, model.hidden_size, 0), 0);

CREATE OR REPLACE MACRO adapter_compute_bytes(scenario) AS
    iif(scenario.precision IN ('amp', 'pure'), scenario.compute_bytes, 4);

-- peft 0.21.2 multiplies adapters of fused experts out: W + scaling × B A of all experts of a layer is a tensor of
-- its own, which autograd keeps for the gradient of its input, beside copies of A and B in the weights' precision.
-- Where experts alone are adapted nothing before the first of them is trained: its gate and up, which need no
-- gradient of their input, are not kept (unless checkpointing makes the embeddings' output need one). Selective
-- checkpointing keeps the products of the adapters, in their own precision, and over experts in fp32 their sums with
-- the weights too. Experts that are packed are unpacked whole as a layer reads them, and what is unpacked is kept for
-- the gradient of its input in the same way, adapted or not; but where an engine unpacks one matrix at a time, and once
-- more for the backward pass, which multiplies adapters apart too.
CREATE OR REPLACE MACRO has_made_experts(scenario) AS scenario.has_adapted_experts OR scenario.has_packed_experts;
CREATE OR REPLACE MACRO moe_layer_expert_elements(model) AS model.expert_elements / greatest(model.moe_layer_count, 1);
CREATE OR REPLACE MACRO is_first_untrained(scenario) AS
    scenario.is_adapter AND scenario.lora_targets = 'experts' AND scenario.checkpointing = 'none'
        AND scenario.pipeline_parallel = 1;

-- (the way down of a layer's experts: a third of gated ones, half of others)
CREATE OR REPLACE MACRO down_expert_elements(model, sums) AS least(sums.down, moe_layer_expert_elements(model) / 2);

CREATE OR REPLACE MACRO unpacks_by_matrix(scenario) AS
    coalesce(scenario.unpacks_by_matrix AND scenario.has_packed_experts, false);

CREATE OR REPLACE MACRO merged_factor_bytes(model, scenario) AS
    iif(adapter_bytes_each(scenario) = expert_compute_bytes(model, scenario) OR NOT scenario.has_adapted_experts, 0,
        expert_compute_bytes(model, scenario) * scenario.lora_rank
            * iif(adapts_routed(scenario), model.lora_routed_elements, model.lora_expert_elements));

CREATE OR REPLACE MACRO merged_experts_kept(model, scenario, sums) AS
    iif(has_made_experts(scenario) AND NOT unpacks_by_matrix(scenario), CASE scenario.checkpointing
        WHEN 'none' THEN merged_factor_bytes(model, scenario) + expert_compute_bytes(model, scenario)
            * (model.expert_elements - iif(is_first_untrained(scenario),
                moe_layer_expert_elements(model) - down_expert_elements(model, sums), 0))
        WHEN 'selective' THEN model.expert_elements
            * (adapter_bytes_each(scenario) + iif(has_fp32_experts(model, scenario), 4, 0))
        ELSE 0
    END, 0);

-- While a layer is differentiated: what is kept, and the layer's own where it is recomputed; with the gradient of its
-- matrix down where that has an adapter. (That of gate and up comes when the matrix down and its gradient are gone.)
-- (gate and up are the larger matrix)
CREATE OR REPLACE MACRO merged_experts_work(model, scenario, sums) AS CASE
    WHEN unpacks_by_matrix(scenario) THEN expert_compute_bytes(model, scenario)
        * (moe_layer_expert_elements(model) - down_expert_elements(model, sums))
    WHEN has_made_experts(scenario) THEN merged_experts_kept(model, scenario, sums)
        + iif(scenario.checkpointing = 'full', expert_compute_bytes(model, scenario) * moe_layer_expert_elements(model)
            + merged_factor_bytes(model, scenario) / greatest(model.moe_layer_count, 1), 0)
    ELSE 0
END;
CREATE OR REPLACE MACRO merged_gradient_bytes(model, scenario, sums) AS iif(scenario.has_adapted_experts
    AND NOT unpacks_by_matrix(scenario),
    expert_compute_bytes(model, scenario) * down_expert_elements(model, sums), 0);

-- DoRA's norm of the adapted weight, of the widest layer: an identity matrix of its inputs, the adapter multiplied out,
-- its scaled copy, the fp32 weight and their sum.
CREATE OR REPLACE MACRO dora_work(model, scenario) AS iif(scenario.adapter = 'dora',
    adapter_compute_bytes(scenario) * (model.widest_input::DOUBLE * model.widest_input + 4.0
        * model.largest_linear_elements), 0);
