-- Why a scenario has no answer; null where there is one.
--
-- Units: none. Source: as the components' own files. Not covered: numbers that are none (arguments.sql), degrees that
-- do not go together (sharding/reason.sql).

-- What caches keys and values and embeds no token reads what another model made of them: a draft (DFlash), an encoder
-- that was cut out.
CREATE OR REPLACE MACRO runs_beside_another(model) AS
    coalesce(model.embedding_elements, 0) = 0 AND coalesce(len(model.caches), 0) > 0;

-- Ids that nobody knows, and engines that do not run the architecture.
CREATE OR REPLACE MACRO name_reason(model, dtype, scenario) AS CASE
    WHEN scenario.model_id IS NULL THEN 'no model was named'
    WHEN model.model_id IS NULL THEN coalesce('the anatomy of this model is not known: ' || (SELECT named.anatomy_note
        FROM model AS named
        WHERE named.model_id = scenario.model_id), 'no such model in this snapshot')
    WHEN scenario.program_reason IS NOT NULL THEN scenario.program_reason
    WHEN dtype.dtype_id IS NULL THEN 'no such dtype: ' || scenario.dtype_id
    WHEN scenario.phase_id NOT IN (SELECT phase_id FROM phase) THEN 'no such phase: ' || scenario.phase_id
    WHEN scenario.engine_id NOT IN (SELECT engine_id FROM engine) THEN 'no such engine: ' || scenario.engine_id
    WHEN scenario.engine_reason IS NOT NULL THEN scenario.engine_reason
    WHEN runs_beside_another(model) THEN 'it has no embedding and no head of its own: it runs beside the model that it '
        || 'was made for, and never alone'
    WHEN scenario.phase_id = 'inference' AND cannot_load(model, scenario.engine_id)
        THEN scenario.engine_id || ' cannot load this architecture'
            || gap_words(model, scenario.engine_id, ' load ')
    WHEN scenario.phase_id = 'inference' AND is_unread(model, scenario.engine_id)
        THEN 'what ' || scenario.engine_id || ' holds of this architecture is not known'
            || gap_words(model, scenario.engine_id, ' memory ')
    WHEN scenario.phase_id = 'inference' AND scenario.gpu_count_asked > 1 AND scenario.several_gpus_reason IS NOT NULL
        THEN scenario.several_gpus_reason
    WHEN scenario.phase_id = 'inference' AND (is_encoder(model) OR model.cross_layer_count > 0)
        AND scenario.encoder_reason IS NOT NULL THEN scenario.encoder_reason
END;

-- Numbers: what was asked is none, or more than the model reads.
CREATE OR REPLACE MACRO size_reason(model, scenario) AS CASE
    WHEN scenario.argument_reason IS NOT NULL THEN scenario.argument_reason
    WHEN scenario.context_tokens < 1 OR scenario.sequences < 1 OR scenario.gpu_count_asked < 1
        THEN 'context_tokens, sequences and gpu_count start at 1'
    WHEN model.layer_count IS NULL AND NOT has_counted_pass(model)
        THEN 'only its tensors are known: they give its weights, not what its layers cache or compute'
    WHEN model.has_learned_positions AND scenario.context_tokens > model.max_context_tokens THEN
        'context_tokens := ' || scenario.context_tokens || ' is beyond the ' || model.max_context_tokens
            || ' positions that this model has learned'
    WHEN scenario.context_tokens > coalesce(scenario.max_context_tokens, model.max_context_tokens) THEN
        'context_tokens := ' || scenario.context_tokens || ' is beyond the ' || coalesce(scenario.max_context_tokens,
            model.max_context_tokens)
        || ' tokens of this model (max_context_tokens := n where its positions are stretched)'
    WHEN scenario.input_reason IS NOT NULL THEN scenario.input_reason
END;

-- A base of GPTQ, in the engine whose steps over it were read.
CREATE OR REPLACE MACRO unpacked_reason(scenario) AS iif(scenario.keeps_unpacked
    AND NOT (scenario.phase_id = 'qlora' AND scenario.dtype_id = 'gptq-int4' AND scenario.precision = 'pure'
        AND scenario.checkpointing = 'full' AND scenario.adapter = 'lora' AND scenario.gpu_count = 1),
    scenario.engine_id || ' is answered for with a QLoRA on one GPU, as it was read: dtype_id := gptq-int4, '
        || 'precision := pure, checkpointing := full', NULL);

