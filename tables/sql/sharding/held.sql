-- What one GPU of several holds of weights, gradients and optimizer in training.
--
--   gpu_count   = tensor_parallel × pipeline_parallel × context_parallel × data parallel
--   held        = whole × fraction of the stage ÷ shards
--   fraction    = (share × (whole layers' norms and routers + other weights of the layers ÷ tensor_parallel + experts ÷
--                  (tensor × expert)) + embedding ÷ tensor_parallel on the first stage + head ÷ tensor_parallel on the
--                      last) ÷ parameters
--   shards      = data parallel × context_parallel for what the ZeRO stage divides, else 1
--
-- Units: bytes per GPU; a stage is one of a pipeline (`first_stage`, `last_stage`), the worst of which is published.
--   Experts that are sharded besides divide over the same GPUs with and without expert parallelism.
-- Sources: the ZeRO paper; sharding_rule.csv says for each framework in which precision it keeps gradients, whether the
--   sharded weights are the fp32 masters, what it can move to the host (each with its source). Frameworks pad the
--   vocabulary: it need not divide.
-- Not covered: uneven stages chosen by hand, tensor-parallel experts of another degree than the rest where
--   expert_parallel divides the GPUs that share the data, hybrid sharding (HSDP), ZeRO++.

-- GPUs that share a part
CREATE OR REPLACE MACRO weight_shards(scenario) AS iif(scenario.sharding = 'zero3', scenario.shard_count, 1);
CREATE OR REPLACE MACRO gradient_shards(scenario) AS
    iif(scenario.sharding IN ('zero2', 'zero3'), scenario.shard_count, 1);
CREATE OR REPLACE MACRO optimizer_shards(scenario) AS
    iif(scenario.sharding IN ('zero1', 'zero2', 'zero3'), scenario.shard_count, 1);

-- whether the weights are the fp32 master copy at the same time, and the bytes of a gradient while the step runs
CREATE OR REPLACE MACRO are_masters_weights(scenario) AS
    coalesce(scenario.has_master_weights, false) AND scenario.precision = 'mixed' AND NOT scenario.is_adapter
        AND scenario.compute_bytes = 2;

CREATE OR REPLACE MACRO gradient_bytes_each(scenario) AS
    iif(are_masters_weights(scenario), 4, coalesce(scenario.engine_gradient_bytes, scenario.trained_bytes_each));

-- FSDP divides a tensor of experts by experts and fills up where there are fewer than GPUs: the first GPUs hold one
-- each.
CREATE OR REPLACE MACRO expert_padding(rule, model, scenario) AS
    iif(rule.is_divided_by_expert AND model.expert_count_max > 0 AND scenario.sharding = 'zero3',
        ceil(model.expert_count_max / scenario.shard_count) * scenario.shard_count / model.expert_count_max, 1);

-- Megatron's expert parallelism lies over tensor ranks too where it does not divide the GPUs that share the data
-- (expert_tensor_parallel_size 1): what divides experts beside tensor parallelism, then less than expert_parallel.
CREATE OR REPLACE MACRO is_expert_folded(scenario) AS scenario.engine_id = 'megatron'
    AND scenario.phase_id <> 'inference' AND scenario.shard_count % scenario.expert_parallel <> 0
    AND scenario.shard_count * scenario.tensor_parallel % scenario.expert_parallel = 0;
CREATE OR REPLACE MACRO expert_ranks(scenario) AS
    scenario.expert_parallel / iif(is_expert_folded(scenario), scenario.tensor_parallel, 1);

-- Elements of one stage on one of its GPUs before they are sharded, weights of experts divided by `expert_parallel`.
CREATE OR REPLACE MACRO stage_elements(share, is_first, is_last, expert_parallel, model, scenario) AS
    share * (model.layer_whole_elements + (model.layer_elements - model.layer_whole_elements - model.expert_elements)
        / scenario.tensor_parallel
        + model.expert_elements / (scenario.tensor_parallel * expert_parallel))
    + is_first * (model.input_elements / scenario.tensor_parallel + model.parameter_count - model.layer_elements
        - model.input_elements - model.output_elements)
    -- a tied head is a second copy on the last stage
    + is_last * iif(model.is_head_tied AND scenario.pipeline_parallel > 1, model.input_elements, model.output_elements)
        / scenario.tensor_parallel;

