-- What adapters keep for the backward pass, those of routed experts among them.
--
--   kept = bytes × (inputs of the adapted layers + rank × adapted layers)
--
-- Units: bytes per GPU, or per token of one layer. Source: transformers-step-oracle, read as kept.sql says.
-- Not covered: adapters of quantised routed experts.

-- Inputs of the adapted layers in the adapter's precision, and the rank-wide products. Each layer makes its own copy, but where the input
-- has that precision already: then layers that read the same norm share it.
CREATE OR REPLACE MACRO kept_by_adapters(m, x) AS CASE
    WHEN NOT x.is_adapter THEN 0
    ELSE adapter_compute_bytes(x) * (adapted_inputs(m, x) + x.lora_rank * adapted_modules(m, x)
        + iif(x.has_adapted_experts AND x.lora_targets <> 'experts', m.lora_beside_input_sum + x.lora_rank * m.lora_beside_module_count, 0)
        - CASE
            WHEN x.compute_bytes < 4 AND x.precision <> 'pure' OR x.lora_targets = 'experts' THEN 0
            WHEN x.lora_targets IN ('attention', 'query-value') OR x.has_adapted_experts THEN
                iif(m.has_fused_qkv, 0, iif(x.lora_targets = 'query-value', 1, 2) * m.layer_count * m.hidden_size)
            ELSE m.hidden_input_sum - m.norm_output_sum
        END)
        -- dora: what the base layer and the adapter give, for the magnitude's gradient
        + iif(x.adapter = 'dora', (adapted_elements(m, x) - adapted_inputs(m, x)) * (x.compute_bytes + adapter_compute_bytes(x)), 0)
END;

CREATE OR REPLACE MACRO adapter_compute_bytes(x) AS iif(x.precision IN ('amp', 'pure'), x.compute_bytes, 4);

-- peft 0.21.2 multiplies adapters of fused experts out: W + scaling × B A of all experts of a layer is a tensor of its own, which autograd keeps
-- for the gradient of its input, beside copies of A and B in the weights' precision. Where experts alone are adapted nothing before the
-- first of them is trained: its gate and up, which need no gradient of their input, are not kept (unless checkpointing makes the
-- embeddings' output need one). Selective checkpointing keeps the products of the adapters, in their own precision.
CREATE OR REPLACE MACRO moe_layer_expert_elements(m) AS m.expert_elements / greatest(m.moe_layer_count, 1);
CREATE OR REPLACE MACRO is_first_untrained(x) AS x.is_adapter AND x.lora_targets = 'experts' AND x.checkpointing = 'none' AND x.pipeline_parallel = 1;

-- (the way down of a layer's experts: a third of gated ones, half of others)
CREATE OR REPLACE MACRO down_expert_elements(m, s) AS least(s.down, moe_layer_expert_elements(m) / 2);

CREATE OR REPLACE MACRO merged_factor_bytes(m, x) AS iif(adapter_bytes_each(x) = x.compute_bytes, 0,
    x.compute_bytes * x.lora_rank * iif(x.lora_targets = 'experts', m.lora_routed_elements, m.lora_expert_elements));

CREATE OR REPLACE MACRO merged_experts_kept(m, x, s) AS iif(x.has_adapted_experts, CASE x.checkpointing
    WHEN 'none' THEN merged_factor_bytes(m, x) + x.compute_bytes * (m.expert_elements
        - iif(is_first_untrained(x), moe_layer_expert_elements(m) - down_expert_elements(m, s), 0))
    WHEN 'selective' THEN adapter_bytes_each(x) * m.expert_elements
    ELSE 0
END, 0);

-- While a layer is differentiated: what is kept, the layer's own where it is recomputed, and the gradient of its matrix down. (That of gate and
-- up comes when the matrix down and its gradient are gone.)
CREATE OR REPLACE MACRO merged_experts_work(m, x, s) AS iif(x.has_adapted_experts, merged_experts_kept(m, x, s)
    + iif(x.checkpointing = 'full', x.compute_bytes * moe_layer_expert_elements(m) + merged_factor_bytes(m, x) / greatest(m.moe_layer_count, 1), 0)
    + x.compute_bytes * down_expert_elements(m, s), 0);

-- DoRA's norm of the adapted weight, of the widest layer: an identity matrix of its inputs, the adapter multiplied out, its scaled copy,
-- the fp32 weight and their sum.
CREATE OR REPLACE MACRO dora_work(m, x) AS iif(x.adapter = 'dora',
    adapter_compute_bytes(x) * (m.widest_input::DOUBLE * m.widest_input + 4.0 * m.largest_linear_elements), 0);
