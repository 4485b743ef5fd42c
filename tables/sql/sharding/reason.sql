-- Why degrees of sharing do not go together; null where they do.
--
-- Units: none. Source: the frameworks' own checks, by way of sharding_rule.csv. Not covered: what a framework refuses for other reasons.

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
