FROM pipeline_of('black-forest-labs/FLUX.1-dev', width := 1536, height := 1536, denoiser_dtype_id := 'nf4',
    text_dtype_id := 'nf4')
UNION ALL FROM pipeline_of('Lightricks/LTX-Video', width := 704, height := 480, frames := 161)
UNION ALL FROM pipeline_of('hunyuanvideo-community/HunyuanVideo', width := 1280, height := 720, frames := 61,
    is_tiled := true)
UNION ALL FROM pipeline_of('stabilityai/stable-diffusion-xl-base-1.0', images := 8)
UNION ALL FROM pipeline_of('black-forest-labs/FLUX.1-dev', width := 64, height := 64, images := 4,
    denoiser_dtype_id := 'gguf-q4_k_s')
ORDER BY ALL
