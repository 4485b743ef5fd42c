-- what_fits('rtx-4090', ...): the published scenarios that run and fit on one such card, most downloaded models first; no row where
-- nothing does, an error where there is no such card, or nothing is published of what was asked.
--
-- Units: bytes per GPU. Source: footprint, gpu, runs_on. Not covered: scenarios that are not published (fits_on).

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
