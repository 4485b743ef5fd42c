"""Counts what the stages of diffusion pipelines hold at their peaks: the truth for tables/sql/pipelines/pipelines.sql.

    pip install -e '.[oracle]'
    python tests/oracle/count_pipelines.py            # all rows of pipelines.csv that have no peak yet
    python tests/oracle/count_pipelines.py --again UNet   # rows whose class or model holds this, anew

A denoiser takes one step, an autoencoder decodes, on tensors that hold nothing (hollow.py), with the configs of the snapshot; where that
has none, the class's own defaults. Peaks are bytes of live storage beside the weights, and what a convolution works in
(hollow.Convolving). A step of
guidance is two sequences an image. `latents` are made of a picture by its autoencoder, `frames` of a video. A decode is `tiled` where its row says so (`vae.enable_tiling()`).
"""

from __future__ import annotations

from pathlib import Path

from denoiser_inputs import SEEN, SOUNDS, VIDEO, denoiser_inputs, latent_sides
from rows import configs, count_rows

ROWS = Path(__file__).with_name("pipelines.csv")
ALIASES = {"Transformer2DModel": "PixArtTransformer2DModel"}
LANGUAGE = ("Qwen", "Llama", "Mistral", "Gemma")  # text encoders that are language models
# states that its pipeline puts together afterwards: three side by side and without a cache (FLUX.2 klein), or all of them (LTX-2)
STACKED = {"Qwen3ForCausalLM": 3, "Gemma3ForConditionalGeneration": None}
DTYPES = {"bf16": "bfloat16", "fp32": "float32"}


def in_words_of_diffusers(config: dict) -> dict:
    """The config of Wan as its makers write it, by the names of the library's class."""
    if config.get("_class_name") != "WanModel":
        return config
    heads = config["num_heads"]
    same = {name: config[name] for name in ("ffn_dim", "freq_dim", "text_dim", "num_layers")}
    sizes = {"num_attention_heads": heads, "attention_head_dim": config["dim"] // heads}
    channels = {"in_channels": config["in_dim"], "out_channels": config["out_dim"]}
    seen = {"image_dim": SEEN[1], "added_kv_proj_dim": config["dim"]} if config.get("has_image_input") == "true" else {}
    return {"_class_name": "WanTransformer3DModel", **same, **sizes, **channels, **seen}


BESIDE = (
    "connectors",
    "audio_vae",
    "vocoder",
)  # parts with a config of their own that are neither text encoder nor autoencoder


def given_beside(row: dict[str, str], config, dtype) -> tuple[str, dict]:
    """What runs of a part that stands beside, and what it is given (LTX-2)."""
    import torch

    batch, tokens = int(row["sequences"]), int(row["text_tokens"] or 0)
    heard = round(int(row["frames"]) / 24 * SOUNDS)
    if row["part"] == "connectors":
        states = torch.ones(batch, tokens, config.caption_channels * config.text_proj_in_factor, dtype=dtype)
        mask = torch.ones(batch, tokens, dtype=torch.long)
        return "forward", {"text_encoder_hidden_states": states, "attention_mask": mask, "padding_side": "left"}
    if row["part"] == "audio_vae":
        return "decode", {"z": torch.ones(batch, config.latent_channels, heard, 16, dtype=dtype), "return_dict": False}
    name = "mel_spec" if row["class"] == "LTX2VocoderWithBWE" else "hidden_states"
    return "forward", {name: torch.ones(batch, 2, 4 * heard, 64, dtype=dtype)}


def build(row: dict[str, str], config: dict):
    import diffusers
    import torch

    kind = getattr(diffusers, row["class"], None) or getattr(diffusers.pipelines.ltx2, row["class"])
    if row["part"] in BESIDE:
        config = config["part_configs"][row["part"]]
    elif row["stage"] in ("decode", "latents", "frames"):
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


def prepared(row: dict[str, str], config: dict) -> tuple:
    """The row's model, and what its pipeline does with it: a call, and the tensors that it is given."""
    import torch

    is_encoder = row["stage"] == "encode" and row["part"] not in BESIDE
    model = build_encoder(row, config) if is_encoder else build(row, config)

    def given() -> tuple[str, dict]:
        if row["part"] in BESIDE:
            return given_beside(row, model.config, next(model.parameters()).dtype)
        if row["class"] == "CLIPVisionModel":  # its pipeline reads the states before the last layer
            side = model.config.image_size
            pixels = torch.ones(int(row["sequences"]), 3, side, side, dtype=next(model.parameters()).dtype)
            return "forward", {"pixel_values": pixels, "output_hidden_states": True}
        if row["stage"] == "encode":
            named = {"input_ids": torch.zeros(int(row["sequences"]), int(row["text_tokens"]), dtype=torch.long)}
            if row["class"].startswith(LANGUAGE):  # its pipeline reads the states of its layers
                named |= {"attention_mask": torch.ones_like(named["input_ids"]), "output_hidden_states": True}
                named |= {"use_cache": False} if STACKED.get(row["class"]) else {}
            return "forward", named
        if row["stage"] == "denoise":
            return "forward", denoiser_inputs(model, row)
        if row["stage"] in ("latents", "frames"):
            frames = (int(row["frames"]),) if row["class"] in VIDEO else ()
            shape = int(row["sequences"]), 3, *frames, int(row["height"]), int(row["width"])
            return "encode", {"x": torch.ones(*shape, dtype=next(model.parameters()).dtype)}
        channels = getattr(model.config, "latent_channels", None) or model.config.z_dim
        frames, *sides = latent_sides(row)
        if row["tiled"]:
            model.enable_tiling()
        shape = int(row["sequences"]), channels, *((frames,) if row["class"] in VIDEO else ()), *sides
        return "decode", {"z": torch.ones(*shape, dtype=next(model.parameters()).dtype)}

    return model, given


def run(model, row: dict[str, str], named: str, given: dict) -> None:
    """The call, and what the pipeline makes of its result."""
    if row["part"] in BESIDE:
        getattr(model, named)(**given)
    elif (row["stage"], row["class"] in STACKED) == ("encode", True):
        made = model(**given)
        put_together(made.hidden_states, STACKED[row["class"]])
    else:
        getattr(model, named)(**given, return_dict=False)


def count(row: dict[str, str], config: dict) -> tuple[int, str]:
    """Bytes of the peak beside the weights, and what made it."""
    import hollow
    import torch

    model, given = prepared(row, config)
    hollow.install_attention()
    with torch.no_grad(), hollow.Convolving() as tracker:
        for tensor in (*model.parameters(), *model.buffers()):
            tracker.track(tensor)
        weights = tracker.total
        named, tensors = given()
        for value in tensors.values():
            if isinstance(value, torch.Tensor):
                tracker.track(value)
        tracker.reset_peak()
        run(model, row, named, tensors)
        return tracker.peak - weights, tracker.at


def put_together(states, count: int | None) -> None:
    """As the pipeline does, with all that the model handed over still at hand."""
    import torch

    if count is None:
        torch.stack(states, dim=-1).flatten(2, 3)
    else:
        stacked = torch.stack(states[:count], dim=1)
        stacked.permute(0, 2, 1, 3).reshape(*stacked.shape[::2], -1)


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
