"""ERNIE-4.5-VL: routed experts of two kinds in one layer, wide ones for text and narrow ones for images, beside shared ones.

Source: transformers 5.23.0, models/ernie4_5_vl_moe.
"""

from __future__ import annotations

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.experts import after_dense
from pipeline.anatomy.parts.frame import Plain, attend
from pipeline.anatomy.reading import nested, sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig
from pipeline.anatomy.towers.part import Part

TEXT = Plain(qkv_bias="use_bias", out_bias="use_bias")


@family("ernie4_5_vl_moe")
def ernie4_5_vl_moe(fields: Fields) -> Anatomy:
    inner = nested(fields, "text_config")
    head = {"tie_word_embeddings": fields.flag("tie_word_embeddings"), "architectures": None}
    text = language_model(inner.but(head))
    return add_parts(fields, text, towers(nested(fields, "vision_config").filled(), text.hidden_size))


def language_model(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers, bias = decoder.layers, fields.flag("use_bias")
    decoder.embed()
    attend(decoder, fields, TEXT, [None] * layers)
    routed = sum(after_dense("first_k_dense_replace", 1)(fields, layers))
    decoder.dense_mlp(layers - routed, "intermediate_size", bias=bias)
    widths = sizes(fields, "moe_intermediate_size", least=1)
    if not widths:
        raise ContradictoryConfig(f"{fields.where}.moe_intermediate_size is an empty list")
    experts, chosen = fields.count("moe_num_experts", default=64), fields.count("moe_k", default=6)
    shared = widths[0] * fields.count("moe_num_shared_experts", default=2, least=0)
    for kind, width in enumerate(widths):
        shared_here = 0 if kind else shared
        decoder.moe(routed, experts, chosen, width, shared_width=shared_here, shared_bias=bias)
        decoder.vector("router_correction", routed, experts, tensor_class="router")
    return decoder.finish()


def towers(fields: Fields, text: int) -> list[Part]:
    """A ViT with rotary positions; patches are joined in space and then in time before they enter the language model."""
    part, joint, hidden = Part("vision", "vision-tower"), Part("projector", "projector"), fields.count("hidden_size")
    layers, patch = fields.repeats("depth"), fields.count("patch_size")
    part.linear("patch_embedding", fields.count("in_channels") * patch * patch, hidden, bias=False)
    part.block(layers, hidden, fields.count("intermediate_size"), fields.count("num_heads"), fused=True)
    part.norm(hidden)
    part.hidden, part.layers = hidden, layers
    joined = hidden * fields.count("spatial_merge_size", default=2) ** 2
    for inputs in (joined, joined * fields.count("temporal_merge_size", default=2)):
        joint.linear("projector_up", inputs, joined)
        joint.linear("projector_down", joined, joined)
        joint.norm(joined)
    joint.linear("projector", joined, text)
    joint.norm(text, bias=False)
    return [part, joint]
