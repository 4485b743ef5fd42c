"""BioGPT, XGLM, the first GPT and Japanese GPT-NeoX: multi-head attention, plain feed-forward, tied heads.

Source: transformers 5.23.0, one folder for each model_type. Sizes in elements.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.reading import Heads, dropout, layer_count
from pipeline.anatomy.rows import Anatomy


@family("biogpt")
def biogpt(fields: Fields) -> Anatomy:
    """Two rows of positions before the first are unused."""
    decoder = Decoder(fields, norm_kind="layer")
    decoder.embed(positions=fields.count("max_position_embeddings", default=1024) + 2)
    biased(decoder, fields, fields.count("intermediate_size"))
    return decoder.build(
        hidden_dropout=dropout(fields, "hidden_dropout_prob", default=0.1),
        attention_dropout=dropout(fields, "attention_probs_dropout_prob", default=0.1),
    )


@family("xglm")
def xglm(fields: Fields) -> Anatomy:
    """Positions are computed, not learned. Its own names for heads and layers."""
    decoder = Decoder(fields, norm_kind="layer", layers=layer_count(fields, "num_layers", "num_hidden_layers"))
    decoder.embed()
    heads = fields.count("attention_heads", "num_attention_heads")
    named = Fields({"num_attention_heads": heads}, fields.where)
    biased(decoder, fields, fields.count("ffn_dim"), Heads.ungrouped(named, decoder.hidden))
    return decoder.build(
        hidden_dropout=dropout(fields, "dropout", default=0.1),
        attention_dropout=dropout(fields, "attention_dropout", default=0.1),
    )


@family("openai-gpt")
def openai_gpt(fields: Fields) -> Anatomy:
    """GPT-2's layers with the norms after the blocks and none at the end. Its class caches nothing."""
    decoder = Decoder(fields, norm_kind="layer")
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed(positions=fields.count("n_positions", "max_position_embeddings", default=512))
    heads = Heads.ungrouped(fields, hidden)
    decoder.attention(layers, heads, fused=True, bias=True, operator="linear-subclass", cached=0)
    decoder.mlp(layers, 4 * hidden, gated=False, bias=True, operator="linear-subclass")
    decoder.norm(layers, each=2)
    decoder.head(tied=fields.flag("tie_word_embeddings", default=True))
    return decoder.build(
        hidden_dropout=dropout(fields, "resid_pdrop", default=0.1),
        attention_dropout=dropout(fields, "attn_pdrop", default=0.1),
    )


@family("gpt_neox_japanese")
def gpt_neox_japanese(fields: Fields) -> Anatomy:
    """No biases but that of the last layer's output projection."""
    decoder = Decoder(fields, norm_kind="layer")
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    decoder.attention(layers, Heads.ungrouped(fields, hidden), fused=True)
    decoder.vector("bias", 1, hidden)
    decoder.mlp(layers, fields.count("intermediate_multiple_size", default=4) * hidden, gated=False)
    decoder.ends(tied=True)
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout", default=0.1), has_flash_attention=False)


def biased(decoder: Decoder, fields: Fields, width: int, heads: Heads | None = None) -> None:
    """Layers in which everything has a bias, and a norm at the end."""
    decoder.attention(decoder.layers, heads or Heads.ungrouped(fields, decoder.hidden), bias=True)
    decoder.mlp(decoder.layers, width, gated=False, bias=True)
    decoder.ends(tied=True)
