-- Footprints: what a scenario needs on each GPU, by component.
--
--   total_bytes = weights + kv_cache + kv_padding + state + activations + gradients + optimizer + adapters + overhead
--
-- Units: bytes per GPU; several GPUs: the one that holds most. total_bytes − overhead_bytes is what a framework reports as peak
-- allocated, total_bytes what the driver shows for the process. Unknown is null, with unknown_reason; a total with an unknown
-- part is unknown.
--
-- Sources: the components' own files. Not covered: mixed cards, speculative decoding.
--
-- footprints(relation) answers a whole relation of scenarios (columns as in `scenario_asked`, null means default);
-- footprint_of(model_id, ...) asks for one. The published table is filled by the same macro.

-- Which part of the weights one GPU holds in inference: tensor parallelism replicates norms, routers and towers; a pipeline's worst stage has the
-- most layers and the larger end.
CREATE OR REPLACE MACRO sharded_weights(w, m, x) AS CASE
    WHEN x.gpu_count = 1 OR x.sharding IN ('none', 'ddp', 'zero1', 'zero2') THEN w.weights_bytes
    WHEN x.sharding = 'zero3' THEN ceil(w.weights_bytes / x.gpu_count)
    WHEN x.sharding = 'tp' THEN w.replicated_bytes + ceil((w.weights_bytes - w.replicated_bytes) / x.gpu_count)
    WHEN x.sharding = 'pp' THEN ceil(w.layer_bytes * ceil(m.layer_count / x.gpu_count) / greatest(m.layer_count, 1))
        + greatest(w.embedding_bytes, w.head_bytes, w.weights_bytes - w.layer_bytes - w.embedding_bytes - w.head_bytes)
END::BIGINT;

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
    WHEN m.model_id IS NULL THEN coalesce('the anatomy of this model is not known: ' || (SELECT anatomy_note FROM model
        WHERE model.model_id = x.model_id), 'no such model in this snapshot')
    WHEN d.dtype_id IS NULL THEN 'no such dtype: ' || x.dtype_id
    WHEN x.phase_id NOT IN (SELECT phase_id FROM phase) THEN 'no such phase: ' || x.phase_id
    WHEN x.engine_id NOT IN (SELECT engine_id FROM engine) THEN 'no such engine: ' || x.engine_id
    WHEN x.context_tokens < 1 OR x.sequences < 1 OR x.gpu_count_asked < 1 THEN 'context_tokens, sequences and gpu_count start at 1'
    WHEN m.layer_count IS NULL THEN 'only its tensor headers are known: they give its weights, not what its layers cache'
    WHEN m.has_learned_positions AND x.context_tokens > m.max_context_tokens THEN
        'context_tokens := ' || x.context_tokens || ' is beyond the ' || m.max_context_tokens || ' positions that this model has learned'
    WHEN x.context_tokens > coalesce(x.max_context_tokens, m.max_context_tokens) THEN
        'context_tokens := ' || x.context_tokens || ' is beyond the ' || coalesce(x.max_context_tokens, m.max_context_tokens)
        || ' tokens of this model (max_context_tokens := n where its positions are stretched)'
    WHEN x.input_reason IS NOT NULL THEN x.input_reason
    WHEN x.phase_id IN ('pretrain', 'full-finetune') AND NOT d.is_trainable THEN 'gradients cannot flow into ' || x.dtype_id || ' weights'
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
    WHEN x.checkpointing = 'selective' AND x.has_adapted_experts THEN
        'checkpointing := selective with adapters of routed experts is not established yet'
    WHEN x.attention NOT IN ('flash', 'eager', 'masked') THEN 'attention is flash, eager or masked'
    WHEN x.attention = 'masked' AND x.phase_id = 'inference' THEN 'attention := masked is a batch with padding, in training'
    WHEN x.sharding NOT IN ('none', 'ddp', 'zero1', 'zero2', 'zero3', 'tp', 'pp') THEN 'sharding is none, ddp, zero1, zero2, zero3, tp or pp'
    WHEN x.sharding = 'none' AND x.shard_count > 1 THEN 'several GPUs need a sharding'
    WHEN x.phase_id = 'inference' AND x.gpu_count > 1 AND x.sharding NOT IN ('tp', 'pp') THEN 'inference is shared by tp or pp'
    WHEN x.kv_element_bits IS NULL THEN 'no such KV dtype: ' || x.kv_dtype_id
    WHEN w.weights_bytes IS NULL THEN coalesce(w.unknown_reason, 'the format of the published checkpoint is not known')
    WHEN x.phase_id = 'inference' AND x.engine_id IN (SELECT engine_id FROM engine WHERE starts_with(parallelism, 'zero'))
        THEN x.engine_id || ' only trains'
    WHEN x.sharding_reason IS NOT NULL THEN x.sharding_reason
    WHEN m.recurrences IS NOT NULL AND x.phase_id <> 'inference' AND (x.checkpointing = 'selective' OR x.attention = 'masked') THEN
        'what recurrent layers keep under selective checkpointing or a padding mask is not established yet'
    WHEN has_unknown_recurrence(m) AND x.phase_id <> 'inference' THEN
        'what this kind of recurrent layer keeps for training is not established yet'
    WHEN has_unknown_recurrence(m) AND starts_with(x.engine_id, 'transformers') THEN
        'the prefill peak of this kind of recurrent layer in Transformers is not established yet'