-- Formats that are not trained, and adapters that the model has no place for.
CREATE OR REPLACE MACRO adapter_reason(model, dtype, scenario) AS CASE
    WHEN scenario.phase_id IN ('pretrain', 'full-finetune') AND NOT dtype.is_trainable
        THEN 'gradients cannot flow into ' || scenario.dtype_id || ' weights'
        || iif(scenario.dtype_id = 'fp8',
            '; fp8 linear layers (torchao) keep 16-bit weights and inputs for the backward pass and'
            || ' take what dtype_id := bf16 says, in counted steps 0 to 2.4 % more', '')
    WHEN scenario.phase_id = 'lora' AND NOT dtype.is_trainable
        THEN 'LoRA keeps its base in 16 or 32 bits; a quantised base is QLoRA'
    WHEN scenario.phase_id = 'qlora' AND scenario.dtype_id NOT IN ('nf4', 'nf4-double', 'int8')
        AND NOT scenario.has_packed_experts AND NOT scenario.keeps_unpacked AND scenario.graph IS NULL
        THEN 'QLoRA needs a base in nf4, nf4-double or int8, or in nf4-experts or nf4-double-experts'
    WHEN scenario.is_adapter AND scenario.lora_rank < 1 THEN 'lora_rank starts at 1'
    WHEN scenario.is_adapter AND scenario.lora_targets NOT IN ('attention', 'query-value', 'all-linear',
        'all-linear-head', 'linear-layers', 'experts', 'attention-experts') THEN 'lora_targets is attention, '
            || 'query-value, all-linear, all-linear-head, linear-layers, experts or attention-experts'
    WHEN adapts_head(scenario) AND scenario.trained_model_types IS NULL THEN 'lora_targets := all-linear-head was '
        || 'counted in the engines litgpt and litgpt-0.4 alone: all-linear'
    WHEN scenario.lora_targets = 'query-value' AND model.lora_query_value_elements = 0 THEN
        'lora_targets := query-value: this model has no projections of queries and values; attention or all-linear'
    WHEN adapts_routed(scenario) AND model.lora_routed_elements = 0 THEN
        'lora_targets := ' || scenario.lora_targets || ': this model has no routed experts; attention, query-value '
            || 'or all-linear'
    WHEN adapts_routed(scenario) AND scenario.phase_id = 'qlora' AND NOT scenario.has_packed_experts
        THEN 'adapters of quantised routed experts are not established yet: experts are packed in nf4-experts and '
            || 'nf4-double-experts'
    WHEN scenario.is_adapter AND scenario.adapter NOT IN ('lora', 'rslora', 'dora') AND NOT is_prompted(scenario)
        THEN 'adapter is lora, rslora or dora, in LitGPT llama-adapter or llama-adapter-v2 too'
    WHEN is_prompted(scenario) AND scenario.trained_model_types IS NULL
        THEN 'adapter := ' || scenario.adapter || ' was counted in the engines litgpt and litgpt-0.4 alone: lora'
    WHEN trains_scales(scenario) AND scenario.engine_norm_form = 'rms'
        THEN 'adapter := ' || scenario.adapter || ' trains norms, whose form changed within the releases of '
            || scenario.engine_id || '; known: engine_id := litgpt'
    WHEN is_prompted(scenario) AND model.kv_head_max = 1 AND model.head_max > 1
        THEN 'adapter := ' || scenario.adapter || ' was not counted in ' || scenario.engine_id
            || ' of a model with one key for all heads: lora'
    WHEN scenario.adapter = 'dora' AND scenario.has_adapter_dropout
        THEN 'what DoRA keeps with lora_dropout is not established yet'
    WHEN scenario.has_adapter_dropout AND scenario.has_adapted_experts THEN
        'peft adapts the routed experts too, and has no dropout for them: it stops with an error. With a dropout of 0 '
            || 'it trains (lora_dropout := 0), and with adapters on attention alone (lora_targets := attention)'
    WHEN scenario.adapter = 'dora' AND scenario.has_adapted_experts
        THEN 'peft has no DoRA of routed experts: lora_targets := attention or query-value'
    WHEN NOT scenario.is_adapter AND scenario.adapter_asked IS NOT NULL
        THEN 'adapter belongs to the phases lora and qlora'
END;

-- Routed experts in the packed format of a base.
CREATE OR REPLACE MACRO packed_experts_reason(model, scenario) AS CASE
    WHEN NOT scenario.has_packed_experts THEN NULL
    WHEN scenario.phase_id <> 'qlora' THEN scenario.dtype_id || ' is a base of QLoRA: phase_id := qlora'
    WHEN model.expert_elements = 0
        THEN scenario.dtype_id || ' packs routed experts, and the model has none: nf4 or nf4-double'
    WHEN is_prepared(scenario) THEN 'packed experts multiply in 16 bits, which a base that is prepared in fp32 '
        || 'does not give them: precision := pure'
    WHEN adapts_all_linear(scenario) THEN 'lora_targets := ' || scenario.lora_targets
        || ' takes packed experts for linear layers: '
        || 'attention, experts or attention-experts'
    WHEN scenario.checkpointing = 'selective'
        THEN 'checkpointing := selective of packed experts is not established yet'
    WHEN scenario.gpu_count > 1 AND scenario.sharding NOT IN ('none', 'ddp')
        THEN 'how packed experts are divided among GPUs is not established yet: sharding := ddp'
