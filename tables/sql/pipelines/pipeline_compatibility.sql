-- The table of verdicts of diffusion pipelines: every size and format of pipeline_set.csv, under every way to place the
-- parts, on every card.
--
--   verdict   as pipeline_fits_on has it: fits with its error band, tight, no;   null where the total is not known, or
--             nothing says that the card runs the format: unknown_reason says which
--
-- Units: bytes, one GPU. Source: pipelines.sql, gpu, runs_on. Not covered: several cards, other sizes
--   (pipeline_fits_on).

CREATE OR REPLACE VIEW pipeline_compatibility AS
WITH makes AS (
    SELECT component.model_id, coalesce(bool_or(stage_row.frames_at_once <> 1), false) AS is_video
    FROM component LEFT JOIN pipeline_stage AS stage_row
        ON stage_row.class_name = component.class_name AND stage_row.stage = 'decode'
    GROUP BY component.model_id
),
scenario AS (
    SELECT makes.model_id, size.*
    FROM makes JOIN pipeline_set AS size ON size.is_video = makes.is_video
),
placed AS (
    SELECT asked.*, told.placement, told.total_bytes, told.error_band, told.unknown_reason
    FROM scenario, LATERAL (SELECT scenario.*) AS asked, pipeline_of(asked.model_id, dtype_id := asked.dtype_id,
        width := asked.width_pixels, height := asked.height_pixels, frames := asked.frame_count,
        is_tiled := asked.is_tiled, denoiser_dtype_id := asked.denoiser_dtype_id) AS told
),
judged AS (
    SELECT placed.*, gpu.gpu_id, gpu.capacity_bytes, card_reason(running) AS card_reason
    FROM placed CROSS JOIN gpu
    -- diffusers runs on the PyTorch that Transformers does
    LEFT JOIN runs_on_kind AS running ON running.engine_id = 'transformers' AND running.running_id = placed.dtype_id
        AND running.phase_id = 'inference' AND running.attention = 'flash' AND running.card_kind = card_kind(gpu)
)
SELECT model_id, pipeline_set_id, placement, gpu_id, width_pixels, height_pixels, frame_count, is_tiled, dtype_id,
    denoiser_dtype_id,
    total_bytes,
    iif(card_reason IS NULL, card_verdict(total_bytes, error_band, capacity_bytes, 1), NULL) AS verdict,
    coalesce(unknown_reason, card_reason) AS unknown_reason
FROM judged;
