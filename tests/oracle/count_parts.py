"""Counts parts of diffusion pipelines that are published alone, as diffusers builds them: the truth for families/diffusion_parts.py.

pip install torch diffusers
python tests/oracle/count_parts.py    # writes parts.csv
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

FILE = Path(__file__).with_name("parts.csv")
STAGES = {"down_block_types": ["DownEncoderBlock2D"] * 4, "up_block_types": ["UpDecoderBlock2D"] * 4}
# of Stable Diffusion 1.5, its autoencoder and a ControlNet beside it, and of SDXL
AUTOENCODER = {"block_out_channels": [128, 256, 512, 512], "layers_per_block": 2, "latent_channels": 4, **STAGES}
SHORT = {"down_block_types": ["DownEncoderBlock2D"] * 2, "up_block_types": ["UpDecoderBlock2D"] * 2}
CONTROLNET = {
    "attention_head_dim": 8, "block_out_channels": [320, 640, 1280, 1280], "cross_attention_dim": 768,
    "down_block_types": ["CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"],
}  # fmt: skip
OF_SDXL = {
    "addition_embed_type": "text_time", "addition_time_embed_dim": 256, "attention_head_dim": [5, 10, 20], "block_out_channels": [320, 640, 1280],
    "cross_attention_dim": 2048, "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
    "projection_class_embeddings_input_dim": 2816, "transformer_layers_per_block": [1, 2, 10], "use_linear_projection": True,
}  # fmt: skip
CONFIGS = [
    ("AutoencoderKL", AUTOENCODER),
    ("AutoencoderKL", AUTOENCODER | {"latent_channels": 16, "use_quant_conv": False, "use_post_quant_conv": False}),
    ("AutoencoderKL", AUTOENCODER | {"block_out_channels": [64, 128], "layers_per_block": 3, **SHORT}),
    ("AutoencoderKL", AUTOENCODER | {"mid_block_add_attention": False, "in_channels": 4, "out_channels": 4}),
    ("ControlNetModel", CONTROLNET),
    ("ControlNetModel", CONTROLNET | {"conditioning_channels": 6, "conditioning_embedding_out_channels": [16, 32]}),
    ("ControlNetModel", CONTROLNET | {"in_channels": 9, "use_linear_projection": True, "layers_per_block": 1}),
    ("ControlNetModel", OF_SDXL),
    ("ControlNetModel", OF_SDXL | {"transformer_layers_per_block": [1, 1, 4]}),
]


def main() -> None:
    import diffusers
    import torch

    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["class_name", "config_json", "parameter_count", "library_versions"])
        for name, config in CONFIGS:
            with torch.device("meta"):
                model = getattr(diffusers, name).from_config(config)
            count = sum(parameter.numel() for parameter in model.parameters())
            versions = f"torch {torch.__version__.split('+')[0]}, diffusers {diffusers.__version__}"
            writer.writerow([name, json.dumps(config, sort_keys=True, separators=(",", ":")), count, versions])


if __name__ == "__main__":
    main()
