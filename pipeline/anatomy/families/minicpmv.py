"""MiniCPM-V 2.6, 4.0 and 4.5: a SigLIP, a resampler that makes any picture as many tokens as it has queries, a language model.

Code of its own, whose class goes by the config's version; the same field names hold for all. Held to the published totals of
all three, changed configs to its code. Versions before have other towers, later ones are classes of the library.
Source: vLLM, model_executor/models/minicpmv.py; OpenBMB's resampler.py.
"""

from __future__ import annotations

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.vision_language import Plan, language_model
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import nested
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown
from pipeline.anatomy.towers import vision_tower
from pipeline.anatomy.towers.part import Part, divided

TEXTS = {"2.6": "qwen2", "4.0": "llama", "4.5": "qwen3"}
TOWER = "idefics2_vision"  # the same tensors: patches, positions, layers, a norm
SAID = ("hidden_size", "image_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "patch_size")
HEAD = 128  # elements of a head of the resampler


@family("minicpmv")
def minicpmv(fields: Fields) -> Anatomy:
    version = shown(fields.raw("version"))
    if version not in TEXTS:
        raise UnknownAnatomy(f"{fields.where}.version is {version}, which is not described for this architecture")
    text = language_model(fields, Plan(TOWER, TEXTS[version]))
    vision = nested(fields, "vision_config")
    for name in SAID:
        vision.count(name)
    if fields.flag("drop_vision_last_layer", default=True):
        vision = vision.but({"num_hidden_layers": vision.repeats("num_hidden_layers") - 1})
    tower = vision_tower(vision.but({"model_type": TOWER}), TOWER)
    return add_parts(fields, text, [*tower, resampler(fields, tower[0].hidden, text.hidden_size)])


def resampler(fields: Fields, inputs: int, width: int) -> Part:
    """Queries that attend once to all patches: torch's MultiheadAttention, whose inputs share one bare matrix."""
    part = Part("projector", "projector")
    divided(width, HEAD, "width of the language model")
    part.parameter(fields.count("query_num", default=64) * width, "latents")
    if inputs != width:  # else it is left out
        part.linear("projector_up", inputs, width, bias=False)
    part.add("attention_qkv", "parameter", 3 * width, width)
    part.vector(3 * width, "bias")
    part.linear("attention_o", width, width)
    part.norm(width, count=3)
    part.parameter(width * width, "projector_down")
    return part