-- `whole`: the fraction of the model that a GPU of the stage holds of what is sharded besides; `resident`: of what is
-- not.
CREATE OR REPLACE MACRO stage(share, flights, is_first, is_last, model, scenario) AS {
    'share': share, 'flights': flights, 'is_first': is_first, 'is_last': is_last,
    'whole': iif(scenario.tensor_parallel * scenario.pipeline_parallel * scenario.expert_padding = 1, 1.0,
        stage_elements(share, is_first, is_last, 1 / scenario.expert_padding, model, scenario) / model.parameter_count),
    'resident': iif(scenario.tensor_parallel * scenario.pipeline_parallel * scenario.expert_parallel = 1, 1.0,
        stage_elements(share, is_first, is_last, scenario.expert_ranks, model, scenario) / model.parameter_count),
    'head': is_last * iif(model.is_head_tied, model.input_elements, model.output_elements) / scenario.tensor_parallel,
    'tied': is_last * iif(model.is_head_tied, least(model.input_elements, model.vocab_size::DOUBLE
        * model.hidden_size), 0) / scenario.tensor_parallel,
    'embedding': is_first * iif(model.is_head_tied, 0, model.input_elements) / scenario.tensor_parallel
};

-- The stages that can be the worst: the first keeps most micro-batches in flight (1F1B), the last has head and loss;
-- null where the first is the whole model.
CREATE OR REPLACE MACRO first_stage(model, scenario) AS
    stage(scenario.stage_share, iif(scenario.pipeline_parallel = 1, 1, scenario.micro_batches_in_flight), 1,
        iif(scenario.pipeline_parallel = 1, 1, 0), model, scenario);

CREATE OR REPLACE MACRO last_stage(model, scenario) AS
    iif(scenario.pipeline_parallel = 1, NULL, stage(scenario.stage_share, 1, 0, 1, model, scenario));

-- share of a part of the whole model that one GPU of the stage holds; adapters are split by stages and shards only
CREATE OR REPLACE MACRO held(scenario, stage, shards) AS iif(shards > 1, stage.whole, stage.resident) / shards;
CREATE OR REPLACE MACRO held_of_trained(scenario, stage, shards) AS
    iif(scenario.is_adapter, stage.share, iif(shards > 1, stage.whole, stage.resident)) / shards;

-- Weights with adapters, gradients and optimizer: a part that the host keeps is none of the GPU's, and gradients that
-- are divided leave for it as they come.
CREATE OR REPLACE MACRO weights_of(scenario, stage) AS
    ceil(scenario.packed_whole * stage.resident + iif(scenario.offload = 'all', 0,
        (scenario.whole_weights - scenario.packed_whole) * held(scenario, stage, scenario.weight_shards)));
CREATE OR REPLACE MACRO adapters_of(scenario, stage) AS
    ceil(iif(scenario.offload = 'all', 0, scenario.whole_adapters * held_of_trained(scenario, stage,
        scenario.weight_shards)));

CREATE OR REPLACE MACRO gradients_of(scenario, stage) AS
    ceil(iif(scenario.offload <> 'none' AND scenario.sharding <> 'zero1', 0,
        scenario.whole_gradients * held_of_trained(scenario, stage, scenario.gradient_shards)));

CREATE OR REPLACE MACRO optimizer_of(scenario, stage) AS
    ceil(iif(scenario.offload <> 'none', 0, scenario.whole_optimizer * held_of_trained(scenario, stage,
        scenario.optimizer_shards)));

-- (ZeRO-1 and ZeRO-2 copy updated masters to the card by way of a buffer in the precision of the weights)
CREATE OR REPLACE MACRO host_copy_bytes_each(scenario) AS
    iif(scenario.scheme = 'deepspeed' AND scenario.sharding <> 'zero3' AND scenario.offload = 'optimizer',
        scenario.compute_bytes, 0);

-- In the host's memory: inputs of layers that wait there; states and masters with fp32 gradients of the same share;
-- all the weights besides where they leave too.
CREATE OR REPLACE MACRO host_of(model, scenario, stage) AS ceil(
    step_tokens(scenario) * inputs_in_host(model, scenario, scenario.sums) + iif(scenario.offload = 'none', 0,
    (scenario.whole_optimizer + (4 + host_copy_bytes_each(scenario)) * scenario.trained_elements)
        * held_of_trained(scenario, stage, scenario.optimizer_shards)
    + iif(scenario.offload = 'all', (scenario.whole_weights - scenario.packed_whole)
        * held(scenario, stage, scenario.weight_shards)
        + scenario.whole_adapters * held_of_trained(scenario, stage, scenario.weight_shards), 0)));

-- A stage with what it holds of everything.
CREATE OR REPLACE MACRO held_by(model, scenario, stage) AS {
    'share': stage.share, 'flights': stage.flights, 'is_first': stage.is_first, 'is_last': stage.is_last,
    'whole': stage.whole, 'resident': stage.resident,
    'head': stage.head, 'tied': stage.tied, 'embedding': stage.embedding, 'weights': weights_of(scenario, stage),
    'gradients': gradients_of(scenario, stage),
    'optimizer': optimizer_of(scenario, stage), 'adapters': adapters_of(scenario, stage),
    'host': host_of(model, scenario, stage), 'kept': kept_bytes(model, scenario, scenario.sums, stage)
};
