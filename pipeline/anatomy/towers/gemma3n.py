"""What Gemma 3n sees and hears with: an encoder of timm's, and a conformer with relative keys.

Source: transformers 5.23.0, models/gemma3n.
"""

from __future__ import annotations

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import sizes
from pipeline.anatomy.rows import ContradictoryConfig
from pipeline.anatomy.towers import hearing, seeing
from pipeline.anatomy.towers.audio import gemmas_conformer
from pipeline.anatomy.towers.part import Part
from pipeline.anatomy.towers.timm import row_of, timm_tower

EDGES = 2  # bins that are put beside the spectrum before each convolution


@seeing("gemma3n_vision")
def gemma3n_vision(fields: Fields) -> list[Part]:
    inner = fields.filled()
    row = row_of(inner.but({"architecture": inner.text("architecture")}))
    return timm_tower(row, row["bare"]).finished(inner.count("hidden_size"), row["layer_count"])


@hearing("gemma3n_audio")
def gemma3n_audio(fields: Fields) -> list[Part]:
    """Two convolutions over time and bins, and a conformer."""
    fields = fields.filled()
    hidden, layers = fields.count("hidden_size"), fields.repeats("conf_num_hidden_layers")
    heads = fields.count("conf_num_attention_heads")
    part, bins, inputs = Part("audio", "audio-tower"), fields.count("input_feat_size"), 1
    channels = sizes(fields, "sscp_conv_channel_size", least=1)
    kernels, strides = sides(fields, "sscp_conv_kernel_size"), sides(fields, "sscp_conv_stride_size")
    if not len(channels) == len(kernels) == len(strides) == EDGES:
        raise ContradictoryConfig(f"{fields.where}: its two convolutions are not described")
    for outputs, (long, wide), (_, step) in zip(channels, kernels, strides, strict=True):
        part.conv(outputs, inputs, long, wide, bias=False)
        part.norm(outputs, bias=False)
        bins, inputs = (bins + EDGES - wide) // step + 1, outputs
    part.linear("patch_embedding", inputs * bins, hidden, bias=False)
    gemmas_conformer(part, layers, hidden, heads, fields.count("conf_conv_kernel_size"))
    return part.finished(hidden, layers)


def sides(fields: Fields, name: str) -> list[list[int]]:
    """Pairs of sizes, over time and over bins."""
    pairs = fields.raw(name, default=fields.by_class(name))
    if not isinstance(pairs, list) or not all(isinstance(each, list) and len(each) == 2 for each in pairs[:3]):
        raise ContradictoryConfig(f"{fields.where}.{name} is no list of pairs")
    return [sizes(Fields({name: each}, fields.where), name, least=1) for each in pairs[:3]]
