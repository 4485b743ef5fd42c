"""Vision towers of ViT's plan: patches, positions, encoder layers, a norm; families differ in what `Vit` names."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import over, pair, ratio
from pipeline.anatomy.rows import UnknownAnatomy, shown
from pipeline.anatomy.towers import seeing
from pipeline.anatomy.towers.part import Part

LARGE_CLIP = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "patch_size": 14,
    "image_size": 336,
}  # what LLaVA and Phi-3-Vision build
IDEFICS = {
    "hidden_size": 768,
    "intermediate_size": 5120,
    "num_hidden_layers": 32,
    "num_attention_heads": 16,
    "patch_size": 14,
    "image_size": 224,
}


@dataclass(frozen=True)
class Vit:
    """Where a tower departs from a plain ViT; flags that a config may set come from its own fields."""

    sizes: dict[str, Any] = field(default_factory=dict)  # where the library has no class of this type to say them
    patch_bias: bool = True
    patch_is_linear: bool = False
    class_tokens: int = 0
    positions: str = "learned"  # learned (one row per patch and class token) | none | a field that counts the rows
    pre_norm: bool = False
    post_norm: bool = True
    pools: bool = False  # SigLIP's attention pooling, where vision_use_head says so
    always_pools: bool = False  # whatever it says
    rms: bool = False
    gated: bool = False
    bias: bool = True
    key_bias: bool | None = None
    output_bias: bool | None = None
    fused: bool = False
    layer_scales: int = 0
    mask_token: bool = False
    registers: bool = False
    has_ratio: bool = False  # DINOv2 writes a ratio in place of the feed-forward's width
    norms_heads: bool = False  # where use_qk_norm says so
    head_norm_bias: bool = False
    norms_say: bool = False  # of which kind they are, in norm_type
    averages: bool = False  # no norm at the end where use_mean_pooling says so
    turns_class_token: bool = False  # the class token has a learned place in the rotary positions
    flags: dict[str, str] = field(default_factory=dict)  # this dataclass's field ← the config's flag


BLIP2 = Vit(class_tokens=1, fused=True, output_bias=True, flags={"bias": "qkv_bias"})
INTERNVL = Vit(
    class_tokens=1,
    post_norm=False,
    bias=False,
    output_bias=True,
    layer_scales=2,
    norms_heads=True,
    norms_say=True,
    averages=True,
    flags={"bias": "attention_bias", "mask_token": "use_mask_token"},
)
VITS: dict[str, Vit] = {
    "clip_vision_model": Vit(patch_bias=False, class_tokens=1, pre_norm=True),
    "llava_clip": Vit(LARGE_CLIP, patch_bias=False, class_tokens=1, pre_norm=True),
    "phi3_clip": Vit(LARGE_CLIP, patch_bias=False, class_tokens=1, pre_norm=True),
    "chinese_clip_vision_model": Vit(patch_bias=False, class_tokens=1, pre_norm=True),
    "altclip_vision_model": Vit(patch_bias=False, class_tokens=1, pre_norm=True),
    "kosmos_2_vision_model": Vit(patch_bias=False, class_tokens=1, pre_norm=True),
    "mlcd": Vit(patch_bias=False, class_tokens=1, pre_norm=True, positions="none", turns_class_token=True),
    "idefics_vision": Vit(IDEFICS, patch_bias=False, class_tokens=1, pre_norm=True),
    "siglip_vision_model": Vit(pools=True),
    "phi4_multimodal_vision": Vit(always_pools=True),
    "siglip2_vision_model": Vit(patch_is_linear=True, positions="num_patches", pools=True),
    "idefics2_vision": Vit(),
    "idefics3_vision": Vit(),
    "smolvlm_vision": Vit(),
    "video_llama_3_vision": Vit(positions="none"),
    "minicpmv4_6_vision": Vit(),
    "paddleocr_vl_vision": Vit(),
    "blip_vision_model": Vit(class_tokens=1, fused=True),
    "blip_2_vision_model": BLIP2,
    "instructblip_vision_model": BLIP2,
    "pixtral": Vit(
        patch_bias=False, positions="none", pre_norm=True, post_norm=False, rms=True, gated=True, bias=False
    ),
    "kimi_k25_vision": Vit(positions="grid"),
    "muse_glimmer_vision": Vit(patch_bias=False, patch_is_linear=True, positions="grid", pre_norm=True),
    "internvl_vision": INTERNVL,
    "qianfan_ocr_vision": replace(INTERNVL, bias=True),
    "janus_vision_model": Vit(
        output_bias=True, has_ratio=True, norms_heads=True, head_norm_bias=True, flags={"bias": "attention_bias"}
    ),
    "vit": Vit(class_tokens=1, output_bias=True, flags={"bias": "qkv_bias"}),
    "vit_msn": Vit(class_tokens=1, output_bias=True, flags={"bias": "qkv_bias"}),
    "deit": Vit(class_tokens=2, output_bias=True, flags={"bias": "qkv_bias"}),
    "ijepa": Vit(output_bias=True, flags={"bias": "qkv_bias"}),
    "dinov2": Vit(
        class_tokens=1, output_bias=True, layer_scales=2, mask_token=True, has_ratio=True, flags={"bias": "qkv_bias"}
    ),
    "dinov2_with_registers": Vit(
        class_tokens=1,
        output_bias=True,
        layer_scales=2,
        mask_token=True,
        has_ratio=True,
        registers=True,
        flags={"bias": "qkv_bias"},
    ),
    "dinov3_vit": Vit(
        class_tokens=1,
        positions="none",
        layer_scales=2,
        mask_token=True,
        registers=True,
        key_bias=False,
        output_bias=True,
        flags={"gated": "use_gated_mlp", "key_bias": "key_bias", "output_bias": "proj_bias", "bias": "query_bias"},
    ),
}


@seeing(*VITS)
def vit(fields: Fields) -> list[Part]:
    plan = VITS[fields.text("model_type")]
    fields = over(fields, plan.sizes).filled()
    plan = replace(plan, **{name: fields.flag(flag) for name, flag in plan.flags.items()})
    part = Part("vision", "vision-tower")
    hidden = fields.count("embed_dim" if "embed_dim" in fields.config else "hidden_size")
    layers, heads = fields.repeats("num_hidden_layers"), fields.count("num_attention_heads")
    width = int(hidden * ratio(fields, "mlp_ratio")) if plan.has_ratio else fields.count("intermediate_size")
    embed_patches(part, fields, plan, hidden)
    part.mixer(
        layers, hidden, heads, bias=plan.bias, key_bias=plan.key_bias, output_bias=plan.output_bias, fused=plan.fused
    )
    if fields.flag("use_swiglu_ffn"):
        width = (int(width * 2 / 3) + 7) // 8 * 8
        part.mlp(layers, hidden, width, gated=True, fused=True)
    else:
        part.mlp(layers, hidden, width, gated=plan.gated, bias=not plan.rms and fields.flag("mlp_bias", default=True))
    part.norm(hidden, layers=layers, count=2, bias=not (plan.rms or (plan.norms_say and says_rms(fields))))
    part.vector(hidden, layers=layers, count=plan.layer_scales)
    part.norm(hidden, count=plan.pre_norm + plan.post_norm, bias=not plan.rms)
    if plan.always_pools or (plan.pools and fields.flag("vision_use_head")):
        attention_pooling(part, hidden, fields.count("intermediate_size"))
    if plan.norms_heads:
        part.norm(hidden if fields.flag("use_qk_norm") else 0, layers=layers, count=2, bias=plan.head_norm_bias)
    if plan.averages:
        part.norm(0 if fields.flag("use_mean_pooling") else hidden)
    if plan.turns_class_token:
        part.parameter(hidden // heads // 2, "position_embedding")
    return part.finished(hidden, layers)


def says_rms(fields: Fields) -> bool:
    kind = fields.text("norm_type", default="layer_norm")
    if kind not in ("layer_norm", "rms_norm"):
        raise UnknownAnatomy(f"{fields.where}.norm_type is {shown(kind)!r}")
    return kind == "rms_norm"


def embed_patches(part: Part, fields: Fields, plan: Vit, hidden: int) -> None:
    """Patches as a convolution or a matrix, class, mask and register tokens, positions."""
    (high, wide), channels = pair(fields, "patch_size"), fields.size("num_channels", otherwise=3)
    if plan.patch_is_linear:
        frames = fields.size("patch_temporal", otherwise=1)
        part.linear("patch_embedding", channels * high * wide * frames, hidden, bias=plan.patch_bias)
    else:
        part.conv(hidden, channels, high, wide, bias=plan.patch_bias)
    part.parameter(hidden, "class_embedding", count=plan.class_tokens + plan.mask_token)
    if plan.registers:
        part.parameter(hidden * fields.count("num_register_tokens", least=0), "register_embedding")
    if not fields.flag("use_absolute_position_embeddings", default=True):
        return
    if plan.positions == "learned":
        image = pair(fields, "image_size")
        part.embedding("position_embedding", (image[0] // high) * (image[1] // wide) + plan.class_tokens, hidden)
    elif plan.positions == "grid":
        rows = fields.count("pos_emb_height", "init_pos_emb_height")
        part.parameter(rows * fields.count("pos_emb_width", "init_pos_emb_width") * hidden, "position_embedding")
    elif plan.positions != "none":
        part.embedding("position_embedding", fields.count(plan.positions), hidden)


def attention_pooling(part: Part, hidden: int, width: int) -> None:
    """A probe that attends to all patches (torch's MultiheadAttention: one bare matrix in, a Linear subclass out)."""
    part.parameter(hidden, "probe")
    part.add("attention_qkv", "parameter", 3 * hidden, hidden)
    part.vector(3 * hidden, "bias")
    part.linear("attention_o", hidden, hidden, operator="linear-subclass")
    _pooled_block(part, hidden, width)


def timm_pooling(part: Part, hidden: int, width: int) -> None:
    """The same as timm builds it (AttentionPoolLatent): plain layers, keys and values in one."""
    part.parameter(hidden, "probe")
    part.linear("attention_q", hidden, hidden)
    part.linear("attention_kv", hidden, 2 * hidden)
    part.linear("attention_o", hidden, hidden)
    _pooled_block(part, hidden, width)


def _pooled_block(part: Part, hidden: int, width: int) -> None:
    part.norm(hidden)
    part.linear("ffn_up", hidden, width)
    part.linear("ffn_down", width, hidden)
