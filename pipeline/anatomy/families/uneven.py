"""Decoders with experts whose attention differs from layer to layer: heads, windows, chunks, indexers.

Source: transformers 5.23.0, models/llama4, laguna, mimo_v2_flash, minimax_m3_vl, dbrx, mllama.
"""

from __future__ import annotations

from collections import Counter

from pipeline.anatomy.families import family
from pipeline.anatomy.families.plain import Plain
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.parts.experts import Sparse, after_dense, named
from pipeline.anatomy.parts.windows import FULL, SLIDING, windows_by_type
from pipeline.anatomy.reading import Heads, dropout, layer_types
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig

CHUNKED = "chunked_attention"


@family("llama4_text")
def llama4_text(fields: Fields) -> Anatomy:
    """Layers with rotary positions attend within their chunk only; every n-th has experts beside a shared one."""
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    heads = Heads.read(fields, decoder.hidden, kv_default=8, dim_default=128)
    types = layer_types(fields, layers, known=(CHUNKED, FULL))
    if types is None:
        interval = fields.count("no_rope_layer_interval", default=4)
        ropes = fields.items("no_rope_layers") or [int((i + 1) % interval != 0) for i in range(layers)]
        if len(ropes) != layers:
            raise ContradictoryConfig(f"{fields.where}.no_rope_layers has {len(ropes)} entries for {layers} layers")
        types = [CHUNKED if rope else FULL for rope in ropes]
    stated = "attention_chunk_size" in fields.config
    chunk = fields.count("attention_chunk_size", default=None if stated else 8192)
    chunked = types.count(CHUNKED) if chunk else 0
    bias = fields.flag("attention_bias")
    decoder.attention(layers - chunked, heads, bias=bias)
    decoder.attention(chunked, heads, bias=bias, window=chunk, mechanism="chunked")
    width = fields.count("intermediate_size")
    step = fields.count("interleave_moe_layer_step", default=1)
    listed = fields.items("moe_layers")
    routed = range(step - 1, layers, step) if listed is None else {i for i in listed if isinstance(i, int)}
    routed = sum(i in routed for i in range(layers))
    if routed:
        decoder.moe(
            routed,
            fields.count("num_local_experts", default=16),
            fields.count("num_experts_per_tok", default=1),
            width,
            shared_width=width,
            router="linear-subclass",
        )
    if routed < layers:
        decoder.mlp(layers - routed, fields.count("intermediate_size_mlp", default=16384))
    return decoder.finish()


LAGUNA = Sparse(
    Plain(), experts=("num_experts", 256), chosen=("num_experts_per_tok", 8), width=("moe_intermediate_size", 512),
    layers=after_dense("first_k_dense_replace", 1), shared_width=("shared_expert_intermediate_size", 512),
    correction="parameter",
)  # fmt: skip


@family("laguna")
def laguna(fields: Fields) -> Anatomy:
    """Heads may differ from layer to layer; a gate for each head or each element of what attention returns."""
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    shape = Heads.read(fields, decoder.hidden, kv_default=8, dim_default=128)
    counts = fields.items("num_attention_heads_per_layer", length=layers) or [shape.count] * layers
    window = fields.count("sliding_window", default=512, least=0) or None
    windows = windows_by_type(fields, layers, window)
    gating = fields.raw("gating", default=True)
    bias = fields.flag("attention_bias")
    for (count, reach), number in Counter(zip(map(str, counts), windows, strict=True)).items():
        count = Fields({"num_attention_heads_per_layer": count}, fields.where).count("num_attention_heads_per_layer")
        if count % shape.kv_count:
            raise ContradictoryConfig(f"{fields.where}: {count} heads cannot share {shape.kv_count} key-value heads")
        heads = Heads(count, shape.kv_count, shape.dim, shape.dim)
        decoder.attention(number, heads, window=reach, bias=bias, out_bias=bias, qk_norm="head")
        rows = count if gating is True or gating == "per-head" else count * shape.dim
        decoder.linear("attention", "attention_gate", number, rows, decoder.hidden)
    return sparse_layers(decoder, fields, LAGUNA)


def sparse_layers(decoder: Decoder, fields: Fields, sparse: Sparse, *, fused: bool = False, flash: bool = True):
    routed = sum(sparse.layers(fields, decoder.layers))
    if routed < decoder.layers:
        decoder.mlp(decoder.layers - routed, named(fields, sparse.dense_width), fused=fused)
    sparse.sparse_layers(decoder, fields, routed)
    return decoder.finish(has_flash_attention=flash)


def listed_frequencies(first: int):
    """`moe_layer_freq` as a list of 0 and 1, `mlp_layer_types`, or experts after the first dense layers."""
    otherwise = after_dense("first_k_dense_replace", first)

    def layers_with_experts(fields: Fields, layers: int) -> list[bool]:
        listed = fields.raw("moe_layer_freq")
        if isinstance(listed, list) and fields.raw("mlp_layer_types") is None:
            return [value == 1 for value in fields.items("moe_layer_freq", length=layers)]
        return otherwise(fields, layers)

    return layers_with_experts


MIMO = Sparse(
    Plain(), experts=("n_routed_experts", "num_experts", 256), chosen=("num_experts_per_tok", 8),
    width=("moe_intermediate_size", 2048), layers=listed_frequencies(1), correction="buffer",
)  # fmt: skip


