-- Verdicts: a footprint against what a card gives.
--
--   fits       total_bytes × (1 + error_band) ≤ capacity_bytes on one GPU
--   tight      total_bytes ≤ capacity_bytes, but the error band does not fit: on one GPU, or, where the band fits on no count, on the
--              fewest that take the total: gpu_count_needed
--   multi-gpu  the same as fits, on more GPUs of this kind: gpu_count_needed
--   no         the total is larger than the card on every GPU count of the lookup
--   null       the footprint is not known, or no source says that the engine runs the format on this card, or one says that it does not;
--              unknown_reason says which
--
-- Units: bytes per GPU; total_bytes is that of gpu_count_needed GPUs, or of one where nothing fits. A null total has a null verdict
-- and its reason. Source: footprint, gpu, runs_on. Not covered: counts beyond those of scenario_set.csv, mixed cards, offload to the CPU.

-- One row per scenario, its totals by GPU count.
CREATE OR REPLACE VIEW scenario_totals AS
SELECT
    model_id, dtype_id, phase_id, engine_id, context_tokens, sequences, kv_dtype_id, optimizer_id, precision, checkpointing,
    list({'gpu_count': gpu_count, 'sharding': sharding, 'total': total_bytes, 'band': error_band} ORDER BY gpu_count)
        FILTER (total_bytes IS NOT NULL) AS totals,
    arg_min(unknown_reason, gpu_count) AS unknown_reason, any_value(attention) AS attention
FROM footprint
GROUP BY ALL;

CREATE OR REPLACE MACRO fitting(totals, capacity) AS
    list_filter(totals, lambda t: takes(t.total, t.band, capacity))[1];

CREATE OR REPLACE MACRO barely_fitting(totals, capacity) AS
    list_filter(totals, lambda t: t.total <= capacity)[1];

CREATE OR REPLACE MACRO verdict(totals, capacity) AS CASE
    WHEN totals IS NULL THEN NULL
    WHEN fitting(totals, capacity).gpu_count = 1 THEN 'fits'
    WHEN barely_fitting(totals, capacity).gpu_count = 1 THEN 'tight'
    WHEN fitting(totals, capacity) IS NOT NULL THEN 'multi-gpu'
    WHEN barely_fitting(totals, capacity) IS NOT NULL THEN 'tight'
    ELSE 'no'
END;

