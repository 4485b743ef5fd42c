"""Decoders between attention and short memories: LFM2's convolutions, RecurrentGemma's linear recurrence.

Source: transformers 5.23.0, models/lfm2, lfm2_moe, recurrent_gemma.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.mixers import rg_lru, short_convolution
from pipeline.anatomy.reading import Heads, layer_types
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy


def lfm2_mix(decoder: Decoder, fields: Fields, types: list[str]) -> None:
    attending = types.count("full_attention")
    decoder.attention(attending, Heads.read(fields, decoder.hidden), qk_norm="head")
    short_convolution(decoder, len(types) - attending, fields.size("conv_L_cache"), bias=fields.flag("conv_bias"))
    decoder.order(["full" if kind == "full_attention" else "convolution" for kind in types])


def lfm2_ends(decoder: Decoder, fields: Fields) -> Anatomy:
    decoder.norm(decoder.layers, each=2)
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_embedding", "tie_word_embeddings"))
    return decoder.build()


@family("lfm2")
def lfm2(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    types = layer_types(fields, layers, known=("full_attention", "conv"))
    if types is None:
        listed = fields.items("full_attn_idxs")
        if listed is None:
            raise UnknownAnatomy(f"{fields.where} has no layer_types or full_attn_idxs")
        types = ["full_attention" if i in listed else "conv" for i in range(layers)]
    lfm2_mix(decoder, fields, types)
    decoder.mlp(layers, lfm2_width(fields))
    return lfm2_ends(decoder, fields)


def lfm2_width(fields: Fields) -> int:
    """Two thirds of what the config says, times a factor, rounded up to a multiple."""
    width = fields.count("block_ff_dim", "intermediate_size")
    if not fields.flag("block_auto_adjust_ff_dim"):
        return width
    width = int(2 * width / 3)
    if "block_ffn_dim_multiplier" in fields.config and fields.raw("block_ffn_dim_multiplier") is None:
        return width
    multiple = fields.size("block_multiple_of")
    width = int(min(fields.number("block_ffn_dim_multiplier"), 1e6) * width)
    return multiple * -(-width // multiple)


@family("lfm2_moe")
def lfm2_moe(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    types = layer_types(fields, layers, known=("full_attention", "conv"))
    if types is None:
        raise UnknownAnatomy(f"{fields.where} has no layer_types")
    lfm2_mix(decoder, fields, types)
    dense = min(layers, fields.size("num_dense_layers", least=0))
    decoder.dense_mlp(dense, "intermediate_size")
    if dense < layers:
        decoder.moe(
            layers - dense,
            fields.size("num_experts"),
            fields.size("num_experts_per_tok"),
            fields.size("moe_intermediate_size"),
            correction=fields.flag("use_expert_bias"),
        )
    return lfm2_ends(decoder, fields)


@family("recurrent_gemma")
def recurrent_gemma(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    heads = Heads.read(fields, hidden)
    cycle = fields.items("layers_block_type", "block_types") or ["recurrent", "recurrent", "attention"]
    kinds = [cycle[i % len(cycle)] for i in range(layers)]
    if any(kind not in ("recurrent", "attention") for kind in kinds):
        raise UnknownAnatomy(f"{fields.where}.block_types has a kind that is neither recurrent nor attention")
    attending = kinds.count("attention")
    window = fields.size("attention_window_size")
    bias = fields.flag("attention_bias")
    decoder.attention(attending, heads, window=window, bias=bias, out_bias=True)
    width = fields.count("lru_width", default=hidden)
    fields.divide(width, heads.count, "recurrent width")
    kernel = fields.size("conv1d_width")
    rg_lru(decoder, layers - attending, width=width, heads=heads.count, kernel=kernel)
    decoder.mlp(layers, fields.count("intermediate_size") // 2, bias=True)
    return decoder.finish()
