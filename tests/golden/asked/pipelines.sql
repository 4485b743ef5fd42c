-- every pipeline in every published size and format, with the ways to place its parts
PRAGMA enable_optimizer;
SELECT model_id, pipeline_set_id, placement, gpu_id, total_bytes, verdict, unknown_reason
FROM pipeline_compatibility
WHERE gpu_id = 'rtx-4090' AND model_id IN (
    'fal/AuraFlow-v0.3', 'lodestones/Chroma', 'THUDM/CogVideoX-5b', 'black-forest-labs/FLUX.1-dev',
        'hunyuanvideo-community/HunyuanVideo',
    'Lightricks/LTX-Video', 'Alpha-VLLM/Lumina-Image-2.0', 'genmo/mochi-1-preview', 'Qwen/Qwen-Image',
    'stabilityai/stable-diffusion-3-medium-diffusers', 'Efficient-Large-Model/Sana_1600M_1024px_diffusers',
        'PixArt-alpha/PixArt-Sigma-XL-2-1024-MS',
    'stabilityai/stable-diffusion-xl-base-1.0', 'Wan-AI/Wan2.2-T2V-A14B-Diffusers', 'Tongyi-MAI/Z-Image-Turbo'
)
ORDER BY ALL
