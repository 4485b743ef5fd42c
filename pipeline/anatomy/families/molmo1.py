"""Molmo of 2024: CLIP's ViT without its last layer, patches pooled by fours with attention, a gated projector, a decoder.

Code of its own, which fixes the tower whatever the config says; 128 more rows of the embedding are not in the head. Held to
the published total of Molmo-7B-D, changed configs to the class itself.
Source: modeling_molmo.py as it travels with the checkpoints; vLLM, model_executor/models/molmo.py.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.plain import read_plain
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.frame import Plain
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part

EXTRA_ROWS = 128
LAYERS, HIDDEN, WIDTH, HEADS = 23, 1024, 4096, 16  # of the tower
PATCH, POSITIONS = 14, 577
READ = 2  # layers of the tower that are read, side by side
TEXT = Plain(qkv_bias="qkv_bias", fused_qkv=True, fused_mlp=True, qk_norm="full", qk_norm_flag="attention_layer_norm")


@family("molmo")
def molmo(fields: Fields) -> Anatomy:
    kind = fields.text("layer_norm_type", default="rms")
    if kind != "rms":
        raise UnknownAnatomy(f"{fields.where}.layer_norm_type is {shown(kind)!r}")
    # (the config says that of the gate and the other together)
    width = fields.divide(fields.count("intermediate_size"), 2, "intermediate size")
    rows = fields.count("vocab_size" if fields.is_null("embedding_size") else "embedding_size")
    own = {"tie_word_embeddings": False, "head_dim": None, "vocab_size": rows, "intermediate_size": width}
    text = read_plain(fields.but(own), TEXT)
    tensors = [
        replace(t, out_features=t.out_features + EXTRA_ROWS) if t.role == "embedding" else t for t in text.tensors
    ]
    return add_parts(fields, replace(text, tensors=tuple(tensors)), [tower(), projector(width, text.hidden_size)])


def tower() -> Part:
    part = Part("vision", "vision-tower")
    part.parameter(HIDDEN, "class_embedding")
    part.parameter(POSITIONS * HIDDEN, "position_embedding")
    part.linear("patch_embedding", 3 * PATCH * PATCH, HIDDEN, bias=False)
    part.norm(HIDDEN)
    part.block(LAYERS, HIDDEN, WIDTH, HEADS)
    return part.finished(HIDDEN, LAYERS)[0]


def projector(width: int, text: int) -> Part:
    part, joined = Part("projector", "projector"), READ * HIDDEN
    for role in ("attention_q", "attention_k", "attention_v"):
        part.linear(role, joined, HIDDEN)
    part.linear("attention_o", HIDDEN, HIDDEN)
    part.linear("projector_up", HIDDEN, width, bias=False, count=2)
    part.linear("projector_down", width, text, bias=False)
    part.parameter(2 * joined, "padding")
    return part
