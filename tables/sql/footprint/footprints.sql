-- Footprints: what a scenario needs on each GPU, by component.
--
--   total_bytes = weights + kv_cache + kv_padding + state + activations + gradients + optimizer + adapters + overhead
--
-- Units: bytes per GPU; several GPUs: the one that holds most. total_bytes − overhead_bytes is what a framework reports as peak
-- allocated, but for the allocator's rounding and cuBLAS's workspace, which are in the overhead; total_bytes is what the driver shows
-- for the process. Unknown is null, with unknown_reason; a total with an unknown part is unknown.
--
-- Sources: the components' own files. Not covered: mixed cards, speculative decoding.
--
-- footprints(relation) answers a whole relation of scenarios (columns as in `scenario_asked`, null means default);
-- footprint_of(model_id, ...) asks for one. The published table is filled by the same macro.

CREATE OR REPLACE MACRO footprints(relation) AS TABLE
WITH scenario AS MATERIALIZED (FROM scenarios(relation)),
-- only the models asked for: joining the wide rows of all models at every step took DuckDB 1.2 minutes in limits_on
shapes AS MATERIALIZED (
    SELECT shape_row.model_id, shape_row.m
    FROM (SELECT DISTINCT model_id FROM scenario) AS wanted JOIN shape_row ON shape_row.model_id = wanted.model_id
),
part AS (
    SELECT
        x.*, iif(x.phase_id = 'qlora', 'qlora', 'other') AS recipe_phase_id,
        scenario_reason(m, d, w, x, opt) AS unknown_reason,
        iif(x.phase_id = 'inference', sharded_weights(w, x) + kernel_weights_bytes(m, x, k), NULL) AS inference_weights,
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
        iif(x.phase_id = 'inference', loading_bytes(m, x), NULL) AS loading,
        error_band(x, k) AS error_band
    FROM (SELECT scenario AS x FROM scenario)
    LEFT JOIN shapes AS own ON own.model_id = x.model_id
    LEFT JOIN dtype AS d ON d.dtype_id = x.dtype_id
    LEFT JOIN weight AS w ON w.model_id = x.model_id AND w.dtype_id = x.dtype_id
    LEFT JOIN optimizer AS opt ON opt.optimizer_id = x.optimizer_id
    CROSS JOIN constants_row  -- last: a stored macro writes it as a comma, which binds least
),
-- What a forward pass keeps does not depend on optimizer, checkpointing or GPU count: it is worked out once for each of the few recipes
-- that a lookup of a thousand scenarios shares.
recipe AS (
    SELECT DISTINCT
        model_id, recipe_phase_id AS phase_id, is_adapter, precision, compute_bytes, lora_rank, lora_targets,
        adapter, has_adapted_experts, attention, context_tokens, least(sequences, 2) AS sequences, tensor_parallel, is_sequence_parallel,
        has_fused_kernels, repeats_keys, engine_norm_form, dtype_id = 'fp16' AS is_half
    FROM part
    WHERE phase_id <> 'inference' AND unknown_reason IS NULL
),
autocast AS (SELECT x.*, is_autocast(x) AS is_autocast FROM (SELECT recipe AS x FROM recipe)),
residual AS (SELECT x.*, residual_bytes(x) AS residual_bytes FROM (SELECT autocast AS x FROM autocast)),
kernel AS (
    SELECT x.*, kept_by_norm(m, x) AS norm_bytes, kept_per_score(m, x) AS score_bytes, encoder_ratio(m, x) AS encoder_ratio
    FROM (SELECT residual AS x FROM residual)
    JOIN shapes AS own ON own.model_id = x.model_id
),
mixer AS (
    SELECT x.*, with_kernels(m, x) AS mixers FROM (SELECT kernel AS x FROM kernel) JOIN shapes AS own ON own.model_id = x.model_id
),
layer AS (
    SELECT x.*, kept_parts(m, x, x.mixers) AS parts FROM (SELECT mixer AS x FROM mixer) JOIN shapes AS own ON own.model_id = x.model_id
),
recipe_kept AS (
    SELECT x.* EXCLUDE (mixers, parts), kept_sums(m, x, x.parts) AS s
    FROM (SELECT layer AS x FROM layer) JOIN shapes AS own ON own.model_id = x.model_id
),
step AS (
    SELECT x.*, r.is_autocast, r.residual_bytes, r.norm_bytes, r.s
    FROM part AS x
    JOIN recipe_kept AS r
        ON x.phase_id <> 'inference' AND x.unknown_reason IS NULL AND r.model_id = x.model_id AND r.phase_id = x.recipe_phase_id
        AND r.is_adapter = x.is_adapter AND r.precision = x.precision AND r.compute_bytes = x.compute_bytes
        AND r.lora_rank IS NOT DISTINCT FROM x.lora_rank AND r.lora_targets IS NOT DISTINCT FROM x.lora_targets
        AND r.adapter IS NOT DISTINCT FROM x.adapter
        AND r.has_adapted_experts IS NOT DISTINCT FROM x.has_adapted_experts AND r.attention = x.attention
        AND r.context_tokens = x.context_tokens AND r.sequences = least(x.sequences, 2)
        AND r.tensor_parallel = x.tensor_parallel AND r.is_sequence_parallel = x.is_sequence_parallel
        AND r.has_fused_kernels = x.has_fused_kernels AND r.repeats_keys = x.repeats_keys
        AND r.is_half = (x.dtype_id = 'fp16')
        AND r.engine_norm_form IS NOT DISTINCT FROM x.engine_norm_form
),
-- Of a pipeline the two stages that can be the worst, else the whole model: what it holds, and its moments. (Two columns and no list:
-- a lambda over stages took twenty times as long.)
placed AS (
    SELECT
        x.*, layer_work(m, x, x.s) AS work, made_in_layer(m, x) AS made_in_layer, first_stage(m, x) AS first_place, last_stage(m, x) AS last_place
    FROM (SELECT step AS x FROM step) JOIN shapes AS own ON own.model_id = x.model_id
),
stage AS (
    SELECT
        x.* EXCLUDE (first_place, last_place),
        held_by(m, x, x.first_place) AS first_stage,
        iif(x.pipeline_parallel > 1, held_by(m, x, x.last_place), NULL) AS last_stage
    FROM (SELECT placed AS x FROM placed) JOIN shapes AS own ON own.model_id = x.model_id
),
moment AS (
    SELECT
        x.*,
        moments(m, x, opt, x.first_stage) AS first_moments,
        iif(x.pipeline_parallel > 1, moments(m, x, opt, x.last_stage), NULL) AS last_moments
    FROM (SELECT stage AS x FROM stage)
    JOIN shapes AS own ON own.model_id = x.model_id
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
-- Inference, and all that has no answer.
served AS (
    SELECT
        x.*, iif(x.phase_id = 'inference', stage_activations_bytes(m, x, k, x.kv_cache + x.kv_padding + x.state), NULL) AS inference_activations,
        layer_bytes_before_logits(m, x) AS layer_bytes
    FROM (SELECT part AS x FROM part WHERE phase_id = 'inference' OR unknown_reason IS NOT NULL)
    LEFT JOIN shapes AS own ON own.model_id = x.model_id
    CROSS JOIN constants_row
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
    FROM served
),
counted AS (
    SELECT x.*, overhead_bytes(x, k, m, x.gradients) AS overhead, kernel_spread_bytes(m, x, k) AS kernel_spread
    FROM (SELECT peak AS x FROM peak)
    LEFT JOIN shapes AS own ON own.model_id = x.model_id
    CROSS JOIN constants_row
),
summed AS (
    SELECT *, weights::DOUBLE + kv_cache + kv_padding + state + activations + gradients + optimizer + adapters + overhead AS total
    FROM counted
),
known AS (
    SELECT
        x.* EXCLUDE (unknown_reason, error_band, kernel_spread),
        x.error_band + unused_band(x, k, x.total - x.gradients - x.optimizer) + coalesce(x.kernel_spread / x.total, 0) AS error_band,
        try_cast(x.total AS BIGINT) IS NOT NULL AS is_countable,
        x.unknown_reason IS NULL AND is_countable AS is_known,
        coalesce(x.unknown_reason, iif(is_countable, NULL, 'more bytes than 64 bits can count')) AS unknown_reason
    FROM (SELECT summed AS x FROM summed)
    CROSS JOIN constants_row
)
SELECT
    model_id, dtype_id, phase_id, engine_id,
    -- what was asked stays to be seen where it is refused
    iif(refused IS NULL, context_tokens, refused.context_tokens) AS context_tokens, max_context_tokens,
    iif(refused IS NULL, sequences, refused.sequences) AS sequences, iif(refused IS NULL, images, refused.images) AS images,
    iif(refused IS NULL, image_width, refused.image_width) AS image_width,
    iif(refused IS NULL, image_height, refused.image_height) AS image_height, audio_seconds,
    kv_dtype_id, optimizer_id, precision,
    checkpointing, iif(refused IS NULL, lora_rank, refused.lora_rank) AS lora_rank, lora_targets, adapter, attention, loss, gradient_accumulation, ema, optimizer_rank,
    iif(phase_id = 'inference' AND least(tensor_parallel, pipeline_parallel) > 1, 'tp+pp', sharding) AS sharding,
    iif(refused IS NULL, gpu_count_asked, coalesce(refused.gpu_count, gpu_count_asked)) AS gpu_count,
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

-- The same for scenarios of one phase, and with is_plain for those that say nothing but PLAIN of pipeline/press/flat: fewer words to plan.
-- It is made anew there, as `footprints` is.
CREATE OR REPLACE MACRO footprints_in(relation, phase_id, is_plain := false) AS TABLE FROM footprints(relation);
-- whether a scenario says nothing of what few ask for
CREATE OR REPLACE MACRO is_plain_scenario(
    lora_rank, lora_targets, precision, sharding, adapter, loss, gradient_accumulation, ema, optimizer_rank, max_context_tokens, tensor_parallel,
    pipeline_parallel, context_parallel, expert_parallel, micro_batches_in_flight, sequence_parallel, offload, images, image_width, image_height,
    audio_seconds
) AS coalesce(
    lora_rank::VARCHAR, lora_targets::VARCHAR, precision::VARCHAR, sharding::VARCHAR, adapter::VARCHAR, loss::VARCHAR,
    gradient_accumulation::VARCHAR, ema::VARCHAR, optimizer_rank::VARCHAR, max_context_tokens::VARCHAR, tensor_parallel::VARCHAR,
    pipeline_parallel::VARCHAR, context_parallel::VARCHAR, expert_parallel::VARCHAR, micro_batches_in_flight::VARCHAR, sequence_parallel::VARCHAR,
    offload::VARCHAR, images::VARCHAR, image_width::VARCHAR, image_height::VARCHAR, audio_seconds::VARCHAR
) IS NULL;
