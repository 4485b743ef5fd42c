"""OpenELM: heads and feed-forward widths that grow from layer to layer.

Its config lists both by layer: heads as numbers, widths as multiples of the hidden size, which the code rounds. Code of its own, held to the
published totals and, with changed configs, to the class of Apple's CoreNet that the checkpoints were trained with.
Source: apple/corenet@1aa3acd1, corenet/modeling/models/language_modeling/general_gpt.py.
"""

from __future__ import annotations

from collections import Counter
from math import floor

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.reading import Heads
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy, shown
from pipeline.base.bounds import MOST_REPEATS

LEAST_KEPT = 0.9  # of a width: rounded down farther, it is rounded up instead (make_divisible)


@family("openelm")
def openelm(fields: Fields) -> Anatomy:
    norm = fields.text("normalization_layer_name", default="rms_norm")
    if norm != "rms_norm":
        raise UnknownAnatomy(f"{fields.where}.normalization_layer_name is {shown(norm)!r}")
    hidden, layers = fields.count("model_dim"), fields.repeats("num_transformer_layers", least=1)
    own = {"hidden_size": hidden, "num_hidden_layers": layers}
    decoder = Decoder(fields.but(own | {"max_position_embeddings": fields.raw("max_context_length")}))
    decoder.embed()
    dim = fields.count("head_dim")
    normed = "head" if fields.flag("normalize_qk_projections", default=False) else None
    for (count, shared), number in Counter(
        zip(_heads(fields, "query", layers), _heads(fields, "kv", layers), strict=True)
    ).items():
        if count % shared:
            raise ContradictoryConfig(f"{fields.where}: {count} heads cannot share {shared} key-value heads")
        decoder.attention(number, Heads(count, shared, dim, dim), fused=True, qk_norm=normed)
    gated = fields.flag("ffn_with_glu", default=True)
    for width, number in Counter(_widths(fields, hidden, layers)).items():
        decoder.mlp(number, width, gated=gated, fused=gated)
    decoder.norm(layers, each=2)
    decoder.norm(1)
    decoder.head(tied=fields.flag("share_input_output_layers", default=False))
    return decoder.build()


def _heads(fields: Fields, kind: str, layers: int) -> list[int]:
    name = f"num_{kind}_heads"
    listed = fields.items(name, length=layers)
    if listed is None:
        raise UnknownAnatomy(f"{fields.where} has no {name}")
    return [Fields({name: value}, fields.where).count(name) for value in listed]


def _widths(fields: Fields, hidden: int, layers: int) -> list[int]:
    name = "ffn_multipliers"
    listed = fields.items(name, length=layers)
    if listed is None:
        raise UnknownAnatomy(f"{fields.where} has no {name}")
    divisor = fields.count("ffn_dim_divisor", default=256)
    times = [Fields({name: value}, fields.where).number(name) for value in listed]
    if any(value is None or value > MOST_REPEATS for value in times):
        raise ContradictoryConfig(f"{fields.where}.{name} is no list of multiples of a width")
    return [_rounded(value * hidden, divisor) for value in times]


def _rounded(width: float, divisor: int) -> int:
    """The multiple of `divisor` next to a width, and not less than nine tenths of it."""
    if width < divisor:
        return divisor
    near = floor(width + divisor / 2) // divisor * divisor
    return near + divisor if near < LEAST_KEPT * width else near
