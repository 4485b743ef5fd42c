"""Moondream 2: a SigLIP whose pictures are seen whole and in parts, Phi's decoder, and heads that read and write places in a picture.

Code of its own, whose classes take what a config leaves out: that of the published checkpoint says nothing. Held to its total,
changed configs to the code itself.
Source: github.com/vikhyat/moondream at 44146f13, moondream/torch.
"""

from __future__ import annotations

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family, reader_for
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import nested
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, divided


@family("moondream1")
def moondream(fields: Fields) -> Anatomy:
    if fields.raw("config") is None:
        raise UnknownAnatomy(
            f"{fields.where}.config is not given: it is another version of Moondream, which is not described"
        )
    told = nested(fields, "config")
    text, vision, region = (
        told.inner(name) or Fields({}, f"{told.where}.{name}") for name in ("text", "vision", "region")
    )
    if any(part.raw("group_size") is not None for part in (text, region)):
        raise UnknownAnatomy(f"{told.where} is packed in a way of its own")
    hidden, heads = text.count("dim", default=2048), text.count("n_heads", default=32)
    phi = {
        "model_type": "phi",
        "architectures": ["PhiForCausalLM"],
        "hidden_size": hidden,
        "intermediate_size": text.count("ff_dim", default=8192),
        "num_hidden_layers": text.repeats("n_layers", default=24),
        "num_attention_heads": heads,
        "num_key_value_heads": text.count("n_kv_heads", default=32),
        "vocab_size": text.count("vocab_size", default=51200),
        "max_position_embeddings": text.count("max_context", default=2048),
        "tie_word_embeddings": False,
        "qk_layernorm": False,
    }
    decoder = reader_for("phi")(Fields(phi, text.where))
    return add_parts(fields, decoder, [*_tower(vision), _places(region)])


def _tower(vision: Fields) -> list[Part]:
    tower, projector = Part("vision", "vision-tower"), Part("projector", "projector")
    hidden, patch = vision.count("enc_dim", default=1152), vision.count("enc_patch_size", default=14)
    layers, side = vision.repeats("enc_n_layers", default=27), vision.count("crop_size", default=378) // patch
    tower.linear("patch_embedding", patch * patch * vision.count("in_channels", default=3), hidden)
    tower.parameter(side * side * hidden, "position_embedding")
    heads = vision.count("enc_n_heads", default=16)
    divided(hidden, heads, "width of the tower")
    tower.block(layers, hidden, vision.count("enc_ff_dim", default=4304), heads, fused=True)
    tower.norm(hidden)
    inner = vision.count("proj_inner_dim", default=8192)
    projector.linear("projector_up", 2 * hidden, inner)
    projector.linear("projector_down", inner, vision.count("proj_out_dim", default=2048))
    return [*tower.finished(hidden, layers), projector]


def _places(region: Fields) -> Part:
    """Places and sizes as waves, into the decoder's states and out of them."""
    part = Part("projector", "projector")
    hidden, inner = region.count("dim", default=2048), region.count("inner_dim", default=8192)
    for name, waves, written, numbers in (("coord", 256, 1024, 1), ("size", 512, 2048, 2)):
        read = region.count(f"{name}_feat_dim", default=waves)
        part.parameter(numbers * (read // 2), "waves")
        part.linear("projector_in", read, hidden)
        part.linear("projector_up", hidden, inner)
        part.linear("projector_down", inner, region.count(f"{name}_out_dim", default=written))
    return part
