"""Vision towers that were designed for one family of vision-language models: Qwen-VL, GLM-V, Gemma 4, Llama 3.2 and 4, SAM.

Each returns the tower and, apart, the merger that belongs to it.
"""

from __future__ import annotations

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.towers.part import Part, layer_count, over, pair, ratio, sizes
from pipeline.anatomy.towers.vision import tower

QWEN = {
    "qwen2_vl_vision": {
        "depth": 32,
        "embed_dim": 1280,
        "hidden_size": 3584,
        "num_heads": 16,
        "mlp_ratio": 4,
        "patch_size": 14,
    },
    "qwen2_5_vl_vision": {
        "depth": 32,
        "hidden_size": 3584,
        "intermediate_size": 3420,
        "num_heads": 16,
        "patch_size": 14,
        "out_hidden_size": 3584,
    },
    "qwen3_vl_vision": {
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_heads": 16,
        "patch_size": 16,
        "out_hidden_size": 3584,
        "num_position_embeddings": 2304,
        "deepstack_visual_indexes": [8, 16, 24],
    },
}
QWEN["qwen3_vl_moe_vision"] = QWEN["qwen3_vl_vision"]
QWEN["qwen3_5_vision"] = {**QWEN["qwen3_vl_vision"], "deepstack_visual_indexes": []}
QWEN["qwen3_5_moe_vision"] = QWEN["qwen4_exp_vision"] = QWEN["qwen3_5_vision"]
QWEN["qwen2_5_omni_vision_encoder"] = QWEN["qwen2_5_vl_vision"]
QWEN["exaone4_5_vision"] = {**QWEN["qwen2_5_vl_vision"], "num_key_value_heads": 8}
QWEN["qwen3_omni_moe_vision_encoder"] = QWEN["qwen3_vl_vision"]


@tower(*QWEN)
def qwen_vision(fields: Fields) -> list[Part]:
    """Patches over two frames, fused projections, and mergers that join merge² patches for the language model."""
    kind = fields.text("model_type")
    fields = over(fields, QWEN[kind])
    second, rms = (
        kind == "qwen2_vl_vision",
        kind in ("qwen2_5_vl_vision", "qwen2_5_omni_vision_encoder", "exaone4_5_vision"),
    )
    older = second or rms
    hidden = fields.count("embed_dim" if second else "hidden_size")
    outputs = fields.count("hidden_size" if second else "out_hidden_size")
    layers, heads = layer_count(fields, "depth"), fields.count("num_heads")
    width = hidden * fields.count("mlp_ratio") if second else fields.count("intermediate_size")
    patch, frames = fields.count("patch_size"), fields.count("temporal_patch_size", default=2)
    part = Part("vision", "vision-tower")
    part.conv(hidden, fields.count("in_channels", "in_chans", default=3), frames, patch, patch, bias=not older)
    if not older:
        part.embedding("position_embedding", fields.count("num_position_embeddings"), hidden)
    kv_heads = fields.count("num_key_value_heads", default=heads) if kind == "exaone4_5_vision" else heads
    part.mixer(layers, hidden, heads, kv_heads=kv_heads, fused=kind != "qwen2_5_omni_vision_encoder")
    part.mlp(layers, hidden, width, gated=rms)
    part.norm(hidden, layers=layers, count=2, bias=not rms)
    merger = Part("projector", "projector")
    joined = hidden * fields.count("spatial_merge_size", default=2) ** 2
    deep = 0 if older or "qwen3_5" in kind or "qwen4" in kind else len(fields.items("deepstack_visual_indexes"))
    merger.norm(hidden, bias=not rms)
    merger.norm(joined, count=deep)
    merger.linear("projector_up", joined, joined, count=1 + deep)
    merger.linear("projector_down", joined, outputs, count=1 + deep)
    part.hidden, part.layers = hidden, layers
    return [part, merger]


GLM = {
    "depth": 24,
    "hidden_size": 1536,
    "num_heads": 12,
    "image_size": 336,
    "patch_size": 14,
    "out_hidden_size": 4096,
    "intermediate_size": 13696,
}


