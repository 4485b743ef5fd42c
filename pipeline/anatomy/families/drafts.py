"""Models that draft tokens for another one: no embedding and no head of their own. Source: transformers 5.23.0."""

from __future__ import annotations

from pipeline.anatomy.builders import Decoder
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import Heads, dropout
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.anatomy.windows import window_of, windows_by_type


@family("muse_glimmer_assistant")
def muse_glimmer_assistant(fields: Fields) -> Anatomy:
    """A block of tokens at once, from the hidden states of a few layers of the model it drafts for: [h, layers·h]."""
    targets = fields.items("target_layer_ids")
    if not targets:
        raise UnknownAnatomy(f"{fields.where} has no target_layer_ids")
    if len(targets) > 1000:
        raise ContradictoryConfig(f"{fields.where}.target_layer_ids has {len(targets)} entries")
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    heads = Heads.read(fields, hidden, kv_default=8, dim_default=128)
    windows = windows_by_type(fields, layers, window_of(fields, default=2048))
    decoder.attentions(windows, heads, bias=fields.flag("attention_bias"), qk_norm="head")
    decoder.mlp(layers, fields.count("intermediate_size"))
    decoder.norm(layers, each=2)
    decoder.norm(1, each=2)
    decoder.linear("projector", "projector", 1, hidden, len(targets) * hidden)
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))
