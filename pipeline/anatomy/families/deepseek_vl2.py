"""DeepSeek-VL2: SigLIP as timm builds it, an MLP over squares of patches, DeepSeek-V2 with latent attention or without.

Code of its own; held to the published total of DeepSeek-VL2-Tiny. The tower keeps the attention pooling of timm's class,
which the model does not use.
"""

from __future__ import annotations

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.latent import SPARSE
from pipeline.anatomy.families.ocr import TEXT
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.experts import read_sparse
from pipeline.anatomy.reading import nested, ratio
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part
from pipeline.anatomy.towers.vit import timm_pooling

PROJECTOR = "downsample_mlp_gelu"


@family("deepseek_vl_v2")
def deepseek_vl_v2(fields: Fields) -> Anatomy:
    inner, vision = nested(fields, "language_config"), nested(fields, "vision_config")
    if not isinstance(vision.raw("width"), int):
        raise UnknownAnatomy(f"{vision.where} describes other towers than SigLIP")
    tag = fields.text("tile_tag", default="2D")
    if tag != "2D":
        raise UnknownAnatomy(
            f"{fields.where}.tile_tag is {shown(tag)!r}: its marks between tiles are not described yet"
        )
    sparse = SPARSE["deepseek_v2"] if inner.flag("use_mla", default=True) else TEXT
    text = read_sparse(inner.but({"architectures": None}), sparse)
    part = tower(vision)
    marks = projector(nested(fields, "projector_config", required=False), part.hidden)
    marks.vector(marks.hidden, "image_mark", count=2)
    if marks.hidden != text.hidden_size:
        raise UnknownAnatomy(f"{fields.where}: the projector ends in another width than the language model's")
    return add_parts(fields, text, [part, marks])


def tower(fields: Fields) -> Part:
    part, hidden, layers = Part("vision", "vision-tower"), fields.count("width"), fields.repeats("layers")
    heads, patch = fields.count("heads", default=16), fields.count("patch_size", default=16)
    width = int(hidden * ratio(fields, "mlp_ratio", 4.0))
    part.conv(hidden, 3, patch, patch)
    part.parameter((fields.count("image_size", default=384) // patch) ** 2 * hidden, "position_embedding")
    part.block(layers, hidden, width, heads, fused=True)
    part.norm(hidden)
    timm_pooling(part, hidden, width)
    part.hidden, part.layers = hidden, layers
    return part


def projector(fields: Fields, inputs: int) -> Part:
    kind = fields.text("projector_type", default=PROJECTOR)
    if kind != PROJECTOR:
        raise UnknownAnatomy(f"{fields.where}.projector_type is {shown(kind)!r}")
    part, width = Part("projector", "projector"), fields.count("n_embed", default=2048)
    depth, side = fields.repeats("depth", default=2), fields.count("downsample_ratio", default=2)
    inner = width * fields.count("mlp_ratio", default=1)
    part.linear("projector_up", inputs * side * side, inner)
    part.linear("projector_mid", inner, inner, count=max(depth - 2, 0))
    part.linear("projector_down", inner, width)
    part.hidden = width
    return part
