"""Decoders that carry several residual streams: Qwen4-Exp and GLM-5-Next, hybrids of linear and indexed attention.

Shapes [out, in], with h the hidden size and s the streams. Source: transformers 5.23.0, models/qwen4_exp, glm5_next.
"""

from __future__ import annotations

from functools import cache
from math import isqrt

from pipeline.anatomy.families import family
from pipeline.anatomy.families.latent import indexer_kinds
from pipeline.anatomy.families.qwen_hybrid import LINEAR, mix, sparse
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.experts import Sparse, after_dense
from pipeline.anatomy.parts.frame import Plain
from pipeline.anatomy.parts.latent import Latent, latent_attention
from pipeline.anatomy.parts.mixers import convolution, kimi_delta, recurrent
from pipeline.anatomy.reading import Heads, dropout, layer_types
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig

ATTENDING = ("full_attention", "indexed_attention")


def attending_layers(fields: Fields, layers: int, period: int) -> int:
    types = layer_types(fields, layers, known=(LINEAR, *ATTENDING))
    return layers // period if types is None else sum(kind != LINEAR for kind in types)


@family("qwen4_exp_text")
def qwen4_exp_text(fields: Fields) -> Anatomy:
    """Qwen3.5 with experts, a low-rank gate between streams, and n-gram embeddings read in a few layers."""
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    attending = attending_layers(fields, layers, fields.count("full_attention_interval", default=4))
    layers_with_streams(decoder, fields, attending)
    streams = fields.size("hc_count")
    ngram_embeddings(decoder, fields, streams)
    decoder.head(tied=fields.flag("tie_word_embeddings"))
    if fields.count("mtp_num_hidden_layers", default=0, least=0) == 1:  # attends, behind [h, 2h] and two norms
        one = decoder.ahead()
        layers_with_streams(one, fields, 1)
        one.norm(1)
        one.norm(1, streams * hidden)
        decoder.predict(one, listed=False)
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))


def layers_with_streams(decoder: Decoder, fields: Fields, attending: int) -> None:
    """As many layers as the decoder has; what mixes the streams stands before every part of a layer, and at the end."""
    layers, hidden = decoder.layers, decoder.hidden
    heads = Heads.read(fields, hidden)
    index_heads = fields.count("indexer_n_heads", default=None)
    cached = None
    if index_heads is not None:
        dim, keys = fields.count("indexer_head_dim"), fields.count("indexer_kv_heads", default=1)
        decoder.linear("attention", "indexer_qk", attending, (index_heads + keys) * dim, hidden)
        decoder.norm(attending, dim, 2)
        cached = 2 * heads.kv_count * heads.dim + keys * dim
    mix(decoder, fields, attending, layers - attending, heads, fused=False, cached=cached)
    sparse(decoder, fields, layers, experts=512, chosen=10)
    streams, rank = fields.size("hc_count"), fields.size("hc_lowrank")
    for count, injects in ((2 * layers, True), (1, False)):
        decoder.norm(count, streams * hidden)
        decoder.linear("other", "stream_mix", count, rank, streams * hidden)
        decoder.linear("other", "stream_mix", count, streams * hidden, rank)
        decoder.linear("other", "stream_inject", count if injects else 0, streams, streams * hidden)


