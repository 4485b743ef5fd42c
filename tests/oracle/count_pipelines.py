"""Counts what the stages of diffusion pipelines hold at their peaks: the truth for tables/sql/pipelines/pipelines.sql.

    pip install -e '.[oracle]'
    python tests/oracle/count_pipelines.py            # all rows of pipelines.csv that have no peak yet
    python tests/oracle/count_pipelines.py --again UNet   # rows whose class or model holds this, anew

A denoiser takes one step, an autoencoder decodes, on tensors that hold nothing (hollow.py), with the configs of the snapshot; where that
has none, the class's own defaults. Peaks are bytes of live storage beside the weights. A step of guidance is two sequences an image.
"""

from __future__ import annotations

from pathlib import Path

from rows import configs, count_rows

ROWS = Path(__file__).with_name("pipelines.csv")
ALIASES = {"Transformer2DModel": "PixArtTransformer2DModel"}
DTYPES = {"bf16": "bfloat16", "fp32": "float32"}


def build(row: dict[str, str], config: dict):
    import diffusers
    import torch

    kind = getattr(diffusers, row["class"])
    if row["stage"] == "decode":
        config = config.get("_vae_config", {})
    known, named = kind._get_init_keys(kind), ALIASES.get(config.get("_class_name"), config.get("_class_name"))
    fields = {k: v for k, v in config.items() if k in known and v is not None} if named == row["class"] else {}
    with torch.device("meta"):
        model = kind(**fields)
    model = model.to(getattr(torch, DTYPES[row["dtype_id"]])).eval().to_empty(device="cpu")
    for buffer in model.buffers():
        if not buffer.is_floating_point():
            buffer.zero_()
    return model


def build_encoder(row: dict[str, str], config: dict):
    """A text encoder as its pipeline loads it."""
    import torch
    import transformers

    config = (config.get("text_encoder_configs") or {})[row["part"]]
    fields = {k: v for k, v in config.items() if k not in ("model_type", "torch_dtype", "dtype")}
    kind = getattr(transformers, row["class"])
    settings = kind.config_class(**fields)
    with torch.device("meta"):
        model = kind._from_config(settings, dtype=getattr(torch, DTYPES[row["dtype_id"]]))
    model = model.eval().to_empty(device="cpu")
    for buffer in model.buffers():
        if not buffer.is_floating_point():
            buffer.zero_()
    return model


def denoiser_inputs(model, row: dict[str, str]) -> dict:
    """Latents of one step and the text that conditions it, as the class's own pipeline hands them over."""
    import torch

    config, dtype = model.config, next(model.parameters()).dtype
    batch, tokens = int(row["sequences"]), int(row["text_tokens"])
    high, wide, frames = int(row["height"]) // 8, int(row["width"]) // 8, (int(row["frames"]) - 1) // 4 + 1
    ones = lambda *shape: torch.ones(*shape, dtype=dtype)  # noqa: E731
    time, kind = torch.ones(batch), row["class"]
    if kind == "UNet2DConditionModel":
        more = {"added_cond_kwargs": {"text_embeds": ones(batch, 1280), "time_ids": ones(batch, 6)}}
        given = {"sample": ones(batch, config.in_channels, high, wide), "timestep": time}
        text = ones(batch, tokens, config.cross_attention_dim)
        return given | {"encoder_hidden_states": text} | (more if config.addition_embed_type else {})
    if kind in ("FluxTransformer2DModel", "Flux2Transformer2DModel", "QwenImageTransformer2DModel"):
        axes = 4 if kind == "Flux2Transformer2DModel" else 3
        given = {
            "hidden_states": ones(batch, high * wide // 4, config.in_channels),
            "encoder_hidden_states": ones(batch, tokens, config.joint_attention_dim),
            "timestep": time.to(dtype),
        }
        if kind == "QwenImageTransformer2DModel":
            return given | {"img_shapes": [[(1, high // 2, wide // 2)]] * batch}
        given |= {"img_ids": torch.ones(high * wide // 4, axes), "txt_ids": torch.ones(tokens, axes)}
        given |= {"guidance": time} if getattr(config, "guidance_embeds", True) else {}
        return given if axes == 4 else given | {"pooled_projections": ones(batch, config.pooled_projection_dim)}
    if kind == "WanTransformer3DModel":
        text = ones(batch, tokens, config.text_dim)
        return {
            "hidden_states": ones(batch, config.in_channels, frames, high, wide),
            "timestep": time,
            "encoder_hidden_states": text,
        }
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


def count(row: dict[str, str], config: dict) -> tuple[int, str]:
    """Bytes of the peak beside the weights, and what made it."""
    import hollow
    import torch

    model = build_encoder(row, config) if row["stage"] == "encode" else build(row, config)
    hollow.install_attention()
    with torch.no_grad(), hollow.Hollow() as tracker:
        for tensor in (*model.parameters(), *model.buffers()):
            tracker.track(tensor)
        weights = tracker.total
        if row["stage"] == "encode":
            given = {"input_ids": torch.zeros(int(row["sequences"]), int(row["text_tokens"]), dtype=torch.long)}
            if "Qwen" in row["class"]:  # a language model: its pipeline reads the states of its layers
                given |= {"attention_mask": torch.ones_like(given["input_ids"]), "output_hidden_states": True}
        elif row["stage"] == "denoise":
            given = denoiser_inputs(model, row)
        else:
            channels = getattr(model.config, "latent_channels", None) or model.config.z_dim
            frames = (1,) if row["class"] == "AutoencoderKLQwenImage" else ()
            shape = int(row["sequences"]), channels, *frames, int(row["height"]) // 8, int(row["width"]) // 8
            given = {"z": torch.ones(*shape, dtype=next(model.parameters()).dtype)}
        for value in given.values():
            if isinstance(value, torch.Tensor):
                tracker.track(value)
        tracker.reset_peak()
        (model.decode if row["stage"] == "decode" else model)(**given, return_dict=False)
        return tracker.peak - weights, tracker.at


def main() -> None:
    import diffusers
    import torch

    known = configs()

    def counted(row: dict[str, str]) -> dict[str, str]:
        peak, at = count(row, known.get(row["model_id"], {}))
        print(
            row["model_id"],
            row["class"],
            row["dtype_id"],
            row["width"],
            row["height"],
            row["sequences"],
            peak,
            at,
            flush=True,
        )
        versions = f"torch {torch.__version__.split('+')[0]}, diffusers {diffusers.__version__}"
        return {"peak_bytes": str(peak), "versions": versions}

    count_rows(ROWS, __doc__, lambda row: f"{row['model_id']} {row['class']}", counted)


if __name__ == "__main__":
    main()