@family("mimo_v2_flash")
def mimo_v2_flash(fields: Fields) -> Anatomy:
    """Sliding layers have twice the key-value heads and a sink; keys are wider than values.

    Released files hold three layers that predict, which the config does not count: sliding ones without experts.
    """
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    shape = Heads.read(fields, decoder.hidden, kv_default=4, dim_default=192)
    value = fields.count("v_head_dim", default=128)
    window = fields.count("sliding_window_size", default=0, least=0) + 1
    window = window if window > 1 else fields.count("sliding_window", default=129)
    types = layer_types(fields, layers, known=(SLIDING, FULL))
    types = types or [FULL if i == 0 or (i + 1) % 6 == 0 else SLIDING for i in range(layers)]
    bias = fields.flag("attention_bias")
    full = Heads(shape.count, shape.kv_count, shape.dim, value)
    sliding = Heads(shape.count, fields.count("swa_num_key_value_heads", default=2 * shape.kv_count), shape.dim, value)
    decoder.attention(types.count(FULL), full, bias=bias, out_bias=False)
    decoder.attention(types.count(SLIDING), sliding, bias=bias, out_bias=False, window=window)
    decoder.vector("attention_sink", types.count(SLIDING), shape.count, tensor_class="attention")
    ahead = Decoder(fields, layers=fields.repeats("num_nextn_predict_layers", default=3, least=0))
    ahead.attention(ahead.layers, sliding, bias=bias, out_bias=False, window=window)
    ahead.vector("attention_sink", ahead.layers, shape.count, tensor_class="attention")
    ahead.mlp(ahead.layers, fields.count("intermediate_size", default=16384))
    ahead.norm(ahead.layers, each=5)
    ahead.linear("other", "mtp_projection", ahead.layers, decoder.hidden, 2 * decoder.hidden)
    decoder.predicting = ahead.tensors
    decoder.store("multi-token prediction layers", sum(t.element_count for t in ahead.tensors))
    return sparse_layers(decoder, fields, MIMO, flash=False)


MINIMAX_M3 = Sparse(
    Plain(), experts=("num_local_experts", "num_experts", 128), chosen=("num_experts_per_tok", 4),
    width=("intermediate_size", None), dense_width=("dense_intermediate_size", 12288), layers=listed_frequencies(0),
    shared_width=("shared_intermediate_size", 3072), shared_fused=True, correction="buffer",
)  # fmt: skip


@family("minimax_m3_vl_text")
def minimax_m3_vl_text(fields: Fields) -> Anatomy:
    """Sparse layers add a small indexer, whose key of every token is cached beside keys and values."""
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    heads = Heads.read(fields, decoder.hidden, kv_default=4, dim_default=128)
    legacy = fields.inner("sparse_attention_config") or Fields({}, fields.where)
    types = layer_types(fields, layers, known=("minimax_m3_sparse", FULL))
    if types is not None:
        sparse = types.count("minimax_m3_sparse")
    else:
        sparse = sum(value == 1 for value in legacy.items("sparse_attention_freq", length=layers) or [])
    dim = legacy.count("sparse_index_dim", default=fields.count("index_head_dim", default=128))
    count = legacy.count("sparse_num_index_heads", default=fields.count("index_n_heads", default=4))
    decoder.attention(layers - sparse, heads, qk_norm="head")
    decoder.attention(sparse, heads, qk_norm="head", cached=2 * heads.kv_count * heads.dim + dim)
    decoder.linear("attention", "indexer_q", sparse, count * dim, decoder.hidden)
    decoder.linear("attention", "indexer_k", sparse, dim, decoder.hidden)
    decoder.norm(sparse, dim, 2)
    return sparse_layers(decoder, fields, MINIMAX_M3, fused=True)


@family("dbrx")
def dbrx(fields: Fields) -> Anatomy:
    """The three matrices of all experts are two-dimensional parameters, [experts·width, h] each."""
    decoder = Decoder(fields, norm_kind="layer", norm_bias=False)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    attention = fields.inner("attn_config") or Fields({}, fields.where)
    ffn = fields.inner("ffn_config") or Fields({}, fields.where)
    count = fields.count("n_heads", "num_attention_heads")
    dim = fields.divide(hidden, count, "hidden size")
    kv_count = attention.count("kv_n_heads", default=1)
    fields.divide(count, kv_count, "heads")
    decoder.attention(layers, Heads(count, kv_count, dim, dim), fused=True)
    width, experts = ffn.count("ffn_hidden_size", default=3584), ffn.count("moe_num_experts", default=4)
    chosen = ffn.count("moe_top_k", default=1)
    if chosen > experts:
        raise ContradictoryConfig(f"{fields.where}: {chosen} experts per token of {experts}")
    decoder.linear("router", "router", layers, experts, hidden)
    for role in ("expert_gate", "expert_up", "expert_down"):
        decoder.add("expert", role, "expert", layers, width, hidden, experts)
    decoder.feed_forward_row(
        "moe", layers, is_gated=True, expert_count=experts, experts_per_token=chosen, expert_width=width
    )
    return decoder.finish()


@family("mllama_text_model")
def mllama_text(fields: Fields) -> Anatomy:
    """Llama with layers that attend to the image instead of the text. Eight rows more than the vocabulary."""
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    decoder.add("embedding", "embedding", "embedding", 1, 8, hidden)
    listed = fields.items("cross_attention_layers")
    listed = [3, 8, 13, 18, 23, 28, 33, 38] if listed is None else listed
    crossing = sum(i in listed for i in range(layers))
    heads = Heads.read(fields, hidden, kv_default=8)
    decoder.attention(layers - crossing, heads)
    decoder.attention(crossing, heads, qk_norm="head", mechanism="cross")
    decoder.vector("cross_gate", crossing, 1, 2, tensor_class="attention")
    decoder.mlp(layers, fields.count("intermediate_size"))
    decoder.norm(layers, each=2)
    decoder.norm(1)
    decoder.head(tied=False)  # never: the embedding has more rows
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))
