-- Diffusion pipelines against one card: what pipeline_of says, for each way to place their parts.
--
--   pipeline_fits_on('rtx-4090', model_id)    one pipeline
--   pipeline_fits_in('asked', 'rtx-4090')     the rows of a relation of yours, whose columns are the arguments of
--                                             pipeline_of (any may be left out): a question is planned once, however
--                                             many rows; asked_row says which one an answer is of
--
--   fits   the total and its error band are below what the card gives;   tight   only the total is;   no   neither
--
-- Null with a reason where a part is not known, or nothing says that the card runs the format. Units: bytes. Source:
-- pipelines.sql, gpu, runs_on. Not covered: several cards.

-- the columns of a question, and no row: what a relation leaves out is null
CREATE OR REPLACE VIEW no_pipeline AS SELECT
    NULL::VARCHAR AS model_id, NULL::VARCHAR AS dtype_id, NULL::BIGINT AS width, NULL::BIGINT AS height,
    NULL::BIGINT AS frames, NULL::BIGINT AS images, NULL::BIGINT AS text_tokens, NULL::BIGINT AS sequences_each,
    NULL::BOOLEAN AS is_tiled, NULL::VARCHAR AS denoiser_dtype_id, NULL::VARCHAR AS text_dtype_id
WHERE false;

CREATE OR REPLACE MACRO pipeline_fits_in(relation, gpu_id) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id),
pipeline_row AS MATERIALIZED (
    SELECT row_number() OVER () AS asked_row, * FROM (FROM no_pipeline UNION ALL BY NAME FROM query_table(relation))
),
-- (worked out before a card is joined to it: DuckDB 2.0 fails to bind the two at once)
placed AS MATERIALIZED (
    SELECT asked.asked_row, lower(coalesce(asked.dtype_id, 'bf16')::VARCHAR) AS dtype_id, pipeline.*
    -- (columns one by one: DuckDB before 2.0 takes no star of a row beside it)
    FROM pipeline_row AS row, LATERAL (SELECT row.asked_row AS asked_row, row.model_id AS model_id,
        row.dtype_id AS dtype_id, row.width AS width, row.height AS height, row.frames AS frames,
        row.images AS images, row.text_tokens AS text_tokens, row.sequences_each AS sequences_each,
        row.is_tiled AS is_tiled, row.denoiser_dtype_id AS denoiser_dtype_id,
        row.text_dtype_id AS text_dtype_id) AS asked, pipeline_of(asked.model_id,
        dtype_id := asked.dtype_id, width := asked.width, height := asked.height, frames := asked.frames,
        images := asked.images, text_tokens := asked.text_tokens, sequences_each := asked.sequences_each,
        is_tiled := asked.is_tiled, denoiser_dtype_id := asked.denoiser_dtype_id,
        text_dtype_id := asked.text_dtype_id) AS pipeline
)
SELECT
    pipeline.asked_row, coalesce(gpu.gpu_id, card_asked.gpu_id) AS gpu_id, pipeline.placement, pipeline.total_bytes,
    gpu.capacity_bytes, gpu.capacity_bytes - pipeline.total_bytes AS headroom_bytes,
    iif(card_reason(running) IS NULL, card_verdict(pipeline.total_bytes, pipeline.error_band, gpu.capacity_bytes, 1),
        NULL) AS verdict,
    no_verdict_reason(gpu.gpu_id, card_asked.gpu_id, pipeline.total_bytes, pipeline.unknown_reason, NULL,
        card_reason(running)) AS unknown_reason,
    pipeline.holds_for
FROM card_asked
LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
CROSS JOIN placed AS pipeline
-- diffusers runs on the PyTorch that Transformers does
LEFT JOIN runs_on_kind AS running ON running.engine_id = 'transformers' AND running.running_id = pipeline.dtype_id
    AND running.phase_id = 'inference' AND running.attention = 'flash'
    AND running.card_kind = card_kind(gpu)
ORDER BY pipeline.asked_row, pipeline.total_bytes DESC;

CREATE OR REPLACE MACRO pipeline_fits_on(
    gpu_id, model_id, dtype_id := 'bf16', width := 1024, height := 1024, frames := 1, images := 1, text_tokens := NULL,
    sequences_each := NULL, is_tiled := false, denoiser_dtype_id := NULL, text_dtype_id := NULL
) AS TABLE
WITH pipeline_asked AS (
    SELECT model_id AS model_id, dtype_id AS dtype_id, width AS width, height AS height, frames AS frames,
        images AS images, text_tokens AS text_tokens, sequences_each AS sequences_each, is_tiled AS is_tiled,
        denoiser_dtype_id AS denoiser_dtype_id, text_dtype_id AS text_dtype_id
)
-- (by the relation's name: a column that is called as an argument is the argument)
SELECT told.gpu_id, told.placement, told.total_bytes, told.capacity_bytes, told.headroom_bytes, told.verdict,
    told.unknown_reason, told.holds_for
FROM pipeline_fits_in('pipeline_asked', gpu_id) AS told;
