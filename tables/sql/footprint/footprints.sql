-- Footprints: what a scenario needs on each GPU, by component.
--
--   total_bytes = weights + kv_cache + kv_padding + state + activations + gradients + optimizer + adapters + overhead
--
-- Units: bytes per GPU; several GPUs: the one that holds most. total_bytes − overhead_bytes is what a framework reports
-- as peak allocated, but for the allocator's rounding and cuBLAS's workspace, which are in the overhead; total_bytes is
-- what the driver shows for the process. Unknown is null, with unknown_reason; a total with an unknown part is unknown.
--
-- Sources: the components' own files. Not covered: mixed cards; speculative decoding (ask/speculative_of.sql).
--
-- more_bytes is the part of error_band that is the weights': what a packed copy may hold beyond most, and what
-- Unsloth's may keep in 16 bits.
--
-- footprints(relation) answers a whole relation of scenarios (columns as in `scenario_asked`, null means default);
-- footprint_of(model_id, ...) asks for one. The published table is filled by the same macro.

CREATE OR REPLACE MACRO footprints(relation) AS TABLE
WITH scenario AS MATERIALIZED (FROM scenarios(relation)),
-- only the models asked for: joining the wide rows of all models at every step took DuckDB 1.2 minutes in limits_on
shapes AS MATERIALIZED (
    SELECT shape_row.model_id, shape_row.model
    FROM (SELECT DISTINCT model_id FROM scenario) AS wanted JOIN shape_row ON shape_row.model_id = wanted.model_id
),
part AS (
    SELECT
        scenario.*, iif(scenario.phase_id = 'qlora', 'qlora', 'other') AS recipe_phase_id,
        scenario_reason(model, dtype, weight, scenario, optimizer) AS unknown_reason,
        iif(scenario.phase_id = 'inference', iif(is_spread(scenario), spread_weights(weight, model, scenario),
            sharded_weights(weight, model, scenario) + server_latent_bytes(weight, model, scenario))
            + kernel_weights_bytes(model, scenario, constants)
            + (untied_head_bytes(model, scenario) - packed_head_saving(model, dtype, scenario))::BIGINT, NULL)
            AS inference_weights,
        iif(scenario.phase_id = 'inference', packing_spread(weight, inference_weights),
            kept_spread_bytes(weight, dtype, model, scenario, constants)) AS packing_spread,
        iif(scenario.phase_id = 'inference', 0, trained_weights(weight, scenario) * iif(scenario.are_masters_weights, 2,
            1) + kept_layer_bytes(weight, dtype, model, scenario, constants) + untied_head_bytes(model, scenario)
            - packed_head_saving(model, dtype, scenario)) AS whole_weights,
        iif(scenario.phase_id = 'inference', 0, packed_whole_bytes(weight, dtype, scenario)) AS packed_whole,
        iif(scenario.phase_id = 'inference', 0, gradients_bytes(model, scenario)) AS whole_gradients,
        iif(scenario.phase_id = 'inference', 0, optimizer_bytes(model, scenario, optimizer)) AS whole_optimizer,
        adapter_elements(model, scenario) * adapter_bytes_each(scenario) + saved_bytes(model, scenario)
            AS whole_adapters,
        bucket_bytes(model, scenario) AS bucket_bytes, live_gathered(weight, model, scenario)
            AS live_gathered,
        gather_bytes_each(weight, model, scenario) AS gather_bytes_each,
        iif(scenario.phase_id = 'inference', kv_cache_bytes(model, scenario), 0) AS kv_cache,
        CASE WHEN scenario.phase_id <> 'inference' THEN 0
            WHEN has_pool(model, scenario.engine_id) THEN pool_padding_bytes(model, scenario)
            ELSE kv_padding_bytes(model, scenario) END AS kv_padding,
        iif(scenario.phase_id = 'inference', state_bytes(model, scenario), 0) AS state,
        iif(coalesce(scenario.program_base.keeps_tower_free, false), weight.tower_bytes, 0) AS kept_tower_bytes,
        iif(scenario.phase_id = 'qlora', unpacked_bytes(model, scenario), 0) AS dequantised,
        iif(scenario.phase_id = 'inference', loading_bytes(model, dtype, scenario),
            loaded_whole_bytes(weight, dtype, model, scenario)) AS loading,
        error_band(model, scenario, constants, optimizer) + shape_band(model, constants)
            + own_code_band(model, scenario, constants) AS error_band
    FROM (SELECT scenario AS scenario FROM scenario)
    LEFT JOIN shapes AS own ON own.model_id = scenario.model_id
    LEFT JOIN dtype ON dtype.dtype_id = scenario.dtype_id
    LEFT JOIN weight ON weight.model_id = scenario.model_id AND weight.dtype_id = scenario.dtype_id
    LEFT JOIN optimizer ON optimizer.optimizer_id = scenario.optimizer_id
    CROSS JOIN constants_row  -- last: a stored macro writes it as a comma, which binds least
),
-- What a forward pass keeps does not depend on optimizer, checkpointing or GPU count: it is worked out once for each of
-- the few recipes that a lookup of a thousand scenarios shares.
recipe AS (
    SELECT DISTINCT
        model_id, recipe_phase_id AS phase_id, is_adapter, precision, compute_bytes, lora_rank, lora_targets,
        adapter, has_adapter_dropout, has_adapted_experts, has_shared_adapters, attention, context_tokens,
        least(sequences, 2) AS sequences,
        tensor_parallel, is_sequence_parallel,
        has_fused_kernels, has_fused_sinks, flex_mask_bytes_each, repeats_keys, joins_projections, prepares_base,
        packed_adapter_bytes, keeps_alternate_products, engine_norm_form,
        dtype_id = 'fp16' AS is_half, has_fp32_biases(part) AS has_fp32_biases
    FROM part
    WHERE phase_id <> 'inference' AND unknown_reason IS NULL
),
autocast AS (SELECT scenario.*, is_autocast(scenario) AS is_autocast FROM (SELECT recipe AS scenario FROM recipe)),
residual AS (SELECT scenario.*, residual_bytes(scenario) AS residual_bytes
    FROM (SELECT autocast AS scenario FROM autocast)),
