-- A diffusion pipeline against one card: what pipeline_of says, for each way to place its parts.
--
--   fits   the total and its error band are below what the card gives;   tight   only the total is;   no   neither
--
-- Null with a reason where a part is not known, or nothing says that the card runs the format. Units: bytes. Source: 66_pipelines.sql, gpu,
-- runs_on. Not covered: several cards.

CREATE OR REPLACE MACRO pipeline_fits_on(
    gpu_id, model_id, dtype_id := 'bf16', width := 1024, height := 1024, frames := 1, images := 1, text_tokens := NULL, sequences_each := NULL
) AS TABLE
WITH card_asked AS (SELECT gpu_id AS gpu_id, dtype_id AS dtype_id)
SELECT
    card_asked.gpu_id, p.placement, p.total_bytes, gpu.capacity_bytes, gpu.capacity_bytes - p.total_bytes AS headroom_bytes,
    CASE
        WHEN p.total_bytes IS NULL OR gpu.capacity_bytes IS NULL OR card_reason(r) IS NOT NULL THEN NULL
        WHEN p.total_bytes > gpu.capacity_bytes THEN 'no'
        WHEN p.total_bytes * (1 + p.error_band) > gpu.capacity_bytes THEN 'tight'
        ELSE 'fits'
    END AS verdict,
    iif(gpu.gpu_id IS NULL, unknown_gpu_reason(gpu_id), coalesce(p.unknown_reason, card_reason(r))) AS unknown_reason
FROM card_asked
LEFT JOIN gpu ON gpu.gpu_id = card_asked.gpu_id
-- diffusers runs on the PyTorch that Transformers does
LEFT JOIN runs_on AS r ON r.engine_id = 'transformers' AND r.dtype_id = card_asked.dtype_id AND r.phase_id = 'inference' AND r.attention = 'flash'
    AND r.gpu_id = card_asked.gpu_id
CROSS JOIN pipeline_of(model_id, dtype_id := dtype_id, width := width, height := height, frames := frames, images := images,
    text_tokens := text_tokens, sequences_each := sequences_each) AS p
ORDER BY p.total_bytes DESC;
