-- Scenarios: what was asked, with every default filled in and the GPUs divided among the ways of sharing.
--
-- scenarios(relation) answers a relation of the columns of `scenario_asked` (null means default) with one row each: a default is the
-- dtype's or the phase's, and never more context than the model reads. What cannot be is not refused here but named: input_reason,
-- sharding_reason (reasons.sql, sharding/reason.sql). Units: tokens, counts, bytes of one element.
-- Source of the defaults: the tables dtype, engine, sharding_rule.

-- QLoRA's base is quantised; all else starts in 16 bits.
CREATE OR REPLACE MACRO usual_dtype(dtype_id, phase_id) AS coalesce(dtype_id, iif(phase_id = 'qlora', 'nf4', 'bf16'));

-- The numbers of a scenario as they were asked.
CREATE OR REPLACE MACRO asked_numbers(a) AS {
    'context_tokens': asked_number(a.context_tokens), 'max_context_tokens': asked_number(a.max_context_tokens),
    'sequences': asked_number(a.sequences), 'images': asked_number(a.images), 'image_width': asked_number(a.image_width),
    'image_height': asked_number(a.image_height), 'lora_rank': asked_number(a.lora_rank),
    'gradient_accumulation': asked_number(a.gradient_accumulation), 'optimizer_rank': asked_number(a.optimizer_rank),
    'gpu_count': asked_number(a.gpu_count), 'tensor_parallel': asked_number(a.tensor_parallel),
    'pipeline_parallel': asked_number(a.pipeline_parallel), 'context_parallel': asked_number(a.context_parallel),
    'expert_parallel': asked_number(a.expert_parallel), 'micro_batches_in_flight': asked_number(a.micro_batches_in_flight)
};

