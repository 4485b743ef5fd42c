-- Why degrees of sharing do not go together; null where they do.
--
-- Units: none. Source: the frameworks' own checks, by way of sharding_rule.csv. Not covered: what a framework refuses
-- for other reasons.

-- Of data-parallel ranks that share experts: what the engine does not have, and degrees that do not make up the GPUs.
CREATE OR REPLACE MACRO spread_degree_reason(scenario) AS CASE
    WHEN scenario.sharing IS NULL THEN 'data_parallel and expert_parallel of inference are of vLLM and SGLang: '
        || 'engine_id := vllm or sglang'
    WHEN scenario.context_parallel > 1 OR scenario.offload <> 'none'
        THEN 'context_parallel and offload are for training'
    WHEN scenario.pipeline_parallel > 1
        THEN 'data_parallel and expert_parallel are counted without pipeline stages: pipeline_parallel := 1'
    WHEN scenario.gpu_count % greatest(coalesce(scenario.data_asked, 1), 1) <> 0 THEN 'gpu_count '
        || scenario.gpu_count || ' is no multiple of data_parallel ' || scenario.data_asked
    WHEN scenario.gpu_count <> greatest(coalesce(scenario.data_asked, 1), 1) * scenario.tensor_parallel
        THEN 'gpu_count ' || scenario.gpu_count || ' is not data_parallel × tensor_parallel = '
        || greatest(coalesce(scenario.data_asked, 1), 1) || ' × ' || scenario.tensor_parallel
    WHEN scenario.expert_parallel > scenario.gpu_count THEN 'expert_parallel ' || scenario.expert_parallel
        || ' are more than the ' || scenario.gpu_count || ' GPUs: gpu_count := ' || scenario.expert_parallel
    WHEN NOT scenario.sharing.has_any_degree AND scenario.expert_parallel NOT IN (1, scenario.gpu_count)
        THEN scenario.engine_id || ' divides experts among all of its GPUs or none: expert_parallel := '
        || scenario.gpu_count || ' or 1'
    WHEN scenario.gpu_count % scenario.expert_parallel <> 0 THEN 'gpu_count ' || scenario.gpu_count
        || ' is no multiple of expert_parallel ' || scenario.expert_parallel
END;

-- Degrees that do not make up the GPUs, or that the phase does not have.
CREATE OR REPLACE MACRO degree_reason(scenario) AS CASE
    WHEN scenario.least_degree < 1
        THEN 'tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, data_parallel, '
            || 'decode_context_parallel and micro_batches_in_flight start at 1'
    WHEN scenario.decode_context_parallel > 1 AND scenario.sharing.context_setting IS NULL
        THEN 'decode_context_parallel is of vLLM (--decode-context-parallel-size): engine_id := vllm'
    WHEN scenario.decode_context_parallel > 1 AND scenario.program = scenario.engine_id
        AND version_number(scenario.program_version) < version_number(scenario.sharing.context_min_version)
        THEN 'decode_context_parallel is described for ' || scenario.sharing.context_holds_for
            || ': program_version := ' || scenario.sharing.context_min_version
    WHEN scenario.tensor_parallel % scenario.decode_context_parallel <> 0 THEN 'tensor_parallel '
        || scenario.tensor_parallel || ' is no multiple of decode_context_parallel '
        || scenario.decode_context_parallel
    WHEN is_spread(scenario) THEN spread_degree_reason(scenario)
    WHEN scenario.offload NOT IN ('none', 'optimizer', 'all') THEN 'offload is none, optimizer or all'
    WHEN scenario.reduce_bucket_elements < 1 THEN 'reduce_bucket_elements starts at 1'
    WHEN scenario.gpu_count % (scenario.tensor_parallel * scenario.pipeline_parallel * scenario.context_parallel) <> 0
        THEN 'gpu_count ' || scenario.gpu_count
        || ' is no multiple of tensor_parallel × pipeline_parallel × context_parallel = ' || scenario.tensor_parallel
            * scenario.pipeline_parallel * scenario.context_parallel
    WHEN scenario.phase_id = 'inference' AND (scenario.context_parallel > 1 OR scenario.offload <> 'none')
        THEN 'context_parallel and offload are for training'
    WHEN scenario.phase_id = 'inference' AND scenario.tensor_parallel > 1 AND scenario.pipeline_parallel > 1
        AND NOT is_server(scenario)
        THEN scenario.engine_id || ' is shared by tensor_parallel or pipeline_parallel, not by both'
    WHEN scenario.phase_id = 'inference' AND scenario.data_parallel > 1
        THEN 'inference has no data-parallel copies here: gpu_count is '
        || 'tensor_parallel × pipeline_parallel'
        || iif(scenario.sharing IS NULL, '', ' (or data_parallel := ' || scenario.data_parallel || ')')
    WHEN scenario.data_parallel > 1 AND scenario.sharding IN ('none', 'tp', 'pp') AND scenario.phase_id <> 'inference'
        THEN 'gpu_count ' || scenario.gpu_count || ' leaves '
        || scenario.data_parallel || ' data-parallel copies: sharding is then ddp, zero1, zero2 or zero3'
