-- Recurrent and convolutional states: constant in length, one set per sequence.
--
--   state_bytes = sequences × Σ layers × (state_elements × bytes of its precision + conv_state_elements × compute bytes)
--
-- Units: bytes per GPU. Source: attention_layer; frameworks keep recurrent states in fp32 unless state_dtype_id says
--   otherwise, and convolution states in the compute precision.
-- Tensor parallelism divides the states' heads; pipelines take the GPU with the most layers.
-- Not covered: the copies that a kernel makes during prefill.

CREATE OR REPLACE MACRO state_bytes(m, x) AS try_cast(ceil(
    x.sequences * coalesce(list_sum(list_transform(m.caches, lambda cache:
        cache.layers * (cache.state * cache.state_bytes_each + cache.conv_state * x.compute_bytes))), 0)
    * x.stage_share / x.tensor_parallel
) AS BIGINT);