END;

-- Chunks by the memory that is free: how many are taken of more tokens than all of which fit the bound that later
-- releases have depends on the card, and so does whether they fit a second step. Of classes whose forward pass is not
-- Unsloth's own nobody read what they take (loss_kernel).
CREATE OR REPLACE MACRO chunk_reason(model, scenario) AS CASE
    WHEN scenario.loss NOT IN ('fused-by-free', 'fused-at-once', 'cut') THEN NULL
    WHEN NOT scenario.is_adapter OR scenario.fused_loss IS DISTINCT FROM 'unsloth'
        THEN 'loss := ' || scenario.loss || ' is of Unsloth before 2026.10: lora or qlora with engine_id := unsloth'
    WHEN model.has_logit_cap THEN 'what the loss of Unsloth before 2026.10 holds of logits that are capped is not '
        || 'described: ask for a later version'
    WHEN NOT coalesce(list_contains(string_split((SELECT kernel.model_types FROM loss_kernel AS kernel
            WHERE kernel.loss = scenario.loss), ' '), model.model_type), false)
        THEN 'what the loss of Unsloth before 2026.10 holds of models of type ' || coalesce(model.model_type, '?')
            || ' is not described: ask for a later version'
    WHEN scenario.loss = 'fused-at-once' AND chunk_of_all_tokens(model, scenario) > scenario.unsloth_chunk_bytes_most
        THEN 'before 2026.7 Unsloth takes the loss by chunks of half of the memory that is free, and one where it '
            || 'would be two: whether a second step fits depends on the card where the logits of a micro-batch are '
            || 'more than 4 GiB, as those of ' || step_tokens(scenario)::BIGINT || ' tokens are here; fewer tokens or '
            || 'a later version have an answer'
END;

-- Optimizer, loss, precision and checkpointing.
-- Copies of embedding and head beside adapters.
CREATE OR REPLACE MACRO saved_reason(model, scenario, optimizer) AS CASE
    WHEN NOT coalesce(scenario.trains_embeddings, false) THEN NULL
    WHEN scenario.gpu_count > 1 OR scenario.offload <> 'none' OR NOT is_own_loss(scenario)
        OR scenario.offloads_checkpoints OR optimizer.state_form <> 'elementwise'
        THEN 'trains_embeddings is counted on one GPU alone, with loss := full, offload := none and AdamW, SGD or Lion '
            || 'in 32 or 16 bits'
    WHEN model.output_elements = 0
        THEN 'trains_embeddings: the head of this model is its embedding, and what peft keeps of both was not counted'
END;

-- An optimizer that steps in the backward pass gathers no gradients.
CREATE OR REPLACE MACRO in_backward_reason(scenario) AS 'optimizer_id := ' || scenario.optimizer_id || CASE
    WHEN NOT scenario.steps_in_backward THEN NULL
    WHEN scenario.is_adapter THEN ' frees gradients of whole weights: pretrain or full-finetune'
    WHEN scenario.has_standing_gradients THEN ' uses each gradient as it comes: without gradient_accumulation, and '
        || 'not in an engine that keeps gradients'
    WHEN scenario.gpu_count > 1 OR scenario.offload <> 'none' THEN ' is counted on one GPU alone, without offload'
END;

-- Losses of TRL: where they were counted. In tiles, and by parts over a head in 16 bits, they were under ZeRO and FSDP2
-- too, whose weights are in 16 bits; and logits that are whole are no other there, of which what is logged takes no
-- wider a copy.
CREATE OR REPLACE MACRO is_loss_of_trl(loss) AS coalesce(loss IN ('logged', 'logged-blocks', 'one-pass', 'recomputed',
    'recomputed-fp32', 'tiled', 'tiled-reference'), false);
CREATE OR REPLACE MACRO is_loss_of_shards(loss) AS
    coalesce(loss IN ('logged', 'logged-blocks', 'recomputed', 'tiled'), false);
CREATE OR REPLACE MACRO is_counted_in_shards(scenario) AS is_loss_of_shards(scenario.loss)
    AND scenario.precision IN ('amp', 'mixed')
    AND scenario.tensor_parallel * scenario.pipeline_parallel * scenario.context_parallel = 1
    AND coalesce(scenario.scheme IN ('deepspeed', 'fsdp2'), false);
