-- A diffusion pipeline against one card: what pipeline_of says, for each way to place its parts.
--
--   fits   the total and its error band are below what the card gives;   tight   only the total is;   no   neither
--
-- Null with a reason where a part is not known, or nothing says that the card runs the format. Units: bytes. Source:
-- pipelines.sql, gpu, runs_on. Not covered: several cards.

CREATE OR REPLACE MACRO pipeline_fits_on(
    gpu_id, model_id, dtype_id := 'bf16', width := 1024, height := 1024, frames := 1, images := 1, text_tokens := NULL,
    sequences_each := NULL, is_tiled := false, denoiser_dtype_id := NULL, text_dtype_id := NULL
) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id, lower(coalesce(dtype_id, 'bf16')::VARCHAR) AS dtype_id)
SELECT
    coalesce(gpu.gpu_id, card_asked.gpu_id) AS gpu_id, pipeline.placement, pipeline.total_bytes, gpu.capacity_bytes,
    gpu.capacity_bytes - pipeline.total_bytes AS headroom_bytes,
    iif(card_reason(running) IS NULL, card_verdict(pipeline.total_bytes, pipeline.error_band, gpu.capacity_bytes, 1),
        NULL) AS verdict,
    no_verdict_reason(gpu.gpu_id, card_asked.gpu_id, pipeline.total_bytes, pipeline.unknown_reason, NULL,
        card_reason(running)) AS unknown_reason,
    pipeline.holds_for
FROM card_asked
LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
-- diffusers runs on the PyTorch that Transformers does
LEFT JOIN runs_on AS running ON running.engine_id = 'transformers' AND running.dtype_id = card_asked.dtype_id
    AND running.phase_id = 'inference' AND running.attention = 'flash'
    AND running.gpu_id = gpu.gpu_id
CROSS JOIN pipeline_of(model_id, dtype_id := dtype_id, width := width, height := height, frames := frames,
    images := images,
    text_tokens := text_tokens, sequences_each := sequences_each, is_tiled := is_tiled,
    denoiser_dtype_id := denoiser_dtype_id, text_dtype_id := text_dtype_id) AS pipeline
ORDER BY pipeline.total_bytes DESC;