-- The limits on one card, from the points of the lookup and the ladder. A total is linear between neighbouring points (the ladder has a
-- point at every bend of a model's caches), and where it bends upwards the line lies above it: a limit is never too high.
--   max_context_tokens  longest context at this number of sequences; where the last point fits, that point
--   max_sequences       most sequences at this context; vLLM runs no more than its default, training is known up to 64
CREATE OR REPLACE VIEW limit_points AS
SELECT
    model_id, dtype_id, phase_id, engine_id, context_tokens, sequences, kv_dtype_id, optimizer_id, precision, checkpointing,
    total_bytes * (1 + error_band) AS need
FROM (FROM footprint WHERE gpu_count = 1 UNION ALL FROM ladder)
WHERE total_bytes IS NOT NULL;

CREATE OR REPLACE VIEW context_points AS
SELECT * EXCLUDE (context_tokens, need), list({'at': context_tokens, 'need': need} ORDER BY context_tokens) AS points
FROM (SELECT DISTINCT * FROM limit_points) GROUP BY ALL;

CREATE OR REPLACE VIEW sequence_points AS
SELECT * EXCLUDE (sequences, need), list({'at': sequences, 'need': need} ORDER BY sequences) AS points
FROM (SELECT DISTINCT * FROM limit_points) GROUP BY ALL;

CREATE OR REPLACE MACRO points_that_fit(points, capacity) AS
    len(list_filter(points, lambda p: p.need <= capacity));

-- between two points, or beyond the last one; whole multiples of what an engine allocates at a time
CREATE OR REPLACE MACRO on_the_line(low, high, capacity, multiple) AS greatest(low.at, (floor(
    (low.at + (capacity - low.need) / greatest(high.need - low.need, 1) * (high.at - low.at)) / multiple) * multiple)::BIGINT);

CREATE OR REPLACE MACRO largest_between(points, capacity, multiple) AS CASE
    WHEN points_that_fit(points, capacity) = 0 THEN 0
    WHEN points_that_fit(points, capacity) = len(points) THEN points[-1].at
    ELSE on_the_line(points[points_that_fit(points, capacity)], points[points_that_fit(points, capacity) + 1], capacity, multiple)
END;

CREATE OR REPLACE MACRO largest_beyond(points, capacity, most) AS CASE
    WHEN points_that_fit(points, capacity) < len(points) OR len(points) < 2 THEN largest_between(points, capacity, 1)
    ELSE least(on_the_line(points[-2], points[-1], capacity, 1), most)
END;

CREATE OR REPLACE VIEW compatibility AS
WITH judged AS (
    SELECT
        s.* EXCLUDE (totals, unknown_reason), gpu.gpu_id, gpu.capacity_bytes, s.totals,
        iif(s.totals IS NULL, s.unknown_reason, card_reason(r)) AS unknown_reason,
        CASE WHEN card_reason(r) IS NULL THEN verdict(s.totals, gpu.capacity_bytes) END AS verdict,
        CASE WHEN card_reason(r) IS NOT NULL OR verdict(s.totals, gpu.capacity_bytes) = 'no' THEN NULL
            WHEN verdict(s.totals, gpu.capacity_bytes) = 'tight' THEN barely_fitting(s.totals, gpu.capacity_bytes)
            ELSE fitting(s.totals, gpu.capacity_bytes) END AS chosen
    FROM scenario_totals AS s
    JOIN model AS m ON m.model_id = s.model_id
    JOIN gpu ON true
    LEFT JOIN runs_on AS r
        ON r.engine_id = s.engine_id AND r.dtype_id = running_format(m, s.dtype_id) AND r.phase_id = s.phase_id
        AND r.attention = s.attention AND r.gpu_id = gpu.gpu_id
)
SELECT
    j.model_id, j.dtype_id, j.phase_id, j.engine_id, j.context_tokens, j.sequences, j.kv_dtype_id, j.optimizer_id, j.precision,
    j.checkpointing, j.gpu_id,
    coalesce(chosen.total, totals[1].total) AS total_bytes,
    chosen.gpu_count AS gpu_count_needed,
    coalesce(chosen.sharding, totals[1].sharding) AS sharding,
    verdict,
    CASE WHEN verdict IS NOT NULL THEN largest_between(c.points, j.capacity_bytes, context_multiple(j.engine_id, k)) END
        AS max_context_tokens,
    CASE
        WHEN verdict IS NULL THEN NULL
        WHEN j.phase_id <> 'inference' THEN largest_between(s.points, j.capacity_bytes, 1)
        ELSE largest_beyond(s.points, j.capacity_bytes, line_end(j.engine_id, k))
    END::BIGINT AS max_sequences,
    iif(verdict IS NULL, unknown_reason, NULL) AS unknown_reason
FROM judged AS j
LEFT JOIN context_points AS c
    ON c.model_id = j.model_id AND c.dtype_id = j.dtype_id AND c.phase_id = j.phase_id AND c.engine_id = j.engine_id
    AND c.sequences = j.sequences
    AND c.kv_dtype_id IS NOT DISTINCT FROM j.kv_dtype_id AND c.optimizer_id IS NOT DISTINCT FROM j.optimizer_id
    AND c.precision IS NOT DISTINCT FROM j.precision AND c.checkpointing IS NOT DISTINCT FROM j.checkpointing
LEFT JOIN sequence_points AS s
    ON s.model_id = j.model_id AND s.dtype_id = j.dtype_id AND s.phase_id = j.phase_id AND s.engine_id = j.engine_id
    AND s.context_tokens = j.context_tokens
    AND s.kv_dtype_id IS NOT DISTINCT FROM j.kv_dtype_id AND s.optimizer_id IS NOT DISTINCT FROM j.optimizer_id
    AND s.precision IS NOT DISTINCT FROM j.precision AND s.checkpointing IS NOT DISTINCT FROM j.checkpointing
CROSS JOIN constants AS k;

-- A server that takes a share of the card needs to be allowed what the scenario needs; where its default is less it refuses to start.
CREATE OR REPLACE MACRO share_needed(engine_id, total, capacity, k) AS iif(
    starts_with(engine_id, 'vllm') AND total <= capacity AND total > k.vllm_default_share * capacity,
    '--gpu-memory-utilization ' || printf('%.2f', least(ceil(100 * total / capacity) / 100, 0.99)), NULL);

-- vLLM runs 1024 requests by itself on large cards, but on A100, and sets their logits aside.
CREATE OR REPLACE MACRO requests_needed(engine_id, sequences, total, activations, vocab_size, gpu_name, gpu_gib, capacity, k) AS iif(
    engine_id = 'vllm' AND sequences <= k.vllm_default_sequences AND gpu_gib >= k.vllm_large_card_gib AND gpu_name NOT LIKE '%A100%'
        AND total + greatest(0, k.vllm_sampler_bytes_per_logit * k.vllm_large_card_sequences * vocab_size - activations)
            > k.vllm_default_share * capacity,
    '--max-num-seqs ' || k.vllm_default_sequences::BIGINT, NULL);

-- SGLang leaves a part of the card free by its size, and up to a quarter more for models that see: where weights and cache need more it
-- has to be told.
CREATE OR REPLACE MACRO sglang_reserve_bytes(gpu_gib, gpu_count, k) AS 1048576 * (k.sglang_reserve_gpu_mib * gpu_count + CASE
    WHEN gpu_gib < k.sglang_small_card_gib THEN k.sglang_reserve_small_mib
    WHEN gpu_gib < k.sglang_middle_card_gib THEN k.sglang_reserve_middle_mib
    WHEN gpu_gib < k.sglang_large_card_gib THEN k.sglang_reserve_large_mib
    ELSE k.sglang_reserve_largest_mib
END);

-- The share is of what is free before it loads: without the process's context and the communication buffers.
CREATE OR REPLACE MACRO static_share_needed(engine_id, held, total, capacity, gpu_gib, gpu_count, sees, communication, k) AS iif(
    engine_id = 'sglang' AND total <= capacity
        AND held + k.process_context_bytes + communication
            > (capacity - sglang_reserve_bytes(gpu_gib, gpu_count, k)) * iif(coalesce(sees, false), k.sglang_vision_share, 1),
    '--mem-fraction-static ' || printf('%.3f', ceil(1000 * held / (capacity - k.process_context_bytes - communication)) / 1000), NULL);

-- vLLM sets memory aside for the largest image or video that a model can read, unless it is told that there are none (vllm-project/vllm PR 11210).
CREATE OR REPLACE MACRO inputs_needed(engine_id, images, sees) AS iif(starts_with(engine_id, 'vllm') AND coalesce(sees, false),
    '--limit-mm-per-prompt ''{"image": ' || coalesce(images, 0) || ', "video": 0}''', NULL);

-- fits_on('rtx-4090', 'Qwen/Qwen3-8B', ...): any scenario of footprint_of against one card, on gpu_count of them. engine_setting is what
-- the engine has to be told for it, where its defaults leave too little.
CREATE OR REPLACE MACRO fits_on(
    gpu_id, model_id, dtype_id := NULL, phase_id := 'inference', context_tokens := NULL, sequences := 1, kv_dtype_id := NULL,
    optimizer_id := NULL, checkpointing := NULL, lora_rank := NULL, lora_targets := NULL, precision := NULL, attention := NULL,
    sharding := NULL, gpu_count := NULL, engine_id := NULL, adapter := NULL, loss := NULL, gradient_accumulation := NULL, ema := NULL,
    optimizer_rank := NULL, max_context_tokens := NULL,
    tensor_parallel := NULL, pipeline_parallel := NULL, context_parallel := NULL, expert_parallel := NULL, micro_batches_in_flight := NULL,
    sequence_parallel := NULL, offload := NULL, images := NULL, image_width := NULL, image_height := NULL,
    audio_seconds := NULL
) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id),
seeing AS (SELECT DISTINCT a.model_id FROM attention_layer AS a WHERE a.component = 'vision'),
scenario_asked AS (
    SELECT
        model_id AS model_id, dtype_id AS dtype_id, phase_id AS phase_id, engine_id AS engine_id,
        context_tokens AS context_tokens, sequences AS sequences, images AS images, image_width AS image_width, image_height AS image_height,
        audio_seconds AS audio_seconds, kv_dtype_id AS kv_dtype_id, optimizer_id AS optimizer_id,
        precision AS precision, checkpointing AS checkpointing, lora_rank AS lora_rank, lora_targets AS lora_targets,
        attention AS attention, sharding AS sharding, gpu_count AS gpu_count, adapter AS adapter, loss AS loss,
        gradient_accumulation AS gradient_accumulation, ema AS ema, optimizer_rank AS optimizer_rank,
        max_context_tokens AS max_context_tokens,
        tensor_parallel AS tensor_parallel, pipeline_parallel AS pipeline_parallel, context_parallel AS context_parallel,
        expert_parallel AS expert_parallel, micro_batches_in_flight AS micro_batches_in_flight, sequence_parallel AS sequence_parallel,
        offload AS offload
)
SELECT
    coalesce(gpu.gpu_id, card_asked.gpu_id) AS gpu_id, f.model_id, f.dtype_id, f.phase_id, f.engine_id, f.context_tokens, f.sequences, f.gpu_count,
    f.total_bytes, gpu.capacity_bytes, gpu.capacity_bytes - f.total_bytes AS headroom_bytes,
    CASE WHEN coalesce(card_reason(r), kv_reason(kv, gpu.vendor, gpu.compute_capability)) IS NULL
        THEN card_verdict(f.total_bytes, f.error_band, gpu.capacity_bytes, f.gpu_count) END AS verdict,
    no_verdict_reason(gpu.gpu_id, card_asked.gpu_id, f.total_bytes, f.unknown_reason, f.model_id,
        coalesce(card_reason(r), kv_reason(kv, gpu.vendor, gpu.compute_capability))) AS unknown_reason,
    iif(f.total_bytes IS NULL, NULL, nullif(concat_ws(' ',
        share_needed(f.engine_id, f.total_bytes, gpu.capacity_bytes, k),
        requests_needed(f.engine_id, f.sequences, f.total_bytes, f.activations_bytes, m.vocab_size, gpu.name, gpu.memory_gib_nominal,
            gpu.capacity_bytes, k),
        static_share_needed(f.engine_id, f.weights_bytes + f.kv_cache_bytes + f.kv_padding_bytes + f.state_bytes, f.total_bytes,
            gpu.capacity_bytes, gpu.memory_gib_nominal, f.gpu_count, f.model_id IN (FROM seeing), communication_bytes(f, k), k),
        inputs_needed(f.engine_id, f.images, f.model_id IN (FROM seeing))), ''))
        AS engine_setting
