"""What one step of a denoiser is given, by class, as the class's own pipeline hands it over (diffusers 0.42.1, `pipelines`): latents and the
text that conditions them. Used by count_pipelines.py.
"""

from __future__ import annotations

# pixels of a latent each way, and frames of a later latent one, by class or model; others have 8 and 4
COMPRESSED = {
    "Wan-AI/Wan2.2-TI2V-5B": (16, 4),
    "LTXVideoTransformer3DModel": (32, 8),
    "AutoencoderKLLTXVideo": (32, 8),
    "LTX2VideoTransformer3DModel": (32, 8),
    "AutoencoderKLLTX2Video": (32, 8),
    "MochiTransformer3DModel": (8, 6),
    "AutoencoderKLMochi": (8, 6),
}
# autoencoders whose latents have frames
VIDEO = (
    "AutoencoderKLQwenImage",
    "AutoencoderKLWan",
    "AutoencoderKLHunyuanVideo",
    "AutoencoderKLLTXVideo",
    "AutoencoderKLLTX2Video",
    "AutoencoderKLCogVideoX",
    "AutoencoderKLMochi",
)
# pixels each way of a picture that Qwen-Image-Edit reads (pipeline_qwenimage_edit_plus.py, VAE_IMAGE_SIZE)
EDITED = 1024
# what Wan 2.1 sees of its first picture: places of ViT-H, and its width
SEEN = (257, 1280)


def latent_sides(row: dict[str, str]) -> tuple[int, int, int]:
    """Frames, height and width of the latents."""
    side, step = COMPRESSED.get(row["model_id"]) or COMPRESSED.get(row["class"], (8, 4))
    return (int(row["frames"]) - 1) // step + 1, int(row["height"]) // side, int(row["width"]) // side