@tower("glm4v_vision", "glm4v_moe_vision", "glm5_next_vision", "glm_ocr_vision")
def glm_vision(fields: Fields) -> list[Part]:
    """GLM-4V; GLM-5-Next and GLM-OCR drop positions, norm queries and keys, and have biases."""
    kind = fields.text("model_type")
    older = kind.startswith("glm4v")
    newer = {**GLM, "hidden_size": 1024, "num_heads": 16, "out_hidden_size": 1536, "intermediate_size": 4096}
    fields = over(fields, GLM if older else {**newer, "attention_bias": True})
    hidden, layers, heads = fields.count("hidden_size"), layer_count(fields, "depth"), fields.count("num_heads")
    outputs, width = fields.count("out_hidden_size"), fields.count("intermediate_size")
    patch, frames = fields.count("patch_size"), fields.count("temporal_patch_size", default=2)
    bias = fields.flag("attention_bias")
    part, merger = Part("vision", "vision-tower"), Part("projector", "projector")
    part.conv(hidden, fields.count("in_channels", default=3), frames, patch, patch)
    if older:
        part.embedding("position_embedding", (fields.count("image_size") // patch) ** 2, hidden)
    part.mixer(layers, hidden, heads, fused=True, bias=bias, output_bias=bias and not older, qk_norm=not older)
    part.mlp(layers, hidden, outputs if older else width, gated=True, bias=bias and not older)
    part.norm(hidden, layers=layers, count=2, bias=False)
    part.norm(0 if older else fields.divide(hidden, heads, "hidden_size"), layers=layers, count=2, bias=False)
    part.norm(hidden, count=2 if older else 1, bias=False)
    merge = fields.count("spatial_merge_size", default=2)
    merger.conv(outputs, hidden, merge, merge)
    inner = fields.count("projection_intermediate_size", default=10240 if kind == "glm5_next_vision" else 3 * outputs)
    inner = width if older else inner
    merger.linear("projector_in", outputs, outputs, bias=False)
    merger.norm(outputs)
    merger.linear("projector_up", outputs, inner, bias=False, count=2)
    merger.linear("projector_down", inner, outputs, bias=False)
    part.hidden, part.layers = hidden, layers
    return [part, merger]


@tower("gemma4_vision")
def gemma4_vision(fields: Fields) -> list[Part]:
    defaults = {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 16,
        "num_attention_heads": 12,
        "head_dim": 64,
    }
    fields = over(fields, {**defaults, "num_key_value_heads": 12, "patch_size": 16, "position_embedding_size": 10240})
    hidden, layers, head_dim = (
        fields.count("hidden_size"),
        layer_count(fields, "num_hidden_layers"),
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
    part.hidden, part.layers = hidden, layers
    return [part]


@tower("mllama_vision_model")
def mllama_vision(fields: Fields) -> list[Part]:
    """Local layers, then gated global ones; positions and tiles have tables per aspect ratio."""
    defaults = {
        "hidden_size": 1280,
        "num_hidden_layers": 32,
        "num_global_layers": 8,
        "intermediate_size": 5120,
        "image_size": 448,
    }
    fields = over(fields, {**defaults, "patch_size": 14, "max_num_tiles": 4})
    hidden, width = fields.count("hidden_size"), fields.count("intermediate_size")
    local, wide = layer_count(fields, "num_hidden_layers"), layer_count(fields, "num_global_layers")
    heads, tiles = fields.count("attention_heads", "num_attention_heads", default=16), fields.count("max_num_tiles")
    ratios = len(fields.items("supported_aspect_ratios") or range(8)) + 1
    patch = fields.count("patch_size")
    rows = (fields.count("image_size") // patch) ** 2 + 1
    part = Part("vision", "vision-tower")
    part.parameter(hidden, "class_embedding")
    part.conv(hidden, fields.count("num_channels", default=3), patch, patch, bias=False)
    part.parameter(rows * hidden, "position_embedding")
    part.embedding("position_embedding", ratios, tiles * rows * hidden)
    part.embedding("position_embedding", ratios, tiles * hidden, count=2)
    part.vector(1, "gate", count=3 + 2 * wide)
    part.norm(hidden, count=2)
    for layers in (local, wide):
        part.mixer(layers, hidden, heads, bias=False)
        part.mlp(layers, hidden, width)
        part.norm(hidden, layers=layers, count=2)
    part.hidden, part.layers = hidden, local + wide
    return [part]


@tower("llama4_vision_model")
def llama4_vision(fields: Fields) -> list[Part]:
    defaults = {
        "hidden_size": 768,
        "num_hidden_layers": 34,
        "num_attention_heads": 16,
        "intermediate_size": 5632,
        "image_size": 448,
    }
    fields = over(fields, {**defaults, "patch_size": 14, "projector_input_dim": 4096, "projector_output_dim": 4096})
    hidden, layers, patch = (
        fields.count("hidden_size"),
        layer_count(fields, "num_hidden_layers"),
        fields.count("patch_size"),
    )
    part, adapter = Part("vision", "vision-tower"), Part("projector", "projector")
    part.parameter(hidden, "class_embedding")
    part.parameter(((fields.count("image_size") // patch) ** 2 + 1) * hidden, "position_embedding")
    part.linear("patch_embedding", fields.count("num_channels", default=3) * patch * patch, hidden, bias=False)
    part.block(layers, hidden, fields.count("intermediate_size"), fields.count("num_attention_heads"))
    part.norm(hidden, count=2)
    inner, outer = fields.count("projector_input_dim"), fields.count("projector_output_dim")
    adapter.linear("projector_up", fields.count("intermediate_size"), inner, bias=False)
    adapter.linear("projector_down", inner, outer, bias=False)
    part.hidden, part.layers = hidden, layers
    return [part, adapter]


@tower("sam_vision_model", "got_ocr2_vision", "sam_hq_vision_model")
def sam_vision(fields: Fields) -> list[Part]:
    """Windows with relative positions, full attention in a few layers, a convolutional neck."""
    defaults = {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "image_size": 1024,
        "patch_size": 16,
    }
    fields = over(fields, {**defaults, "output_channels": 256, "window_size": 14, "global_attn_indexes": [2, 5, 8, 11]})
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    heads, neck = fields.count("num_attention_heads"), fields.count("output_channels")
    (high, wide), image = pair(fields, "patch_size"), pair(fields, "image_size")
    grid = (image[0] // high, image[1] // wide)
    width = fields.count("mlp_dim", default=None) or int(hidden * ratio(fields, "mlp_ratio", 4.0))
    part = Part("vision", "vision-tower")
    part.conv(hidden, fields.count("num_channels", default=3), high, wide)
    if fields.flag("use_abs_pos", default=True):
        part.parameter(grid[0] * grid[1] * hidden, "position_embedding")
    everywhere = sum(i < layers for i in sizes(fields, "global_attn_indexes"))
    bias = fields.flag("qkv_bias", default=True)
    part.mixer(layers, hidden, heads, fused=True, bias=bias, output_bias=True)
    if fields.flag("use_rel_pos", default=True):
        window, head_dim = fields.count("window_size"), hidden // heads
        part.parameter((2 * window - 1) * head_dim, "position_embedding", layers=layers - everywhere, count=2)
        part.parameter((2 * grid[0] - 1 + 2 * grid[1] - 1) * head_dim, "position_embedding", layers=everywhere)
    part.mlp(layers, hidden, width)
    part.norm(hidden, layers=layers, count=2)
    part.conv(neck, hidden, 1, 1, bias=False)
    part.conv(neck, neck, 3, 3, bias=False)
    part.norm(neck, count=2)
    part.hidden, part.layers = neck, layers
    return [part]


@tower("minimax_m3_vl_vision")
def minimax_vision(fields: Fields) -> list[Part]:
    """CLIP's layers over pairs of frames, with rotary positions; no class token and no norm at the end."""
    defaults = {
        "hidden_size": 1280,
        "intermediate_size": 5120,
        "num_hidden_layers": 32,
        "num_attention_heads": 16,
        "patch_size": 14,
    }
    fields = over(fields, defaults)
    hidden, layers, patch = (
        fields.count("hidden_size"),
        layer_count(fields, "num_hidden_layers"),
        fields.count("patch_size"),
    )
    compression = fields.inner("img_token_compression_config") or fields
    part = Part("vision", "vision-tower")
    frames = compression.count("temporal_patch_size", default=2)
    part.conv(hidden, fields.count("num_channels", default=3), frames, patch, patch, bias=False)
    part.norm(hidden)
    part.block(layers, hidden, fields.count("intermediate_size"), fields.count("num_attention_heads"))
    part.hidden, part.layers = hidden, layers
    return [part]


@tower("fuyu_patches")
def fuyu_patches(fields: Fields) -> list[Part]:
    """No tower: a patch is one matrix away from the language model."""
    part, patch = Part("projector", "projector"), fields.count("patch_size", default=30)
    inner = fields.inner("text_config") or fields
    part.linear(
        "projector", patch * patch * fields.count("num_channels", default=3), inner.count("hidden_size", default=4096)
    )
    return [part]
