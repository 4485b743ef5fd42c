SELECT 'inference' AS phase, * FROM pipeline_fits_on('rtx-3060-12gb', 'black-forest-labs/FLUX.1-dev',
    denoiser_dtype_id := 'nf4')
UNION ALL SELECT 'inference', * FROM pipeline_fits_on('gtx-1080-ti', 'stabilityai/stable-diffusion-xl-base-1.0')
UNION ALL SELECT 'inference', * FROM pipeline_fits_on('no-such-card', 'stabilityai/stable-diffusion-xl-base-1.0')
UNION ALL BY NAME SELECT 'lora' AS phase, * FROM pipeline_training_fits_on('rtx-3060-12gb',
    'stabilityai/stable-diffusion-xl-base-1.0', dtype_id := 'fp16', checkpointing := 'full')
UNION ALL BY NAME SELECT 'lora' AS phase, * FROM pipeline_training_fits_on('RTX-4090', 'black-forest-labs/FLUX.1-dev',
    width := 512, height := 512, checkpointing := 'full')
ORDER BY ALL
