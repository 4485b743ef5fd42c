-- LoRA of denoisers: classes, ways to keep activations, optimizers, packed bases, and what is refused
FROM pipeline_training_of('black-forest-labs/FLUX.1-dev', width := 512, height := 768, checkpointing := 'full',
    lora_rank := 4, optimizer_id := 'adamw-8bit', denoiser_dtype_id := 'nf4')
UNION ALL FROM pipeline_training_of('black-forest-labs/FLUX.1-dev', width := 1024, height := 512, images := 2)
UNION ALL FROM pipeline_training_of('stabilityai/stable-diffusion-xl-base-1.0', dtype_id := 'fp16',
    checkpointing := 'full')
UNION ALL FROM pipeline_training_of('stabilityai/stable-diffusion-xl-base-1.0', images := 4, lora_rank := 64,
    optimizer_id := 'sgd')
UNION ALL FROM pipeline_training_of('stabilityai/stable-diffusion-3-medium-diffusers', width := 512, height := 512,
    text_tokens := 154)
UNION ALL FROM pipeline_training_of('Qwen/Qwen-Image', checkpointing := 'full', lora_rank := 8)
UNION ALL FROM pipeline_training_of('Tongyi-MAI/Z-Image-Turbo', width := 768, height := 1024, checkpointing := 'full',
    denoiser_dtype_id := 'int8')
UNION ALL FROM pipeline_training_of('Wan-AI/Wan2.2-T2V-A14B-Diffusers', width := 832, height := 480, frames := 49,
    checkpointing := 'full')
UNION ALL FROM pipeline_training_of('Wan-AI/Wan2.2-T2V-A14B-Diffusers', width := 480, height := 480, frames := 17,
    denoiser_dtype_id := 'nf4', checkpointing := 'full')
UNION ALL FROM pipeline_training_of('genmo/mochi-1-preview', width := 848, height := 480, frames := 19)
UNION ALL FROM pipeline_training_of('Qwen/Qwen-Image', lora_rank := 0)
ORDER BY ALL
