-- Many scenarios against one card at once: what each needs, whether it fits, and the longest context that does.
--
--   fits_in('asked', 'rtx-4090')              the rows of a relation of yours, whose columns are those of footprint_of
--                                             (any may be left out): a question is planned once, however many rows
--   fits_in('asked', NULL, free_bytes := n)   against an amount of memory instead of a card: whether a card runs the
--                                             format is then not asked
--   fits_in('asked', 'rtx-4090', free_bytes := n)   a card of which other programs hold a part
--   with_limits := false                      leaves the longest context out, which takes most of the time
--   is_plain := false, is_usual := true   for relations that say more than most do, but nothing of pictures or of what
--                                         few ask for: half of the text is planned (pipeline/book/scenario.py)
--   beyond_bytes := n                         what files hold beyond the format, on each GPU (repository_of says it)
--   more_share := 0.2                         what they may hold beyond it and beyond what makers are known for, as a
--                                             share of its weights (of repository_of's more_bytes what is more than
--                                             weight.packing_spread_bytes): the error band takes it in
--
-- hangs_on_copy: a tight verdict that more_bytes decides, what a packed copy may hold beyond most: it fits where the
-- copy was packed as most are.
-- max_context_tokens lies on lines between contexts that are worked out, four an octave, the bends of the model's
-- caches and the context asked for: never above that of limits_on, and never on the other side of the verdict.
-- Rows are scenarios as they are answered, not as they were asked: ids in full, defaults filled in. All rows of one
-- model ask for one context. share_is_free says whether what a server takes by default of the whole card is free.
-- A name that is not there has its reason, without the nearest ones (fits_on tells them).
-- Units: bytes per GPU, tokens. Source: footprints, gpu, runs_on. Not covered: mixed cards.

-- the columns of a scenario, and no row: what a relation leaves out is null
CREATE OR REPLACE VIEW no_scenario AS SELECT {columns}
WHERE false;