CREATE OR REPLACE MACRO is_counted_where(scenario, optimizer) AS optimizer.state_form IN ('elementwise', 'blockwise')
    AND scenario.lora_targets <> 'all-linear-head' AND NOT coalesce(scenario.trains_embeddings, false)
    AND (is_counted_in_shards(scenario) OR scenario.precision = 'amp' AND scenario.offload = 'none'
        AND (scenario.gpu_count = 1 OR scenario.sharding = 'ddp'));

CREATE OR REPLACE MACRO recipe_reason(scenario, optimizer) AS CASE
    WHEN scenario.phase_id <> 'inference' AND optimizer.optimizer_id IS NULL THEN 'no such optimizer: '
        || scenario.optimizer_id
    WHEN scenario.optimizer_id = 'adamw-master' AND (scenario.precision <> 'pure' OR scenario.compute_bytes <> 2) THEN
        'optimizer_id := adamw-master keeps the masters of weights in 16 bits: precision := pure'
    WHEN optimizer.state_form = 'projected' AND scenario.is_adapter THEN
        'optimizer_id := ' || scenario.optimizer_id
            || ' projects the gradients of whole matrices: pretrain or full-finetune'
    WHEN optimizer.state_form = 'projected' AND scenario.optimizer_rank < 1 THEN 'optimizer_rank starts at 1'
    WHEN optimizer.state_form = 'projected' AND scenario.gpu_count > 1 AND scenario.sharding NOT IN ('none', 'ddp') THEN
        'optimizer_id := ' || scenario.optimizer_id || ' needs whole matrices on each GPU: sharding := ddp'
    WHEN scenario.phase_id <> 'inference' AND scenario.loss NOT IN ('full', 'chunked', 'fused', 'fused-by-free',
        'fused-at-once', 'cut', 'logged', 'logged-blocks', 'logged-copy', 'one-pass', 'recomputed', 'recomputed-fp32',
        'tiled', 'tiled-reference', 'score')
        THEN 'loss is full, chunked, fused, fused-by-free, fused-at-once, cut, logged, logged-blocks, logged-copy, '
            || 'one-pass, recomputed, recomputed-fp32, tiled, tiled-reference or score'
    WHEN scenario.loss = 'score' AND (scenario.gpu_count > 1 AND scenario.sharding <> 'ddp'
        OR scenario.offload <> 'none' OR optimizer.state_form NOT IN ('elementwise', 'blockwise'))
        THEN 'loss := score (a head of one number) is counted on one GPU or under sharding := ddp, with '
            || 'offload := none and AdamW, SGD or Lion'
    WHEN is_loss_of_trl(scenario.loss) AND NOT is_counted_where(scenario, optimizer)
        THEN 'loss := ' || scenario.loss || ' (TRL since 1.3) is what this almanac has counted on one GPU or under '
            || 'sharding := ddp with precision := amp and offload := none' || iif(is_loss_of_shards(scenario.loss),
            ', or under ZeRO and FSDP2', ' alone') || ', with AdamW, SGD or Lion, without adapters of the head; TRL '
            || 'trains other ways too. Known of them: TRL ' || iif(is_loss_of_shards(scenario.loss),
            '1.2 (program_version := 1.2), whose logits are whole',
            '1.16 (program_version := 1.16) and up to 1.6, and this release with Liger (loss := fused)')
    WHEN scenario.phase_id <> 'inference' AND scenario.gradient_accumulation < 1
        THEN 'gradient_accumulation starts at 1'
    WHEN scenario.phase_id <> 'inference' AND scenario.precision NOT IN ('mixed', 'amp', 'pure')
        THEN 'precision is mixed, amp or pure'
    WHEN scenario.phase_id <> 'inference' AND scenario.checkpointing NOT IN ('none', 'full', 'selective') THEN
        'checkpointing is none, full or selective'
END;

-- Attention, sharing, formats of cache and weights.
-- A cache in blocks is read by fused attention alone, of heads that are whole blocks.
CREATE OR REPLACE MACRO head_beside_blocks(model, scenario) AS list_max(list_transform(list_filter(model.mixers,
    lambda mixer: mixer.mechanism <> 'mla'
        AND mixer.query_width / greatest(mixer.head_count, 1) % scenario.kv_block_elements > 0),
    lambda mixer: mixer.query_width / greatest(mixer.head_count, 1)));
