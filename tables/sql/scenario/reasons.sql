-- Why a scenario has no answer; null where there is one.
--
-- Units: none. Source: as the components' own files. Not covered: numbers that are none (arguments.sql), degrees that do not go together
-- (sharding/reason.sql).

CREATE OR REPLACE MACRO scenario_reason(m, d, w, x, opt) AS CASE
    WHEN x.model_id IS NULL THEN 'no model was named'
    WHEN m.model_id IS NULL THEN coalesce('the anatomy of this model is not known: ' || (SELECT anatomy_note FROM model
        WHERE model.model_id = x.model_id), 'no such model in this snapshot')
    WHEN d.dtype_id IS NULL THEN 'no such dtype: ' || x.dtype_id
    WHEN x.phase_id NOT IN (SELECT phase_id FROM phase) THEN 'no such phase: ' || x.phase_id
    WHEN x.engine_id NOT IN (SELECT engine_id FROM engine) THEN 'no such engine: ' || x.engine_id
    WHEN x.engine_reason IS NOT NULL THEN x.engine_reason
    WHEN x.phase_id = 'inference' AND cannot_load(m, x.engine_id)
        THEN x.engine_id || ' cannot load this architecture (table engine_gap)'
    WHEN x.phase_id = 'inference' AND is_unread(m, x.engine_id)
        THEN 'what ' || x.engine_id || ' holds of this architecture is not known (table engine_gap)'
    WHEN x.engine_id = 'mlx-lm' AND x.phase_id = 'inference' AND x.gpu_count_asked > 1 THEN
        'MLX shares a model among several machines, and what each then holds is not known'
    WHEN x.engine_id = 'mlx-lm' AND x.phase_id = 'inference' AND (is_encoder(m) OR m.cross_layer_count > 0) THEN
        'MLX LM runs models that generate text'
    WHEN x.argument_reason IS NOT NULL THEN x.argument_reason
    WHEN x.context_tokens < 1 OR x.sequences < 1 OR x.gpu_count_asked < 1 THEN 'context_tokens, sequences and gpu_count start at 1'
    WHEN m.layer_count IS NULL THEN 'only its tensor headers are known: they give its weights, not what its layers cache'
    WHEN m.has_learned_positions AND x.context_tokens > m.max_context_tokens THEN
        'context_tokens := ' || x.context_tokens || ' is beyond the ' || m.max_context_tokens || ' positions that this model has learned'
    WHEN x.context_tokens > coalesce(x.max_context_tokens, m.max_context_tokens) THEN
        'context_tokens := ' || x.context_tokens || ' is beyond the ' || coalesce(x.max_context_tokens, m.max_context_tokens)
        || ' tokens of this model (max_context_tokens := n where its positions are stretched)'
    WHEN x.input_reason IS NOT NULL THEN x.input_reason
    WHEN x.phase_id IN ('pretrain', 'full-finetune') AND NOT d.is_trainable THEN 'gradients cannot flow into ' || x.dtype_id || ' weights'
        || iif(x.dtype_id = 'fp8', '; fp8 linear layers (torchao) keep 16-bit weights and inputs for the backward pass and'
            || ' take what dtype_id := bf16 says, in counted steps 0 to 2.4 % more', '')
    WHEN x.phase_id = 'lora' AND NOT d.is_trainable THEN 'LoRA keeps its base in 16 or 32 bits; a quantised base is QLoRA'
    WHEN x.phase_id = 'qlora' AND x.dtype_id NOT IN ('nf4', 'nf4-double', 'int8') THEN 'QLoRA needs a base in nf4, nf4-double or int8'
    WHEN x.is_adapter AND x.lora_rank < 1 THEN 'lora_rank starts at 1'
    WHEN x.is_adapter AND x.lora_targets NOT IN ('attention', 'query-value', 'all-linear', 'experts') THEN
        'lora_targets is attention, query-value, all-linear or experts'
    WHEN x.lora_targets = 'query-value' AND m.lora_query_value_elements = 0 THEN
        'lora_targets := query-value: this model has no projections of queries and values; attention or all-linear'
    WHEN x.lora_targets = 'experts' AND m.lora_routed_elements = 0 THEN
        'lora_targets := experts: this model has no routed experts; attention, query-value or all-linear'
    WHEN x.lora_targets = 'experts' AND x.phase_id = 'qlora' THEN 'adapters of quantised routed experts are not established yet'
    WHEN x.is_adapter AND x.adapter NOT IN ('lora', 'dora') THEN 'adapter is lora or dora'
    WHEN x.adapter = 'dora' AND x.has_adapted_experts THEN 'peft has no DoRA of routed experts: lora_targets := attention or query-value'
    WHEN NOT x.is_adapter AND x.adapter_asked IS NOT NULL THEN 'adapter belongs to the phases lora and qlora'
    WHEN x.phase_id <> 'inference' AND opt.optimizer_id IS NULL THEN 'no such optimizer: ' || x.optimizer_id
    WHEN opt.state_form = 'projected' AND x.is_adapter THEN
        'optimizer_id := ' || x.optimizer_id || ' projects the gradients of whole matrices: pretrain or full-finetune'
    WHEN opt.state_form = 'projected' AND x.optimizer_rank < 1 THEN 'optimizer_rank starts at 1'
    WHEN opt.state_form = 'projected' AND x.gpu_count > 1 AND x.sharding NOT IN ('none', 'ddp') THEN
        'optimizer_id := ' || x.optimizer_id || ' needs whole matrices on each GPU: sharding := ddp'
    WHEN x.phase_id <> 'inference' AND x.loss NOT IN ('full', 'chunked', 'fused') THEN 'loss is full, chunked or fused'
    WHEN x.loss = 'fused' AND x.precision = 'amp' AND NOT x.is_adapter THEN
        'loss := fused of a head that is trained under autocast is not established yet'
    WHEN x.phase_id <> 'inference' AND x.gradient_accumulation < 1 THEN 'gradient_accumulation starts at 1'
    WHEN x.phase_id <> 'inference' AND x.precision NOT IN ('mixed', 'amp', 'pure') THEN 'precision is mixed, amp or pure'
    WHEN x.phase_id <> 'inference' AND x.checkpointing NOT IN ('none', 'full', 'selective') THEN
        'checkpointing is none, full or selective'
    WHEN x.attention NOT IN ('flash', 'eager', 'masked') THEN 'attention is flash, eager or masked'
    WHEN x.attention = 'masked' AND x.phase_id = 'inference' AND NOT starts_with(x.engine_id, 'transformers') THEN
        'attention := masked is a batch with padding, which ' || x.engine_id || ' has not'
    WHEN x.attention = 'masked' AND x.phase_id = 'inference' AND (is_encoder(m) OR m.tower IS NOT NULL OR m.recurrences IS NOT NULL
        OR NOT m.has_flash_attention OR m.attention_form = 'broadcast') THEN
        'what a padding mask takes in this architecture is not established yet'
    WHEN x.sharding NOT IN ('none', 'ddp', 'zero1', 'zero2', 'zero3', 'tp', 'pp') THEN
        'sharding is none, ddp, zero1, zero2, zero3, tp, pp or tp+pp'
    WHEN x.sharding = 'none' AND x.shard_count > 1 THEN 'several GPUs need a sharding'
    WHEN x.phase_id = 'inference' AND x.gpu_count > 1 AND x.sharding NOT IN ('tp', 'pp') THEN 'inference is shared by tp, pp or tp+pp'
    WHEN x.kv_element_bits IS NULL THEN 'no such KV dtype: ' || x.kv_dtype_id
    WHEN NOT x.takes_kv_dtype THEN x.engine_id || ' holds no KV cache in ' || x.kv_dtype_id
    WHEN w.weights_bytes IS NULL THEN coalesce(w.unknown_reason, 'the format of the published checkpoint is not known')
    WHEN x.phase_id = 'inference' AND x.engine_id IN (SELECT engine_id FROM engine WHERE starts_with(parallelism, 'zero'))
        THEN x.engine_id || ' only trains'
    WHEN x.engine_id = 'transformers-4.44' AND m.max_context_tokens IS NULL AND NOT m.has_position_embedding THEN
        x.engine_id || ' keeps rotations for all positions of a model, and how many this one has is not known'
    WHEN x.sharding_reason IS NOT NULL THEN x.sharding_reason
    WHEN m.recurrences IS NOT NULL AND x.phase_id <> 'inference' AND (x.checkpointing = 'selective' OR x.attention = 'masked') THEN
        'what recurrent layers keep under selective checkpointing or a padding mask is not established yet'
    WHEN m.runs_all_experts AND (x.phase_id = 'qlora' OR x.lora_targets = 'experts') THEN
        'what experts that every token runs through keep beside a quantised base, or under adapters of their own, is not established yet'
    WHEN x.checkpointing = 'selective' AND x.has_adapted_experts AND x.lora_targets = 'experts' THEN
        'checkpointing := selective with adapters of routed experts alone is not established yet'
    WHEN x.checkpointing = 'selective' AND m.cross_layer_count > 0 AND (m.tower.grid = 'fixed' OR x.is_adapter AND x.precision = 'amp') THEN
        'checkpointing := selective of an encoder with a window of its own, or of adapters of an encoder-decoder under autocast, is not established yet'
    WHEN has_unknown_recurrence(m) AND x.phase_id <> 'inference' THEN
        'what this kind of recurrent layer keeps for training is not established yet'
    WHEN has_unknown_recurrence(m) AND starts_with(x.engine_id, 'transformers') THEN
        'the prefill peak of this kind of recurrent layer in Transformers is not established yet'
