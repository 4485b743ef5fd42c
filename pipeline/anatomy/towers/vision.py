"""Vision towers of ViT's plan: patches, positions, encoder layers, a norm; families differ in what `Vit` names.

`vision_tower(fields)` reads a tower by the `model_type` of its own config, as it stands alone or inside another model.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import UnknownAnatomy
from pipeline.anatomy.towers.part import Part, Towers, layer_count, over, pair, registered

BASE = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_channels": 3,
    "image_size": 224,
    "patch_size": 16,
}
CLIP = {**BASE, "patch_size": 32}
LARGE = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "patch_size": 14,
}
LARGE_CLIP = {**BASE, **LARGE, "image_size": 336}  # what LLaVA and Phi-3-Vision build
GIANT = {"hidden_size": 1152, "num_hidden_layers": 27, "num_attention_heads": 16, "intermediate_size": 4304}


@dataclass(frozen=True)
class Vit:
    """Where a tower departs from a plain ViT; flags that a config may set come from its own fields."""

    defaults: dict[str, Any] = field(default_factory=lambda: BASE)
    patch_bias: bool = True
    patch_is_linear: bool = False
    class_token: bool = False
    positions: str = "learned"  # learned (one row per patch and class token) | none | a field that counts the rows
    pre_norm: bool = False
    post_norm: bool = True
    pools: bool = False  # SigLIP's attention pooling, where vision_use_head says so
    rms: bool = False
    gated: bool = False
    bias: bool = True
    key_bias: bool | None = None
    output_bias: bool | None = None
    fused: bool = False
    layer_scales: int = 0
    mask_token: bool = False
    registers: bool = False
    flags: dict[str, str] = field(default_factory=dict)  # this dataclass's field ← the config's flag


GIANT14 = {
    "hidden_size": 1408,
    "intermediate_size": 6144,
    "num_hidden_layers": 39,
    "num_attention_heads": 16,
    "patch_size": 14,
}
BLIP2 = Vit({**BASE, **GIANT14}, class_token=True, fused=True, output_bias=True, flags={"bias": "qkv_bias"})
INTERNVL = Vit(
    {**BASE, **LARGE, "image_size": 448},
    class_token=True,
    post_norm=False,
    bias=False,
    output_bias=True,
    layer_scales=2,
    flags={"bias": "attention_bias", "mask_token": "use_mask_token"},
)
VITS: dict[str, Vit] = {
    "clip_vision_model": Vit(CLIP, patch_bias=False, class_token=True, pre_norm=True),
    "llava_clip": Vit(LARGE_CLIP, patch_bias=False, class_token=True, pre_norm=True),
    "phi3_clip": Vit(LARGE_CLIP, patch_bias=False, class_token=True, pre_norm=True),
    "chinese_clip_vision_model": Vit(CLIP, patch_bias=False, class_token=True, pre_norm=True),
    "altclip_vision_model": Vit(CLIP, patch_bias=False, class_token=True, pre_norm=True),
    "kosmos_2_vision_model": Vit(
        {**BASE, **LARGE},
        patch_bias=False,
        class_token=True,
        pre_norm=True,
    ),
    "mlcd": Vit(
        {
            **BASE,
            "hidden_size": 1664,
            "intermediate_size": 8192,
            "num_hidden_layers": 48,
            "num_attention_heads": 16,
            "image_size": 336,
            "patch_size": 14,
        },
        patch_bias=False,
        class_token=True,
        pre_norm=True,
        positions="none",
    ),
    "idefics_vision": Vit(
        {**BASE, "intermediate_size": 5120, "num_hidden_layers": 32, "num_attention_heads": 16, "patch_size": 14},
        patch_bias=False,
        class_token=True,
        pre_norm=True,
    ),
    "siglip_vision_model": Vit(pools=True),
    "siglip2_vision_model": Vit(
        {**BASE, "num_patches": 256}, patch_is_linear=True, positions="num_patches", pools=True
    ),
    "idefics2_vision": Vit(CLIP),
    "idefics3_vision": Vit({**CLIP, "hidden_size": 1152, "num_attention_heads": 16}),
    "smolvlm_vision": Vit({**CLIP, "hidden_size": 1152, "num_attention_heads": 16}),
    "video_llama_3_vision": Vit(positions="none"),
    "minicpmv4_6_vision": Vit(),
    "paddleocr_vl_vision": Vit({**BASE, **GIANT, "image_size": 384, "patch_size": 14}),
    "blip_vision_model": Vit({**BASE, "image_size": 384}, class_token=True, fused=True),
    "blip_2_vision_model": BLIP2,
    "instructblip_vision_model": BLIP2,
    "pixtral": Vit(
        {**BASE, **LARGE, "patch_size": 16},
        patch_bias=False,
        positions="none",
        pre_norm=True,
        post_norm=False,
        rms=True,
        gated=True,
        bias=False,
    ),
    "kimi_k25_vision": Vit({**BASE, **GIANT, "patch_size": 14}, positions="grid"),
    "muse_glimmer_vision": Vit(
        {
            **BASE,
            "hidden_size": 1536,
            "intermediate_size": 8960,
            "num_hidden_layers": 50,
            "num_attention_heads": 16,
            "patch_size": 14,
        },
        patch_bias=False,
        patch_is_linear=True,
        positions="grid",
        pre_norm=True,
    ),
    "internvl_vision": INTERNVL,
    "qianfan_ocr_vision": replace(INTERNVL, bias=True),
    "vit": Vit(class_token=True, output_bias=True, flags={"bias": "qkv_bias"}),
    "vit_msn": Vit(class_token=True, output_bias=True, flags={"bias": "qkv_bias"}),
    "deit": Vit(class_token=True, output_bias=True, flags={"bias": "qkv_bias"}),
    "ijepa": Vit(output_bias=True, flags={"bias": "qkv_bias"}),
    "dinov2": Vit(
        {**BASE, "patch_size": 14},
        class_token=True,
        output_bias=True,
        layer_scales=2,
        mask_token=True,
        flags={"bias": "qkv_bias"},
    ),
    "dinov2_with_registers": Vit(
        {**BASE, "num_register_tokens": 4},
        class_token=True,
        output_bias=True,
        layer_scales=2,
        mask_token=True,
        registers=True,
        flags={"bias": "qkv_bias"},
    ),
    "dinov3_vit": Vit(
        {**BASE, "hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 6, "num_register_tokens": 0},
        class_token=True,
        positions="none",
        layer_scales=2,
        mask_token=True,
        registers=True,
        key_bias=False,
        output_bias=True,
        flags={"gated": "use_gated_mlp", "key_bias": "key_bias", "output_bias": "proj_bias", "bias": "query_bias"},
    ),
}
TOWERS: Towers = {}
tower = registered(TOWERS)


def vision_tower(fields: Fields, default: str | None = None) -> list[Part]:
    """The tower this config describes; `default` is the kind that a parent builds where its config does not say."""
    kind = fields.text("model_type") or default
    read = TOWERS.get(kind) or TOWERS.get(default or "")
    if read is None:
        raise UnknownAnatomy(f"vision tower '{str(kind)[:60]}' is not described yet")
    return read(Fields({**fields.config, "model_type": kind if kind in TOWERS else default}, fields.where))


@tower(*VITS)
def vit(fields: Fields) -> list[Part]:
    plan = VITS[fields.text("model_type")]
    fields = over(fields, plan.defaults)
    chosen = {name: fields.flag(flag, default=_default(plan, name)) for name, flag in plan.flags.items()}
    plan = Vit(**{**vars(plan), **chosen})
    part = Part("vision", "vision-tower")
    hidden, layers = (
        fields.count("embed_dim" if "embed_dim" in fields.config else "hidden_size"),
        layer_count(fields, "num_hidden_layers"),
    )
    heads = fields.count("num_attention_heads")
    # DINOv2 writes a ratio in place of the width.
    is_dino2 = fields.text("model_type").startswith("dinov2")
    width = hidden * fields.count("mlp_ratio", default=4) if is_dino2 else fields.count("intermediate_size")
    embed_patches(part, fields, plan, hidden)
    part.mixer(
        layers,
        hidden,
        heads,
        bias=plan.bias,
        key_bias=plan.key_bias,
        output_bias=plan.output_bias,
        fused=plan.fused,
    )
    if fields.flag("use_swiglu_ffn"):
        width = (int(width * 2 / 3) + 7) // 8 * 8
        part.mlp(layers, hidden, width, gated=True, fused=True)
    else:
        part.mlp(layers, hidden, width, gated=plan.gated, bias=not plan.rms and fields.flag("mlp_bias", default=True))
    part.norm(hidden, layers=layers, count=2, bias=not plan.rms)
    part.vector(hidden, layers=layers, count=plan.layer_scales)
    part.norm(hidden, count=plan.pre_norm + plan.post_norm, bias=not plan.rms)
    if plan.pools and fields.flag("vision_use_head", default=True):
        attention_pooling(part, hidden, fields.count("intermediate_size"))
    if fields.text("model_type") in ("internvl_vision", "qianfan_ocr_vision"):
        part.norm(hidden if fields.flag("use_qk_norm") else 0, layers=layers, count=2, bias=False)
        part.norm(0 if fields.flag("use_mean_pooling", default=True) else hidden)
    if fields.text("model_type") == "mlcd":  # the class token's place in the rotary positions
        part.parameter(hidden // heads // 2, "position_embedding")
    part.hidden, part.layers = hidden, layers
    return [part]


def _default(plan: Vit, name: str) -> bool:
    return bool(getattr(plan, name))


def embed_patches(part: Part, fields: Fields, plan: Vit, hidden: int) -> None:
    """Patches as a convolution or a matrix, class, mask and register tokens, positions."""
    (high, wide), channels = pair(fields, "patch_size"), fields.count("num_channels")
    if plan.patch_is_linear:
        frames = fields.count("patch_temporal", default=2 if fields.text("model_type") == "muse_glimmer_vision" else 1)
        part.linear("patch_embedding", channels * high * wide * frames, hidden, bias=plan.patch_bias)
    else:
        part.conv(hidden, channels, high, wide, bias=plan.patch_bias)
    tokens = int(plan.class_token) + (1 if fields.text("model_type") == "deit" else 0)
    part.parameter(hidden, "class_embedding", count=tokens + plan.mask_token)
    if plan.registers:
        part.parameter(hidden * fields.count("num_register_tokens", least=0), "register_embedding")
    if not fields.flag("use_absolute_position_embeddings", default=True):
        return
    if plan.positions == "learned":
        image = pair(fields, "image_size")
        part.embedding("position_embedding", (image[0] // high) * (image[1] // wide) + tokens, hidden)
    elif plan.positions == "grid":
        size = 32 if fields.text("model_type") == "muse_glimmer_vision" else 64
        rows = fields.count("pos_emb_height", "init_pos_emb_height", default=size)
        part.parameter(
            rows * fields.count("pos_emb_width", "init_pos_emb_width", default=size) * hidden, "position_embedding"
        )
    elif plan.positions != "none":
        part.embedding("position_embedding", fields.count(plan.positions), hidden)


def attention_pooling(part: Part, hidden: int, width: int) -> None:
    """A probe that attends to all patches (torch's MultiheadAttention: one bare matrix in, a Linear subclass out)."""
    part.parameter(hidden, "probe")
    part.add("attention_qkv", "parameter", 3 * hidden, hidden)
    part.vector(3 * hidden, "bias")
    part.linear("attention_o", hidden, hidden, operator="linear-subclass")
    part.norm(hidden)
    part.linear("ffn_up", hidden, width)
    part.linear("ffn_down", width, hidden)