def ngram_embeddings(decoder: Decoder, fields: Fields, streams: int) -> None:
    """A table for each head of each n-gram, whose sizes are successive primes, rounded up together."""
    listed = fields.items("ple_layer_ids") or []
    if not all(isinstance(i, int) and 1 <= i <= decoder.layers for i in listed):
        raise ContradictoryConfig(f"{fields.where}.ple_layer_ids does not name layers from 1 to {decoder.layers}")
    reading, wide = len(set(listed)), streams * decoder.hidden
    if not reading:
        return
    width = fields.count("ple_embed_dim", default=decoder.hidden)
    size, kernel = fields.size("ngram_size"), fields.size("ple_conv_kernel_size")
    heads = (size - 1) * fields.size("heads_per_ngram")
    base = fields.size("ngram_vocab_size_base")
    if not 0 < heads * reading <= 1000:
        raise ContradictoryConfig(f"{fields.where} describes {heads * reading} n-gram tables")
    divisor = fields.size("make_ngram_vocab_size_divisible_by")
    primes = primes_from(base, heads * reading)
    for i in range(reading):
        rows = sum(primes[i * heads : (i + 1) * heads])
        rows = divisor * -(-rows // divisor)
        decoder.add("embedding", "ngram_embedding", "embedding", 1, rows, max(1, width // heads))
    decoder.store("n-gram hash tables", reading * (2 * heads + size))  # sizes and offsets of heads, multipliers
    decoder.linear("other", "ngram_key", reading, wide, width)
    decoder.linear("other", "ngram_value", reading, decoder.hidden, width)
    decoder.norm(reading, wide, 3)
    convolution(decoder, reading, wide, kernel, bias=False)
    recurrent(decoder, reading, kind="n-gram", conv=wide * (kernel - 1) * size)


@cache
def primes_from(start: int, count: int) -> list[int]:
    """The first `count` primes that are not below `start`, by a sieve of the stretch that must hold them."""
    stretch = max(1000, 4 * count * (start + count).bit_length())
    composite = bytearray(stretch)
    for i in range(2, isqrt(start + stretch) + 1):
        first = max(2 * i, -(-start // i) * i) - start
        composite[first::i] = b"\x01" * len(range(first, stretch, i))
    found = [start + i for i in range(stretch) if not composite[i] and start + i > 1][:count]
    if len(found) < count:
        raise ContradictoryConfig(f"fewer than {count} primes follow {start}")
    return found


GLM5 = Sparse(
    Plain(), experts=("n_routed_experts", "num_experts"), chosen=("num_experts_per_tok",),
    width=("moe_intermediate_size",), layers=after_dense("first_k_dense_replace", 3),
    shared_count=("n_shared_experts",), correction="buffer",
)  # fmt: skip


@family("glm5_next_text")
def glm5_next_text(fields: Fields) -> Anatomy:
    """Kimi's delta attention, latent attention without rotary positions, and an indexer over pooled keys."""
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    attending = attending_layers(fields, layers, 4)
    own = min(attending, sum(indexer_kinds(fields, layers))) if fields.raw("indexer_types") else attending
    attend_pooled(decoder, fields, own, attending - own)
    linear = fields.inner("linear_attn_config") or Fields({}, fields.where)
    kimi_delta(
        decoder,
        layers - attending,
        heads=linear.count("num_heads", default=fields.size("linear_num_heads")),
        dim=linear.count("head_dim", default=fields.size("linear_head_dim")),
        kernel=linear.count("short_conv_kernel_size", default=fields.size("linear_conv_kernel_dim")),
    )
    streams = fields.size("hc_mult")
    mixed = streams * streams + 2 * streams
    decoder.parameter("other", "hyper_connection", layers, mixed * streams * hidden, 2)
    decoder.vector("hyper_connection", layers, mixed + 3, 2, tensor_class="other")
    routed = sum(GLM5.layers(fields, layers))
    decoder.dense_mlp(layers - routed, "intermediate_size")
    GLM5.sparse_layers(decoder, fields, routed)
    decoder.ends()
    if count := fields.repeats("num_nextn_predict_layers", default=1, least=0):  # one stream, behind [h, 2h]
        one = decoder.ahead()
        attend_pooled(one, fields, 1, 0)
        GLM5.sparse_layers(one, fields, 1)
        one.norm(1, each=5)
        decoder.predict(one, count, listed=False)
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))


def attend_pooled(decoder: Decoder, fields: Fields, own: int, shared: int) -> None:
    """Latent attention; an indexer in `own` layers scores pools of `index_kpool` keys."""
    latent = Latent.read(fields, decoder.hidden, indexed=True)
    pool = fields.size("index_kpool")
    latent_attention(decoder, fields, own, latent, pools_keys=True)
    latent_attention(decoder, fields, shared, latent, with_indexer=False)
    decoder.parameter("attention", "indexer_pool", own, latent.indexer_dim * (pool + decoder.hidden))
