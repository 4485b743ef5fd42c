-- Recurrent and convolutional states: constant in length, one set per sequence.
--
--   state_bytes = sequences × Σ layers × (state_elements × bytes of its precision + conv_state_elements × compute
--       bytes)
--
-- Units: bytes per GPU. Source: attention_layer; frameworks keep recurrent states in fp32 unless state_dtype_id says
--   otherwise, and convolution states in the compute precision.
-- Tensor parallelism divides the states' heads; pipelines take the GPU with the most layers.
-- Not covered: the copies that a kernel makes during prefill.

CREATE OR REPLACE MACRO state_bytes(model, scenario) AS try_cast(ceil(
    scenario.rank_sequences * coalesce(list_sum(list_transform(model.caches, lambda layer:
        layer.layer_count * (layer.state_elements * layer.state_bytes_each + layer.conv_state_elements
            * scenario.compute_bytes))), 0)
    * scenario.stage_share / scenario.tensor_parallel
) AS BIGINT);
