"""OpenVLA and the Prismatic models before it: one or two ViTs of timm whose patches lie side by side, a projector, a language model.

Code of its own, whose config names its towers by a word. Described is the pair that OpenVLA has, DINOv2 of the large size and SigLIP of the
so400m; held to timm's and Transformers' classes of it.
Source: github.com/openvla/openvla at c8f03f48, prismatic/extern/hf; timm 1.0.31.
"""

from __future__ import annotations

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.vision_language import Plan, language_model
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part
from pipeline.anatomy.towers.vit import timm_pooling

BACKBONE = "dinosiglip-vit-so-224px"
PATCH, PATCHES = 14, 256  # of a picture of 224 pixels each way
DINO, DINO_LAYERS, DINO_WIDTH, DINO_HEADS, REGISTERS = 1024, 24, 4096, 16, 4
SIGLIP, SIGLIP_LAYERS, SIGLIP_WIDTH, SIGLIP_HEADS = 1152, 27, 4304, 16
WIDER = 4  # the projector's first matrix, for two towers
# by the first word of its name; Llama where none is given
LANGUAGE = {"llama2": "llama", "vicuna": "llama", "mistral": "mistral"}


@family("openvla", "prismatic")
def openvla(fields: Fields) -> Anatomy:
    named = fields.text("vision_backbone_id")
    if named != BACKBONE:
        raise UnknownAnatomy(f"{fields.where}.vision_backbone_id is {shown(named)!r}, which is not described")
    if not fields.flag("use_fused_vision_backbone", default=True):
        raise UnknownAnatomy(
            f"{fields.where}.use_fused_vision_backbone is false, which is not described for two towers"
        )
    if fields.inner("text_config") is None:
        raise UnknownAnatomy(f"{fields.where} has no text_config")
    speaks = fields.text("llm_backbone_id") or "vicuna"
    kind = LANGUAGE.get(speaks.partition("-")[0])
    if kind is None:
        raise UnknownAnatomy(f"{fields.where}.llm_backbone_id is {shown(speaks)!r}, which is not described")
    text = language_model(
        fields.but({"text_config": fields.inner("text_config").config | {"model_type": kind}}),
        Plan("", kind, text_ties=True),
    )
    return add_parts(fields, text, [_dino(), _siglip(), _projector(text.hidden_size)])


def _dino() -> Part:
    """With registers; the layers' outputs are scaled."""
    part = _patches("vision", DINO)
    part.parameter((1 + REGISTERS) * DINO, "class_embedding")
    part.block(DINO_LAYERS, DINO, DINO_WIDTH, DINO_HEADS, fused=True)
    part.vector(DINO, layers=DINO_LAYERS, count=2)
    part.norm(DINO)
    return part.finished(DINO, DINO_LAYERS)[0]


def _siglip() -> Part:
    """Its pooling is held and not run."""
    part = _patches("vision", SIGLIP)
    part.block(SIGLIP_LAYERS, SIGLIP, SIGLIP_WIDTH, SIGLIP_HEADS, fused=True)
    part.norm(SIGLIP)
    timm_pooling(part, SIGLIP, SIGLIP_WIDTH)
    return part.finished(SIGLIP, SIGLIP_LAYERS)[0]


def _patches(name: str, width: int) -> Part:
    part = Part(name, "vision-tower")
    part.conv(width, 3, PATCH, PATCH)
    part.parameter(PATCHES * width, "position_embedding")
    return part


def _projector(text: int) -> Part:
    part, seen = Part("projector", "projector"), DINO + SIGLIP
    part.linear("projector_up", seen, WIDER * seen)
    part.linear("projector_down", WIDER * seen, text)
    part.linear("projector", text, text)
    return part
