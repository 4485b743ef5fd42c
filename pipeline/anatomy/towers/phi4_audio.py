"""The conformer of Phi-4-multimodal. Source: transformers 5.23.0, models/phi4_multimodal."""

from __future__ import annotations

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import UnknownAnatomy
from pipeline.anatomy.towers import hearing
from pipeline.anatomy.towers.part import Part


@hearing("phi4_multimodal_audio")
def phi4_audio(fields: Fields) -> list[Part]:
    """Convolutions that halve time and bins, layers between two gated feed-forwards, one bias of distances for all."""
    fields = fields.filled()
    hidden, layers, heads = (
        fields.count("hidden_size"),
        fields.repeats("num_blocks"),
        fields.count("num_attention_heads"),
    )
    part, width = Part("audio", "audio-tower"), fields.count("intermediate_size")
    halvings = fields.count("time_reduction").bit_length() - 1
    if halvings < 1 or fields.count("time_reduction") % 2:
        raise UnknownAnatomy(f"{fields.where}.time_reduction is odd")
    channels, bins = fields.count("nemo_conv_channels"), fields.count("input_size")
    for _ in range(halvings):
        bins = (bins - 1) // 2 + 1
    part.conv(channels, 1, 3, 3, count=halvings)
    part.conv(channels, channels, 1, count=halvings - 1)
    part.linear("patch_embedding", channels * fields.count("nemo_final_size", default=bins), hidden)
    rows = fields.count("bias_max_distance") * (1 if fields.flag("bias_symmetric") else 2)
    part.embedding("position_embedding", rows, heads)
    part.mixer(layers, hidden, heads, head_dim=fields.count("head_dim", default=hidden // heads or 1))
    for _ in range(2):
        part.mlp(layers, hidden, width, gated=True, fused=True)
    inner, outputs = fields.count("ext_pw_out_channel"), fields.count("depthwise_separable_out_channel")
    deep = hidden * fields.count("depthwise_multiplier")
    part.conv(2 * inner, hidden, 1, layers=layers)
    part.parameter(inner, layers=layers, count=2)
    part.conv(deep, 1, fields.count("kernel_size"), layers=layers)
    part.conv(outputs, deep, 1, layers=layers)
    part.conv(inner, hidden, 1, layers=layers)
    part.norm(hidden, layers=layers, count=5)
    return part.finished(hidden, layers)
