-- Recurrent and convolutional states: constant in length, one set per sequence, and in a server with a pool of them as
-- many as it needs to take so many sequences.
--
--   state_bytes = state_slots × Σ layers × (state_elements × bytes of its precision
--       + conv_state_elements × compute bytes)
--   state_slots = sequences, or sequences × slots of each + spare slots (engine_memory)
--
-- Units: bytes per GPU. Source: attention_layer; frameworks keep recurrent states in fp32 unless state_dtype_id says
--   otherwise, and convolution states in the compute precision; sglang-state-slots.
-- Tensor parallelism divides the states' heads; pipelines take the GPU with the most layers.
-- Not covered: the copies that a kernel makes during prefill.

CREATE OR REPLACE MACRO state_slots(engine_id, sequences) AS
    sequences * (CASE {state_slots of engine_id} ELSE 1 END) + (CASE {spare_state_slots of engine_id} ELSE 0 END);

CREATE OR REPLACE MACRO state_bytes(model, scenario) AS try_cast(ceil(
    state_slots(scenario.engine_id, scenario.rank_sequences)
    * coalesce(list_sum(list_transform(model.caches, lambda layer: layer.layer_count
        * (layer.state_elements * layer.state_bytes_each + layer.conv_state_elements * scenario.compute_bytes))), 0)
    * scenario.stage_share / scenario.tensor_parallel
) AS BIGINT);
