-- Why a scenario has no answer, and which weights it holds.
--
-- scenario_reason is null where there is one. Units: bytes per GPU. Sources: as the components' own files.

-- Which part of the weights one GPU holds in inference: tensor parallelism replicates norms, routers and towers; a pipeline's worst stage has the
-- most layers and the larger end; of both, that stage's layers are divided, and the towers are on every GPU.
CREATE OR REPLACE MACRO beside_layers_bytes(w) AS w.weights_bytes - w.layer_bytes - w.embedding_bytes - w.head_bytes;
CREATE OR REPLACE MACRO replicated_in_layers(w) AS least(greatest(w.replicated_bytes - beside_layers_bytes(w), 0), w.layer_bytes);
CREATE OR REPLACE MACRO sharded_weights(w, x) AS CASE
    WHEN x.tensor_parallel * x.pipeline_parallel = 1 THEN w.weights_bytes
    WHEN x.pipeline_parallel = 1 THEN w.replicated_bytes + ceil((w.weights_bytes - w.replicated_bytes) / x.tensor_parallel)
    WHEN x.tensor_parallel = 1
        THEN ceil(w.layer_bytes * x.stage_share) + greatest(w.embedding_bytes, w.head_bytes, beside_layers_bytes(w))
    ELSE ceil((replicated_in_layers(w) + (w.layer_bytes - replicated_in_layers(w)) / x.tensor_parallel) * x.stage_share)
        + ceil(greatest(w.embedding_bytes, w.head_bytes) / x.tensor_parallel) + beside_layers_bytes(w)
END::BIGINT;

-- What the kernels of vLLM add to routed experts in MXFP4: every expert's hidden size, and its width on one GPU, are rounded up to what the
-- kernel of the card takes; values, scales and all. Counted are Marlin's multiples, which all cards run that have no kernel of their own;
-- those of data center Blackwell and of AMD's cards go into the band. `stored` stays what the checkpoint holds: there it is overhead.
CREATE OR REPLACE MACRO rounded_up(size, multiple) AS multiple * ceil(size / multiple);
CREATE OR REPLACE MACRO holds_rounded_experts(m, x) AS x.engine_id = 'vllm' AND x.phase_id = 'inference'
    AND coalesce(iif(x.dtype_id = 'stored', m.stored_format, x.dtype_id) = 'mxfp4', false);
CREATE OR REPLACE MACRO expert_rounding_bytes(m, x, k, width_multiple) AS iif(holds_rounded_experts(m, x),
    k.mxfp4_element_bits / 8 * x.stage_share * coalesce(list_sum(list_transform(m.blocks, lambda b: b.layers * b.experts * iif(b.is_gated, 3, 2) * (
        rounded_up(m.hidden_size, k.vllm_mxfp4_hidden_multiple) * rounded_up(b.expert_width / x.tensor_parallel, width_multiple)
        - m.hidden_size * b.expert_width / x.tensor_parallel))), 0), 0);
CREATE OR REPLACE MACRO kernel_weights_bytes(m, x, k) AS iif(x.dtype_id = 'stored', 0,
    ceil(expert_rounding_bytes(m, x, k, k.vllm_mxfp4_width_multiple)))::BIGINT;
CREATE OR REPLACE MACRO kernel_overhead_bytes(m, x, k) AS iif(x.dtype_id = 'stored', expert_rounding_bytes(m, x, k, k.vllm_mxfp4_width_multiple), 0);
CREATE OR REPLACE MACRO kernel_spread_bytes(m, x, k) AS
    expert_rounding_bytes(m, x, k, k.vllm_mxfp4_width_multiple_most) - expert_rounding_bytes(m, x, k, k.vllm_mxfp4_width_multiple);

-- Weights of a training step: the dtype's own where they are frozen or 16-bit, fp32 where autocast trains them; QLoRA's preparation
-- holds in fp32 what stays unquantised (embeddings, head, norms).
CREATE OR REPLACE MACRO trained_weights(w, x) AS CASE
    WHEN x.phase_id = 'qlora' AND x.precision <> 'pure' THEN w.weights_bytes + w.unquantised_bytes
    WHEN x.is_adapter THEN w.weights_bytes
    WHEN x.precision = 'amp' AND x.dtype_id <> 'fp32' THEN 2 * w.weights_bytes
    ELSE w.weights_bytes
END;

-- bytes of an element that a sharded layer is gathered in
CREATE OR REPLACE MACRO gather_bytes_each(w, m, x) AS CASE
    WHEN x.phase_id = 'qlora' THEN w.weights_bytes / m.parameter_count
    WHEN x.precision = 'amp' AND NOT x.is_adapter THEN 4
    ELSE x.compute_bytes
END;

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
