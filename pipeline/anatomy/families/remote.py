"""Families whose code travels with their checkpoints instead of with transformers.

Their parts are held to the totals that the authors publish: Qwen 1.8B and 7B, ChatGLM3-6B and GLM-4-9B,
DeepSeek-MoE-16B, Llama-3.3-Nemotron-Super-49B, Phi-3-small, MiMo-7B with its prediction layer.
"""

from __future__ import annotations

from collections import Counter

from pipeline.anatomy.families import family
from pipeline.anatomy.families.plain import BIASED
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.parts.experts import Sparse, after_dense, read_sparse
from pipeline.anatomy.parts.windows import upper_layers
from pipeline.anatomy.reading import Heads, dropout
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy


@family("qwen")
def qwen(fields: Fields) -> Anatomy:
    """The config's intermediate size is the gate and the up projection together."""
    decoder = Decoder(fields)
    decoder.embed()
    count = fields.count("num_attention_heads")
    dim = fields.count("kv_channels", default=fields.divide(decoder.hidden, count, "hidden size"))
    linear_bias = not fields.flag("no_bias", default=True)
    decoder.attention(decoder.layers, Heads(count, count, dim, dim), fused=True, bias=True, out_bias=linear_bias)
    width = fields.divide(fields.count("intermediate_size"), 2, "intermediate size")
    decoder.mlp(decoder.layers, width, bias=linear_bias)
    return decoder.finish()


@family("chatglm")
def chatglm(fields: Fields) -> Anatomy:
    """ChatGLM2 and later. The rotary frequencies, half of half a head, are stored once."""
    if fields.raw("padded_vocab_size") is None:
        raise UnknownAnatomy("config has no padded_vocab_size")
    fields = Fields({**fields.config, "vocab_size": fields.count("padded_vocab_size")}, fields.where)
    decoder = Decoder(fields)
    decoder.embed()
    count = fields.count("num_attention_heads")
    dim = fields.count("kv_channels", default=fields.divide(decoder.hidden, count, "hidden size"))
    kv_count = fields.count("multi_query_group_num") if fields.flag("multi_query_attention") else count
    fields.divide(count, kv_count, "heads")
    bias = fields.flag("add_bias_linear")
    qkv_bias = bias or fields.flag("add_qkv_bias")
    decoder.attention(decoder.layers, Heads(count, kv_count, dim, dim), fused=True, bias=qkv_bias, out_bias=bias)
    decoder.mlp(decoder.layers, fields.count("ffn_hidden_size"), fused=True, bias=bias)
    decoder.store("rotary frequencies", dim // 4)
    architectures = fields.raw("architectures")
    if architectures == ["ChatGLMModel"]:  # the name of the model with its head
        decoder.fields = Fields({**fields.config, "architectures": None}, fields.where)
    return decoder.finish()


@family("deepseek")
def deepseek(fields: Fields) -> Anatomy:
    return read_sparse(
        fields,
        Sparse(
            BIASED,
            experts=("n_routed_experts", None),
            chosen=("num_experts_per_tok", None),
            layers=after_dense("first_k_dense_replace", 0),
            shared_count=("n_shared_experts", 0),
        ),
    )


@family("mimo")
def mimo(fields: Fields) -> Anatomy:
    """Qwen2 with a dense prediction layer: a layer of the model, a projection [h, 2h] and three norms."""
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    heads, bias = Heads.read(fields, hidden), fields.flag("attention_bias", default=True)
    width = fields.count("intermediate_size")
    decoder.attentions(upper_layers(fields, layers), heads, bias=bias, out_bias=False)
    decoder.mlp(layers, width)
    one = Decoder(fields, layers=1)
    one.attention(1, heads, bias=bias, out_bias=False)
    one.mlp(1, width)
    one.norm(1, each=5)
    size = sum(tensor.element_count for tensor in one.tensors) + 2 * hidden**2
    predicted = fields.repeats("num_nextn_predict_layers", default=0, least=0)
    decoder.store("multi-token prediction layers", predicted * size)
    return decoder.finish()


@family("phi3small")
def phi3small(fields: Fields) -> Anatomy:
    """Block-sparse layers still read blocks from the whole context, so all tokens are kept."""
    decoder = Decoder(fields, norm_kind="layer")
    decoder.embed()
    heads = Heads.read(fields, decoder.hidden)
    decoder.attention(decoder.layers, heads, fused=True, bias=True)
    decoder.mlp(decoder.layers, fields.count("ff_intermediate_size"), fused=True, bias=True)
    decoder.store("rotary frequencies", decoder.layers * heads.dim // 2)
    return decoder.finish(tied=True)


@family("nemotron-nas")
def nemotron_nas(fields: Fields) -> Anatomy:
    """A block for each layer: attention of its own grouping, feed-forward of its own width, a single linear or nothing.

    `ffn_mult` is of two thirds of the hidden size, rounded up to a multiple of 256.
    """
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    count = fields.count("num_attention_heads")
    dim = fields.count("head_dim", default=None) or fields.divide(hidden, count, "hidden size")
    bias, mlp_bias = fields.flag("attention_bias"), fields.flag("mlp_bias")
    blocks = fields.items("block_configs", length=layers)
    if blocks is None:
        raise UnknownAnatomy(f"{fields.where} has no block_configs")
    groups, widths = Counter(), Counter()
    for block in blocks:
        block = Fields(block, f"{fields.where}.block_configs")
        attention, ffn = block.inner("attention"), block.inner("ffn")
        if attention is None or ffn is None:
            raise UnknownAnatomy(f"{fields.where}.block_configs has a block without attention or ffn")
        groups[_replaced(attention) or attention.count("n_heads_in_group")] += 1
        widths[_replaced(ffn) or _width(ffn, hidden)] += 1
    for group, number in groups.items():
        if group == "linear":
            decoder.linear("attention", "attention_linear", number, hidden, hidden)
        elif group != "nothing":
            heads = Heads(count, fields.divide(count, group, "heads"), dim, dim)
            decoder.attention(number, heads, bias=bias)
    for width, number in widths.items():
        if width == "linear":
            decoder.linear("feed-forward", "ffn_linear", number, hidden, hidden)
        elif width != "nothing":
            decoder.mlp(number, width, bias=mlp_bias)
    decoder.norm(layers - groups["nothing"])
    decoder.norm(layers - widths["nothing"])
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings"))
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))


def _replaced(part: Fields) -> str | None:
    if part.flag("no_op"):
        return "nothing"
    return "linear" if part.flag("replace_with_linear") else None


def _width(ffn: Fields, hidden: int) -> int:
    times = ffn.number("ffn_mult")
    if times is None:
        return ffn.count("intermediate_size")
    if not 0 < times < 1000:
        raise ContradictoryConfig(f"{ffn.where}.ffn_mult is {times}")
    return 256 * -(-int(2 * times * hidden / 3) // 256)
