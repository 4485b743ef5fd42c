"""Names of parts of diffusion pipelines that both the crawl and the readers go by."""

# What brings the text to both streams, and what makes sound of latents: parts beside denoiser, text encoders and autoencoder.
BESIDE = ("connectors", "audio_vae", "vocoder")