def denoiser_inputs(model, row: dict[str, str]) -> dict:
    """Latents of one step and the text that conditions it, as the class's own pipeline hands them over."""
    import torch

    config, dtype = model.config, next(model.parameters()).dtype
    batch, tokens = int(row["sequences"]), int(row["text_tokens"])
    frames, high, wide = latent_sides(row)
    ones = lambda *shape: torch.ones(*shape, dtype=dtype)  # noqa: E731
    time, kind = torch.ones(batch), row["class"]
    if kind == "UNet2DConditionModel":
        more = {}
        if config.addition_embed_type:  # (sizes and crops of the picture; of the refiner one number less)
            sizes = (config.projection_class_embeddings_input_dim - 1280) // config.addition_time_embed_dim
            more = {"added_cond_kwargs": {"text_embeds": ones(batch, 1280), "time_ids": ones(batch, sizes)}}
        given = {"sample": ones(batch, config.in_channels, high, wide), "timestep": time}
        text = ones(batch, tokens, config.cross_attention_dim)
        return given | {"encoder_hidden_states": text} | more
    if kind in ("FluxTransformer2DModel", "Flux2Transformer2DModel", "QwenImageTransformer2DModel"):
        axes = 4 if kind == "Flux2Transformer2DModel" else 3
        given = {
            "hidden_states": ones(batch, high * wide // 4, config.in_channels),
            "encoder_hidden_states": ones(batch, tokens, config.joint_attention_dim),
            "timestep": time.to(dtype),
        }
        if kind == "QwenImageTransformer2DModel":
            shapes = [(1, high // 2, wide // 2)]
            # an edit: one picture, which its pipeline brings to EDITED pixels, lies behind the latents
            if config.zero_cond_t:
                side = EDITED // 16
                shapes, packed = [*shapes, (1, side, side)], ones(batch, side * side, config.in_channels)
                given["hidden_states"] = torch.cat([given["hidden_states"], packed], dim=1)
            return given | {"img_shapes": [shapes] * batch}
        given |= {"img_ids": torch.ones(high * wide // 4, axes), "txt_ids": torch.ones(tokens, axes)}
        given |= {"guidance": time} if getattr(config, "guidance_embeds", True) else {}
        return given if axes == 4 else given | {"pooled_projections": ones(batch, config.pooled_projection_dim)}
    if kind == "WanTransformer3DModel":
        text = ones(batch, tokens, config.text_dim)
        if row["model_id"] == "Wan-AI/Wan2.2-TI2V-5B":  # expand_timesteps: each token has a time of its own
            time = torch.ones(batch, frames * high * wide // 4)
        picture = {"encoder_hidden_states_image": ones(batch, *SEEN)} if config.image_dim else {}
        return {
            "hidden_states": ones(batch, config.in_channels, frames, high, wide),
            "timestep": time,
            "encoder_hidden_states": text,
            **picture,
        }
    if kind in STEPS:
        return STEPS[kind](config, row, ones, frames, high, wide)
    given = {"hidden_states": ones(batch, config.in_channels, high, wide), "timestep": time}
    if kind == "SD3Transformer2DModel":
        pooled = ones(batch, config.pooled_projection_dim)
        text = ones(batch, tokens, config.joint_attention_dim)
        return given | {"encoder_hidden_states": text, "pooled_projections": pooled}
    if kind == "AuraFlowTransformer2DModel":
        return given | {"encoder_hidden_states": ones(batch, tokens, config.joint_attention_dim)}
    if kind == "PixArtTransformer2DModel":
        text = {"encoder_hidden_states": ones(batch, tokens, config.caption_channels)}
        return given | text | {"added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}
    raise ValueError(f"what a step of {kind} is given is not written here")


def _hunyuan(config, row, ones, frames, high, wide) -> dict:
    import torch

    batch, tokens = int(row["sequences"]), int(row["text_tokens"])
    return {
        "hidden_states": ones(batch, config.in_channels, frames, high, wide),
        "timestep": torch.ones(batch),
        "encoder_hidden_states": ones(batch, tokens, config.text_embed_dim),
        "encoder_attention_mask": torch.ones(batch, tokens, dtype=torch.long),
        "pooled_projections": ones(batch, config.pooled_projection_dim),
        "guidance": torch.ones(batch) * 1000,
    }


def _ltx(config, row, ones, frames, high, wide) -> dict:
    import torch

    batch, tokens = int(row["sequences"]), int(row["text_tokens"])
    return {
        "hidden_states": ones(batch, frames * high * wide, config.in_channels),
        "encoder_hidden_states": ones(batch, tokens, config.caption_channels),
        "timestep": torch.ones(batch),
        "encoder_attention_mask": torch.ones(batch, tokens, dtype=torch.long),
        "num_frames": frames,
        "height": high,
        "width": wide,
        "rope_interpolation_scale": (8 / 25, 32, 32),
    }


SOUNDS = 25  # latents of sound a second, at 24 frames a second (LTX-2)


def _ltx2(config, row, ones, frames, high, wide) -> dict:
    """With the sound of the same length; its text comes through the connectors, for each stream in its own width where they project."""
    import torch

    batch, tokens = int(row["sequences"]), int(row["text_tokens"])
    heard = round(int(row["frames"]) / 24 * SOUNDS)
    both = config.use_prompt_embeddings
    mask = torch.ones(batch, tokens, dtype=torch.long)
    return {
        "hidden_states": ones(batch, frames * high * wide, config.in_channels),
        "audio_hidden_states": ones(batch, heard, config.audio_in_channels),
        "encoder_hidden_states": ones(batch, tokens, config.caption_channels if both else config.cross_attention_dim),
        "audio_encoder_hidden_states": ones(
            batch, tokens, config.caption_channels if both else config.audio_cross_attention_dim
        ),
        "timestep": torch.ones(batch),
        "sigma": torch.ones(batch),
        "encoder_attention_mask": mask,
        "audio_encoder_attention_mask": mask,
        "num_frames": frames,
        "height": high,
        "width": wide,
        "audio_num_frames": heard,
        "use_cross_timestep": not both,
    }


def _cogvideox(config, row, ones, frames, high, wide) -> dict:
    import torch

    batch, tokens, width = int(row["sequences"]), int(row["text_tokens"]), config.attention_head_dim
    patches = frames * (high // config.patch_size) * (wide // config.patch_size)
    rotary = (torch.ones(patches, width), torch.ones(patches, width))
    return {
        "hidden_states": ones(batch, frames, config.in_channels, high, wide),
        "encoder_hidden_states": ones(batch, tokens, config.text_embed_dim),
        "timestep": torch.ones(batch),
        "image_rotary_emb": rotary if config.use_rotary_positional_embeddings else None,
    }


def _mochi(config, row, ones, frames, high, wide) -> dict:
    import torch

    batch, tokens = int(row["sequences"]), int(row["text_tokens"])
    return {
        "hidden_states": ones(batch, config.in_channels, frames, high, wide),
        "encoder_hidden_states": ones(batch, tokens, config.text_embed_dim),
        "timestep": torch.ones(batch),
        "encoder_attention_mask": torch.ones(batch, tokens, dtype=torch.bool),
    }


def _chroma(config, row, ones, frames, high, wide) -> dict:
    import torch

    batch, tokens, patches = int(row["sequences"]), int(row["text_tokens"]), high * wide // 4
    return {
        "hidden_states": ones(batch, patches, config.in_channels),
        "encoder_hidden_states": ones(batch, tokens, config.joint_attention_dim),
        "timestep": ones(batch),
        "img_ids": torch.ones(patches, 3),
        "txt_ids": torch.ones(tokens, 3),
        "attention_mask": ones(batch, tokens + patches),
    }


def _krea(config, row, ones, frames, high, wide) -> dict:
    import torch

    batch, tokens, patches = int(row["sequences"]), int(row["text_tokens"]), high * wide // 4
    return {
        "hidden_states": ones(batch, patches, config.in_channels),
        "encoder_hidden_states": ones(batch, tokens, config.num_text_layers, config.text_hidden_dim),
        "timestep": ones(batch),
        "position_ids": torch.ones(tokens + patches, 3),
        "encoder_attention_mask": torch.ones(batch, tokens, dtype=torch.bool),
    }


def _z_image(config, row, ones, frames, high, wide) -> dict:
    import torch

    batch, tokens = int(row["sequences"]), int(row["text_tokens"])
    return {
        "x": [ones(config.in_channels, 1, high, wide) for _ in range(batch)],
        "t": torch.ones(batch),
        "cap_feats": [ones(tokens, config.cap_feat_dim) for _ in range(batch)],
    }


STEPS = {
    "HunyuanVideoTransformer3DModel": _hunyuan,
    "LTXVideoTransformer3DModel": _ltx,
    "LTX2VideoTransformer3DModel": _ltx2,
    "CogVideoXTransformer3DModel": _cogvideox,
    "MochiTransformer3DModel": _mochi,
    "ChromaTransformer2DModel": _chroma,
    "Krea2Transformer2DModel": _krea,
    "ZImageTransformer2DModel": _z_image,
}
