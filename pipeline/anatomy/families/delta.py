"""Linear attention with a state per head, beside layers of latent or full attention: Kimi-Linear, Ring-2.5, OLMo-Hybrid
and MiniMax-01. Source: transformers 5.23.0, models/kimi_linear, bailing_hybrid, olmo_hybrid, minimax.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.experts import Sparse, after_dense, store_prediction_layers
from pipeline.anatomy.parts.frame import Plain
from pipeline.anatomy.parts.latent import Latent, latent_attention
from pipeline.anatomy.parts.mixers import gated_delta, kimi_delta, recurrent
from pipeline.anatomy.reading import Heads, dropout, layer_types
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig

LINEAR, FULL = "linear_attention", "full_attention"
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
CHOSEN = ("num_experts_per_token", "num_experts_per_tok")
SHARED = ("num_shared_experts", "n_shared_experts", 1)
KIMI = Sparse(
    Plain(), experts=EXPERTS, chosen=CHOSEN, width=("moe_intermediate_size",),
    layers=after_dense("first_k_dense_replace", 1), shared_count=SHARED, correction="buffer",
)  # fmt: skip


def attend_gated(decoder: Decoder, fields: Fields, windows: Sequence[int | None]) -> None:
    """Ling: latent attention with a gate for each head; the layers that predict have it too."""
    layers = len(windows)
    latent_attention(decoder, fields, layers, Latent.read(fields, decoder.hidden))
    decoder.linear("attention", "attention_gate", layers, fields.count("num_attention_heads"), decoder.hidden)


BAILING = Sparse(
    Plain(), experts=EXPERTS, chosen=CHOSEN, width=("moe_intermediate_size",),
    layers=after_dense("first_k_dense_replace"), shared_count=SHARED, correction="buffer", attend=attend_gated,
    predicts=True,
)  # fmt: skip


def kimi_attending(fields: Fields, layers: int) -> int:
    """How many layers attend: from `layer_types`, from the checkpoint's lists of layers, or every fourth."""
    types = layer_types(fields, layers, known=(LINEAR, FULL))
    if types is not None:
        return types.count(FULL)
    linear = fields.inner("linear_attn_config")
    full, delta = (linear.items("full_attn_layers"), linear.items("kda_layers")) if linear else (None, None)
    if full is None or delta is None:
        return sum(i > 0 and i % 4 == 0 for i in range(layers))
    if not all(isinstance(i, int) for i in full + delta) or sorted(full + delta) != list(range(1, layers + 1)):
        raise ContradictoryConfig(f"{fields.where}.linear_attn_config does not name each of {layers} layers once")
    return len(full)


@family("kimi_linear")
def kimi_linear(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    attending = kimi_attending(fields, layers)
    latent_attention(decoder, fields, attending, Latent.read(fields, decoder.hidden))
    linear = fields.inner("linear_attn_config") or fields
    kimi_delta(
        decoder,
        layers - attending,
        heads=linear.size("num_heads", "linear_num_heads"),
        dim=fields.size("linear_head_dim") if linear is fields else linear.count("head_dim", default=128),
        kernel=linear.size("short_conv_kernel_size", "linear_conv_kernel_dim"),
    )
    return with_experts(decoder, fields, KIMI)


@family("bailing_hybrid")
def bailing_hybrid(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    types = layer_types(fields, layers, known=(LINEAR, FULL))
    attending = types.count(FULL) if types is not None else layers // fields.size("layer_group_size")
    attend_gated(decoder, fields, [None] * attending)
    heads = fields.count("linear_num_heads", "num_attention_heads")
    dim = fields.size("linear_head_dim", "head_dim")
    kernel = fields.size("linear_conv_kernel_dim", "short_conv_kernel_size")
    kimi_delta(decoder, layers - attending, heads=heads, dim=dim, kernel=kernel, full_rank=("decay", "gate"))
    store_prediction_layers(decoder, fields, BAILING)
    return with_experts(decoder, fields, BAILING)


def with_experts(decoder: Decoder, fields: Fields, sparse: Sparse) -> Anatomy:
    routed = sum(sparse.layers(fields, decoder.layers))
    if routed < decoder.layers:
        decoder.mlp(decoder.layers - routed, fields.count("intermediate_size"))
    sparse.sparse_layers(decoder, fields, routed)
    return ends(decoder, fields, tied=False)


def ends(decoder: Decoder, fields: Fields, *, tied: bool | None = None) -> Anatomy:
    """`tied=False`: the class never ties its head, whatever the config says."""
    decoder.norm(decoder.layers, each=2)
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings") if tied is None else tied)
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))


@family("olmo_hybrid")
def olmo_hybrid(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    types = layer_types(fields, layers, known=(LINEAR, FULL))
    attending = types.count(FULL) if types is not None else max(1, layers // 4)
    heads = Heads.read(fields, decoder.hidden)
    bias = fields.flag("attention_bias")
    decoder.attention(attending, heads, bias=bias, qk_norm="full")
    key_heads = fields.count("linear_num_key_heads", default=heads.count)
    key_dim = fields.count("linear_key_head_dim", default=int(0.75 * decoder.hidden / key_heads))
    gated_delta(
        decoder,
        layers - attending,
        key_heads=key_heads,
        key_dim=key_dim,
        value_heads=fields.count("linear_num_value_heads", default=heads.count),
        value_dim=fields.count("linear_value_head_dim", default=2 * key_dim),
        kernel=fields.size("linear_conv_kernel_dim"),
        fused=False,
    )
    decoder.mlp(layers, fields.count("intermediate_size"))
    return ends(decoder, fields)


@family("minimax")
def minimax(fields: Fields) -> Anatomy:
    """Lightning attention's state, heads × dim × dim, is kept in the model's dtype, like a convolution's inputs."""
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    types = layer_types(fields, layers, known=(LINEAR, FULL))
    attending = types.count(FULL) if types is not None else layers - layers // 2
    heads = Heads.read(fields, hidden)
    decoder.attention(attending, heads)
    inner, others = heads.count * heads.dim, layers - attending
    decoder.linear("recurrent", "lightning_qkv", others, 3 * inner, hidden)
    decoder.linear("recurrent", "lightning_gate", others, inner, hidden)
    decoder.linear("recurrent", "lightning_out", others, hidden, inner)
    decoder.norm(others, inner)
    recurrent(
        decoder,
        others,
        conv=inner * heads.dim,
        recurrence="lightning",
        heads=heads.count,
        key=heads.dim,
        value=heads.dim,
        chunk=fields.size("block_size"),
    )
    decoder.moe(
        layers,
        fields.size("num_local_experts", "num_experts"),
        fields.size("num_experts_per_tok"),
        fields.count("intermediate_size"),
    )
    return ends(decoder, fields)
