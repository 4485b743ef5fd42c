-- what each stage of a pipeline holds: other sizes, several pictures, tiles, packed parts, and what is refused
FROM pipeline_stages('black-forest-labs/FLUX.1-dev', width := 1408, height := 1040, images := 2,
    denoiser_dtype_id := 'gguf-q4_k_s', text_dtype_id := 'nf4')
UNION ALL FROM pipeline_stages('stabilityai/stable-diffusion-xl-base-1.0', dtype_id := 'fp32', width := 1000,
    height := 777, text_tokens := 154)
UNION ALL FROM pipeline_stages('stabilityai/stable-diffusion-3-medium-diffusers', width := 512, height := 768,
    sequences_each := 1, denoiser_dtype_id := 'int8')
UNION ALL FROM pipeline_stages('Wan-AI/Wan2.2-T2V-A14B-Diffusers', width := 832, height := 480, frames := 49,
    is_tiled := true, denoiser_dtype_id := 'fp8')
UNION ALL FROM pipeline_stages('THUDM/CogVideoX-5b', width := 720, height := 480, frames := 17)
UNION ALL FROM pipeline_stages('genmo/mochi-1-preview', width := 848, height := 480, frames := 31, is_tiled := true)
UNION ALL FROM pipeline_stages('PixArt-alpha/PixArt-Sigma-XL-2-1024-MS', width := 0, height := 20000)
UNION ALL FROM pipeline_stages('Qwen/Qwen-Image', images := 0)
UNION ALL FROM pipeline_stages('Qwen/Qwen-Image', width := NULL, height := NULL, frames := NULL, images := NULL)
UNION ALL FROM pipeline_stages('Qwen/Qwen-Image', width := 1328, height := 1328, is_tiled := true, images := 4)
ORDER BY ALL
