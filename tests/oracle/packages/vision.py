"""What sees: backgrounds, depth, and pictures beside text (CLIP)."""

from __future__ import annotations

import json
from pathlib import Path

import stand_ins
from packages.registry import buffers_of, builds

CONFIGS: dict[str, dict] = {
    # its own config.json says nothing of its sizes: github.com/ZhengPeng7/BiRefNet@25cb9309 config.py does (bb)
    "birefnet": {"bb": "swin_v1_l"},
    # of its config.json, and its code says no other sizes
    "rmbg": {"in_ch": 3, "out_ch": 1},
    # of github.com/lpiccinelli-eth/UniDepth@8d8cfe4c configs/config_v2_vitl14.json
    "unidepth": {
        "model": {
            "name": "UniDepthV2", "num_heads": 8, "expansion": 4, "layer_scale": 1.0,
            "pixel_decoder": {"name": "Decoder", "hidden_dim": 512, "depths": [2, 2, 2], "out_dim": 64, "kernel_size": 3},
            "pixel_encoder": {"name": "dinov2_vitl14", "num_register_tokens": 0, "use_norm": True, "output_idx": [6, 12, 18, 24]},
        },
    },
    # the names of configs in github.com/ByteDance-Seed/Depth-Anything-3@2c21ea84 src/depth_anything_3/configs
    "da3metric-large": {"model_name": "da3metric-large"},
    "da3-giant": {"model_name": "da3-giant"},
    # open_clip/model_configs/convnext_base_w.json
    "open_clip_convnext_base_w": {
        "embed_dim": 640,
        "vision_cfg": {"timm_model_name": "convnext_base", "timm_model_pretrained": False, "timm_pool": "", "timm_proj": "linear", "timm_drop": 0.0, "timm_drop_path": 0.1, "image_size": 256},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 640, "heads": 10, "layers": 12},
    },
    # of open_clip_config.json of the repository at a9709a5, and bert of the size of base, with BERT's own number of words, which it names
    "biomedclip": {
        "embed_dim": 512,
        "vision_cfg": {"timm_model_name": "vit_base_patch16_224", "timm_model_pretrained": False, "timm_pool": "", "timm_proj": "linear", "image_size": 224},
        "text_cfg": {
            "hf_model_name": "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract", "hf_proj_type": "mlp",
            "hf_pooler_type": "cls_last_hidden_state_pooler", "context_length": 256,
        },
    },
}  # fmt: skip

# What the tensors belong to whose name tells no part.
MAIN = {
    "birefnet": "vision",
    "rmbg": "vision",
    "unidepth": "vision",
    "da3metric-large": "vision",
    "da3-giant": "vision",
    "open_clip_convnext_base_w": "text",
    "biomedclip": "text",
}


@builds("rmbg", "BriaRMBG", "ic-light bcf3f29")
def rmbg(config: dict):
    import torch
    from briarmbg import BriaRMBG

    with torch.device("meta"):
        return BriaRMBG(config)


@builds("birefnet", "BiRefNet", "birefnet 25cb9309")
def birefnet(config: dict):
    import torch

    stand_ins.for_birefnet()
    from models.birefnet import BiRefNet

    with torch.device("meta"):
        model = BiRefNet(bb_pretrained=False)
    assert model.config.bb == config["bb"]
    return model


@builds("unidepth", "UniDepthV2", "unidepth 8d8cfe4c")
def unidepth(config: dict):
    from unidepth.models.unidepthv2.unidepthv2 import UniDepthV2

    config = json.loads(json.dumps(config))
    config["model"]["pixel_encoder"] |= {
        "lr": 1e-6, "wd": 0.1, "frozen_stages": 0, "freeze_norm": True, "pretrained": None, "stacking_fn": "last",
    }  # fmt: skip
    config["model"]["pixel_decoder"] |= {"dropout": 0.0}
    return UniDepthV2(config | {"training": {"losses": {}}, "data": {"augmentations": {"shape_constraints": {}}}})


@builds("da3metric-large", "DepthAnything3", "depth-anything-3 2c21ea84")
@builds("da3-giant", "DepthAnything3", "depth-anything-3 2c21ea84")
def depth_anything_3(config: dict):
    import torch
    from depth_anything_3 import cfg

    said = Path(cfg.__file__).parent / "configs" / f"{config['model_name']}.yaml"
    with torch.device("meta"):
        return cfg.create_object(cfg.load_config(str(said)))


@builds("open_clip_convnext_base_w", "CLIP", "open-clip 3.3.0")
def convnext(config: dict):
    import torch
    from open_clip.model import CLIP

    with torch.device("meta"):
        return CLIP(**config)


@builds("biomedclip", "CustomTextCLIP", "open-clip 3.3.0")
def biomedclip(config: dict):
    import torch
    import transformers
    from open_clip import hf_model
    from open_clip.model import CustomTextCLIP

    hf_model.AutoConfig = type("Told", (), {"from_pretrained": lambda _name: transformers.BertConfig(vocab_size=30522)})
    text = {**config["text_cfg"], "hf_model_pretrained": False}
    with torch.device("meta"):
        return CustomTextCLIP(config["embed_dim"], config["vision_cfg"], text)


# by type what a checkpoint holds besides, with a cause
STORED = {
    "birefnet": ("running statistics and places within a window", buffers_of),
    "rmbg": ("running statistics", buffers_of),
}
