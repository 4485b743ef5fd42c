-- What one GPU of several holds of weights, gradients and optimizer in training.
--
--   gpu_count   = tensor_parallel × pipeline_parallel × context_parallel × data parallel
--   held        = whole × fraction of the stage ÷ shards
--   fraction    = (share × (whole layers' norms and routers + other weights of the layers ÷ tensor_parallel + experts ÷ (tensor × expert))
--                  + embedding ÷ tensor_parallel on the first stage + head ÷ tensor_parallel on the last) ÷ parameters
--   shards      = data parallel × context_parallel for what the ZeRO stage divides, else 1
--
-- Units: bytes per GPU; t is a pipeline stage (`first_stage`, `last_stage`), the worst of which is published. Experts that are sharded besides divide over the
--   same GPUs with and without expert parallelism.
-- Sources: the ZeRO paper; sharding_rule.csv says for each framework in which precision it keeps gradients, whether the sharded weights are
--   the fp32 masters, what it can move to the host (each with its source). Frameworks pad the vocabulary: it need not divide.
-- Not covered: uneven stages chosen by hand, expert parallelism outside the data-parallel group, hybrid sharding (HSDP), ZeRO++.

-- GPUs that share a part
CREATE OR REPLACE MACRO weight_shards(x) AS iif(x.sharding = 'zero3', x.shard_count, 1);
CREATE OR REPLACE MACRO gradient_shards(x) AS iif(x.sharding IN ('zero2', 'zero3'), x.shard_count, 1);
CREATE OR REPLACE MACRO optimizer_shards(x) AS iif(x.sharding IN ('zero1', 'zero2', 'zero3'), x.shard_count, 1);

-- whether the weights are the fp32 master copy at the same time, and the bytes of a gradient while the step runs
CREATE OR REPLACE MACRO are_masters_weights(x) AS
    coalesce(x.has_master_weights, false) AND x.precision = 'mixed' AND NOT x.is_adapter AND x.compute_bytes = 2;

CREATE OR REPLACE MACRO gradient_bytes_each(x) AS
    iif(are_masters_weights(x), 4, coalesce(x.engine_gradient_bytes, x.trained_bytes_each));

-- FSDP divides a tensor of experts by experts and fills up where there are fewer than GPUs: the first GPUs hold one each.
CREATE OR REPLACE MACRO expert_padding(rule, m, x) AS iif(rule.is_divided_by_expert AND m.expert_count_max > 0 AND x.sharding = 'zero3',
    ceil(m.expert_count_max / x.shard_count) * x.shard_count / m.expert_count_max, 1);

-- Elements of one stage on one of its GPUs before they are sharded, weights of experts divided by `expert_parallel`.
CREATE OR REPLACE MACRO stage_elements(share, is_first, is_last, expert_parallel, m, x) AS
    share * (m.layer_whole_elements + (m.layer_elements - m.layer_whole_elements - m.expert_elements) / x.tensor_parallel
        + m.expert_elements / (x.tensor_parallel * expert_parallel))
    + is_first * (m.input_elements / x.tensor_parallel + m.parameter_count - m.layer_elements - m.input_elements - m.output_elements)
    -- a tied head is a second copy on the last stage
    + is_last * iif(m.is_head_tied AND x.pipeline_parallel > 1, m.input_elements, m.output_elements) / x.tensor_parallel;

-- `whole`: the fraction of the model that a GPU of the stage holds of what is sharded besides; `resident`: of what is not.
CREATE OR REPLACE MACRO stage(share, flights, is_first, is_last, m, x) AS {
    'share': share, 'flights': flights, 'is_first': is_first, 'is_last': is_last,
    'whole': iif(x.tensor_parallel * x.pipeline_parallel * x.expert_padding = 1, 1.0,
        stage_elements(share, is_first, is_last, 1 / x.expert_padding, m, x) / m.parameter_count),
    'resident': iif(x.tensor_parallel * x.pipeline_parallel * x.expert_parallel = 1, 1.0,
        stage_elements(share, is_first, is_last, x.expert_parallel, m, x) / m.parameter_count),
    'head': is_last * iif(m.is_head_tied, m.input_elements, m.output_elements) / x.tensor_parallel,
    'embedding': is_first * iif(m.is_head_tied, 0, m.input_elements) / x.tensor_parallel
};

-- The stages that can be the worst: the first keeps most micro-batches in flight (1F1B), the last has head and loss; null where the first
-- is the whole model.
CREATE OR REPLACE MACRO first_stage(m, x) AS
    stage(x.stage_share, iif(x.pipeline_parallel = 1, 1, x.micro_batches_in_flight), 1, iif(x.pipeline_parallel = 1, 1, 0), m, x);

CREATE OR REPLACE MACRO last_stage(m, x) AS iif(x.pipeline_parallel = 1, NULL, stage(x.stage_share, 1, 0, 1, m, x));

-- share of a part of the whole model that one GPU of the stage holds; adapters are split by stages and shards only
CREATE OR REPLACE MACRO held(x, t, shards) AS iif(shards > 1, t.whole, t.resident) / shards;
CREATE OR REPLACE MACRO held_of_trained(x, t, shards) AS iif(x.is_adapter, t.share, iif(shards > 1, t.whole, t.resident)) / shards;

-- Weights with adapters, gradients and optimizer: a part that the host keeps is none of the GPU's, and gradients that are divided leave
-- for it as they come.
CREATE OR REPLACE MACRO weights_of(x, t) AS ceil(iif(x.offload = 'all', 0, x.whole_weights * held(x, t, x.weight_shards)));
CREATE OR REPLACE MACRO adapters_of(x, t) AS ceil(iif(x.offload = 'all', 0, x.whole_adapters * held_of_trained(x, t, x.weight_shards)));

CREATE OR REPLACE MACRO gradients_of(x, t) AS ceil(iif(x.offload <> 'none' AND x.sharding <> 'zero1', 0,
    x.whole_gradients * held_of_trained(x, t, x.gradient_shards)));

CREATE OR REPLACE MACRO optimizer_of(x, t) AS ceil(iif(x.offload <> 'none', 0, x.whole_optimizer * held_of_trained(x, t, x.optimizer_shards)));

-- In the host's memory: states and masters with fp32 gradients of the same share; all the weights besides where they leave too.
CREATE OR REPLACE MACRO host_of(m, x, t) AS ceil(iif(x.offload = 'none', 0,
    (x.whole_optimizer + 4 * x.trained_elements) * held_of_trained(x, t, x.optimizer_shards)
    + iif(x.offload = 'all', x.whole_weights * held(x, t, x.weight_shards) + x.whole_adapters * held_of_trained(x, t, x.weight_shards), 0)));

-- A stage with what it holds of everything.
CREATE OR REPLACE MACRO held_by(m, x, t) AS {
    'share': t.share, 'flights': t.flights, 'is_first': t.is_first, 'is_last': t.is_last, 'whole': t.whole, 'resident': t.resident,
    'head': t.head, 'embedding': t.embedding, 'weights': weights_of(x, t), 'gradients': gradients_of(x, t),
    'optimizer': optimizer_of(x, t), 'adapters': adapters_of(x, t), 'host': host_of(m, x, t), 'kept': kept_bytes(m, x, x.s, t)
};