CREATE OR REPLACE MACRO block_cache_reason(model, scenario) AS CASE
    WHEN scenario.kv_block_elements IS NULL THEN NULL
    WHEN head_beside_blocks(model, scenario) IS NOT NULL THEN scenario.engine_id || ' refuses a KV cache in '
        || scenario.kv_dtype_id || ', whose blocks of ' || scenario.kv_block_elements
        || ' elements do not divide heads of ' || head_beside_blocks(model, scenario)::BIGINT
    WHEN scenario.attention = 'eager' THEN
        scenario.engine_id || ' refuses a KV cache in ' || scenario.kv_dtype_id || ' without fused attention'
    WHEN has_unfused_class(model, scenario.engine_id) THEN scenario.engine_id || ' has no fused attention on the card '
        || 'for heads of this model: with a KV cache in ' || scenario.kv_dtype_id
        || ' the processor attends, and what the card holds then is not described; in 16 bits it is'
END;

CREATE OR REPLACE MACRO way_reason(model, weight, scenario) AS CASE
    WHEN scenario.attention NOT IN ('flash', 'eager', 'masked') THEN 'attention is flash, eager or masked'
    WHEN scenario.attention = 'masked' AND scenario.phase_id = 'inference' AND scenario.reads_prompt <> 'whole' THEN
        'attention := masked is a batch with padding, which ' || scenario.engine_id || ' has not'
    WHEN scenario.attention = 'masked' AND scenario.phase_id = 'inference'
        AND (is_encoder(model) OR model.tower IS NOT NULL OR model.recurrences IS NOT NULL
        OR NOT model.has_flash_attention OR model.attention_form = 'broadcast') THEN
        'what a padding mask takes in this architecture is not established yet'
    WHEN scenario.sharding NOT IN ('none', 'ddp', 'zero1', 'zero2', 'zero3', 'tp', 'pp') THEN
        'sharding is none, ddp, zero1, zero2, zero3, tp, pp or tp+pp; dp and ep of inference are asked for by '
            || 'data_parallel and expert_parallel'
    WHEN scenario.sharding = 'none' AND scenario.shard_count > 1 THEN 'several GPUs need a sharding'
    WHEN scenario.phase_id = 'inference' AND scenario.gpu_count > 1 AND scenario.sharding NOT IN ('tp', 'pp')
        THEN 'inference is shared by tp, pp or tp+pp'
    WHEN scenario.kv_element_bits IS NULL THEN 'no such KV dtype: ' || scenario.kv_dtype_id
    WHEN NOT scenario.takes_kv_dtype THEN scenario.engine_id || ' is not described with a KV cache '
        || iif(has_pool(model, scenario.engine_id), 'of this architecture ', '') || 'in ' || scenario.kv_dtype_id
    WHEN block_cache_reason(model, scenario) IS NOT NULL THEN block_cache_reason(model, scenario)
    WHEN has_pool(model, scenario.engine_id)
        AND NOT list_contains(string_split(model.pool.dtype_ids, ' '), scenario.dtype_id)
        THEN scenario.engine_id || ' is answered for this architecture in ' || replace(model.pool.dtype_ids, ' ', ', ')
    WHEN weight.weights_bytes IS NULL
        THEN coalesce(weight.unknown_reason, 'the format of the published checkpoint is not known')
    WHEN scenario.phase_id = 'inference' AND scenario.engine_id IN (SELECT engine_id FROM engine
        WHERE starts_with(parallelism, 'zero')) AND scenario.reads_prompt = 'none'
        THEN scenario.engine_id || ' only trains'
    WHEN NOT scenario.prepares_base AND NOT scenario.is_adapter AND scenario.graph IS NULL THEN
        scenario.engine_id || ' is answered for with adapters only: phase_id := qlora or lora'
    WHEN scenario.rotations_in = 'layers' AND model.max_context_tokens IS NULL AND NOT model.has_position_embedding
        THEN
        scenario.engine_id || ' keeps rotations for all positions of a model, and how many this one has is not known'
    WHEN scenario.sharding_reason IS NOT NULL THEN scenario.sharding_reason
END;