END;

-- Of routed experts (width: of the inside of one) and of the model's class.
CREATE OR REPLACE MACRO spread_division_reason(model, scenario) AS CASE
    WHEN scenario.sharing.model_types IS NOT NULL
        AND NOT list_contains(string_split(scenario.sharing.model_types, ' '), model.model_type)
        THEN 'what ' || scenario.engine_id || ' divides among data-parallel ranks was read for models of type '
            || replace(scenario.sharing.model_types, ' ', ', ')
    WHEN model.expert_count_max > 0 AND model.expert_count_max < scenario.expert_parallel
        THEN model.expert_count_max || ' experts are fewer than expert_parallel ' || scenario.expert_parallel
    WHEN NOT scenario.sharing.is_uneven AND model.expert_count_max % scenario.expert_parallel <> 0
        THEN model.expert_count_max || ' experts do not divide by expert_parallel ' || scenario.expert_parallel
    WHEN (model.routed_max / greatest(model.experts_per_token_max, 1)) % scenario.expert_tensor_parallel <> 0
        THEN 'experts of width ' || (model.routed_max / greatest(model.experts_per_token_max, 1))::BIGINT
            || ' do not divide among ' || scenario.expert_tensor_parallel || ' GPUs: expert_parallel := '
            || scenario.gpu_count
END;

-- Parts of the model that do not divide.
CREATE OR REPLACE MACRO division_reason(model, scenario) AS CASE
    WHEN model.head_max > 0 AND model.head_max % scenario.tensor_parallel <> 0 THEN model.head_max
        || ' attention heads do not divide by tensor_parallel '
        || scenario.tensor_parallel
    WHEN model.kv_head_max > 0 AND model.kv_head_max % scenario.tensor_parallel <> 0
        AND scenario.tensor_parallel % model.kv_head_max <> 0
        THEN model.kv_head_max || ' KV heads and tensor_parallel ' || scenario.tensor_parallel || ' do not divide'
    WHEN scenario.pipeline_parallel > model.layer_count THEN 'pipeline_parallel: more stages than the '
        || model.layer_count || ' layers'
    WHEN scenario.expert_parallel > 1 AND model.expert_count_max = 0
        THEN 'expert_parallel: the model has no routed experts'
    WHEN is_spread(scenario) THEN spread_division_reason(model, scenario)
    WHEN model.expert_count_max % scenario.expert_parallel <> 0 THEN model.expert_count_max
        || ' experts do not divide by expert_parallel ' || scenario.expert_parallel
    WHEN scenario.shard_count % scenario.expert_parallel <> 0 AND NOT is_expert_folded(scenario)
        THEN 'expert_parallel ' || scenario.expert_parallel || ' does not divide the ' || scenario.shard_count
        || ' GPUs that share the data (data parallel × context_parallel)'
        || iif(scenario.engine_id = 'megatron' AND scenario.tensor_parallel > 1, ', nor these × tensor_parallel', '')
    WHEN scenario.context_tokens % scenario.context_parallel <> 0 THEN 'context_tokens ' || scenario.context_tokens
        || ' do not divide by context_parallel '
        || scenario.context_parallel
