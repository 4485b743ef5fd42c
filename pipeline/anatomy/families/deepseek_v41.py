"""DeepSeek-V4.1: V4's attention and streams, compressed entries shared by groups of layers, tables of n-grams, a vision tower.

Shapes [out, in], h the hidden size, s the streams, d the head dimension. Every layer reads a window; of older tokens a few
source layers hold compressed entries of d elements for each `compress_ratio` tokens (and an indexer's key each), which the
layers after them read too. An n-gram layer has a table, [h·(s + 1), columns·width] from what it finds there, and two weights
[s, h]. Source: the port of V4.1 to transformers and vLLM's parameter graph, whose parts add up to the published total.
"""

from __future__ import annotations

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.deepseek_v4 import WINDOW, attend, hyper_connections, predict_by_draft, tower
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.reading import dropout, nested
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig


@family("deepseek_v41")
def deepseek_v41(fields: Fields) -> Anatomy:
    inner = nested(fields, "text_config")
    text = language_model(inner.but({"architectures": None}))
    vision = fields.inner("vision_config")
    return add_parts(fields, text, [] if vision is None else tower(vision, text.hidden_size))


def language_model(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    decoder.embed()
    attend(decoder, fields, [WINDOW] * decoder.layers)
    compressed_branches(decoder, fields)
    ngram_tables(decoder, fields)
    hyper_connections(decoder, fields)
    moe(decoder, fields, fields.count("n_routed_experts"), fields.count("num_experts_per_tok"))
    decoder.ends()
    store_draft(decoder, fields)
    return decoder.build(has_flash_attention=False, attention_dropout=dropout(fields, "attention_dropout"))


def layer_ids(fields: Fields, name: str, layers: int) -> list[int]:
    """The layers that a field lists, from 0."""
    ids = fields.items(name) or []
    if not all(type(i) is int and 0 <= i < layers for i in ids) or len(set(ids)) < len(ids):
        raise ContradictoryConfig(f"{fields.where}.{name} does not name layers from 0 to {layers - 1}")
    return ids


def compressed_branches(decoder: Decoder, fields: Fields) -> None:
    """Compressors and indexers. An indexer in a source layer makes the keys that the others score."""
    layers, hidden, dim = decoder.layers, decoder.hidden, fields.count("head_dim")
    sources = layer_ids(fields, "kv_source_layer_ids", layers)
    choosing = layer_ids(fields, "index_source_layer_ids", layers)
    rank = fields.count("q_lora_rank")
    heads, key = fields.count("index_n_heads", default=64), fields.count("index_head_dim", default=128)
    ratios = fields.items("compress_ratios") or []
    for layer in sources:
        listed = {"compress_ratios": ratios[layer] if layer < len(ratios) else None}
        ratio = Fields(listed, fields.where).repeats("compress_ratios", least=1)
        decoder.linear("attention", "compressor", 1, dim, hidden, each=1 if ratio == 1 else 2)  # and a gate to pool by
        decoder.norm(1, dim)
        entry = dim + (key if layer in choosing else 0)
        decoder.mixer(
            kind="compressed",
            mechanism="mla",
            layer_count=1,
            head_count=fields.count("num_attention_heads"),
            kv_head_count=1,
            head_dim=dim,
            value_head_dim=dim,
            elements_per_token=-(-entry // ratio),
            conv_state_elements=2 * (ratio - 1) * dim,
        )
    decoder.linear("attention", "indexer_q", len(choosing), heads * key, rank)
    decoder.linear("attention", "indexer_weights", len(choosing), heads, hidden)
    own = len(set(sources) & set(choosing))
    decoder.linear("attention", "indexer_k", own, key, dim)
    decoder.norm(own, key)


def ngram_tables(decoder: Decoder, fields: Fields) -> None:
    listed = layer_ids(fields, "engram_layer_ids", decoder.layers)
    if not listed:
        return
    width, streams = fields.count("engram_head_dim"), fields.count("hc_mult", default=4)
    columns = fields.count("engram_n_heads") * (fields.count("engram_max_ngram_size", least=2) - 1)
    rows = fields.items("engram_num_embeddings", length=len(listed))
    for size in rows or [None] * len(listed):
        count = fields.count("engram_num_embeddings") if size is None else _rows(fields, size)
        decoder.add("embedding", "ngram_embedding", "embedding", 1, count, width)
    decoder.linear("other", "ngram_key_value", len(listed), decoder.hidden * (streams + 1), columns * width)
    decoder.parameter("other", "ngram_weight", len(listed), streams * decoder.hidden, 2)


def _rows(fields: Fields, size: object) -> int:
    if type(size) is not int or size < 1:  # (a dimension has a bound, which these tables exceed)
        raise ContradictoryConfig(f"{fields.where}.engram_num_embeddings does not hold numbers of rows")
    return size


def moe(decoder: Decoder, fields: Fields, experts: int, chosen: int) -> None:
    """The router's bias is there twice: for text and for images."""
    width = fields.count("moe_intermediate_size")
    shared = width * fields.count("n_shared_experts", default=1, least=0)
    decoder.moe(decoder.layers, experts, chosen, width, shared_width=shared)
    decoder.vector("router_correction", decoder.layers, experts, 2, tensor_class="router")


def store_draft(decoder: Decoder, fields: Fields) -> None:
    """The draft's stages: layers of window attention with experts of their own, and V4's Markov head and confidence."""
    targets = layer_ids(fields, "dspark_target_layer_ids", decoder.layers)
    if not targets:
        return
    one = decoder.ahead(len(targets))
    one.component = "mtp"
    attend(one, fields, [WINDOW] * one.layers)
    hyper_connections(one, fields)
    chosen = fields.count("dspark_num_experts_per_tok", "num_experts_per_tok")
    moe(one, fields, fields.count("dspark_n_routed_experts", "n_routed_experts"), chosen)
    one.norm(one.layers, each=2)
    predict_by_draft(decoder, one, fields.count("dspark_markov_rank"))
