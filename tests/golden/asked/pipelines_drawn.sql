-- every kind of pipeline at several sizes, in every way to pack it and to place its parts, as digests
PRAGMA enable_optimizer;
CREATE OR REPLACE TEMP TABLE golden_pipelines AS
SELECT model_id, width, height, frames, images, is_tiled, denoiser, encoder
FROM (VALUES
    ('Alpha-VLLM/Lumina-Image-2.0'), ('Comfy-Org/Krea-2'), ('Comfy-Org/MiniMax-H3'), ('Comfy-Org/MiniMax-Music-3'),
    ('Comfy-Org/Qwen-Image-Edit_ComfyUI'), ('CompVis/stable-diffusion-v1-4'),
    ('Efficient-Large-Model/Sana_1600M_1024px_diffusers'), ('Lightricks/LTX-2'), ('Lightricks/LTX-2.3'),
    ('Lightricks/LTX-2.5'), ('Lightricks/LTX-Video'), ('MiniMaxAI/MiniMax-H3'), ('MiniMaxAI/MiniMax-Music3'),
    ('MonsterMMORPG/Wan_GGUF'), ('Photoroom/prxpixel-t2i'), ('PixArt-alpha/PixArt-Sigma-XL-2-1024-MS'),
    ('Qwen/Qwen-Image'), ('Qwen/Qwen-Image-Edit'), ('Qwen/Qwen-Image-Edit-2511'), ('THUDM/CogVideoX-5b'),
    ('Tongyi-MAI/Z-Image-Turbo'), ('Wan-AI/Wan2.1-I2V-14B-480P'), ('Wan-AI/Wan2.1-T2V-1.3B'),
    ('Wan-AI/Wan2.1-T2V-14B'), ('Wan-AI/Wan2.2-I2V-A14B'), ('Wan-AI/Wan2.2-T2V-A14B-Diffusers'),
    ('Wan-AI/Wan2.2-TI2V-5B'), ('black-forest-labs/FLUX.1-dev'), ('black-forest-labs/FLUX.1-schnell'),
    ('black-forest-labs/FLUX.2-dev'), ('black-forest-labs/FLUX.2-klein-4B'), ('black-forest-labs/FLUX.2-klein-9B'),
    ('black-forest-labs/FLUX.2-klein-base-9B'), ('diffusers/stable-diffusion-xl-1.0-inpainting-0.1'),
    ('fal/AuraFlow-v0.3'), ('genmo/mochi-1-preview'), ('hunyuanvideo-community/HunyuanVideo'),
    ('kpsss34/FHDR_Uncensored'), ('krea/Krea-2-Raw'), ('krea/Krea-2-Turbo'), ('lodestones/Chroma'),
    ('playgroundai/playground-v2.5-1024px-aesthetic'), ('realrebelai/MiniMax-H3_GGUFs'),
    ('runwayml/stable-diffusion-inpainting'), ('stabilityai/sd-turbo'), ('stabilityai/sdxl-turbo'),
    ('stabilityai/stable-diffusion-2-1'), ('stabilityai/stable-diffusion-2-inpainting'),
    ('stabilityai/stable-diffusion-3-medium-diffusers'), ('stabilityai/stable-diffusion-3.5-large'),
    ('stabilityai/stable-diffusion-xl-base-1.0'), ('stabilityai/stable-diffusion-xl-refiner-1.0'),
    ('stable-diffusion-v1-5/stable-diffusion-v1-5'), ('unsloth/Qwen-Image-Edit-2511-GGUF')) AS named(model_id),
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
