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

-- Why degrees do not go together; null where they do.
CREATE OR REPLACE MACRO sharding_reason(m, x) AS CASE
    WHEN x.least_degree < 1
        THEN 'tensor_parallel, pipeline_parallel, context_parallel, expert_parallel and micro_batches_in_flight start at 1'
    WHEN x.offload NOT IN ('none', 'optimizer', 'all') THEN 'offload is none, optimizer or all'
    WHEN x.gpu_count % (x.tensor_parallel * x.pipeline_parallel * x.context_parallel) <> 0 THEN 'gpu_count ' || x.gpu_count
        || ' is no multiple of tensor_parallel × pipeline_parallel × context_parallel = ' || x.tensor_parallel * x.pipeline_parallel * x.context_parallel
    WHEN x.phase_id = 'inference' AND (x.context_parallel > 1 OR x.expert_parallel > 1 OR x.offload <> 'none')
        THEN 'context_parallel, expert_parallel and offload are for training'
    WHEN x.phase_id = 'inference' AND x.tensor_parallel > 1 AND x.pipeline_parallel > 1 AND NOT is_server(x)
        THEN x.engine_id || ' is shared by tensor_parallel or pipeline_parallel, not by both'
    WHEN x.phase_id = 'inference' AND x.data_parallel > 1 THEN 'inference has no data-parallel copies here: gpu_count is '
        || 'tensor_parallel × pipeline_parallel'
    WHEN x.data_parallel > 1 AND x.sharding IN ('none', 'tp', 'pp') AND x.phase_id <> 'inference' THEN 'gpu_count ' || x.gpu_count || ' leaves '
        || x.data_parallel || ' data-parallel copies: sharding is then ddp, zero1, zero2 or zero3'
    WHEN m.head_max > 0 AND m.head_max % x.tensor_parallel <> 0 THEN m.head_max || ' attention heads do not divide by tensor_parallel '
        || x.tensor_parallel
    WHEN m.kv_head_max > 0 AND m.kv_head_max % x.tensor_parallel <> 0 AND x.tensor_parallel % m.kv_head_max <> 0
        THEN m.kv_head_max || ' KV heads and tensor_parallel ' || x.tensor_parallel || ' do not divide'
    WHEN x.pipeline_parallel > m.layer_count THEN 'pipeline_parallel: more stages than the ' || m.layer_count || ' layers'
    WHEN x.expert_parallel > 1 AND m.expert_count_max = 0 THEN 'expert_parallel: the model has no routed experts'
    WHEN m.expert_count_max % x.expert_parallel <> 0 THEN m.expert_count_max || ' experts do not divide by expert_parallel ' || x.expert_parallel
    WHEN x.shard_count % x.expert_parallel <> 0 THEN 'expert_parallel ' || x.expert_parallel || ' does not divide the ' || x.shard_count
        || ' GPUs that share the data (data parallel × context_parallel)'
    WHEN x.context_tokens % x.context_parallel <> 0 THEN 'context_tokens ' || x.context_tokens || ' do not divide by context_parallel '
        || x.context_parallel
    WHEN x.context_parallel > 1 AND (x.attention = 'eager' OR NOT m.has_flash_attention) THEN 'context_parallel needs attention := flash'
    WHEN x.phase_id <> 'inference' AND x.scheme IS NULL THEN 'no source in the book says how ' || x.engine_id || ' trains with sharding ' || x.sharding
    WHEN x.offload = 'optimizer' AND NOT x.can_offload_optimizer OR x.offload = 'all' AND NOT x.can_offload_all
        THEN 'offload with sharding ' || x.sharding || ' in ' || x.engine_id || ' is none' || iif(x.can_offload_optimizer, ' or optimizer', '')
            || iif(x.can_offload_all, ' or all', '')
END;
