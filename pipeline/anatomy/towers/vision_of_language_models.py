"""Vision towers that were designed for one family of vision-language models: Qwen-VL, GLM-V, Gemma 4, Llama 3.2 and 4, SAM.

Each returns the tower and, apart, the merger that belongs to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import pair, ratio, sizes
from pipeline.anatomy.towers import seeing
from pipeline.anatomy.towers.part import Part


@dataclass(frozen=True)
class QwenVit:
    """Where a generation of Qwen's towers departs from the newest."""

    width: str = "hidden_size"  # the field of the tower's own width
    outputs: str = "out_hidden_size"  # and of the language model's
    has_ratio: bool = False  # the feed-forward's width is a multiple of the tower's
    is_rms: bool = False  # RMS norms and gated feed-forwards
    has_positions: bool = True  # a learned table, and patches with a bias
    is_fused: bool = True
    is_grouped: bool = False  # heads share keys and values
    deepstack: int = 0  # so many layers have a merger of their own for what they make, where the config names none


QWEN_2 = QwenVit(width="embed_dim", outputs="hidden_size", has_ratio=True, has_positions=False)
QWEN_2_5 = QwenVit(is_rms=True, has_positions=False)
QWEN_3 = QwenVit(deepstack=3)
QWEN = {
    "qwen2_vl_vision": QWEN_2,
    "qwen2_5_vl_vision": QWEN_2_5,
    "qwen2_5_omni_vision_encoder": replace(QWEN_2_5, is_fused=False),
    "exaone4_5_vision": replace(QWEN_2_5, is_grouped=True),
    **dict.fromkeys(("qwen3_vl_vision", "qwen3_vl_moe_vision", "qwen3_omni_moe_vision_encoder"), QWEN_3),
    **dict.fromkeys(("qwen3_5_vision", "qwen3_5_moe_vision", "qwen4_exp_vision"), QwenVit()),
}


@seeing(*QWEN)
def qwen_vision(fields: Fields) -> list[Part]:
    """Patches over two frames, fused projections, and mergers that join merge² patches for the language model."""
    plan, fields = QWEN[fields.text("model_type")], fields.filled()
    hidden, outputs = fields.count(plan.width), fields.count(plan.outputs)
    layers, heads = fields.repeats("depth"), fields.count("num_heads")
    width = hidden * fields.count("mlp_ratio") if plan.has_ratio else fields.count("intermediate_size")
    patch, frames = fields.count("patch_size"), fields.count("temporal_patch_size")
    part = Part("vision", "vision-tower")
    part.conv(hidden, fields.count("in_channels", "in_chans"), frames, patch, patch, bias=plan.has_positions)
    if plan.has_positions:
        part.embedding("position_embedding", fields.count("num_position_embeddings"), hidden)
    kv_heads = fields.count("num_key_value_heads") if plan.is_grouped else heads
    part.mixer(layers, hidden, heads, kv_heads=kv_heads, fused=plan.is_fused)
    part.mlp(layers, hidden, width, gated=plan.is_rms)
    part.norm(hidden, layers=layers, count=2, bias=not plan.is_rms)
    merger = Part("projector", "projector")
    joined = hidden * fields.count("spatial_merge_size") ** 2
    named = fields.items("deepstack_visual_indexes") if plan.deepstack else None
    deep = plan.deepstack if named is None else len(named)
    merger.norm(hidden, bias=not plan.is_rms)
    merger.norm(joined, count=deep)
    merger.linear("projector_up", joined, joined, count=1 + deep)
    merger.linear("projector_down", joined, outputs, count=1 + deep)
    part.hidden, part.layers = hidden, layers
    return [part, merger]


