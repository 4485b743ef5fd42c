-- How far a total may be off: a share of it, by what was measured of its kind.
--
-- Units: shares of the total. Source: constant.csv (error_band_*), each from measurements beyond those that set a constant.
-- Not covered: engines' versions other than those of the table engine.

-- What the allocator keeps unused is known as a spread: the band of a total takes in the upper quarter of it.
CREATE OR REPLACE MACRO unused_band(x, k, total) AS
    iif(x.phase_id = 'inference' AND starts_with(x.engine_id, 'transformers'),
        k.unused_blocks_spread * least(x.inference_activations, coalesce(x.layer_bytes, x.inference_activations)) / total, 0);

-- full training shared by FSDP without a pipeline: measured runs are within the band of one GPU
CREATE OR REPLACE MACRO is_measured_sharding(x) AS x.scheme = 'fsdp2' AND x.pipeline_parallel = 1 AND NOT x.is_adapter;

CREATE OR REPLACE MACRO error_band(x, k) AS CASE
    WHEN x.phase_id <> 'inference' THEN iif(x.gpu_count > 1 AND NOT is_measured_sharding(x), k.error_band_training_parallel,
        k.error_band_training)
    WHEN starts_with(x.engine_id, 'transformers') THEN k.error_band_transformers
    WHEN x.engine_id = 'llama.cpp' THEN k.error_band_llama_cpp
    WHEN x.engine_id = 'mlx-lm' THEN k.error_band_mlx
    WHEN reads_images_in_vllm(x) THEN k.error_band_vllm_images
    ELSE k.error_band_vllm
END;
