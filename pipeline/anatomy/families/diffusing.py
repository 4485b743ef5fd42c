"""Language models that fill in masked words instead of writing on: LLaDA, Dream, SDAR. Their code travels with their checkpoints.

LLaDA and Dream read the whole text in every step and cache nothing; SDAR fills in a block of words and caches those before it. Held to
the totals that their authors publish: LLaDA-8B to the element.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.families import family
from pipeline.anatomy.families.plain import BIASED, LLAMA, read_plain
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.frame import Plain
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown

# fields of LLaDA whose code has more than its published models use, and the value that is described
ONLY = {
    "block_type": "llama", "layer_norm_type": "rms", "alibi": False, "rope": True, "include_bias": False, "include_qkv_bias": False,
    "bias_for_layer_norm": False, "attention_layer_norm": False, "input_emb_norm": False, "block_group_size": 1,
}  # fmt: skip
NAMES = {
    "hidden_size": "d_model", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads", "num_key_value_heads": "n_kv_heads",
    "intermediate_size": "mlp_hidden_size", "vocab_size": "embedding_size", "max_position_embeddings": "max_sequence_length",
}  # fmt: skip
WHOLE = {"architectures": None, "is_causal": False}  # its class has a head, whatever it is named


@family("llada")
def llada(fields: Fields) -> Anatomy:
    for name, value in ONLY.items():
        if fields.raw(name) not in (value, None):
            raise UnknownAnatomy(f"{fields.where}.{name} is {shown(fields.raw(name))!r}, which is not described yet")
    if fields.flag("multi_query_attention", default=False):
        raise UnknownAnatomy(f"{fields.where}.multi_query_attention is not described yet")
    said = {new: fields.raw(old) for new, old in NAMES.items() if fields.raw(old) is not None}
    tied = fields.flag("weight_tying", default=False)
    return _named(fields, read_plain(fields.but({**said, **WHOLE, "tie_word_embeddings": tied}), LLAMA))


@family("Dream")
def dream(fields: Fields) -> Anatomy:
    tied = fields.flag("tie_word_embeddings", default=False)
    return _named(fields, read_plain(fields.but({**WHOLE, "tie_word_embeddings": tied}), Plain(qkv_bias=True)))


@family("sdar")
def sdar(fields: Fields) -> Anatomy:
    tied = fields.flag("tie_word_embeddings", default=False)
    return read_plain(fields.but({"tie_word_embeddings": tied}), replace(BIASED, qk_norm="head"))


def _named(fields: Fields, anatomy: Anatomy) -> Anatomy:
    uncached = tuple(replace(layer, elements_per_token=0) for layer in anatomy.attention)
    return replace(anatomy, model_type=fields.text("model_type"), attention=uncached)
