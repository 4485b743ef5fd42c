"""Models that draft tokens for another one: no embedding and no head of their own. Source: transformers 5.23.0."""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.parts.windows import SLIDING, window_of, windows_by_type
from pipeline.anatomy.reading import Heads, dropout
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy


@family("muse_glimmer_assistant")
def muse_glimmer_assistant(fields: Fields) -> Anatomy:
    return read_draft(fields, fields, window_of(fields, default=2048))


def draft_of(fields: Fields) -> Fields | None:
    """What makes a config of another architecture one of a draft: DFlash names the layers that it reads."""
    return fields.inner("dflash_config")


def dflash(fields: Fields, inner: Fields) -> Anatomy:
    """DFlash in the dims of its target's family; DSpark adds what follows what, a table of two matrices [vocabulary, rank],
    and how sure the draft is, from both. Held to the published totals of drafts for Qwen3, Qwen3.8 and Kimi-K3."""
    return read_draft(fields, inner, None)


def read_draft(fields: Fields, inner: Fields, window: int | None) -> Anatomy:
    """A block of tokens at once, from the hidden states of a few layers of the model it drafts for: [h, layers·h]."""
    targets = inner.items("target_layer_ids")
    if not targets:
        raise UnknownAnatomy(f"{inner.where} has no target_layer_ids")
    if len(targets) > 1000:
        raise ContradictoryConfig(f"{inner.where}.target_layer_ids has {len(targets)} entries")
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    heads = Heads.read(fields, hidden, kv_default=8, dim_default=128)
    has_norms = fields.text("model_type") != "llama"
    windows = windows_by_type(fields, layers, window, [SLIDING] * layers if window else None)
    decoder.attentions(windows, heads, bias=fields.flag("attention_bias"), qk_norm="head" if has_norms else None)
    decoder.mlp(layers, fields.count("intermediate_size"))
    decoder.norm(layers, each=2)
    decoder.norm(1, each=2)
    decoder.linear("projector", "projector", 1, hidden, len(targets) * hidden)
    rank = inner.count("markov_rank", default=None)
    if rank is not None:
        decoder.linear("other", "markov", 1, fields.count("vocab_size"), rank, each=2)
        decoder.linear("other", "confidence", 1, 1, hidden + rank, bias=True)
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))