END;

-- Why there is no answer for what a scenario reads, or null.
CREATE OR REPLACE MACRO input_reason(m, x, image_tokens) AS CASE
    WHEN x.images < 0 OR x.image_width < 1 OR x.image_height < 1 OR x.audio_seconds <= 0 THEN
        'images start at 0, image_width and image_height at 1, audio_seconds above 0'
    WHEN x.phase_id <> 'inference' AND m.caches IS NULL THEN 'no formula yet for training models without token-mixing layers of text'
    WHEN m.is_pipeline THEN
        'a diffusion pipeline runs in stages: pipeline_of(model_id) says what it holds, pipeline_stages(model_id) by part'
    WHEN m.caches IS NULL AND m.tower IS NULL THEN 'no formula yet for models without token-mixing layers'
    WHEN m.caches IS NULL AND NOT starts_with(x.engine_id, 'transformers') THEN 'models that read no text are modelled in Transformers only'
    WHEN x.images > 0 AND (coalesce(m.tower.component <> 'vision', true) OR image_tokens IS NULL) THEN
        'how many tokens an image takes is not known for this architecture'
    WHEN x.audio_seconds > 0 AND coalesce(m.tower.component <> 'audio', true) THEN
        'how many tokens a second of sound takes is not known for this architecture'
    WHEN x.images > 0 AND x.phase_id <> 'inference' THEN 'images are counted in inference only'
    WHEN x.images > 0 AND x.engine_id = 'llama.cpp' THEN 'images in llama.cpp are not modelled yet'
    WHEN x.images > 0 AND x.engine_id = 'mlx-lm' THEN 'MLX LM reads text only'
    WHEN image_tokens > x.context_tokens THEN 'the images alone are ' || image_tokens::BIGINT || ' tokens, more than the context'
END;
