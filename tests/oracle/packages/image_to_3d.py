"""What makes a three-dimensional object of a picture."""

from __future__ import annotations

import json
from pathlib import Path

import stand_ins
from packages.registry import builds, module_of

CONFIGS: dict[str, dict] = {
    # pipeline.json of TRELLIS-image-large as public programs quote it: each name is that of a config in github.com/microsoft/TRELLIS@6b0d6475
    "trellis": {
        "name": "TrellisImageTo3DPipeline",
        "args": {
            "models": {
                "sparse_structure_decoder": "ckpts/ss_dec_conv3d_16l8_fp16",
                "sparse_structure_flow_model": "ckpts/ss_flow_img_dit_L_16l8_fp16",
                "slat_decoder_gs": "ckpts/slat_dec_gs_swin8_B_64l8gs32_fp16",
                "slat_decoder_rf": "ckpts/slat_dec_rf_swin8_B_64l8r16_fp16",
                "slat_decoder_mesh": "ckpts/slat_dec_mesh_swin8_B_64l8m256c_fp16",
                "slat_flow_model": "ckpts/slat_flow_img_dit_L_64l8p2_fp16",
            },
        },
    },
    # the names of its checkpoints as public programs list them, each of a config in github.com/microsoft/TRELLIS.2@5565d24
    "trellis2": {
        "name": "Trellis2ImageTo3DPipeline",
        "args": {
            "models": {
                "sparse_structure_decoder": "microsoft/TRELLIS-image-large/ckpts/ss_dec_conv3d_16l8_fp16",
                "sparse_structure_flow_model": "ckpts/ss_flow_img_dit_1_3B_64_bf16",
                "shape_slat_decoder": "ckpts/shape_dec_next_dc_f16c32_fp16",
                "shape_slat_flow_model_512": "ckpts/slat_flow_img2shape_dit_1_3B_512_bf16",
                "shape_slat_flow_model_1024": "ckpts/slat_flow_img2shape_dit_1_3B_1024_bf16",
                "tex_slat_decoder": "ckpts/tex_dec_next_dc_f16c32_fp16",
                "tex_slat_flow_model_512": "ckpts/slat_flow_imgshape2tex_dit_1_3B_512_bf16",
                "tex_slat_flow_model_1024": "ckpts/slat_flow_imgshape2tex_dit_1_3B_1024_bf16",
            },
        },
    },
}  # fmt: skip

# What the tensors belong to whose name tells no part.
MAIN = {
    "trellis": "decoder",
    "trellis2": "decoder",
}


TRELLIS = {  # file and part of the config in the sources of TRELLIS, and the part of the model
    "sparse_structure_decoder": ("vae/ss_vae_conv3d_16l8_fp16", "decoder"),
    "sparse_structure_flow_model": ("generation/ss_flow_img_dit_L_16l8_fp16", "denoiser"),
    "slat_decoder_gs": ("vae/slat_vae_enc_dec_gs_swin8_B_64l8_fp16", "decoder"),
    "slat_decoder_rf": ("vae/slat_vae_dec_rf_swin8_B_64l8_fp16", "decoder"),
    "slat_decoder_mesh": ("vae/slat_vae_dec_mesh_swin8_B_64l8_fp16", "decoder"),
    "slat_flow_model": ("generation/slat_flow_img_dit_L_64l8p2_fp16", "denoiser"),
}


@builds("trellis", "TrellisImageTo3DPipeline", "trellis 6b0d6475")
def trellis(config: dict):
    """Its six models and DINOv2 of the large size with registers, by which they see (trellis_image_to_3d.py). Their sparse convolutions
    stand for those of spconv: outputs, three sides of a kernel, inputs."""
    import torch
    import transformers

    seen = transformers.Dinov2WithRegistersConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, image_size=518, patch_size=14
    )
    with torch.device("meta"):
        parts = {"vision_dinov2": transformers.Dinov2WithRegistersModel(seen)}
    stand_ins.for_trellis()
    from trellis import models

    root = Path(models.__file__).parents[2] / "configs"
    for name, (file, part) in TRELLIS.items():
        told = json.loads((root / f"{file}.json").read_text(encoding="utf-8"))["models"][part]
        parts[name] = getattr(models, told["name"])(**told["args"])
    return module_of(torch, **parts)


TRELLIS2 = {  # by model that the pipeline loads, file and part
    "sparse_structure_flow_model": ("gen/ss_flow_img_dit_1_3B_64_bf16", "denoiser"),
    "shape_slat_flow_model_512": ("gen/slat_flow_img2shape_dit_1_3B_512_bf16", "denoiser"),
    "shape_slat_flow_model_1024": ("gen/slat_flow_img2shape_dit_1_3B_512_bf16_ft1024", "denoiser"),
    "shape_slat_decoder": ("scvae/shape_vae_next_dc_f16c32_fp16_ft_512", "decoder"),
    "tex_slat_flow_model_512": ("gen/slat_flow_imgshape2tex_dit_1_3B_512_bf16", "denoiser"),
    "tex_slat_flow_model_1024": ("gen/slat_flow_imgshape2tex_dit_1_3B_512_bf16_ft1024", "denoiser"),
    "tex_slat_decoder": ("scvae/tex_vae_next_dc_f16c32_fp16_ft_512", "decoder"),
}


@builds("trellis2", "Trellis2ImageTo3DPipeline", "trellis.2 5565d24")
def trellis2(config: dict):
    """Its seven models, the decoder of TRELLIS that it begins with, and DINOv3 of the large size, by which they see. What takes backgrounds
    away is a model of its own (RMBG 2.0) and is not counted."""
    import torch
    import transformers

    with torch.device("meta"):
        settings = transformers.DINOv3ViTConfig(
            hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
        )
        parts = {"vision_dinov3": transformers.DINOv3ViTModel(settings)}
    stand_ins.for_trellis()
    stand_ins.for_trellis2()
    from trellis2 import models

    root = Path(models.__file__).parents[2] / "configs"
    for name, (file, part) in TRELLIS2.items():
        told = json.loads((root / f"{file}.json").read_text(encoding="utf-8"))["models"][part]
        with torch.device("meta"):
            parts[name] = getattr(models, told["name"])(**told["args"])
    with torch.device("meta"):
        parts["sparse_structure_decoder"] = models.SparseStructureDecoder(
            out_channels=1, latent_channels=8, num_res_blocks=2, num_res_blocks_middle=2, channels=[512, 128, 32]
        )
    return module_of(torch, **parts)