END;

-- What no kernel or no framework does.
CREATE OR REPLACE MACRO framework_reason(model, scenario) AS CASE
    WHEN scenario.context_parallel > 1 AND (scenario.attention = 'eager' OR NOT model.has_flash_attention)
        THEN 'context_parallel needs attention := flash'
    WHEN scenario.phase_id = 'inference' AND scenario.gpu_count > scenario.most_gpu_count
        THEN scenario.engine_id || ' shares a model among ' || scenario.most_gpu_count || ' GPUs at most'
    WHEN scenario.phase_id <> 'inference' AND scenario.scheme IS NULL THEN 'no source in the book says how '
        || scenario.engine_id || ' trains with sharding ' || scenario.sharding
    WHEN scenario.reduce_bucket_elements IS NOT NULL AND scenario.scheme <> 'deepspeed'
        THEN 'reduce_bucket_elements is of DeepSpeed: engine_id := deepspeed'
    WHEN is_packed_base_moved(scenario) AND scenario.dtype_id = 'int8'
        THEN 'bitsandbytes packs to 4 bits what is sharded or moved to the host, and not to 8'
    WHEN scenario.offload = 'optimizer' AND NOT scenario.can_offload_optimizer OR scenario.offload = 'all'
        AND NOT scenario.can_offload_all
        THEN 'offload with sharding ' || scenario.sharding || ' in ' || scenario.engine_id || ' is none'
            || iif(scenario.can_offload_optimizer, ' or optimizer', '')
            || iif(scenario.can_offload_all, ' or all', '')
END;

-- Whose cache decode context parallelism divides: copies that tensor-parallel ranks would hold.
CREATE OR REPLACE MACRO has_latent_caches(model) AS
    coalesce(list_bool_and(list_transform(model.caches, lambda layer: layer.mechanism = 'mla')), false);
CREATE OR REPLACE MACRO context_reason(model, scenario) AS CASE
    WHEN scenario.decode_context_parallel = 1 THEN NULL
    WHEN model.is_sparsely_read
        THEN 'what decode_context_parallel divides of attention that picks its tokens was not read'
    WHEN model.recurrences IS NOT NULL OR coalesce(list_bool_or(list_transform(model.caches,
        lambda layer: layer.window_tokens IS NOT NULL OR layer.mechanism IN ('cross', 'bidirectional'))), true)
        THEN 'decode_context_parallel is for models of which every layer keeps the whole context'
    WHEN has_latent_caches(model) THEN NULL
    WHEN scenario.decode_context_parallel * model.kv_head_max > scenario.tensor_parallel
        THEN 'decode_context_parallel ' || scenario.decode_context_parallel || ' with ' || model.kv_head_max
            || ' KV heads needs tensor_parallel ' || scenario.decode_context_parallel * model.kv_head_max
            || ' or more: it divides copies alone'
    WHEN (model.head_max // greatest(model.kv_head_max, 1)) % scenario.decode_context_parallel <> 0
        THEN model.head_max // greatest(model.kv_head_max, 1)
            || ' attention heads for each KV head do not divide by decode_context_parallel '
            || scenario.decode_context_parallel
END;

CREATE OR REPLACE MACRO sharding_reason(model, scenario) AS coalesce(degree_reason(scenario),
    division_reason(model, scenario), context_reason(model, scenario), framework_reason(model, scenario));
