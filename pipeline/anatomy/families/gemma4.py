"""Gemma 4, the text model: wider heads in its global layers, caches shared by the last layers, embeddings per layer,
and a mixture of experts beside the dense block. Source: transformers 5.23.0, models/gemma4 and gemma4_unified.
"""

from __future__ import annotations

from pipeline.anatomy.builder import numbers
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.windows import FULL, SLIDING, every, looking_both_ways, window_of
from pipeline.anatomy.reading import dropout, is_causal, layer_types
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig


@family("gemma4_text")
def gemma4_text(fields: Fields) -> Anatomy:
    return read(fields, feeds_layers=True)


@family("gemma4_unified_text")
def gemma4_unified_text(fields: Fields) -> Anatomy:
    return read(fields, feeds_layers=False)


def read(fields: Fields, *, feeds_layers: bool) -> Anatomy:
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    types = list(layer_types(fields, layers, known=(FULL, SLIDING)) or every(layers, 6))
    types[-1] = FULL
    shared = fields.size("num_kv_shared_layers", least=0)
    if shared >= layers:
        raise ContradictoryConfig(f"{fields.where}: all {layers} layers read the cache of another")
    window = looking_both_ways(window_of(fields), fields.raw("use_bidirectional_attention") == "all")
    attend(decoder, fields, types, layers - shared, window)
    width = fields.count("intermediate_size")
    wide = shared if fields.flag("use_double_wide_mlp") else 0
    decoder.mlp(layers - wide, width)
    decoder.mlp(wide, 2 * width)
    decoder.norm(layers, each=4)
    if fields.flag("enable_moe_block"):
        moe(decoder, fields)
    inputs = fields.size("hidden_size_per_layer_input", least=0) if feeds_layers else 0
    if inputs:
        rows = fields.size("vocab_size_per_layer_input")
        decoder.add("embedding", "per_layer_embedding", "embedding", 1, rows, layers * inputs)
        decoder.linear("other", "per_layer_model_projection", 1, layers * inputs, hidden)
        decoder.norm(1, inputs)
        decoder.linear("other", "per_layer_gate", layers, inputs, hidden)
        decoder.linear("other", "per_layer_projection", layers, hidden, inputs)
        decoder.norm(layers)
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings"))
    decoder.store("layer scalars", layers)
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))


def attend(decoder: Decoder, fields: Fields, types: list[str], own: int, window: int | None) -> None:
    """The layers from `own` on project queries only and read the cache of the last layer of their kind before them."""
    layers, hidden = decoder.layers, decoder.hidden
    heads, bias = fields.count("num_attention_heads"), fields.flag("attention_bias")
    same = fields.flag("attention_k_eq_v")
    writes = is_causal(fields)
    shapes = [layer_shape(fields, i, types[i] == FULL, same) for i in range(layers)]
    groups: dict[tuple, list[int]] = {}
    for i in range(layers):
        groups.setdefault((types[i], shapes[i], i < own), []).append(i)
    for (kind, (dim, kv_heads), owns), blocks in groups.items():
        count = len(blocks)
        if heads % kv_heads:
            raise ContradictoryConfig(f"{fields.where}: {heads} heads cannot share {kv_heads} key-value heads")
        linear = decoder.linear
        linear("attention", "attention_q", count, heads * dim, hidden, bias=bias)
        linear("attention", "attention_o", count, hidden, heads * dim, bias=bias)
        has_value = not (same and kind == FULL)
        unused = (kv_heads * dim * hidden) * (2 if has_value else 1) + dim
        if owns:
            linear("attention", "attention_k", count, kv_heads * dim, hidden, bias=bias)
            linear("attention", "attention_v", count if has_value else 0, kv_heads * dim, hidden, bias=bias)
        else:
            decoder.store("key-value projections of layers that share a cache", count * unused)
        decoder.norm(count, dim, 2 if owns else 1)
        mechanism = "shared" if not owns else "sliding" if kind == SLIDING else "full"
        if not writes:
            mechanism = "bidirectional"
        decoder.mixer(
            kind=mechanism,
            mechanism=mechanism,
            layer_count=count,
            head_count=heads,
            kv_head_count=kv_heads,
            head_dim=dim,
            value_head_dim=dim,
            elements_per_token=2 * kv_heads * dim if owns else 0,
            window_tokens=window if kind == SLIDING else None,
            has_qk_norm=True,
            blocks=numbers(blocks) if len(groups) > 1 else None,
        )


def layer_shape(fields: Fields, index: int, is_full: bool, same: bool) -> tuple[int, int]:
    """Head dimension and key-value heads: as `per_layer_config` says, or by the kind of layer."""
    dim, kv_heads = fields.size("head_dim"), fields.size("num_key_value_heads")
    overrides = fields.inner("per_layer_config")
    if overrides is not None:  # its keys are layer numbers, zero-padded in files
        value = next((v for k, v in overrides.config.items() if str(k).isdecimal() and int(k) == index), None)
        if value is None:
            return dim, kv_heads
        layer = Fields(value, f"{fields.where}.per_layer_config")
        return layer.count("head_dim", default=dim), layer.count("num_key_value_heads", default=kv_heads)
    if is_full and not fields.is_null("per_layer_config"):  # a null there is word that no layer differs
        dim = fields.count("global_head_dim", default=512)
        if same:
            kv_heads = fields.count("num_global_key_value_heads", default=kv_heads)
    return dim, kv_heads


def moe(decoder: Decoder, fields: Fields) -> None:
    layers, experts = decoder.layers, fields.count("num_experts")
    decoder.moe(layers, experts, fields.count("top_k_experts"), fields.count("moe_intermediate_size"), router="linear")
    decoder.vector("router_scale", layers, decoder.hidden, tensor_class="router")
    decoder.vector("router_scale", layers, experts, tensor_class="router")
    decoder.norm(layers, each=3)