-- Whole servers among which inference is spread as a pipeline, tensor parallel within each, where nobody asks for other degrees.
CREATE OR REPLACE MACRO servers_asked(x, k) AS iif(x.phase_id = 'inference' AND x.sharding = 'tp' AND is_server(x) AND x.tensor_asked IS NULL
    AND x.gpu_count % k.server_gpu_count = 0, x.gpu_count // k.server_gpu_count, 1);

-- (least and greatest pass over nulls)
CREATE OR REPLACE MACRO default_context_tokens(m, phase_id) AS
    least(iif(coalesce(phase_id, 'inference') = 'inference', 8192, 2048), m.max_context_tokens);

CREATE OR REPLACE MACRO scenarios(relation) AS TABLE
WITH asked_for AS (FROM query_table(relation)),
-- as typed values: words in lower case, numbers where they are whole; what is not has its reason and is counted as its default
checked AS (SELECT a, argument_reason(a, k) AS argument_reason FROM (SELECT asked_for AS a FROM asked_for) CROSS JOIN constants_row),
typed AS (
    SELECT
        a.model_id::VARCHAR AS model_asked, lower(a.dtype_id::VARCHAR) AS dtype_id, lower(a.phase_id::VARCHAR) AS phase_id,
        lower(a.engine_id::VARCHAR) AS engine_id, lower(a.kv_dtype_id::VARCHAR) AS kv_dtype_id, lower(a.optimizer_id::VARCHAR) AS optimizer_id,
        lower(a.precision::VARCHAR) AS precision, lower(a.checkpointing::VARCHAR) AS checkpointing,
        lower(a.lora_targets::VARCHAR) AS lora_targets, lower(a.adapter::VARCHAR) AS adapter, lower(a.attention::VARCHAR) AS attention,
        lower(a.loss::VARCHAR) AS loss, lower(a.sharding::VARCHAR) AS sharding, lower(a.offload::VARCHAR) AS offload,
        asked_flag(a.ema) AS ema, asked_flag(a.sequence_parallel) AS sequence_parallel,
        iif(argument_reason IS NULL, asked_numbers(a), NULL) AS numbers,
        iif(argument_reason IS NULL, NULL, asked_numbers(a)) AS refused,
        iif(argument_reason IS NULL, try_cast(a.audio_seconds AS DOUBLE), NULL) AS audio_seconds,
        argument_reason
    FROM checked
),
asked AS (
    SELECT
        typed.* EXCLUDE (model_asked, numbers), coalesce(named.model_id, typed.model_asked) AS model_id,
        numbers.context_tokens, numbers.max_context_tokens, numbers.sequences, numbers.images, numbers.image_width, numbers.image_height,
        numbers.lora_rank, numbers.gradient_accumulation, numbers.optimizer_rank, numbers.tensor_parallel, numbers.pipeline_parallel,
        numbers.context_parallel, numbers.expert_parallel, numbers.micro_batches_in_flight,
        coalesce(numbers.gpu_count, greatest(coalesce(numbers.tensor_parallel, 1), 1) * greatest(coalesce(numbers.pipeline_parallel, 1), 1)
            * greatest(coalesce(numbers.context_parallel, 1), 1))::BIGINT AS gpu_count
    FROM typed LEFT JOIN model_name AS named ON named.name = lower(typed.model_asked)
),
scenario AS (
    SELECT
        asked.model_id,
        usual_dtype(asked.dtype_id, asked.phase_id) AS dtype_id,
        coalesce(asked.phase_id, 'inference') AS phase_id,
        iif(coalesce(asked.phase_id, 'inference') = 'inference', coalesce(asked.engine_id, d.engine_id), coalesce(asked.engine_id, 'transformers'))
            AS engine_id,
        coalesce(asked.context_tokens, default_context_tokens(m, asked.phase_id))::BIGINT AS context_tokens,
        asked.max_context_tokens::BIGINT AS max_context_tokens,
        coalesce(asked.sequences, 1)::BIGINT AS sequences,
        iif(coalesce(asked.phase_id, 'inference') = 'inference', images_of(m, asked.images), asked.images)::BIGINT AS images,
        asked.image_width::BIGINT AS image_width,
        asked.image_height::BIGINT AS image_height,
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
            WHEN asked.sharding = 'tp+pp' THEN 'tp' -- what rows of both are published as
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
        coalesce(asked.offload, 'none') AS offload, asked.argument_reason, asked.refused
    FROM asked
    LEFT JOIN dtype AS d ON d.dtype_id = usual_dtype(asked.dtype_id, asked.phase_id)
    LEFT JOIN engine AS e ON e.engine_id = coalesce(asked.engine_id, d.engine_id)
    LEFT JOIN shape_row ON shape_row.model_id = asked.model_id
),
placed AS (
    SELECT x.*, servers_asked(x, k) AS servers FROM (SELECT scenario AS x FROM scenario) CROSS JOIN constants_row
),
degree AS (
    SELECT
        * EXCLUDE (servers),
        greatest(coalesce(tensor_asked, iif(sharding = 'tp',
            gpu_count // (greatest(coalesce(pipeline_asked, servers), 1) * context_parallel), 1)), 1)::BIGINT AS tensor_parallel,
        greatest(coalesce(pipeline_asked, iif(sharding = 'pp',
            gpu_count // (greatest(coalesce(tensor_asked, 1), 1) * context_parallel), servers)), 1)::BIGINT AS pipeline_parallel
    FROM placed
),
split AS (
    SELECT
        degree.*,
        greatest(gpu_count // (tensor_parallel * pipeline_parallel * context_parallel), 1) AS data_parallel,
        greatest(gpu_count // (tensor_parallel * pipeline_parallel), 1) AS shard_count,
        greatest(coalesce(flights_asked, pipeline_parallel), 1)::BIGINT AS micro_batches_in_flight
    FROM degree
),
-- the picture, in steps, so that none is worked out twice
pictured AS (
    SELECT
        x.*, iif(x.images > 0, m.tower, NULL) AS t,
        iif(x.images > 0, picture_side(m.tower, iif(x.image_width < 1, NULL, x.image_width), k), NULL) AS picture_width,
        iif(x.images > 0, picture_side(m.tower, iif(x.image_height < 1, NULL, x.image_height), k), NULL) AS picture_height,
        iif(x.images > 0, token_side(m.tower), NULL) AS token_pixels
    FROM (SELECT split AS x FROM split)
    LEFT JOIN shape_row ON shape_row.model_id = x.model_id
    CROSS JOIN constants_row
),
arranged AS (SELECT *, grid_rank(t.processor, picture_width, picture_height, token_pixels) AS grid_rank FROM pictured),
in_rows AS (SELECT *, image_rows(t, t.processor, picture_width, picture_height, token_pixels, grid_rank) AS picture_rows FROM arranged),
in_columns AS (
    SELECT * EXCLUDE (t), image_columns(t, t.processor, picture_width, picture_height, token_pixels, grid_rank, picture_rows) AS picture_columns
    FROM in_rows
),
counted AS (
    SELECT x.*, tower_tokens(m.tower, x, k) AS tower_tokens, prompt_image_tokens(m.tower, x) AS prompt_image_tokens
    FROM (SELECT in_columns AS x FROM in_columns)
    LEFT JOIN shape_row ON shape_row.model_id = x.model_id
    CROSS JOIN constants_row
),
resolved AS (
    SELECT
        x.* EXCLUDE (prompt_image_tokens),
        rule.scheme, rule.has_master_weights, rule.is_root_whole, rule.reduce_bytes,
        rule.bucket_elements, rule.live_elements, rule.can_offload_optimizer, rule.can_offload_all,
        expert_padding(rule, m, x) AS expert_padding, coalesce(rule.has_fused_kernels, false) AS has_fused_kernels,
        coalesce(x.residual_asked, rule.is_sequence_parallel, false) AS is_sequence_parallel,
        x.phase_id IN ('lora', 'qlora') AS is_adapter,
        iif(x.dtype_id = 'fp32' AND coalesce(x.precision, 'pure') <> 'amp' OR x.phase_id = 'qlora' AND x.precision = 'mixed', 4, 2)
            AS compute_bytes,
        CASE
            WHEN x.phase_id IN ('lora', 'qlora') THEN iif(x.precision = 'pure', iif(x.dtype_id = 'fp32', 4, 2), 4)
            WHEN x.precision = 'amp' OR x.dtype_id = 'fp32' THEN 4
            ELSE 2
        END AS trained_bytes_each,
        iif(x.phase_id = 'inference', kv.element_bits, 0) AS kv_element_bits,
        coalesce(list_contains(string_split(kv.engine_ids, ' '), x.engine_id), true) AS takes_kv_dtype,
        coalesce(run.keeps_logits, false) AS keeps_logits, coalesce(run.repeats_keys, false) AS repeats_keys,
        coalesce(run.chunks_logits, false) AS chunks_logits,
        run.norm_form AS engine_norm_form,
        coalesce(run.keeps_gradients, false) OR coalesce(rule.keeps_gradients, false) OR x.gradient_accumulation > 1
            OR x.pipeline_parallel > 1 AS has_standing_gradients,
        run.gradient_bytes AS engine_gradient_bytes,
        run.process_context_bytes AS engine_context_bytes,
        run.unknown_reason AS engine_reason,
        has_adapted_experts(m, x) AS has_adapted_experts,
        k.loss_chunks, iif(m.tower.reader = 'cross-attention', x.tower_tokens, x.context_tokens) AS cross_tokens,
        input_reason(m, x, x.prompt_image_tokens) AS input_reason
    FROM (SELECT counted AS x FROM counted)
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = x.kv_dtype_id
    LEFT JOIN engine AS run ON run.engine_id = x.engine_id
    LEFT JOIN shape_row ON shape_row.model_id = x.model_id
    LEFT JOIN sharding_rule AS rule ON rule.engine_id = x.engine_id AND rule.sharding = x.sharding AND x.phase_id <> 'inference'
    CROSS JOIN constants_row
)
SELECT
    x.*, weight_shards(x) AS weight_shards, gradient_shards(x) AS gradient_shards, optimizer_shards(x) AS optimizer_shards,
    are_masters_weights(x) AS are_masters_weights, gradient_bytes_each(x) AS gradient_bytes_each, made_bytes_each(x) AS made_bytes_each,
    reduce_bytes_each(x) AS reduce_bytes_each, unit_elements(m, x) AS unit_elements, trained_elements(m, x) AS trained_elements,
    ceil(m.layer_count / x.pipeline_parallel) / greatest(m.layer_count, 1) AS stage_share, sharding_reason(m, x) AS sharding_reason
FROM (SELECT resolved AS x FROM resolved) LEFT JOIN shape_row ON shape_row.model_id = x.model_id;
