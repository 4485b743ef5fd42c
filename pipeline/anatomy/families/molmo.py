"""Molmo 2: a ViT that ends before its last layers, an adapter that pools patches by attention, a decoder of Qwen3's plan.

The table of extra tokens is part of the embedding and not of the head. Source: transformers 5.23.0, models/molmo2.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.plain import BIASED, read_plain
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import architecture_of, nested, pair, sizes
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part

TEXT = {
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "vocab_size": 151936,
}


@family("molmo2")
def molmo2(fields: Fields) -> Anatomy:
    inner = nested(fields, "text_config").filled()
    text = molmo2_text(inner, fields)
    vision = nested(fields, "vision_config", required=False).filled()
    return add_parts(fields, text, [tower(vision), adapter(nested(fields, "adapter_config").filled())])


def molmo2_text(inner: Fields, fields: Fields) -> Anatomy:
    kinds = {"qwen3": "head", "olmo": "full"}
    kind = inner.text("qk_norm_type", default="qwen3")
    if kind not in kinds:
        raise UnknownAnatomy(f"{inner.where}.qk_norm_type is {shown(kind)!r}")
    plain = replace(BIASED, qk_norm=kinds[kind], out_bias=False)
    own = {"architectures": None, "tie_word_embeddings": False}
    name = architecture_of(fields) or ""
    if name.endswith("Model"):
        own["architectures"] = [name]
    text = read_plain(inner.but(own), plain)
    more = inner.count("additional_vocab_size", default=128, least=0)
    rows = [replace(t, out_features=t.out_features + more) if t.role == "embedding" else t for t in text.tensors]
    return replace(text, tensors=tuple(rows))


def shape(fields: Fields) -> dict:
    return {
        "kv_heads": fields.count("num_key_value_heads"),
        "head_dim": fields.count("head_dim"),
        "bias": fields.flag("attention_bias", default=True),
    }


def tower(fields: Fields) -> Part:
    part, hidden = Part("vision", "vision-tower"), fields.count("hidden_size")
    layers, patch = fields.repeats("num_hidden_layers"), fields.count("patch_size")
    high, wide = pair(fields, "image_size")
    rows = fields.count("num_position_embeddings", default=(high // patch) * (wide // patch))
    part.parameter(rows * hidden, "position_embedding")
    part.linear("patch_embedding", patch * patch * fields.count("num_channels"), hidden)
    heads, width = fields.count("num_attention_heads"), fields.count("intermediate_size")
    part.block(layers, hidden, width, heads, **shape(fields))
    part.hidden, part.layers = hidden, layers
    return part


def adapter(fields: Fields) -> Part:
    part, hidden = Part("projector", "projector"), fields.count("hidden_size")
    joined = hidden * len(sizes(fields, "vision_feature_layer"))
    own = shape(fields)
    wide, narrow = fields.count("num_attention_heads") * own["head_dim"], own["kv_heads"] * own["head_dim"]
    part.linear("attention_q", joined, wide, bias=own["bias"])
    part.linear("attention_k", joined, narrow, bias=own["bias"])
    part.linear("attention_v", joined, narrow, bias=own["bias"])
    part.linear("attention_o", wide, hidden, bias=own["bias"])
    width = fields.count("intermediate_size")
    part.linear("projector_up", hidden, width, bias=fields.flag("mlp_bias"), count=2)
    part.linear("projector_down", width, fields.count("text_hidden_size"), bias=False)
    return part
