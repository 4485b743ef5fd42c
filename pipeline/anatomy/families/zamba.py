"""Zamba2: Mamba-2 in every layer, and one or two shared transformer blocks that some layers call, each with adapters.

The shared block reads the hidden state beside the embeddings, 2·h wide. Its tensors count once for each block, its cache
once for each layer that calls it. Source: transformers 5.23.0, models/zamba2.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.parts.mixers import mamba2
from pipeline.anatomy.reading import dropout, layer_types
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy


@family("zamba2")
def zamba2(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers, hidden, linear = decoder.layers, decoder.hidden, decoder.linear
    decoder.embed()
    types = layer_types(fields, layers, "layers_block_type", known=("mamba", "linear_attention", "hybrid"))
    if types is None:
        raise UnknownAnatomy(f"{fields.where} has no layers_block_type")
    calls, blocks = types.count("hybrid"), fields.repeats("num_mem_blocks", default=1, least=1)
    bias = fields.flag("add_bias_linear")
    heads = fields.count("n_mamba_heads", default=8)
    mamba2(
        decoder,
        layers,
        heads=heads,
        dim=fields.divide(fields.count("mamba_expand", default=2) * hidden, heads, "inner size"),
        state=fields.count("mamba_d_state", default=64),
        groups=fields.count("mamba_ngroups", default=1),
        kernel=fields.count("mamba_d_conv", default=4),
        conv_bias=True,  # whatever use_conv_bias says
        bias=bias,
        chunk=fields.count("chunk_size", default=256),
    )
    decoder.norm(layers)
    linear("other", "shared_block_out", calls, hidden, hidden)
    if calls:
        shared_blocks(decoder, fields, min(blocks, calls), calls)
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings", default=True))
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))


def shared_blocks(decoder: Decoder, fields: Fields, blocks: int, calls: int) -> None:
    hidden, linear, rank = decoder.hidden, decoder.linear, fields.count("adapter_rank", default=128)
    count = fields.count("num_attention_heads")
    kv_count = fields.count("num_key_value_heads", default=count)
    wide = 2 * hidden
    dim = fields.divide(wide, count, "attention width")
    linear("attention", "attention_q", blocks, count * dim, wide)
    linear("attention", "attention_k", blocks, kv_count * dim, wide)
    linear("attention", "attention_v", blocks, kv_count * dim, wide)
    linear("attention", "attention_o", blocks, hidden, count * dim)
    if fields.flag("use_shared_attention_adapter"):
        linear("attention", "adapter_down", calls, rank, wide, each=3)
        linear("attention", "adapter_up", calls, wide, rank, each=3)
    width = fields.count("intermediate_size", default=4 * hidden)
    decoder.mlp(blocks, width, fused=True, bias=fields.flag("add_bias_linear"))
    linear("feed-forward", "adapter_down", calls, rank, hidden)
    linear("feed-forward", "adapter_up", calls, 2 * width, rank)
    decoder.norm(blocks, wide)
    decoder.norm(blocks)
    decoder.mixer(
        kind="full",
        mechanism="full",
        layer_count=calls,
        head_count=count,
        kv_head_count=kv_count,
        head_dim=dim,
        value_head_dim=dim,
        elements_per_token=2 * kv_count * dim,
    )