-- What of MLX LM's training was counted: its own recipes, one after the other.
CREATE OR REPLACE MACRO graph_reason(dtype, scenario) AS CASE
    WHEN scenario.phase_id NOT IN ('full-finetune', 'lora', 'qlora') OR scenario.adapter <> 'lora'
        OR scenario.has_adapter_dropout OR coalesce(scenario.trains_embeddings, false)
        OR scenario.lora_targets NOT IN ('query-value', 'attention', 'all-linear')
        THEN scenario.engine_id || ' is answered for with full fine-tuning, and LoRA and QLoRA of queries and values, '
            || 'attention or all linear layers, without dropout: phase_id := full-finetune, lora or qlora'
    WHEN scenario.phase_id = 'qlora' AND dtype.engine_id <> scenario.engine_id
        THEN 'a QLoRA in ' || scenario.engine_id || ' has a base in a format of its own: dtype_id := mlx-4bit'
    WHEN scenario.compute_bytes <> 2 OR scenario.precision = 'pure' AND scenario.is_adapter
        OR scenario.precision <> 'pure' AND NOT scenario.is_adapter
        THEN scenario.engine_id || ' trains what is in 16 bits: precision := '
            || iif(scenario.is_adapter, 'mixed, with adapters in fp32', 'pure')
    WHEN scenario.checkpointing NOT IN ('none', 'full') OR scenario.loss <> 'full' OR scenario.attention = 'masked'
        OR scenario.offload <> 'none' OR scenario.ema OR scenario.optimizer_id <> 'adamw'
        THEN scenario.engine_id || ' is answered for with checkpointing := none or full, loss := full, '
            || 'optimizer_id := adamw (its adam and adamw)'
    WHEN scenario.gpu_count > 1 THEN 'what ' || scenario.engine_id || ' holds on several machines is not known'
END;

-- Engines whose own code was counted for some models and recipes (trained_model_types of the table engine).
CREATE OR REPLACE MACRO counted_reason(model, dtype, scenario) AS CASE
    WHEN scenario.trained_model_types IS NULL OR scenario.phase_id = 'inference' THEN NULL
    WHEN scenario.graph IS NOT NULL AND graph_reason(dtype, scenario) IS NOT NULL
        THEN graph_reason(dtype, scenario)
    WHEN scenario.graph IS NOT NULL AND list_contains(string_split(scenario.trained_model_types, ' '),
        model.model_type) AND NOT coalesce(list_bool_or(list_transform(model.mixers,
        lambda layer: layer.window_tokens IS NOT NULL)), false)
        THEN iif(coalesce(model.logit_columns, 0) < model.vocab_size, scenario.engine_id
            || ' trains models that write text, and this one has no head of its vocabulary', NULL)
    WHEN scenario.graph IS NOT NULL THEN 'what ' || scenario.engine_id || ' holds while it trains was counted '
        || 'for models of type ' || replace(scenario.trained_model_types, ' ', ', ') || ' without sliding windows'
    WHEN NOT scenario.is_adapter AND scenario.phase_id <> 'full-finetune'
        OR scenario.adapter <> 'lora' AND NOT is_prompted(scenario)
        OR coalesce(scenario.trains_embeddings, false)
        OR scenario.lora_targets NOT IN ('query-value', 'attention', 'all-linear', 'all-linear-head')
        THEN scenario.engine_id || ' is answered for with full fine-tuning, and LoRA and QLoRA of queries and values, '
            || 'attention or all linear layers: phase_id := full-finetune, lora or qlora'
    WHEN scenario.phase_id = 'qlora' AND scenario.dtype_id NOT IN ('nf4', 'nf4-double')
        THEN 'a QLoRA in ' || scenario.engine_id || ' is answered for in nf4 and nf4-double'
    WHEN scenario.precision <> 'pure' OR scenario.compute_bytes <> 2 OR scenario.checkpointing <> 'none'
        OR scenario.loss <> 'chunked' OR scenario.attention <> 'flash'
        THEN scenario.engine_id || ' is answered for in pure 16 bits: precision := pure, checkpointing := none, '
            || 'loss := chunked, attention := flash'
    WHEN NOT list_contains(string_split(scenario.trained_model_types, ' '), model.model_type)
        OR coalesce(list_bool_or(list_transform(model.mixers, lambda layer: layer.window_tokens IS NOT NULL)), false)
        THEN 'what ' || scenario.engine_id || ' holds was counted for models of type '
            || replace(scenario.trained_model_types, ' ', ', ') || ' without sliding windows'
END;

-- Engines whose own inference was read for some models and formats (model_types and dtype_ids of engine_memory).
CREATE OR REPLACE MACRO read_reason(model, scenario) AS CASE
    WHEN scenario.ways.model_types IS NULL OR scenario.phase_id <> 'inference' THEN NULL
    WHEN NOT list_contains(string_split(scenario.ways.dtype_ids, ' '), scenario.dtype_id)
        THEN scenario.engine_id || ' is answered for in ' || replace(scenario.ways.dtype_ids, ' ', ', ')
    WHEN NOT list_contains(string_split(scenario.ways.model_types, ' '), model.model_type)
        OR NOT has_windows(model, scenario.engine_id) AND NOT scenario.ways.reads_windows
            AND coalesce(list_bool_or(list_transform(model.mixers, lambda layer: layer.window_tokens IS NOT NULL)),
                false)
        THEN 'what ' || scenario.engine_id || ' holds was read for models of type '
            || replace(replace(scenario.ways.model_types, ' ', ', '), '_', '-')
            || iif(scenario.window_use = 'listed' OR scenario.ways.reads_windows, '', ' without sliding windows')
    WHEN scenario.kv_element_bits <> 16 AND scenario.kv_block_elements IS NULL
        THEN scenario.engine_id || ' holds its KV cache in 16 bits'
    WHEN scenario.attention = 'masked' THEN 'attention := masked is a batch with padding, which ' || scenario.engine_id
        || ' has not'