END;

CREATE OR REPLACE MACRO largest_moment(a) AS greatest(a.loss, a.forward, a.backward, a."end", a.optimizer);

CREATE OR REPLACE MACRO footprints(relation) AS TABLE
WITH asked_for AS (FROM query_table(relation)),
asked AS (
    SELECT asked_for.* REPLACE (coalesce(asked_for.gpu_count, greatest(coalesce(asked_for.tensor_parallel, 1), 1)
        * greatest(coalesce(asked_for.pipeline_parallel, 1), 1) * greatest(coalesce(asked_for.context_parallel, 1), 1))::BIGINT AS gpu_count)
    FROM asked_for
),
scenario AS (
    SELECT
        asked.model_id,
        coalesce(asked.dtype_id, 'bf16') AS dtype_id,
        coalesce(asked.phase_id, 'inference') AS phase_id,
        iif(coalesce(asked.phase_id, 'inference') = 'inference', coalesce(asked.engine_id, d.engine_id), coalesce(asked.engine_id, 'transformers'))
            AS engine_id,
        -- (least and greatest pass over nulls)
        coalesce(asked.context_tokens, least(iif(coalesce(asked.phase_id, 'inference') = 'inference', 8192, 2048), s.max_context_tokens))::BIGINT
            AS context_tokens,
        asked.max_context_tokens::BIGINT AS max_context_tokens,
        coalesce(asked.sequences, 1)::BIGINT AS sequences,
        iif(coalesce(asked.phase_id, 'inference') = 'inference', images_of(s, asked.images), asked.images)::BIGINT AS images,
        asked.image_pixels::BIGINT AS image_pixels,
        asked.audio_seconds::DOUBLE AS audio_seconds,
        iif(coalesce(asked.phase_id, 'inference') = 'inference', coalesce(asked.kv_dtype_id, iif(asked.dtype_id = 'fp32', 'fp32', 'bf16')), NULL)
            AS kv_dtype_id,
        iif(coalesce(asked.phase_id, 'inference') = 'inference', NULL, coalesce(asked.optimizer_id, 'adamw')) AS optimizer_id,
        CASE
            WHEN coalesce(asked.phase_id, 'inference') = 'inference' THEN NULL
            WHEN asked.precision IS NOT NULL THEN asked.precision
            WHEN asked.phase_id = 'qlora' THEN 'amp'
            WHEN asked.dtype_id = 'fp32' THEN 'pure'
            ELSE 'mixed'
        END AS precision,
        iif(coalesce(asked.phase_id, 'inference') = 'inference', NULL, coalesce(asked.checkpointing, 'none')) AS checkpointing,
        iif(asked.phase_id IN ('lora', 'qlora'), coalesce(asked.lora_rank, 16), NULL)::BIGINT AS lora_rank,
        iif(asked.phase_id IN ('lora', 'qlora'), coalesce(asked.lora_targets, 'all-linear'), NULL) AS lora_targets,
        asked.adapter AS adapter_asked,
        iif(asked.phase_id IN ('lora', 'qlora'), coalesce(asked.adapter, 'lora'), NULL) AS adapter,
        iif(coalesce(asked.phase_id, 'inference') = 'inference', NULL, coalesce(asked.loss, 'full')) AS loss,
        iif(coalesce(asked.phase_id, 'inference') = 'inference', NULL, coalesce(asked.gradient_accumulation, 1))::BIGINT
            AS gradient_accumulation,
        iif(coalesce(asked.phase_id, 'inference') = 'inference', NULL, coalesce(asked.ema, false)) AS ema,
        iif(coalesce(asked.phase_id, 'inference') = 'inference', NULL, coalesce(asked.optimizer_rank, 128))::BIGINT AS optimizer_rank,
        coalesce(asked.attention, 'flash') AS attention,
        CASE
            WHEN asked.gpu_count = 1 THEN 'none'
            WHEN asked.sharding IS NOT NULL THEN asked.sharding
            WHEN asked.gpu_count = asked.tensor_parallel * coalesce(asked.pipeline_parallel, 1) AND asked.tensor_parallel > 1 THEN 'tp'
            WHEN asked.gpu_count = asked.pipeline_parallel THEN 'pp'
            WHEN coalesce(asked.phase_id, 'inference') <> 'inference' THEN iif(starts_with(e.parallelism, 'zero'), e.parallelism, 'zero3')
            ELSE coalesce(e.parallelism, 'tp')
        END AS sharding,
        -- formulas divide by gpu_count and degrees; what was asked is answered for below
        greatest(asked.gpu_count, 1)::BIGINT AS gpu_count, asked.gpu_count AS gpu_count_asked,
        asked.tensor_parallel AS tensor_asked, asked.pipeline_parallel AS pipeline_asked,
        greatest(coalesce(asked.context_parallel, 1), 1)::BIGINT AS context_parallel,
        greatest(coalesce(asked.expert_parallel, 1), 1)::BIGINT AS expert_parallel,
        asked.micro_batches_in_flight AS flights_asked, asked.sequence_parallel AS residual_asked,
        least(asked.tensor_parallel, asked.pipeline_parallel, asked.context_parallel, asked.expert_parallel, asked.micro_batches_in_flight)
            AS least_degree,
        coalesce(asked.offload, 'none') AS offload
    FROM asked
    LEFT JOIN dtype AS d ON d.dtype_id = coalesce(asked.dtype_id, 'bf16')
    LEFT JOIN engine AS e ON e.engine_id = coalesce(asked.engine_id, d.engine_id)
    LEFT JOIN shape AS s ON s.model_id = asked.model_id
),
degree AS (
    SELECT
        scenario.*,
        greatest(coalesce(tensor_asked, iif(sharding = 'tp', gpu_count // (greatest(coalesce(pipeline_asked, 1), 1) * context_parallel), 1)), 1)::BIGINT
            AS tensor_parallel,
        greatest(coalesce(pipeline_asked, iif(sharding = 'pp', gpu_count // (greatest(coalesce(tensor_asked, 1), 1) * context_parallel), 1)), 1)::BIGINT
            AS pipeline_parallel
    FROM scenario
),
split AS (
    SELECT
        degree.*,
        greatest(gpu_count // (tensor_parallel * pipeline_parallel * context_parallel), 1) AS data_parallel,
        greatest(gpu_count // (tensor_parallel * pipeline_parallel), 1) AS shard_count,
        greatest(coalesce(flights_asked, pipeline_parallel), 1)::BIGINT AS micro_batches_in_flight
    FROM degree
),
x AS (
    SELECT
        scenario.*,
        rule.scheme, rule.has_master_weights, rule.is_root_whole, rule.reduce_bytes,
        rule.bucket_elements, rule.live_elements, rule.can_offload_optimizer, rule.can_offload_all,
        expert_padding(rule, m, scenario) AS expert_padding, coalesce(rule.has_fused_kernels, false) AS has_fused_kernels,
        coalesce(scenario.residual_asked, rule.is_sequence_parallel, false) AS is_sequence_parallel,
        scenario.phase_id IN ('lora', 'qlora') AS is_adapter,
        iif(scenario.dtype_id = 'fp32' AND coalesce(precision, 'pure') <> 'amp' OR scenario.phase_id = 'qlora' AND precision = 'mixed', 4, 2)
            AS compute_bytes,
        CASE
            WHEN scenario.phase_id IN ('lora', 'qlora') THEN iif(precision = 'pure', iif(scenario.dtype_id = 'fp32', 4, 2), 4)
            WHEN precision = 'amp' OR scenario.dtype_id = 'fp32' THEN 4
            ELSE 2
        END AS trained_bytes_each,
        iif(scenario.phase_id = 'inference', kv.element_bits, 0) AS kv_element_bits,
        coalesce(run.keeps_logits, false) AS keeps_logits,
        coalesce(run.keeps_gradients, false) OR coalesce(rule.keeps_gradients, false) OR scenario.gradient_accumulation > 1
            OR scenario.pipeline_parallel > 1 AS has_standing_gradients,
        run.gradient_bytes AS engine_gradient_bytes,
        run.process_context_bytes AS engine_context_bytes,
        has_adapted_experts(m, scenario) AS has_adapted_experts,
        tower_tokens(m.tower, scenario, k) AS tower_tokens,
        iif(m.tower.reader = 'cross-attention', tower_tokens(m.tower, scenario, k), scenario.context_tokens) AS cross_tokens,
        input_reason(m, scenario, prompt_image_tokens(m.tower, scenario, k)) AS input_reason
    FROM split AS scenario
    LEFT JOIN kv_dtype AS kv USING (kv_dtype_id)
    LEFT JOIN engine AS run ON run.engine_id = scenario.engine_id
    LEFT JOIN shape AS m USING (model_id)
    LEFT JOIN sharding_rule AS rule ON rule.engine_id = scenario.engine_id AND rule.sharding = scenario.sharding
        AND scenario.phase_id <> 'inference'
    CROSS JOIN constants AS k
),
rated AS (
    SELECT
        x.*, weight_shards(x) AS weight_shards, gradient_shards(x) AS gradient_shards, optimizer_shards(x) AS optimizer_shards,
        are_masters_weights(x) AS are_masters_weights, gradient_bytes_each(x) AS gradient_bytes_each, made_bytes_each(x) AS made_bytes_each,
        reduce_bytes_each(x) AS reduce_bytes_each, unit_elements(m, x) AS unit_elements, trained_elements(m, x) AS trained_elements,
        ceil(m.layer_count / x.pipeline_parallel) / greatest(m.layer_count, 1) AS stage_share, sharding_reason(m, x) AS sharding_reason
    FROM x LEFT JOIN shape AS m USING (model_id)
),
part AS (
    SELECT
        x.*,
        scenario_reason(m, d, w, x, opt) AS unknown_reason,
        iif(x.phase_id = 'inference', sharded_weights(w, m, x), NULL) AS inference_weights,
        iif(x.phase_id = 'inference', 0, trained_weights(w, x) * iif(x.are_masters_weights, 2, 1)) AS whole_weights,
        iif(x.phase_id = 'inference', 0, gradients_bytes(m, x)) AS whole_gradients,
        iif(x.phase_id = 'inference', 0, optimizer_bytes(m, x, opt)) AS whole_optimizer,
        adapter_elements(m, x) * adapter_bytes_each(x) AS whole_adapters, bucket_bytes(m, x) AS bucket_bytes, live_gathered(m, x) AS live_gathered,
        gather_bytes_each(w, m, x) AS gather_bytes_each,
        iif(x.phase_id = 'inference', kv_cache_bytes(m, x), 0) AS kv_cache,
        iif(x.phase_id = 'inference', kv_padding_bytes(m, x, k), 0) AS kv_padding,
        iif(x.phase_id = 'inference', state_bytes(m, x), 0) AS state,
        -- QLoRA unpacks one matrix of the layer that runs
        iif(x.phase_id = 'qlora', 2.0 * m.largest_linear_elements / x.tensor_parallel, 0) AS dequantised,
        iif(x.phase_id = 'inference', stage_activations_bytes(m, x, k, kv_cache + kv_padding + state), NULL) AS inference_activations,
        iif(x.phase_id = 'inference', loading_bytes(m, x), NULL) AS loading,
        error_band(x, k) AS error_band
    FROM rated AS x
    LEFT JOIN shape AS m ON m.model_id = x.model_id
    LEFT JOIN dtype AS d ON d.dtype_id = x.dtype_id
    LEFT JOIN weight AS w ON w.model_id = x.model_id AND w.dtype_id = x.dtype_id
    LEFT JOIN optimizer AS opt ON opt.optimizer_id = x.optimizer_id
    CROSS JOIN constants AS k  -- last: a stored macro writes it as a comma, which binds least
),
-- What a forward pass keeps does not depend on optimizer, checkpointing or GPU count: it is worked out once for each of the few recipes
-- that a lookup of a thousand scenarios shares.
recipe AS (
    SELECT DISTINCT
        model_id, iif(phase_id = 'qlora', 'qlora', 'other') AS phase_id, is_adapter, precision, compute_bytes, lora_rank, lora_targets,
        adapter, has_adapted_experts, attention, context_tokens, least(sequences, 2) AS sequences, tensor_parallel, is_sequence_parallel,
        has_fused_kernels
    FROM part
    WHERE phase_id <> 'inference' AND unknown_reason IS NULL
),
autocast AS (SELECT x.*, is_autocast(x) AS is_autocast FROM recipe AS x),
residual AS (SELECT x.*, residual_bytes(x) AS residual_bytes FROM autocast AS x),
kernel AS (
    SELECT x.*, kept_by_norm(m, x) AS norm_bytes, kept_per_score(m, x) AS score_bytes FROM residual AS x JOIN shape AS m USING (model_id)
),
mixer AS (SELECT x.*, with_kernels(m, x) AS mixers FROM kernel AS x JOIN shape AS m USING (model_id)),
layer AS (SELECT x.*, kept_parts(m, x, x.mixers) AS parts FROM mixer AS x JOIN shape AS m USING (model_id)),
recipe_kept AS (
    SELECT x.* EXCLUDE (mixers, parts), kept_sums(m, x, x.parts) AS s FROM layer AS x JOIN shape AS m USING (model_id)
),
step AS (
    SELECT x.*, r.is_autocast, r.residual_bytes, r.norm_bytes, r.s
    FROM part AS x
    JOIN recipe_kept AS r
        ON x.phase_id <> 'inference' AND x.unknown_reason IS NULL AND r.model_id = x.model_id AND r.phase_id = iif(x.phase_id = 'qlora', 'qlora', 'other')
        AND r.is_adapter = x.is_adapter AND r.precision = x.precision AND r.compute_bytes = x.compute_bytes
        AND r.lora_rank IS NOT DISTINCT FROM x.lora_rank AND r.lora_targets IS NOT DISTINCT FROM x.lora_targets
        AND r.adapter IS NOT DISTINCT FROM x.adapter
        AND r.has_adapted_experts IS NOT DISTINCT FROM x.has_adapted_experts AND r.attention = x.attention
        AND r.context_tokens = x.context_tokens AND r.sequences = least(x.sequences, 2)
        AND r.tensor_parallel = x.tensor_parallel AND r.is_sequence_parallel = x.is_sequence_parallel
        AND r.has_fused_kernels = x.has_fused_kernels
),
-- Of a pipeline the two stages that can be the worst, else the whole model: what it holds, and its moments. (Two columns and no list:
-- a lambda over stages took twenty times as long.)
placed AS (
    SELECT
        x.*, layer_work(m, x, x.s) AS work, made_in_layer(m, x) AS made_in_layer, first_stage(m, x) AS first_place, last_stage(m, x) AS last_place
    FROM step AS x JOIN shape AS m USING (model_id)
),
stage AS (
    SELECT
        x.* EXCLUDE (first_place, last_place),
        held_by(m, x, x.first_place) AS first_stage,
        iif(x.pipeline_parallel > 1, held_by(m, x, x.last_place), NULL) AS last_stage
    FROM placed AS x JOIN shape AS m USING (model_id)
),
moment AS (
    SELECT
        x.*,
        moments(m, x, opt, x.first_stage) AS first_moments,
        iif(x.pipeline_parallel > 1, moments(m, x, opt, x.last_stage), NULL) AS last_moments
    FROM stage AS x
    JOIN shape AS m USING (model_id)
    JOIN optimizer AS opt ON opt.optimizer_id = x.optimizer_id
),
worst AS (
    SELECT
        * EXCLUDE (s, is_autocast, residual_bytes, norm_bytes, work, made_in_layer, first_stage, last_stage, first_moments, last_moments),
        coalesce(largest_moment(last_moments) > largest_moment(first_moments), false) AS is_last_worst,
        iif(is_last_worst, last_stage, first_stage) AS held,
        iif(is_last_worst, last_moments, first_moments) AS moments
    FROM moment
),
peak AS (
    SELECT
        * EXCLUDE (moments, held, is_last_worst, inference_weights),
        try_cast(held.weights AS BIGINT) AS weights, try_cast(held.gradients AS BIGINT) AS gradients,
        try_cast(held.optimizer AS BIGINT) AS optimizer, try_cast(held.adapters AS BIGINT) AS adapters, try_cast(held.host AS BIGINT) AS host,
        largest_moment(moments) AS peak_bytes,
        CASE largest_moment(moments)
            WHEN moments.loss THEN 'loss' WHEN moments.backward THEN 'backward' WHEN moments.forward THEN 'forward'
            WHEN moments."end" THEN 'end' WHEN moments.optimizer THEN 'optimizer'
        END AS peak_moment,
        try_cast(ceil(largest_moment(moments)) - held.weights - held.adapters - held.gradients - held.optimizer AS BIGINT) AS activations
    FROM worst
    UNION ALL BY NAME
    SELECT
        * EXCLUDE (inference_weights), inference_weights AS weights, 0 AS gradients, 0 AS optimizer, 0 AS adapters, 0 AS host,
        NULL AS peak_bytes, NULL AS peak_moment, iif(loading > inference_activations, loading, inference_activations) AS activations
    FROM part WHERE phase_id = 'inference' OR unknown_reason IS NOT NULL
),
known AS (
    SELECT
        x.* EXCLUDE (unknown_reason, error_band),
        overhead_bytes(x, k, m, gradients) AS overhead,
        x.error_band + unused_band(x, k, weights::DOUBLE + kv_cache + kv_padding + state + activations + adapters + overhead) AS error_band,
        try_cast(weights::DOUBLE + kv_cache + kv_padding + state + activations + gradients + optimizer + adapters + overhead AS BIGINT)
            IS NOT NULL AS is_countable,
        x.unknown_reason IS NULL AND is_countable AS is_known,
        coalesce(x.unknown_reason, iif(is_countable, NULL, 'more bytes than 64 bits can count')) AS unknown_reason
    FROM peak AS x
    LEFT JOIN shape AS m USING (model_id)
    CROSS JOIN constants AS k
)
SELECT
    model_id, dtype_id, phase_id, engine_id, context_tokens, max_context_tokens, sequences, images, image_pixels, audio_seconds,
    kv_dtype_id, optimizer_id, precision,
    checkpointing, lora_rank, lora_targets, adapter, attention, loss, gradient_accumulation, ema, optimizer_rank, sharding, gpu_count_asked AS gpu_count,
    tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, micro_batches_in_flight, is_sequence_parallel AS sequence_parallel, offload,
    iif(is_known, weights, NULL)::BIGINT AS weights_bytes,
    iif(is_known, kv_cache, NULL)::BIGINT AS kv_cache_bytes,
    iif(is_known, kv_padding, NULL)::BIGINT AS kv_padding_bytes,
    iif(is_known, state, NULL)::BIGINT AS state_bytes,
    iif(is_known, activations, NULL)::BIGINT AS activations_bytes,
    iif(is_known, gradients, NULL)::BIGINT AS gradients_bytes,
    iif(is_known, optimizer, NULL)::BIGINT AS optimizer_bytes,
    iif(is_known, adapters, NULL)::BIGINT AS adapters_bytes,
    iif(is_known, overhead, NULL)::BIGINT AS overhead_bytes,
    iif(is_known, weights + kv_cache + kv_padding + state + activations + gradients + optimizer + adapters + overhead, NULL)::BIGINT
        AS total_bytes,
    iif(is_known, host, NULL)::BIGINT AS host_bytes,
    iif(is_known, error_band, NULL) AS error_band,
    iif(is_known, peak_moment, NULL) AS peak_moment,
    unknown_reason
FROM known;

CREATE OR REPLACE MACRO footprint_of(
    model_id, dtype_id := 'bf16', phase_id := 'inference', context_tokens := NULL, sequences := 1, kv_dtype_id := NULL,
    optimizer_id := NULL, checkpointing := NULL, lora_rank := NULL, lora_targets := NULL, precision := NULL, attention := NULL,
    sharding := NULL, gpu_count := NULL, engine_id := NULL, adapter := NULL, loss := NULL, gradient_accumulation := NULL, ema := NULL,
    optimizer_rank := NULL, max_context_tokens := NULL,
    tensor_parallel := NULL, pipeline_parallel := NULL, context_parallel := NULL, expert_parallel := NULL, micro_batches_in_flight := NULL,
    sequence_parallel := NULL, offload := NULL, images := NULL, image_pixels := NULL,
    audio_seconds := NULL
) AS TABLE
WITH scenario_asked AS (
    SELECT
        model_id AS model_id, dtype_id AS dtype_id, phase_id AS phase_id, engine_id AS engine_id,
        context_tokens AS context_tokens, sequences AS sequences, images AS images, image_pixels AS image_pixels,
        audio_seconds AS audio_seconds, kv_dtype_id AS kv_dtype_id, optimizer_id AS optimizer_id,
        precision AS precision, checkpointing AS checkpointing, lora_rank AS lora_rank, lora_targets AS lora_targets,
        attention AS attention, sharding AS sharding, gpu_count AS gpu_count, adapter AS adapter, loss AS loss,
        gradient_accumulation AS gradient_accumulation, ema AS ema, optimizer_rank AS optimizer_rank,
        max_context_tokens AS max_context_tokens,
        tensor_parallel AS tensor_parallel, pipeline_parallel AS pipeline_parallel, context_parallel AS context_parallel,
        expert_parallel AS expert_parallel, micro_batches_in_flight AS micro_batches_in_flight, sequence_parallel AS sequence_parallel,
        offload AS offload
)
FROM footprints('scenario_asked');
