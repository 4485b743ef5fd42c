"""Gemma 3n: four streams, a low-rank branch beside attention, embeddings per layer, shared caches; what it sees
and hears is normed and projected.

Source: transformers 5.23.0, models/gemma3n. The released checkpoints also hold the key and value projections of the
layers that read another layer's cache.
"""

from __future__ import annotations

from collections import Counter

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.vision_language import Plan, is_text_only, language_model
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.nested_parts import leave_parts
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.windows import FULL, SLIDING, every, window_of
from pipeline.anatomy.reading import Heads, dropout, layer_types, nested
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig
from pipeline.anatomy.towers import audio_tower, vision_tower
from pipeline.anatomy.towers.part import Part


@family("gemma3n")
def gemma3n(fields: Fields) -> Anatomy:
    text = language_model(fields, Plan("", "gemma3n_text", ties=True))
    if is_text_only(fields):
        leave_parts(fields.config)
        return add_parts(fields, text, [])
    parts = []
    for name, read, kind in (
        ("vision_config", vision_tower, "gemma3n_vision"),
        ("audio_config", audio_tower, "gemma3n_audio"),
    ):
        inner = nested(fields, name, required=False).filled()
        tower, embedder = read(inner.but({"model_type": kind}), kind), Part("projector", "projector")
        embedder.embedding("mark_embedding", inner.count("vocab_size"), tower[0].hidden)
        embedder.norm(tower[0].hidden, count=2, bias=False)
        embedder.linear("projector", tower[0].hidden, text.hidden_size, bias=False)
        parts += [*tower, embedder]
    return add_parts(fields, text, parts)


@family("gemma3n_text")
def gemma3n_text(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers, hidden, linear = decoder.layers, decoder.hidden, decoder.linear
    decoder.embed()
    shared = fields.size("num_kv_shared_layers", least=0)
    if shared >= layers:
        raise ContradictoryConfig(f"{fields.where}: all {layers} layers read the cache of another")
    attend(decoder, fields, layers - shared)
    for width, count in Counter(widths(fields, layers)).items():
        decoder.mlp(count, width)
    decoder.norm(layers, each=4)
    streams, rank = fields.size("altup_num_inputs"), fields.size("laurel_rank")
    linear("other", "altup_correction", layers, streams, streams)
    linear("other", "altup_prediction", layers, streams * streams, streams)
    linear("other", "altup_router", layers, streams, hidden)
    decoder.vector("altup_scale", layers, hidden, tensor_class="other")
    linear("other", "altup_projection", 1, hidden, hidden, each=2 * (streams - 1))
    linear("other", "laurel_left", layers, rank, hidden)
    linear("other", "laurel_right", layers, hidden, rank)
    decoder.norm(layers, each=3)  # router, low-rank branch, per-layer input
    inputs = fields.size("hidden_size_per_layer_input")
    rows = fields.size("vocab_size_per_layer_input")
    decoder.add("embedding", "per_layer_embedding", "embedding", 1, rows, layers * inputs)
    linear("other", "per_layer_model_projection", 1, layers * inputs, hidden)
    decoder.norm(1, inputs)
    linear("other", "per_layer_gate", layers, inputs, hidden)
    linear("other", "per_layer_projection", layers, hidden, inputs)
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings"))
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))


def widths(fields: Fields, layers: int) -> list[int]:
    """One width for all layers, or a list with one for each."""
    if not isinstance(fields.raw("intermediate_size"), list):
        return [fields.count("intermediate_size")] * layers
    listed = fields.items("intermediate_size", length=layers)
    return [Fields({"intermediate_size": width}, fields.where).count("intermediate_size") for width in listed]


def attend(decoder: Decoder, fields: Fields, own: int) -> None:
    layers, hidden = decoder.layers, decoder.hidden
    heads = Heads.read(fields, hidden)
    bias = fields.flag("attention_bias")
    types = layer_types(fields, layers, known=(FULL, SLIDING)) or every(layers, 5)
    window = window_of(fields)
    for (kind, owns), count in Counter((types[i], i < own) for i in range(layers)).items():
        reach = window if kind == SLIDING else None
        if owns:
            decoder.attention(count, heads, window=reach, bias=bias, qk_norm="head")
            continue
        query, key = heads.count * heads.dim, heads.kv_count * heads.dim
        decoder.linear("attention", "attention_q", count, query, hidden, bias=bias)
        decoder.linear("attention", "attention_o", count, hidden, query, bias=bias)
        decoder.norm(count, heads.dim)
        decoder.store("key-value projections of layers that share a cache", count * (2 * key * hidden + heads.dim))
        decoder.mixer(
            kind="shared",
            mechanism="shared",
            layer_count=count,
            head_count=heads.count,
            kv_head_count=heads.kv_count,
            head_dim=heads.dim,
            value_head_dim=heads.dim,
            window_tokens=reach,
            has_qk_norm=True,
        )
