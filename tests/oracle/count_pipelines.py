"""Counts what the stages of diffusion pipelines hold at their peaks: the truth for tables/sql/pipelines/pipelines.sql.

    pip install -e '.[oracle]'
    python tests/oracle/count_pipelines.py            # all rows of pipelines.csv that have no peak yet
    python tests/oracle/count_pipelines.py --again UNet   # rows whose class or model holds this, anew

A denoiser takes one step, an autoencoder decodes, on tensors that hold nothing (hollow.py), with the configs of the snapshot; where that
has none, the class's own defaults. Peaks are bytes of live storage beside the weights, and what a convolution works in: cuDNN's kernels for
16 bits read and write channels last, so that the input and the result lie there a second time while one runs (`Convolving`). A step of
guidance is two sequences an image. `latents` are made of a picture by its autoencoder, `frames` of a video. A decode is `tiled` where its row says so (`vae.enable_tiling()`).
"""

from __future__ import annotations

from pathlib import Path

from denoiser_inputs import VIDEO, denoiser_inputs, latent_sides
from rows import configs, count_rows

ROWS = Path(__file__).with_name("pipelines.csv")
ALIASES = {"Transformer2DModel": "PixArtTransformer2DModel"}
LANGUAGE = ("Qwen", "Llama", "Mistral")  # text encoders that are language models
STACKED = {
    "Qwen3ForCausalLM": 3
}  # states that its pipeline stacks and lays side by side afterwards (FLUX.2 klein), without a cache
DTYPES = {"bf16": "bfloat16", "fp32": "float32"}


def in_words_of_diffusers(config: dict) -> dict:
    """The config of Wan as its makers write it, by the names of the library's class."""
    if config.get("_class_name") != "WanModel":
        return config
    heads = config["num_heads"]
    same = {name: config[name] for name in ("ffn_dim", "freq_dim", "text_dim", "num_layers")}
    sizes = {"num_attention_heads": heads, "attention_head_dim": config["dim"] // heads}
    channels = {"in_channels": config["in_dim"], "out_channels": config["out_dim"]}
    return {"_class_name": "WanTransformer3DModel", **same, **sizes, **channels}


def build(row: dict[str, str], config: dict):
    import diffusers
    import torch

    kind = getattr(diffusers, row["class"])
    if row["stage"] in ("decode", "latents", "frames"):
        config = config.get("_vae_config", {})
    config = in_words_of_diffusers(config)
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


def count(row: dict[str, str], config: dict) -> tuple[int, str]:
    """Bytes of the peak beside the weights, and what made it."""
    import hollow
    import torch

    model = build_encoder(row, config) if row["stage"] == "encode" else build(row, config)
    hollow.install_attention()
    with torch.no_grad(), hollow.Convolving() as tracker:
        for tensor in (*model.parameters(), *model.buffers()):
            tracker.track(tensor)
        weights = tracker.total
        if row["stage"] == "encode":
            given = {"input_ids": torch.zeros(int(row["sequences"]), int(row["text_tokens"]), dtype=torch.long)}
            if row["class"].startswith(LANGUAGE):  # its pipeline reads the states of its layers
                given |= {"attention_mask": torch.ones_like(given["input_ids"]), "output_hidden_states": True}
                given |= {"use_cache": False} if row["class"] in STACKED else {}
        elif row["stage"] == "denoise":
            given = denoiser_inputs(model, row)
        elif row["stage"] in ("latents", "frames"):
            frames = (int(row["frames"]),) if row["class"] in VIDEO else ()
            shape = int(row["sequences"]), 3, *frames, int(row["height"]), int(row["width"])
            given = {"x": torch.ones(*shape, dtype=next(model.parameters()).dtype)}
        else:
            channels = getattr(model.config, "latent_channels", None) or model.config.z_dim
            frames, *sides = latent_sides(row)
            if row["tiled"]:
                model.enable_tiling()
            shape = int(row["sequences"]), channels, *((frames,) if row["class"] in VIDEO else ()), *sides
            given = {"z": torch.ones(*shape, dtype=next(model.parameters()).dtype)}
        for value in given.values():
            if isinstance(value, torch.Tensor):
                tracker.track(value)
        tracker.reset_peak()
        runs = {"decode": "decode", "latents": "encode", "frames": "encode"}.get(row["stage"], "forward")
        if (row["stage"], row["class"] in STACKED) == ("encode", True):
            made = model(**given)
            stacked = torch.stack(made.hidden_states[: STACKED[row["class"]]], dim=1)
            stacked.permute(0, 2, 1, 3).reshape(*stacked.shape[::2], -1)
        else:
            getattr(model, runs)(**given, return_dict=False)
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
