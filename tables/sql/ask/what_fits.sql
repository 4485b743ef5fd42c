-- what_fits('rtx-4090', ...): the published scenarios that run and fit on one such card, most downloaded models first;
-- no row where nothing does, an error where there is no such card, or nothing is published of what was asked.
--
-- Units: bytes per GPU. Source: footprint, gpu, runs_on. Not covered: scenarios that are not published (fits_on).

-- what_fits('rtx-4090', ...): the published scenarios that run and fit on one such card, most downloaded models first;
-- no row where nothing does, an error where there is no such card, or nothing is published of what was asked.
CREATE OR REPLACE MACRO published(kind, asked, known) AS iif(list_contains(known, asked), asked,
    error(kind || ' := ' || asked || ' is not published for this phase (' || list_aggregate(known, 'string_agg', ', ')
        || '); footprint_of and fits_on answer any'));

CREATE OR REPLACE MACRO what_fits(
    gpu_id, dtype_id := NULL, phase_id := 'inference', context_tokens := 8192, sequences := 1, engine_id := NULL
) AS TABLE
WITH named AS (
    SELECT known_gpu(gpu_id) AS gpu_id, known_dtype(dtype_id) AS dtype_id, known_phase(coalesce(phase_id, 'inference'))
        AS phase_id,
        known_engine(engine_id) AS engine_id, coalesce(context_tokens, 8192) AS context_tokens, coalesce(sequences, 1)
            AS sequences
),
held AS MATERIALIZED (
    SELECT list_sort(list(DISTINCT footprint.context_tokens)) AS contexts,
        list_sort(list(DISTINCT footprint.sequences)) AS counts,
        list_sort(list(DISTINCT footprint.dtype_id)) AS dtypes, list_sort(list(DISTINCT footprint.engine_id)) AS engines
    FROM footprint JOIN named ON footprint.phase_id = named.phase_id WHERE footprint.gpu_count = 1
),
asked AS MATERIALIZED (
    SELECT named.gpu_id, named.phase_id,
        iif(named.dtype_id IS NULL, NULL, published('dtype_id', named.dtype_id, held.dtypes)) AS dtype_id,
        iif(named.engine_id IS NULL, NULL, published('engine_id', named.engine_id, held.engines)) AS engine_id,
        published('context_tokens', named.context_tokens, held.contexts) AS context_tokens,
        published('sequences', named.sequences, held.counts) AS sequences
    FROM named CROSS JOIN held
)
SELECT
    footprint.model_id, footprint.dtype_id, footprint.phase_id, footprint.engine_id, footprint.context_tokens,
    footprint.sequences, footprint.optimizer_id, footprint.checkpointing,
    model.parameter_count, model.downloads_30d, footprint.total_bytes, gpu.capacity_bytes - footprint.total_bytes
        AS headroom_bytes,
    'fits' AS verdict
FROM asked
JOIN gpu ON gpu.gpu_id = asked.gpu_id
JOIN footprint
    ON footprint.phase_id = asked.phase_id AND footprint.context_tokens = asked.context_tokens
        AND footprint.sequences = asked.sequences
    AND coalesce(footprint.dtype_id = asked.dtype_id, true) AND coalesce(footprint.engine_id = asked.engine_id, true)
    AND footprint.gpu_count = 1 AND takes(footprint.total_bytes, footprint.error_band, gpu.capacity_bytes)
JOIN model ON model.model_id = footprint.model_id
JOIN runs_on_kind AS running
    ON running.engine_id = footprint.engine_id
        AND running.running_id = running_format(model, footprint.dtype_id, footprint.engine_id)
        AND running.phase_id = footprint.phase_id
    AND running.attention = footprint.attention AND running.card_kind = card_kind(gpu) AND running.runs
ORDER BY model.downloads_30d DESC NULLS LAST, footprint.model_id, footprint.dtype_id;