CREATE OR REPLACE MACRO fits_in(
    relation, gpu_id, phase_id := 'inference', free_bytes := NULL, is_plain := true, with_limits := true,
    beyond_bytes := 0, is_usual := false, more_share := 0.0
) AS TABLE
WITH fit_card AS MATERIALIZED (
    SELECT asked.*, gpu.gpu_id AS card_id, gpu.card, gpu.card.vendor, gpu.card.compute_capability,
        gpu.card.whole_bytes,
        -- (least passes over nulls)
        iif(asked.gpu_id IS NULL OR gpu.gpu_id IS NOT NULL, asked_bytes(gpu.card, asked.free_bytes), NULL)
            AS capacity_bytes,
        CASE
            WHEN gpu.gpu_id IS NOT NULL THEN NULL
            WHEN asked.gpu_id IS NOT NULL THEN unknown_gpu_reason(asked.gpu_id)
            WHEN asked.free_bytes IS NULL THEN 'no GPU was named'
        END AS no_card_reason
    FROM (SELECT gpu_id::VARCHAR AS gpu_id, free_bytes::BIGINT AS free_bytes, lower(phase_id::VARCHAR) AS phase_id)
        AS asked
    LEFT JOIN card_row AS gpu ON gpu.gpu_id = lower(asked.gpu_id)
),
fit_said AS (
    SELECT asked.* REPLACE (fit_card.phase_id AS phase_id)
    FROM (FROM no_scenario UNION ALL BY NAME FROM query_table(relation)) AS asked CROSS JOIN fit_card
),
fit_asked AS MATERIALIZED (
    SELECT asked.* EXCLUDE (program_numbers, program_reason, program_holds_for, program_share, program_base) REPLACE (
        coalesce(named.model_id, asked.model_id) AS model_id,
        coalesce(asked.context_tokens, program_numbers.context_tokens, default_context_tokens(model, asked.phase_id))
            AS context_tokens),
        list_filter(list_concat(list_transform(range(0, 53), lambda step: 256 * round(pow(2, step / 4.0))::BIGINT),
            ladder_contexts(model, constants)),
            lambda place: with_limits AND place <= coalesce(asked.max_context_tokens, model.max_context_tokens,
                1048576)) AS places
    FROM with_program_in('fit_said', is_plain) AS asked
    LEFT JOIN model_name AS named ON named.name = lower(asked.model_id)
    LEFT JOIN brief_row ON brief_row.model_id = coalesce(named.model_id, asked.model_id)
    CROSS JOIN constants_row
),
fit_step AS (
    SELECT * EXCLUDE (places) FROM fit_asked
    UNION
    SELECT asked.* EXCLUDE (places) REPLACE (place AS context_tokens)
    FROM fit_asked AS asked CROSS JOIN unnest(asked.places) AS one(place)
),
fit_wish AS (SELECT model_id, any_value(context_tokens) AS tokens_asked FROM fit_asked GROUP BY model_id),
fit_footprint AS (
    SELECT footprint.* REPLACE (footprint.total_bytes + beyond_bytes::BIGINT AS total_bytes,
            footprint.weights_bytes + beyond_bytes::BIGINT AS weights_bytes,
            footprint.error_band + footprint.weights_bytes * more_share / footprint.total_bytes AS error_band,
            (footprint.more_bytes + ceil(footprint.weights_bytes * more_share))::BIGINT AS more_bytes),
        footprint.context_tokens IS NOT DISTINCT FROM wish.tokens_asked AS is_asked
    FROM footprints_in('fit_step', phase_id, is_plain := is_plain, is_usual := is_usual) AS footprint
    LEFT JOIN fit_wish AS wish ON wish.model_id IS NOT DISTINCT FROM footprint.model_id
),
fit_line AS (
    SELECT footprint.* EXCLUDE (is_asked),
        list({'at': footprint.context_tokens, 'need': needed(footprint.total_bytes, footprint.error_band)}
            ORDER BY footprint.context_tokens) FILTER (footprint.total_bytes IS NOT NULL)
            OVER (PARTITION BY model_id, dtype_id, engine_id, sequences, kv_dtype_id, optimizer_id, precision,
                checkpointing, lora_rank, lora_targets, adapter, attention, loss, gradient_accumulation, ema,
                optimizer_rank, sharding, gpu_count, tensor_parallel, pipeline_parallel, context_parallel, offload,
                images, image_width, image_height, audio_seconds, lora_dropout, reduce_bucket_elements,
                expandable_segments, trains_embeddings, program, program_version, expert_parallel, data_parallel,
                decode_context_parallel, batched_tokens, max_num_seqs, text_only, enforce_eager, max_loras,
                max_lora_rank) AS points
    FROM fit_footprint AS footprint
    QUALIFY is_asked
),
fit_judged AS (
    SELECT line.*, card.card_id, card.gpu_id AS card_asked, card.capacity_bytes, card.whole_bytes,
        card.free_bytes, card.card, cache_setting(kv, line.program) AS kv_setting,
        coalesce(card.no_card_reason, iif(line.total_bytes IS NULL, line.unknown_reason, NULL),
            iif(card.card_id IS NULL, NULL,
                coalesce(card_reason(running), images_reason(running, line.images),
                    program_card_reason(line, card.card),
                    kv_reason(kv, older.least_capability, card.vendor, card.compute_capability)))) AS reason
    FROM fit_line AS line
    CROSS JOIN fit_card AS card
    LEFT JOIN model ON model.model_id = line.model_id
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = line.kv_dtype_id
    LEFT JOIN kv_older AS older ON older.kv_dtype_id = line.kv_dtype_id AND older.engine_id = line.engine_id
        AND older.model_id = line.model_id AND is_from(line.program_version, older.min_version)
    LEFT JOIN runs_on_kind AS running
        ON running.engine_id = line.engine_id
            AND running.running_id = running_format(model, line.dtype_id, line.engine_id)
            AND running.phase_id = line.phase_id
        AND running.attention = line.attention AND running.card_kind = card.card.card_kind
),
fit_windowed AS (
    SELECT DISTINCT layer.model_id FROM attention_layer AS layer WHERE layer.window_tokens IS NOT NULL
),
-- (asked once: each subquery is planned as a join of its own)
fit_told AS (
    SELECT judged.*, judged.model_id IN (FROM fit_windowed) AS has_windows,
        seeing.model_id IS NOT NULL AS sees, seeing.has_counted_tower,
        model.vocab_size, model.max_context_tokens AS model_context_tokens, sharing.data_setting,
        sharing.expert_setting, sharing.context_setting
    FROM fit_judged AS judged LEFT JOIN model ON model.model_id = judged.model_id
    LEFT JOIN seeing_model AS seeing ON seeing.model_id = judged.model_id
    LEFT JOIN data_parallel_rule AS sharing ON sharing.engine_id = judged.engine_id
)
SELECT
    coalesce(judged.card_id, judged.card_asked) AS gpu_id, judged.model_id, judged.dtype_id, judged.phase_id,
    judged.engine_id, judged.context_tokens, judged.sequences, judged.kv_dtype_id, judged.optimizer_id,
    judged.checkpointing, judged.precision, judged.loss, judged.attention, judged.lora_rank, judged.lora_targets,
    judged.gpu_count, judged.sharding, judged.tensor_parallel, judged.pipeline_parallel, judged.offload,
    judged.weights_bytes, judged.adapters_bytes, judged.kv_cache_bytes, judged.kv_padding_bytes, judged.state_bytes,
    judged.activations_bytes, judged.gradients_bytes, judged.optimizer_bytes, judged.overhead_bytes,
    judged.total_bytes, judged.host_bytes, judged.error_band, judged.more_bytes, judged.capacity_bytes,
    judged.capacity_bytes - judged.total_bytes AS headroom_bytes,
    iif(judged.reason IS NULL,
        card_verdict(judged.total_bytes, judged.error_band, judged.capacity_bytes, judged.gpu_count), NULL) AS verdict,
    verdict = 'tight' AND hangs_on_copy(judged.total_bytes, judged.error_band, judged.more_bytes,
        judged.capacity_bytes) AS hangs_on_copy,
    iif(with_limits AND judged.reason IS NULL,
        largest_between(judged.points, judged.capacity_bytes, context_multiple(judged.engine_id, constants)),
        NULL)::BIGINT AS max_context_tokens,
    judged.model_context_tokens,
    -- (what servers are told is of the part of the card that is free, and their share of the whole card)
    iif(judged.card_id IS NULL, NULL, engine_setting(judged,
        card_with(judged.card, judged.capacity_bytes), constants)) AS engine_setting,
    NOT is_serving_engine(judged.engine_id)
        OR coalesce(default_share(judged, constants).vllm_default_share * judged.whole_bytes <= judged.capacity_bytes,
            false) AS share_is_free,
    judged.holds_for, judged.reason AS unknown_reason,
    judged.max_num_seqs, judged.batched_tokens, judged.enforce_eager, judged.text_only
-- (a row in one column: see fits_on)
FROM (SELECT fit_told AS judged FROM fit_told)
CROSS JOIN constants_row;
