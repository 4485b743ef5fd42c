"""What stands between a tower and the language model: one function for each kind, each returning its part.

Arguments: the whole config, the tower's config, the tower's parts, and the width of the language model.
"""

from __future__ import annotations

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import nested
from pipeline.anatomy.rows import ContradictoryConfig
from pipeline.anatomy.towers.part import Part


def projector() -> Part:
    return Part("projector", "projector")


def none(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    """The tower's own merger already has the language model's width."""
    return projector()


def feature_layers(fields: Fields, default: int = 1) -> int:
    """Layers of the tower whose outputs are concatenated."""
    layers = fields.raw("vision_feature_layer")
    return len(layers) if isinstance(layers, list) and layers else default


def llava(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part, bias = projector(), fields.flag("multimodal_projector_bias", default=True)
    part.linear("projector_up", tower[0].hidden * feature_layers(fields), text, bias=bias)
    part.linear("projector_down", text, text, bias=bias)
    return part


def vipllava(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part, joined = projector(), tower[0].hidden * feature_layers(fields, 1 if fields.raw("vision_feature_layer") else 5)
    part.norm(joined)
    part.linear("projector_up", joined, text)
    part.linear("projector_down", text, text)
    return part


def mistral3(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part, hidden, bias = projector(), tower[0].hidden, fields.flag("multimodal_projector_bias")
    part.norm(hidden, bias=False)
    part.linear("projector_merge", hidden * fields.size("spatial_merge_size") ** 2, hidden, bias=False)
    part.linear("projector_up", hidden * feature_layers(fields), text, bias=bias)
    part.linear("projector_down", text, text, bias=bias)
    return part


def gemma3(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part = projector()
    part.parameter(tower[0].hidden * text, "projector")
    part.norm(tower[0].hidden, bias=False)
    return part


def paligemma(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part = projector()
    part.linear(
        "projector",
        tower[0].hidden,
        vision.count("projection_dim", default=fields.count("projection_dim", default=2048)),
    )
    return part


def idefics3(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part = projector()
    part.linear("projector", tower[0].hidden * fields.size("scale_factor") ** 2, text, bias=False)
    return part


def idefics2(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    """A gated matrix with the language model's width, then latents that attend to patches and to themselves."""
    inner = nested(fields, "perceiver_config", required=False).filled()
    part, layers = projector(), inner.repeats("resampler_depth")
    width = nested(fields, "text_config", required=False).size("intermediate_size")
    part.linear("projector_up", tower[0].hidden, width, bias=False, count=2)
    part.linear("projector_down", width, text, bias=False)
    part.parameter(inner.count("resampler_n_latents") * text, "latents")
    shape = {
        "kv_heads": inner.count("num_key_value_heads"),
        "head_dim": inner.count("resampler_head_dim"),
        "bias": False,
    }
    part.mixer(layers, text, inner.count("resampler_n_heads"), **shape)
    part.mlp(layers, text, 4 * text, gated=True, bias=False)
    part.norm(text, layers=layers, count=3, bias=False)
    part.norm(text, bias=False)
    return part


def kimi(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part, hidden = projector(), fields.count("projection_hidden_size", default=tower[0].hidden)
    kernel = vision.items("merge_kernel_size", length=None) or [2, 2]
    joined = hidden
    for side in kernel[:2]:
        joined *= Fields({"merge_kernel_size": side}, vision.where).count("merge_kernel_size")
    part.norm(hidden)
    part.linear("projector_up", joined, joined)
    part.linear("projector_down", joined, text)
    return part


def llama4(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part = projector()
    part.linear("projector", vision.size("vision_output_dim"), text, bias=False)
    return part


def internvl(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    ratio = fields.number("downsample_ratio")
    if not 0.001 < ratio <= 1:
        raise ContradictoryConfig(f"{fields.where}.downsample_ratio is {ratio}, outside 0 to 1")
    part, joined = projector(), tower[0].hidden * int(1 / ratio) ** 2
    part.norm(joined)
    part.linear("projector_up", joined, text)
    part.linear("projector_down", text, text)
    return part


def minicpm(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    """A window merger inside the tower (attention and a wide pair of matrices), then one or more outside it."""
    part, hidden = projector(), tower[0].hidden
    joined, times = 4 * hidden, fields.times("merger_times")
    inner = 4 * vision.filled().count("intermediate_size")
    part.linear("attention", hidden, hidden, count=4)
    part.norm(hidden)
    part.norm(joined)
    part.linear("projector_merge", joined, inner)
    part.linear("projector_merge", inner, hidden)
    part.norm(joined, count=times)
    part.linear("projector_up", joined, joined, count=times)
    part.linear("projector_down", joined, hidden, count=max(times - 1, 0))
    part.linear("projector_down", joined, text if times else 0)
    return part


def muse_glimmer(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part, inner = projector(), fields.size("projector_hidden_size")
    part.linear("projector_merge", fields.size("out_hidden_size"), inner, bias=False)
    part.linear("projector_up", inner, inner, bias=False)
    part.linear("projector_down", inner, text, bias=False)
    return part


def paddleocr(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part, hidden = projector(), tower[0].hidden
    joined = hidden * vision.size("spatial_merge_size") ** 2
    part.norm(hidden)
    part.linear("projector_up", joined, joined)
    part.linear("projector_down", joined, text)
    return part


def lfm2(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part, bias = projector(), fields.flag("projector_bias")
    joined = tower[0].hidden * fields.size("downsample_factor") ** 2
    inner = fields.size("projector_hidden_size")
    part.norm(joined if fields.flag("projector_use_layernorm") else 0)
    part.linear("projector_up", joined, inner, bias=bias)
    part.linear("projector_down", inner, text, bias=bias)
    return part


def cohere2(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part, inner = projector(), fields.size("alignment_intermediate_size")
    part.linear("projector_up", tower[0].hidden * fields.size("downsample_factor") ** 2, inner)
    part.linear("projector_down", inner // 2, text)
    return part


def aya(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    """Neighbouring patches as one, normed, through a gated pair of matrices."""
    part, joined = projector(), tower[0].hidden * fields.size("downsample_factor") ** 2
    inner = fields.count("alignment_intermediate_size", default=text)
    part.norm(joined)
    part.linear("projector_up", joined, inner)
    part.linear("projector_down", inner // 2, text)
    return part


def got_ocr(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    part, channels = projector(), tower[0].hidden
    part.conv(2 * channels, channels, 3, 3, bias=False)
    part.conv(4 * channels, 2 * channels, 3, 3, bias=False)
    part.linear("projector", 4 * channels, text)
    return part


def minimax(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    """Each patch to the language model's width, then merge² of them into one."""
    part, inner = projector(), fields.count("projector_hidden_size", default=text)
    compression = vision.inner("img_token_compression_config") or vision
    merge, bias = (
        compression.count("spatial_merge_size", default=2),
        fields.flag("multimodal_projector_bias", default=True),
    )
    part.linear("projector_up", tower[0].hidden, inner, bias=bias)
    part.linear("projector_down", inner, text, bias=bias)
    part.linear("projector_merge", text * merge**2, inner, bias=bias)
    part.linear("projector_merge", inner, text, bias=bias)
    return part


def phi3(fields: Fields, vision: Fields, tower: list[Part], text: int) -> Part:
    """Four patches joined, two matrices, and the vectors that separate rows and crops."""
    embedder = fields.inner("embd_layer") or Fields({}, fields.where)
    if embedder.text("projection_cls", default="mlp") != "mlp" or not embedder.flag("use_hd_transform", default=True):
        raise ContradictoryConfig(f"{embedder.where} projects in a way that its class does not have")
    part, joined = projector(), 4 * tower[0].hidden
    part.linear("projector_up", joined, text)
    part.linear("projector_down", text, text)
    part.parameter(joined, "separator", count=2)
    return part


def ovis2(fields: Fields, vision: Fields, tower: list[Part], width: int) -> Part:
    """Each patch becomes shares of a visual vocabulary, whose rows stand in a table of their own."""
    part, inner = Part("projector", "projector"), vision.filled()
    rows = inner.count("vocab_size")
    shares = rows - inner.count("num_visual_indicator_tokens", least=0)
    part.linear("projector", tower[0].hidden * inner.count("hidden_stride") ** 2, shares, bias=False)
    part.norm(shares)
    part.embedding("visual_embedding", rows, fields.size("hidden_size"))
    return part
