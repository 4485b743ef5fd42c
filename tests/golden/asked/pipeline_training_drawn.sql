-- LoRA of every kind of denoiser at several sizes, packed or not, as digests
PRAGMA enable_optimizer;
CREATE OR REPLACE TEMP TABLE golden_trained_pipelines AS
SELECT model_id, width, height, frames, images, checkpointing, rank, optimizer, denoiser
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
