"""Krea 2: one stream of text and picture, after a small transformer that fuses what several layers of the text encoder say.

Source: diffusers 0.42.1, models/transformers/transformer_krea2.py.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.families.diffusion import denoiser, embed, finish, width_of
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy
from pipeline.anatomy.towers.part import Part, divided

SETS = 6  # scales, shifts and gates of a block


@family("Krea2Transformer2DModel")
def read_krea2(fields: Fields) -> Anatomy:
    fields = fields.but({"num_attention_heads": fields.count("num_attention_heads", default=48)})
    hidden, heads, _ = width_of(fields)
    layers, pixels, part = fields.repeats("num_layers", default=28), fields.count("in_channels", default=64), denoiser()
    text = fields.count("text_hidden_dim", default=2560)
    fused = fields.repeats("num_layerwise_text_blocks", default=2) + fields.repeats(
        "num_refiner_text_blocks", default=2
    )
    part.linear("patch_embedding", pixels, hidden)
    embed(part, fields.count("timestep_embed_dim", default=256), hidden)
    part.linear("modulation", hidden, SETS * hidden)
    text_heads = fields.count("text_num_attention_heads", default=20)
    text_groups = fields.count("text_num_key_value_heads", default=20)
    gated(part, fused, text, text_heads, text_groups, fields.count("text_intermediate_size", default=6912))
    part.linear("context_embedding", fields.count("num_text_layers", default=12), 1, bias=False)
    part.norm(text, bias=False)
    part.linear("context_embedding", text, hidden)
    part.linear("context_embedding", hidden, hidden)
    groups = fields.count("num_key_value_heads", default=12)
    gated(part, layers, hidden, heads, groups, fields.count("intermediate_size", default=16384))
    part.parameter(SETS * hidden, "modulation", layers=layers)
    part.parameter(2 * hidden, "modulation")
    part.norm(hidden, bias=False)
    part.linear("patch_output", hidden, pixels)
    return finish(fields, part, hidden, layers)


def gated(part: Part, layers: int, hidden: int, heads: int, kv_heads: int, width: int) -> None:
    """Grouped attention with an output gate, norms of heads, a gated feed-forward."""
    head_dim = divided(hidden, heads, "denoiser width")
    part.mixer(layers, hidden, heads, kv_heads=kv_heads, head_dim=head_dim, bias=False)
    part.linear("attention_gate", hidden, hidden, bias=False, layers=layers)
    part.norm(head_dim, layers=layers, count=2, bias=False)
    part.mlp(layers, hidden, width, gated=True, bias=False)
    part.norm(hidden, layers=layers, count=2, bias=False)
