-- Adapters of LoRA and QLoRA: two thin matrices for every adapted linear layer.
--
--   adapter elements = rank × Σ over adapted layers (in_features + out_features)
--
-- Units: elements; adapters_bytes in bytes. Source: the LoRA paper (A is rank × in, B is out × rank) over the real shapes in
--   `tensor`; `attention` adapts attention's projections, `all-linear` every linear layer but head and routers.
-- Adapters are fp32 unless precision is pure (peft's autocast_adapter_dtype).
-- Not covered: adapters on fused experts and embeddings, DoRA's magnitudes, biases.

CREATE OR REPLACE MACRO adapter_elements(m, x) AS iif(x.phase_id IN ('lora', 'qlora'), x.lora_rank
    * iif(x.lora_targets = 'attention', m.lora_attention_elements, m.lora_linear_elements), 0)::BIGINT;

CREATE OR REPLACE MACRO adapter_bytes_each(x) AS iif(x.precision = 'pure', x.compute_bytes, 4);