@seeing("glm4v_vision", "glm4v_moe_vision", "glm5_next_vision", "glm_ocr_vision")
def glm_vision(fields: Fields) -> list[Part]:
    """GLM-4V; GLM-5-Next and GLM-OCR drop positions, norm queries and keys, and have biases."""
    kind = fields.text("model_type")
    older = kind.startswith("glm4v")
    fields = fields.filled()
    hidden, layers, heads = fields.count("hidden_size"), fields.repeats("depth"), fields.count("num_heads")
    outputs, width = fields.count("out_hidden_size"), fields.count("intermediate_size")
    patch, frames = fields.count("patch_size"), fields.size("temporal_patch_size")
    bias = fields.flag("attention_bias")
    part, merger = Part("vision", "vision-tower"), Part("projector", "projector")
    part.conv(hidden, fields.size("in_channels"), frames, patch, patch)
    if older:
        part.embedding("position_embedding", (fields.count("image_size") // patch) ** 2, hidden)
    part.mixer(layers, hidden, heads, fused=True, bias=bias, output_bias=bias and not older, qk_norm=not older)
    part.mlp(layers, hidden, outputs if older else width, gated=True, bias=bias and not older)
    part.norm(hidden, layers=layers, count=2, bias=False)
    part.norm(0 if older else fields.divide(hidden, heads, "hidden_size"), layers=layers, count=2, bias=False)
    part.norm(hidden, count=2 if older else 1, bias=False)
    merge = fields.size("spatial_merge_size")
    merger.conv(outputs, hidden, merge, merge)
    inner = fields.count("projection_intermediate_size", default=10240 if kind == "glm5_next_vision" else 3 * outputs)
    inner = width if older else inner
    merger.linear("projector_in", outputs, outputs, bias=False)
    merger.norm(outputs)
    merger.linear("projector_up", outputs, inner, bias=False, count=2)
    merger.linear("projector_down", inner, outputs, bias=False)
    part.hidden, part.layers = hidden, layers
    return [part, merger]


@seeing("gemma4_vision")
def gemma4_vision(fields: Fields) -> list[Part]:
    fields = fields.filled()
    hidden, layers, head_dim = (
        fields.count("hidden_size"),
        fields.repeats("num_hidden_layers"),
        fields.count("head_dim"),
    )
    part = Part("vision", "vision-tower")
    part.linear("patch_embedding", 3 * fields.count("patch_size") ** 2, hidden, bias=False)
    part.parameter(2 * fields.count("position_embedding_size") * hidden, "position_embedding")
    shape = {
        "kv_heads": fields.count("num_key_value_heads"),
        "head_dim": head_dim,
        "bias": fields.flag("attention_bias"),
    }
    part.mixer(layers, hidden, fields.count("num_attention_heads"), qk_norm=True, **shape)
    part.norm(head_dim, layers=layers, count=2, bias=False)
    part.mlp(layers, hidden, fields.count("intermediate_size"), gated=True, bias=False)
    part.norm(hidden, layers=layers, count=4, bias=False)
    return part.finished(hidden, layers)


@seeing("mllama_vision_model")
def mllama_vision(fields: Fields) -> list[Part]:
    """Local layers, then gated global ones; positions and tiles have tables per aspect ratio."""
    fields = fields.filled()
    hidden, width = fields.count("hidden_size"), fields.count("intermediate_size")
    local, wide = fields.repeats("num_hidden_layers"), fields.repeats("num_global_layers")
    heads, tiles = fields.size("attention_heads", "num_attention_heads"), fields.count("max_num_tiles")
    ratios = len(fields.items("supported_aspect_ratios") or range(8)) + 1
    patch = fields.count("patch_size")
    rows = (fields.count("image_size") // patch) ** 2 + 1
    part = Part("vision", "vision-tower")
    part.parameter(hidden, "class_embedding")
    part.conv(hidden, fields.size("num_channels"), patch, patch, bias=False)
    part.parameter(rows * hidden, "position_embedding")
    part.embedding("position_embedding", ratios, tiles * rows * hidden)
    part.embedding("position_embedding", ratios, tiles * hidden, count=2)
    part.vector(1, "gate", count=3 + 2 * wide)
    part.norm(hidden, count=2)
    for layers in (local, wide):
        part.mixer(layers, hidden, heads, bias=False)
        part.mlp(layers, hidden, width)
        part.norm(hidden, layers=layers, count=2)
    return part.finished(hidden, local + wide)


@seeing("llama4_vision_model")
def llama4_vision(fields: Fields) -> list[Part]:
    fields = fields.filled()
    hidden, layers, patch = (
        fields.count("hidden_size"),
        fields.repeats("num_hidden_layers"),
        fields.count("patch_size"),
    )
    part, adapter = Part("vision", "vision-tower"), Part("projector", "projector")
    part.parameter(hidden, "class_embedding")
    part.parameter(((fields.count("image_size") // patch) ** 2 + 1) * hidden, "position_embedding")
    part.linear("patch_embedding", fields.size("num_channels") * patch * patch, hidden, bias=False)
    part.block(layers, hidden, fields.count("intermediate_size"), fields.count("num_attention_heads"))
    part.norm(hidden, count=2)
    inner, outer = fields.count("projector_input_dim"), fields.count("projector_output_dim")
    adapter.linear("projector_up", fields.count("intermediate_size"), inner, bias=False)
    adapter.linear("projector_down", inner, outer, bias=False)
    part.hidden, part.layers = hidden, layers
    return [part, adapter]


@seeing("sam_vision_model", "got_ocr2_vision", "sam_hq_vision_model")
def sam_vision(fields: Fields) -> list[Part]:
    """Windows with relative positions, full attention in a few layers, a convolutional neck."""
    fields = fields.filled()
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    heads, neck = fields.count("num_attention_heads"), fields.count("output_channels")
    (high, wide), image = pair(fields, "patch_size"), pair(fields, "image_size")
    grid = (image[0] // high, image[1] // wide)
    width = fields.count("mlp_dim", default=None) or int(hidden * ratio(fields, "mlp_ratio", 4.0))
    part = Part("vision", "vision-tower")
    part.conv(hidden, fields.size("num_channels"), high, wide)
    if fields.flag("use_abs_pos"):
        part.parameter(grid[0] * grid[1] * hidden, "position_embedding")
    everywhere = sum(i < layers for i in sizes(fields, "global_attn_indexes"))
    bias = fields.flag("qkv_bias")
    part.mixer(layers, hidden, heads, fused=True, bias=bias, output_bias=True)
    if fields.flag("use_rel_pos"):
        window, head_dim = fields.count("window_size"), hidden // heads
        part.parameter((2 * window - 1) * head_dim, "position_embedding", layers=layers - everywhere, count=2)
        part.parameter((2 * grid[0] - 1 + 2 * grid[1] - 1) * head_dim, "position_embedding", layers=everywhere)
    part.mlp(layers, hidden, width)
    part.norm(hidden, layers=layers, count=2)
    part.conv(neck, hidden, 1, 1, bias=False)
    part.conv(neck, neck, 3, 3, bias=False)
    part.norm(neck, count=2)
    return part.finished(neck, layers)


@seeing("minimax_m3_vl_vision")
def minimax_vision(fields: Fields) -> list[Part]:
    """CLIP's layers over pairs of frames, with rotary positions; no class token and no norm at the end."""
    fields = fields.filled()
    hidden, layers, patch = (
        fields.count("hidden_size"),
        fields.repeats("num_hidden_layers"),
        fields.count("patch_size"),
    )
    compression = fields.inner("img_token_compression_config") or fields
    part = Part("vision", "vision-tower")
    frames = compression.count("temporal_patch_size", default=2)
    part.conv(hidden, fields.size("num_channels"), frames, patch, patch, bias=False)
    part.norm(hidden)
    part.block(layers, hidden, fields.count("intermediate_size"), fields.count("num_attention_heads"))
    return part.finished(hidden, layers)


@seeing("fuyu_patches")
def fuyu_patches(fields: Fields) -> list[Part]:
    """No tower: a patch is one matrix away from the language model."""
    part, patch = Part("projector", "projector"), fields.count("patch_size", default=30)
    inner = fields.inner("text_config") or fields
    part.linear(
        "projector", patch * patch * fields.count("num_channels", default=3), inner.count("hidden_size", default=4096)
    )
    return [part]


@seeing("hunyuan_vl_vision")
def hunyuan_vision(fields: Fields) -> list[Part]:
    """A ViT whose table of positions is of the largest image; convolutions merge its patches, marks begin and end an image."""
    fields = fields.filled()
    hidden, layers, text = (
        fields.count("hidden_size"),
        fields.repeats("num_hidden_layers"),
        fields.count("text_hidden_size"),
    )
    patch, merge = fields.count("patch_size"), fields.size("spatial_merge_size")
    part, merger = Part("vision", "vision-tower"), Part("projector", "projector")
    part.conv(hidden, fields.size("num_channels"), patch, patch)
    part.embedding("position_embedding", (fields.count("max_image_size") // patch) ** 2 + 1, hidden)
    part.block(layers, hidden, fields.count("intermediate_size"), fields.count("num_attention_heads"))
    merger.norm(hidden, bias=False)
    merger.conv(2 * hidden, hidden, merge, merge)
    merger.conv(4 * hidden, 2 * hidden, 1, 1)
    merger.linear("projector", 4 * hidden, text)
    merger.vector(4 * hidden, "image_newline")
    merger.vector(text, "image_mark", count=3)
    merger.norm(text, bias=False)
    part.hidden, part.layers = hidden, layers
    return [part, merger]