kernel AS (
    SELECT scenario.*, kept_by_norm(model, scenario) AS norm_bytes, kept_per_score(model, scenario) AS score_bytes,
        encoder_ratio(model, scenario) AS encoder_ratio
    FROM (SELECT residual AS scenario FROM residual)
    JOIN shapes AS own ON own.model_id = scenario.model_id
),
mixer AS (
    SELECT scenario.*, with_kernels(model, scenario) AS mixers FROM (SELECT kernel AS scenario FROM kernel)
        JOIN shapes AS own ON own.model_id = scenario.model_id
),
layer AS (
    SELECT scenario.*, kept_parts(model, scenario, scenario.mixers) AS parts FROM (SELECT mixer AS scenario FROM mixer)
        JOIN shapes AS own ON own.model_id = scenario.model_id
),
recipe_kept AS (
    SELECT scenario.* EXCLUDE (mixers, parts), kept_sums(model, scenario, scenario.parts) AS sums
    FROM (SELECT layer AS scenario FROM layer) JOIN shapes AS own ON own.model_id = scenario.model_id
),
step AS (
    SELECT scenario.*, recipe.is_autocast, recipe.residual_bytes, recipe.norm_bytes, recipe.sums
    FROM part AS scenario
    JOIN recipe_kept AS recipe
        ON scenario.phase_id <> 'inference' AND scenario.unknown_reason IS NULL
        AND recipe.model_id = scenario.model_id AND recipe.phase_id = scenario.recipe_phase_id
        AND recipe.is_adapter = scenario.is_adapter AND recipe.precision = scenario.precision
        AND recipe.compute_bytes = scenario.compute_bytes
        AND recipe.lora_rank IS NOT DISTINCT FROM scenario.lora_rank
        AND recipe.lora_targets IS NOT DISTINCT FROM scenario.lora_targets
        AND recipe.adapter IS NOT DISTINCT FROM scenario.adapter
        AND recipe.has_adapter_dropout = scenario.has_adapter_dropout
        AND recipe.has_adapted_experts IS NOT DISTINCT FROM scenario.has_adapted_experts
        AND recipe.has_shared_adapters = scenario.has_shared_adapters
        AND recipe.attention = scenario.attention AND recipe.context_tokens = scenario.context_tokens
        AND recipe.sequences = least(scenario.sequences, 2) AND recipe.tensor_parallel = scenario.tensor_parallel
        AND recipe.is_sequence_parallel = scenario.is_sequence_parallel
        AND recipe.has_fused_kernels = scenario.has_fused_kernels
        AND recipe.has_fused_sinks = scenario.has_fused_sinks AND recipe.repeats_keys = scenario.repeats_keys
        AND recipe.joins_projections = scenario.joins_projections
        AND recipe.is_half = (scenario.dtype_id = 'fp16') AND recipe.prepares_base = scenario.prepares_base
        AND recipe.has_fp32_biases = has_fp32_biases(scenario)
        AND recipe.packed_adapter_bytes IS NOT DISTINCT FROM scenario.packed_adapter_bytes
        AND recipe.keeps_alternate_products = scenario.keeps_alternate_products
        AND recipe.engine_norm_form IS NOT DISTINCT FROM scenario.engine_norm_form
),
-- Of a pipeline the two stages that can be the worst, else the whole model: what it holds, and its moments. (Two
-- columns and no list: a lambda over stages took twenty times as long.)
placed AS (
    SELECT
        scenario.*, layer_work(model, scenario, scenario.sums) AS work, made_in_layer(model, scenario) AS made_in_layer,
        first_stage(model, scenario) AS first_place, last_stage(model, scenario) AS last_place
    FROM (SELECT step AS scenario FROM step) JOIN shapes AS own ON own.model_id = scenario.model_id
),
stage AS (
    SELECT
        scenario.* EXCLUDE (first_place, last_place),
        held_by(model, scenario, scenario.first_place) AS first_stage,
        iif(scenario.pipeline_parallel > 1, held_by(model, scenario, scenario.last_place), NULL) AS last_stage
    FROM (SELECT placed AS scenario FROM placed) JOIN shapes AS own ON own.model_id = scenario.model_id
),
moment AS (
    SELECT
        scenario.*,
        running_blocks(model, scenario, scenario.first_stage) AS running_blocks,
        freed_logits(model, scenario) AS freed_logits, logged_copy_bytes(model, scenario) AS logged_copy_bytes,
        wasted_block_bytes(model, scenario, coalesce(greatest(model.gated_max, model.plain_max), 0)::DOUBLE
            / model.hidden_size) AS wasted_blocks,
        kept_blocks(model, scenario, optimizer) AS kept_blocks,
        embedding_block_bytes(model, scenario, optimizer) AS embedding_blocks,
        moments(model, scenario, optimizer, scenario.first_stage) AS first_moments,
        iif(scenario.pipeline_parallel > 1, moments(model, scenario, optimizer, scenario.last_stage), NULL)
            AS last_moments
    FROM (SELECT stage AS scenario FROM stage)
    JOIN shapes AS own ON own.model_id = scenario.model_id
    JOIN optimizer ON optimizer.optimizer_id = scenario.optimizer_id
),
worst AS (
    SELECT
        * EXCLUDE (sums, is_autocast, residual_bytes, norm_bytes, work, made_in_layer, first_stage, last_stage,
            first_moments, last_moments),
        coalesce(largest_moment(last_moments) > largest_moment(first_moments), false) AS is_last_worst,
        iif(is_last_worst, last_stage, first_stage) AS held,
        iif(is_last_worst, last_moments, first_moments) AS moments
    FROM moment
),
-- Inference, and all that has no answer.
served AS (
    SELECT
        scenario.*, iif(scenario.phase_id = 'inference', stage_activations_bytes(model, scenario, constants,
            scenario.kv_cache + scenario.kv_padding + scenario.state)
            + ceil(served_step_bytes(model, scenario, constants))::BIGINT, NULL) AS inference_activations,
        served_adapter_bytes(model, scenario)::BIGINT AS served_adapters,
        layer_bytes_before_logits(model, scenario) AS layer_bytes
    FROM (SELECT part AS scenario FROM part WHERE phase_id = 'inference' OR unknown_reason IS NOT NULL)
    LEFT JOIN shapes AS own ON own.model_id = scenario.model_id
    CROSS JOIN constants_row
),
peak AS (
    SELECT
        * EXCLUDE (moments, held, is_last_worst, inference_weights),
        try_cast(held.weights AS BIGINT) AS weights, try_cast(held.gradients AS BIGINT) AS gradients,
        try_cast(held.optimizer AS BIGINT) AS optimizer, try_cast(held.adapters AS BIGINT) AS adapters,
        try_cast(held.host AS BIGINT) AS host,
        largest_moment(moments) AS peak_bytes, moments.loss AS loss_bytes,
        CASE greatest(largest_moment(moments), loading)
            WHEN moments.loss THEN 'loss' WHEN moments.backward THEN 'backward' WHEN moments.forward THEN 'forward'
            WHEN moments."end" THEN 'end' WHEN moments.optimizer THEN 'optimizer' WHEN loading THEN 'loading'
        END AS peak_moment,
        try_cast(ceil(greatest(largest_moment(moments), loading)) - held.weights - held.adapters - held.gradients
            - held.optimizer AS BIGINT) AS activations
    FROM worst
    UNION ALL BY NAME
    SELECT
        * EXCLUDE (inference_weights, served_adapters), inference_weights AS weights, 0 AS gradients, 0 AS optimizer,
        served_adapters AS adapters,
        0 AS host,
        NULL AS peak_bytes, NULL AS peak_moment, NULL AS running_blocks, NULL AS freed_logits, NULL AS wasted_blocks,
        NULL AS logged_copy_bytes, NULL AS embedding_blocks, NULL AS loss_bytes, NULL AS kept_blocks,
        iif(loading > inference_activations, loading, inference_activations) AS activations
    FROM served
),
counted AS (
    SELECT scenario.*, overhead_bytes(scenario, constants, model, scenario.gradients) AS overhead,
        coalesce(scenario.packing_spread, 0) + coalesce(kernel_spread_bytes(model, scenario, constants), 0)
            + lost_logits_bytes(model, scenario, constants)
            + unused_spread_bytes(model, scenario, constants) + index_spread_bytes(model, scenario, constants)
            + parallel_spread_bytes(scenario, constants) + kept_free_spread_bytes(model, scenario)
            + coalesce(first_start_spread_bytes(scenario, scenario.activations + overhead
                - served_beside_bytes(model, scenario, constants), constants), 0) AS spread
    FROM (SELECT peak AS scenario FROM peak)
    LEFT JOIN shapes AS own ON own.model_id = scenario.model_id
    CROSS JOIN constants_row
),
summed AS (
    SELECT *, weights::DOUBLE + kv_cache + kv_padding + state + activations + gradients + optimizer + adapters
        + overhead AS total
    FROM counted
),
known AS (
    SELECT
        scenario.* EXCLUDE (unknown_reason, error_band, spread),
        scenario.error_band + coalesce(scenario.spread / scenario.total, 0) AS error_band,
        try_cast(scenario.total AS BIGINT) IS NOT NULL AS is_countable,
        scenario.unknown_reason IS NULL AND is_countable AS is_known,
        coalesce(scenario.unknown_reason, iif(is_countable, NULL, 'more bytes than 64 bits can count'))
            AS unknown_reason
    FROM (SELECT summed AS scenario FROM summed)
)
SELECT
    model_id, dtype_id, phase_id, engine_id,
    -- what was asked stays to be seen where it is refused
    iif(refused IS NULL, context_tokens, refused.context_tokens) AS context_tokens, max_context_tokens,
    iif(refused IS NULL, sequences, refused.sequences) AS sequences, iif(refused IS NULL, images, refused.images)
        AS images,
    iif(refused IS NULL, image_width, refused.image_width) AS image_width,
    iif(refused IS NULL, image_height, refused.image_height) AS image_height, audio_seconds,
    lora_dropout,
    iif(refused IS NULL, reduce_bucket_elements, refused.reduce_bucket_elements) AS reduce_bucket_elements,
    expandable_segments, trains_embeddings,
    kv_dtype_id, optimizer_id, precision,
    checkpointing, iif(refused IS NULL, lora_rank, refused.lora_rank) AS lora_rank, lora_targets, adapter, attention,
    loss, gradient_accumulation, ema, optimizer_rank,
    CASE
        WHEN phase_id <> 'inference' THEN sharding
        WHEN coalesce(data_asked, 1) > 1 THEN 'dp' || iif(tensor_parallel > 1, '+tp', '')
            || iif(expert_parallel > 1, '+ep', '')
        WHEN expert_parallel > 1 THEN iif(tensor_parallel > 1, 'tp+ep', 'ep')
        WHEN least(tensor_parallel, pipeline_parallel) > 1 THEN 'tp+pp'
        ELSE sharding
    END AS sharding,
    iif(refused IS NULL, gpu_count_asked, coalesce(refused.gpu_count, gpu_count_asked)) AS gpu_count,
    tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, data_parallel::BIGINT AS data_parallel,
    decode_context_parallel, batched_tokens, max_num_seqs, text_only, enforce_eager,
    max_loras, max_lora_rank, micro_batches_in_flight,
    is_sequence_parallel AS sequence_parallel, offload, program, program_version,
    iif(is_known, weights, NULL)::BIGINT AS weights_bytes,
    iif(is_known, kv_cache, NULL)::BIGINT AS kv_cache_bytes,
    iif(is_known, kv_padding, NULL)::BIGINT AS kv_padding_bytes,
    iif(is_known, state, NULL)::BIGINT AS state_bytes,
    iif(is_known, activations, NULL)::BIGINT AS activations_bytes,
    iif(is_known, gradients, NULL)::BIGINT AS gradients_bytes,
    iif(is_known, optimizer, NULL)::BIGINT AS optimizer_bytes,
    iif(is_known, adapters, NULL)::BIGINT AS adapters_bytes,
    iif(is_known, overhead, NULL)::BIGINT AS overhead_bytes,
    iif(is_known, weights + kv_cache + kv_padding + state + activations + gradients + optimizer + adapters + overhead,
        NULL)::BIGINT
        AS total_bytes,
    iif(is_known, host, NULL)::BIGINT AS host_bytes,
    iif(is_known, error_band, NULL) AS error_band, iif(is_known, ceil(packing_spread), NULL)::BIGINT AS more_bytes,
    iif(is_known, peak_moment, NULL) AS peak_moment, card_share, holds_for,
    unknown_reason
FROM known;

-- The same for scenarios of one phase ('training': of any but inference), and with is_plain or is_usual for those that
-- say nothing but PLAIN or USUAL of pipeline/book/scenario.py: fewer words to plan. It is made anew by
-- pipeline/press/flat, as `footprints` is.
CREATE OR REPLACE MACRO footprints_in(relation, phase_id, is_plain := false, is_usual := false) AS TABLE
FROM footprints(relation);
