-- Adapters of LoRA and QLoRA: two thin matrices for every adapted linear layer.
--
--   adapter elements = rank × Σ over adapted layers (in_features + out_features)
--
-- Units: elements; adapters_bytes in bytes. Source: the LoRA paper (A is rank × in, B is out × rank) over the real shapes in
--   `tensor`; `attention` adapts attention's projections, `all-linear` every linear layer but head and routers, and in models with
--   routed experts these too: fused experts have adapters of their own in peft 0.21.2, with twice the rank where gate and up are one
--   matrix, and so has the router; shared experts and dense layers then stay as they are.
-- Adapters are fp32 unless precision is pure (peft's autocast_adapter_dtype).
-- Not covered: embeddings, DoRA's magnitudes, biases.

CREATE OR REPLACE MACRO has_adapted_experts(m, x) AS
    x.phase_id = 'lora' AND x.lora_targets = 'all-linear' AND m.expert_elements > 0 AND m.are_experts_adapted;

CREATE OR REPLACE MACRO adapter_elements(m, x) AS iif(x.phase_id IN ('lora', 'qlora'), x.lora_rank * (
    iif(x.lora_targets = 'attention' OR x.has_adapted_experts, m.lora_attention_elements, m.lora_linear_elements)
    + iif(x.has_adapted_experts, m.lora_expert_elements, 0)), 0)::BIGINT;

CREATE OR REPLACE MACRO adapter_bytes_each(x) AS iif(x.precision = 'pure', x.compute_bytes, 4);
