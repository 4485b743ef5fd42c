-- every kind of pipeline at several sizes, in every way to pack it and to place its parts, as digests
PRAGMA enable_optimizer;
CREATE OR REPLACE TEMP TABLE golden_pipelines AS
SELECT model_id, width, height, frames, images, is_tiled, denoiser, encoder
FROM (VALUES {pipelines}) AS named(model_id),
    (VALUES (512, 512, 1, 1), (1024, 1536, 1, 3), (832, 480, 49, 1), (720, 720, 17, 2), (8, 100000, 1, 1)) AS size(
        width, height, frames, images),
    (VALUES (false, NULL, NULL), (true, NULL, NULL), (false, 'nf4', NULL), (true, 'int8', 'nf4'), (false, 'fp8', 'fp8'),
        (false, NULL, 'int8'), (true, 'gguf-q4_k_s', NULL), (false, 'gguf-q8_0', 'nf4-double'), (false, 'gguf-q3_k_m',
        NULL), (false, 'gguf-q6_k', 'gguf-q6_k')) AS packed(is_tiled, denoiser, encoder);
SELECT asked.model_id, asked.denoiser, asked.encoder, asked.is_tiled, count(told.total_bytes) AS known,
    sum(told.total_bytes) AS total_bytes, sum(told.activations_bytes) AS activations_bytes,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.width, asked.frames, told.placement)) AS told
FROM golden_pipelines AS asked, pipeline_of(asked.model_id, width := asked.width, height := asked.height,
    frames := asked.frames, images := asked.images, is_tiled := asked.is_tiled, denoiser_dtype_id := asked.denoiser,
    text_dtype_id := asked.encoder) AS told
GROUP BY ALL ORDER BY ALL