FROM card_asked
JOIN footprints('scenario_asked') AS f ON true
LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
LEFT JOIN model AS m ON m.model_id = f.model_id
LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = f.kv_dtype_id
LEFT JOIN runs_on AS r
    ON r.engine_id = f.engine_id AND r.dtype_id = running_format(m, f.dtype_id) AND r.phase_id = f.phase_id
    AND r.attention = f.attention AND r.gpu_id = gpu.gpu_id
CROSS JOIN constants_row;

-- what_fits('rtx-4090', ...): the published scenarios that run and fit on one such card, most downloaded models first; no row where
-- nothing does, an error where there is no such card, or nothing is published of what was asked.
CREATE OR REPLACE MACRO published(kind, asked, known) AS iif(list_contains(known, asked), asked,
    error(kind || ' := ' || asked || ' is not published for this phase (' || list_aggregate(known, 'string_agg', ', ')
        || '); footprint_of and fits_on answer any'));

CREATE OR REPLACE MACRO what_fits(
    gpu_id, dtype_id := NULL, phase_id := 'inference', context_tokens := 8192, sequences := 1, engine_id := NULL
) AS TABLE
WITH named AS (
    SELECT known_gpu(gpu_id) AS gpu_id, known_dtype(dtype_id) AS dtype_id, known_phase(coalesce(phase_id, 'inference')) AS phase_id,
        known_engine(engine_id) AS engine_id, coalesce(context_tokens, 8192) AS context_tokens, coalesce(sequences, 1) AS sequences
),
held AS MATERIALIZED (
    SELECT list_sort(list(DISTINCT f.context_tokens)) AS contexts, list_sort(list(DISTINCT f.sequences)) AS counts,
        list_sort(list(DISTINCT f.dtype_id)) AS dtypes, list_sort(list(DISTINCT f.engine_id)) AS engines
    FROM footprint AS f JOIN named ON f.phase_id = named.phase_id WHERE f.gpu_count = 1
),
asked AS MATERIALIZED (
    SELECT named.gpu_id, named.phase_id, iif(named.dtype_id IS NULL, NULL, published('dtype_id', named.dtype_id, held.dtypes)) AS dtype_id,
        iif(named.engine_id IS NULL, NULL, published('engine_id', named.engine_id, held.engines)) AS engine_id,
        published('context_tokens', named.context_tokens, held.contexts) AS context_tokens,
        published('sequences', named.sequences, held.counts) AS sequences
    FROM named CROSS JOIN held
)
SELECT
    f.model_id, f.dtype_id, f.phase_id, f.engine_id, f.context_tokens, f.sequences, f.optimizer_id, f.checkpointing,
    model.parameter_count, model.downloads_30d, f.total_bytes, gpu.capacity_bytes - f.total_bytes AS headroom_bytes,
    'fits' AS verdict
FROM asked
JOIN gpu ON gpu.gpu_id = asked.gpu_id
JOIN footprint AS f
    ON f.phase_id = asked.phase_id AND f.context_tokens = asked.context_tokens AND f.sequences = asked.sequences
    AND coalesce(f.dtype_id = asked.dtype_id, true) AND coalesce(f.engine_id = asked.engine_id, true)
    AND f.gpu_count = 1 AND takes(f.total_bytes, f.error_band, gpu.capacity_bytes)
JOIN model ON model.model_id = f.model_id
JOIN runs_on AS r
    ON r.engine_id = f.engine_id AND r.dtype_id = running_format(model, f.dtype_id) AND r.phase_id = f.phase_id
    AND r.attention = f.attention AND r.gpu_id = gpu.gpu_id AND r.runs
ORDER BY model.downloads_30d DESC NULLS LAST, f.model_id, f.dtype_id;