END;

-- Combinations whose formula is not established.
CREATE OR REPLACE MACRO unestablished_reason(model, scenario) AS CASE
    WHEN model.recurrences IS NOT NULL AND scenario.phase_id <> 'inference' AND (scenario.checkpointing = 'selective'
        OR scenario.attention = 'masked') THEN
        'what recurrent layers keep under selective checkpointing or a padding mask is not established yet'
    WHEN model.runs_all_experts AND (scenario.phase_id = 'qlora' OR adapts_routed(scenario)) THEN
        'what experts that every token runs through keep beside a quantised base, or under adapters of their own, '
        || 'is not established yet'
    WHEN scenario.checkpointing = 'selective' AND scenario.keeps_alternate_products
        AND (model.alternate_output_sum IS NULL OR scenario.is_adapter OR scenario.tensor_parallel > 1) THEN
        scenario.engine_id || ' keeps every other product of a layer under checkpointing := selective: which these are '
        || 'is read for plain layers alone, without adapters, biases, experts and tensor parallelism'
    WHEN scenario.checkpointing = 'selective' AND scenario.has_adapted_experts AND adapts_routed(scenario)
        THEN
        'checkpointing := selective with adapters of routed experts alone is not established yet'
    WHEN scenario.checkpointing = 'selective' AND model.cross_layer_count > 0
        AND (model.tower.grid = 'fixed'
            OR scenario.is_adapter AND (scenario.precision = 'amp' OR NOT adapts_all_linear(scenario))) THEN
        'checkpointing := selective of an encoder with a window of its own, or of adapters of an encoder-decoder '
        || 'under autocast or of attention alone, is not established yet'
    WHEN scenario.checkpointing = 'selective' AND scenario.adapter = 'dora'
        THEN 'what DoRA keeps under checkpointing := selective is not established yet'
    WHEN model.attention_form = 'chunked' AND (scenario.phase_id <> 'inference' OR scenario.reads_prompt = 'whole') THEN
        'what attention in overlapping chunks holds is not established yet'
    WHEN model.attention_form = 'disentangled' AND scenario.phase_id <> 'inference' THEN
        'what attention keeps of relative positions for training is not established yet'
    WHEN has_unknown_recurrence(model) AND scenario.phase_id <> 'inference' THEN
        'what this kind of recurrent layer keeps for training is not established yet'
    WHEN has_unknown_recurrence(model) AND scenario.reads_prompt = 'whole' THEN
        'the prefill peak of this kind of recurrent layer in Transformers is not established yet'
END;

-- The first of them.
CREATE OR REPLACE MACRO scenario_reason(model, dtype, weight, scenario, optimizer) AS coalesce(
    name_reason(model, dtype, scenario), pass_reason(model, dtype, scenario), size_reason(model, scenario),
    packed_experts_reason(model, scenario), unpacked_reason(scenario),
    adapter_reason(model, dtype, scenario), saved_reason(model, scenario, optimizer),
    chunk_reason(model, scenario), recipe_reason(scenario, optimizer), in_backward_reason(scenario),
    way_reason(model, weight, scenario), counted_reason(model, dtype, scenario), read_reason(model, scenario),
    served_reason(model, dtype, scenario),
    unestablished_reason(model, scenario));

