"""Multi-head latent attention: keys and values of all heads unpacked from one short latent per token.

Shapes [out, in], with h the hidden size, a the heads, d = nope + rope the dimension of a query:
queries h → q_rank → a·d (or h → a·d), latent h → kv_rank + rope, unpacked kv_rank → a·(nope + value), output a·value → h.
What a layer caches per token is the latent and the shared rotary key, kv_rank + rope elements (transformers 5.23.0,
vLLM), and, where an indexer chooses what to attend to, the indexer's key of index_head_dim elements. The published
architecture of DeepSeek-V2, V3 and V3.2 is the source of the parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder


@dataclass(frozen=True)
class Latent:
    """The sizes of one layer's latent attention."""

    q_rank: int | None  # None: queries come from the hidden state at once
    kv_rank: int
    nope: int
    rope: int
    value: int
    indexer_heads: int = 0  # 0: no indexer
    indexer_dim: int = 0

    @classmethod
    def read(cls, fields: Fields, hidden: int, *, indexed: bool = False) -> Latent:
        by_class = None if "q_lora_rank" in fields.config else fields.by_class("q_lora_rank")
        return cls(
            q_rank=fields.count("q_lora_rank", default=by_class),
            kv_rank=fields.size("kv_lora_rank"),
            nope=fields.size("qk_nope_head_dim"),
            rope=fields.size("qk_rope_head_dim", least=0),
            value=fields.size("v_head_dim")
            if fields.raw("v_head_dim") or fields.by_class("v_head_dim")
            else fields.divide(hidden, fields.count("num_attention_heads"), "hidden size"),
            indexer_heads=fields.size("index_n_heads") if indexed else 0,
            indexer_dim=fields.size("index_head_dim") if indexed else 0,
        )


def latent_attention(
    decoder: Decoder,
    fields: Fields,
    layers: int,
    latent: Latent,
    *,
    with_indexer: bool = True,
    pools_keys: bool = False,
) -> None:
    """`layers` layers of it; `latent` has been read. `with_indexer=False`: they use the choice of another layer.

    `pools_keys`: the indexer scores pools of keys, which it forms anew at every step: it keeps key, gate and a flag of every token.
    """
    hidden, heads = decoder.hidden, fields.count("num_attention_heads")
    bias = fields.flag("attention_bias")
    query = heads * (latent.nope + latent.rope)
    if latent.q_rank is None:
        decoder.linear("attention", "attention_q", layers, query, hidden)
    else:
        decoder.linear("attention", "mla_q_a", layers, latent.q_rank, hidden, bias=bias)
        decoder.norm(layers, latent.q_rank)
        decoder.linear("attention", "mla_q_b", layers, query, latent.q_rank)
    decoder.linear("attention", "mla_kv_a", layers, latent.kv_rank + latent.rope, hidden, bias=bias)
    decoder.norm(layers, latent.kv_rank)
    decoder.linear("attention", "mla_kv_b", layers, heads * (latent.nope + latent.value), latent.kv_rank)
    decoder.linear("attention", "attention_o", layers, hidden, heads * latent.value, bias=bias)
    cached = latent.kv_rank + latent.rope
    if latent.indexer_heads and with_indexer:
        _indexer(decoder, layers, latent)
        cached += 2 * latent.indexer_dim + 1 if pools_keys else latent.indexer_dim
    decoder.mixer(
        kind="mla",
        mechanism="mla",
        layer_count=layers,
        head_count=heads,
        kv_head_count=1,
        head_dim=latent.nope + latent.rope,
        value_head_dim=latent.value,
        elements_per_token=cached,
    )


def _indexer(decoder: Decoder, layers: int, latent: Latent) -> None:
    """Scores every past token with small heads and one key of its own (DeepSeek sparse attention)."""
    decoder.linear(
        "attention", "indexer_q", layers, latent.indexer_heads * latent.indexer_dim, latent.q_rank or decoder.hidden
    )
    decoder.linear("attention", "indexer_k", layers, latent.indexer_dim, decoder.hidden)
    decoder.norm(layers, latent.indexer_dim, bias=True)
    decoder.linear("attention", "indexer_weights", layers, latent.indexer_heads, decoder.hidden)
