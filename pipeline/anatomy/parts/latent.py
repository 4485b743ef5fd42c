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
from pipeline.anatomy.parts.builders import Decoder


@dataclass(frozen=True)
class Latent:
    """Class defaults of the sizes, and which parts the family has."""

    q_rank: int | None = 1536
    kv_rank: int = 512
    nope: int = 128
    rope: int = 64
    value: int | None = 128  # None: hidden size by heads
    bias: str = "attention_bias"
    indexer_heads: int = 0  # default of index_n_heads; 0: no indexer
    indexer_dim: int = 128
    output_gate: bool = False

    def read(self, fields: Fields, hidden: int) -> Latent:
        heads = fields.count("num_attention_heads")
        value = self.value or fields.divide(hidden, heads, "hidden size")
        q_rank = fields.count("q_lora_rank", default=None if "q_lora_rank" in fields.config else self.q_rank)
        return Latent(
            q_rank=q_rank,
            kv_rank=fields.count("kv_lora_rank", default=self.kv_rank),
            nope=fields.count("qk_nope_head_dim", default=self.nope),
            rope=fields.count("qk_rope_head_dim", default=self.rope, least=0),
            value=fields.count("v_head_dim", default=value),
            bias=self.bias,
            indexer_heads=fields.count("index_n_heads", default=self.indexer_heads) if self.indexer_heads else 0,
            indexer_dim=fields.count("index_head_dim", default=self.indexer_dim),
            output_gate=self.output_gate,
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
    bias = fields.flag(latent.bias)
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