-- What an engine is told beside the scenario, where it has no such setting or refuses it.
CREATE OR REPLACE MACRO setting_reason(scenario, run) AS CASE
    WHEN scenario.batched_tokens IS NOT NULL AND coalesce(run.reads_prompt <> 'profile', true)
        THEN 'batched_tokens is of vLLM from 0.11 on (--max-num-batched-tokens): engine_id := vllm'
    -- (its own check at start; the logits of so many requests are counted)
    WHEN scenario.batched_tokens < greatest(scenario.sequences, coalesce(scenario.max_num_seqs, run.most_sequences))
        THEN 'vLLM reads at least one token of each request in a step: batched_tokens := '
            || greatest(scenario.sequences, coalesce(scenario.max_num_seqs, run.most_sequences))::BIGINT || ' or more'
    WHEN scenario.max_num_seqs IS NOT NULL AND coalesce(run.reads_prompt <> 'profile', true)
        THEN 'max_num_seqs is of vLLM from 0.11 on (--max-num-seqs): engine_id := vllm'
    WHEN scenario.max_num_seqs * coalesce(scenario.data_asked, 1) < scenario.sequences
        THEN 'vLLM runs no more requests at once than it is told: max_num_seqs := '
            || ceil(scenario.sequences / greatest(coalesce(scenario.data_asked, 1), 1))::BIGINT || ' or more'
    WHEN serves_adapters(scenario) AND run.adapter_ranks IS NULL
        THEN 'max_loras and max_lora_rank are of vLLM (--enable-lora, --max-loras, --max-lora-rank): engine_id := vllm'
    WHEN scenario.max_loras < 1 THEN 'max_loras starts at 1'
    WHEN NOT list_contains(string_split(run.adapter_ranks, ' '), scenario.max_lora_rank::VARCHAR)
        THEN 'vLLM takes a max_lora_rank of ' || replace(run.adapter_ranks, ' ', ', ')
    WHEN scenario.text_only AND (coalesce(run.reads_prompt <> 'compute-buffer', true) OR scenario.program = 'ollama')
        THEN 'text_only is of llama.cpp and programs that load what a model sees with from a second file: '
            || 'engine_id := llama.cpp'
    WHEN scenario.text_only AND (scenario.images > 0 OR scenario.audio_seconds > 0)
        THEN 'what is left out sees and hears nothing: text_only with images or audio_seconds'
    WHEN scenario.enforce_eager AND NOT is_server(scenario)
        THEN 'enforce_eager is of vLLM and SGLang (--enforce-eager, --disable-cuda-graph): engine_id := vllm'
END;

-- Why there is no answer for what a scenario reads, or null.
-- (run: what the table engine_memory says of the engine)
CREATE OR REPLACE MACRO input_reason(model, scenario, image_tokens, sound_tokens, run) AS CASE
    WHEN scenario.images < 0 OR scenario.image_width < 1 OR scenario.image_height < 1 OR scenario.audio_seconds <= 0
        THEN
        'images start at 0, image_width and image_height at 1, audio_seconds above 0'
    WHEN setting_reason(scenario, run) IS NOT NULL THEN setting_reason(scenario, run)
    WHEN scenario.phase_id <> 'inference' AND model.caches IS NULL
        THEN 'what training holds is not known yet of a model that neither reads nor writes text'
    WHEN model.is_pipeline THEN
        'a diffusion pipeline runs in stages: pipeline_of(model_id) says what it holds, '
        || 'pipeline_stages(model_id) by part'
    WHEN has_counted_pass(model) THEN NULL
    WHEN model.caches IS NULL AND model.tower IS NULL
        THEN 'what its layers hold while they run is not known yet, only what they weigh'
    WHEN model.caches IS NULL AND coalesce(run.reads_prompt <> 'whole', true)
        THEN 'models that read no text are modelled in Transformers only'
    WHEN scenario.images > 0 AND (coalesce(model.tower.component <> 'vision', true) OR image_tokens IS NULL) THEN
        'how many tokens an image takes is not known for this architecture'
    WHEN scenario.audio_seconds > 0 AND coalesce(model.tower.component <> 'audio', true) THEN
        'how many tokens a second of sound takes is not known for this architecture'
    WHEN image_training_reason(model, scenario, run) IS NOT NULL THEN image_training_reason(model, scenario, run)
    WHEN scenario.images > 0 AND run.image_reason IS NOT NULL THEN run.image_reason
    WHEN scenario.images > 0 AND run.reads_prompt = 'compute-buffer' AND model.tower.graph IS NULL
        THEN 'what llama.cpp sets aside for the images of this model has not been counted'
    WHEN model.has_uncounted_tower AND run.reads_prompt = 'compute-buffer' AND scenario.program <> 'llama.cpp'
            AND NOT coalesce(scenario.text_only, false)
        THEN 'what llama.cpp sets aside for what this model sees with has not been counted, and '
        || scenario.program || ' loads that where its files have it; llama.cpp itself is answered without (--no-mmproj)'
    WHEN image_tokens > scenario.context_tokens THEN 'the images alone are ' || image_tokens::BIGINT
        || ' tokens, more than the context of ' || scenario.context_tokens::BIGINT
    WHEN sound_tokens > 0 AND coalesce(run.reads_prompt <> 'whole', true)
        THEN 'sound in a prompt is counted in Transformers only'
    WHEN sound_tokens > scenario.context_tokens THEN 'the sound alone is ' || sound_tokens::BIGINT
        || ' tokens, more than the context of ' || scenario.context_tokens::BIGINT
END;
