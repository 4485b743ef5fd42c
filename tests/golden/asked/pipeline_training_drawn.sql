-- LoRA of every kind of denoiser at several sizes, packed or not, as digests
PRAGMA enable_optimizer;
CREATE OR REPLACE TEMP TABLE golden_trained_pipelines AS
SELECT model_id, width, height, frames, images, checkpointing, rank, optimizer, denoiser
FROM (VALUES {pipelines}) AS named(model_id),
    (VALUES (512, 512, 1, 1), (768, 1024, 1, 2), (480, 832, 49, 1), (512, 512, 2, 1)) AS size(width, height, frames,
        images),
    (VALUES ('none', 4, NULL, NULL), ('full', 16, 'adamw-8bit', NULL), ('full', 1, 'sgd', 'nf4'), ('none', 8, NULL,
        'int8'), ('full', 64, 'nothing', NULL), ('selective', 4, NULL, NULL)) AS way(checkpointing, rank, optimizer,
        denoiser);
SELECT asked.model_id, asked.checkpointing, asked.denoiser, asked.rank, count(told.total_bytes) AS known,
    sum(told.total_bytes) AS total_bytes, sum(told.activations_bytes) AS activations_bytes,
    md5(string_agg(told::VARCHAR, ' ' ORDER BY asked.width, asked.frames, told.placement)) AS told
FROM golden_trained_pipelines AS asked, pipeline_training_of(asked.model_id, width := asked.width,
    height := asked.height, frames := asked.frames, images := asked.images, checkpointing := asked.checkpointing,
    lora_rank := asked.rank, optimizer_id := asked.optimizer, denoiser_dtype_id := asked.denoiser) AS told
GROUP BY ALL ORDER BY ALL
