"""Lists the autoencoders of video as the library makes them: tables/library/autoencoder.jsonl, a line for each class.

    pip install -e '.[oracle]'
    python tests/oracle/list_autoencoders.py

    class_name
    defaults   what the class takes where a config is silent, of all fields that may shape a tensor
    idle       fields that shape none
    shapes     the published ones: `said` beside the defaults, parameter_count, leaf_element_count (the largest tensor of the decoder, or of the
               encoder where that is larger) and hidden_size, what the widest moment of a decode follows
    only       what a config says that the list speaks of, of a class that is described else
    library_version

Each of these classes was published in few shapes, so that they are counted and not described: a config that says anything else is unknown.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

from rows import configs

FILE = Path(__file__).resolve().parents[2] / "tables" / "library" / "autoencoder.jsonl"
IDLE = (
    "act_fn", "force_upcast", "invert_scale_latents", "latents_mean", "latents_std", "sample_height", "sample_width", "scaling_factor",
    "shift_factor", "spatial_compression_ratio", "temporal_compression_ratio", "scale_factor_spatial", "scale_factor_temporal", "clip_output",
)  # fmt: skip
# by class the models whose config it is, with the plan of what it takes where they differ, and the field that the widest moment follows
LTX2 = {"Lightricks/LTX-2": "of 2.0", "Lightricks/LTX-2.3": None}
BESIDE = {
    "AutoencoderKLLTX2Video": (LTX2, "_vae_config", "decoder_block_out_channels"),
    "AutoencoderKLLTX2Audio": (["Lightricks/LTX-2"], "audio_vae", "base_channels"),
    "LTX2TextConnectors": (LTX2, "connectors", "caption_channels"),
    "LTX2Vocoder": (["Lightricks/LTX-2"], "vocoder", "hidden_channels"),
    "LTX2VocoderWithBWE": (["Lightricks/LTX-2.3"], "vocoder", "hidden_channels"),
}
PUBLISHED = {
    "AutoencoderKLCogVideoX": ("THUDM/CogVideoX-5b", "block_out_channels"),
    "AutoencoderKLHunyuanVideo": ("hunyuanvideo-community/HunyuanVideo", "block_out_channels"),
    "AutoencoderKLLTXVideo": ("Lightricks/LTX-Video", "block_out_channels"),
    "AutoencoderKLMochi": ("genmo/mochi-1-preview", "decoder_block_out_channels"),
    "AutoencoderKLWan": ("Wan-AI/Wan2.2-TI2V-5B", "decoder_base_dim"),
}
ONLY = {"AutoencoderKLWan": {"is_residual": True}}


def line(class_name: str, config: dict, widths: str, version: str) -> dict:
    import diffusers
    import torch
    from diffusers.pipelines import ltx2

    kind = getattr(diffusers, class_name, None) or getattr(ltx2, class_name)
    taken = {n: p.default for n, p in inspect.signature(kind.__init__).parameters.items() if n != "self"}
    defaults = {n: list(v) if isinstance(v, tuple) else v for n, v in taken.items() if n not in IDLE}
    defaults = json.loads(json.dumps(defaults))
    said = {n: v for n, v in config.items() if n in defaults and v != defaults[n]}
    with torch.device("meta"):
        model = kind(**{n: v for n, v in config.items() if n in taken})
    shape = {
        "said": said,
        "parameter_count": sum(p.numel() for p in model.parameters()),
        "leaf_element_count": max(p.numel() for p in model.parameters()),
        "hidden_size": _first((defaults | said)[widths]),
    }
    only = {"only": ONLY[class_name]} if class_name in ONLY else {}
    return {
        "class_name": class_name,
        **only,
        "defaults": defaults,
        "idle": [n for n in taken if n in IDLE],
        "shapes": [shape],
        "library_version": version,
    }


def _first(widths: int | list[int]) -> int:
    return widths if isinstance(widths, int) else widths[0]


def main() -> None:
    import diffusers

    known, version = configs(), f"diffusers {diffusers.__version__}"
    lines = [line(name, known[of]["_vae_config"], widths, version) for name, (of, widths) in PUBLISHED.items()]
    for name, (models, place, widths) in BESIDE.items():
        both = [known[of][place] if place.startswith("_") else known[of]["part_configs"][place] for of in models]
        found = [line(name, config, widths, version) for config in both]
        for one, of in zip(found, models, strict=True):
            plan = models[of] if isinstance(models, dict) else None
            one["shapes"][0] |= {"plan": plan} if plan else {}
        lines.append(found[0] | {"shapes": [shape for one in found for shape in one["shapes"]]})
    lines.sort(key=lambda each: each["class_name"])
    FILE.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
