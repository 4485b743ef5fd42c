"""Nemotron-H: every layer is one block, a Mamba-2 mixer, attention, a feed-forward or experts, after one norm.

Experts may work on a narrower latent of the hidden state. Source: transformers 5.23.0, models/nemotron_h; the prediction
layers are held to the published totals of Nemotron-3 Super and Ultra.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.mixers import mamba2
from pipeline.anatomy.reading import Heads, dropout
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy, shown
from pipeline.base.bounds import MOST_REPEATS

KINDS = {
    "M": "mamba", "mamba": "mamba", "linear_attention": "mamba", "*": "attention", "attention": "attention",
    "full_attention": "attention", "E": "moe", "moe": "moe", "-": "mlp", "mlp": "mlp",
}  # fmt: skip

MIXERS = {"attention": "full", "mamba": "recurrent"}  # the rows of AttentionLayer that they are


def kinds_of(fields: Fields, listed: str, pattern: str) -> list[str] | None:
    """One kind for each layer, from a list or from a pattern like M-M*; None where the config has neither."""
    kinds = fields.items(listed, "layer_types" if listed == "layers_block_type" else listed) or fields.text(pattern)
    if not kinds:
        return None
    if len(kinds) > MOST_REPEATS:
        raise ContradictoryConfig(f"{fields.where} has {len(kinds)} layers, more than any model")
    known = [KINDS.get(kind) if isinstance(kind, str) else None for kind in kinds]
    if None in known:
        raise UnknownAnatomy(f"{fields.where} has a layer of kind {shown(kinds[known.index(None)])!r}")
    return known


@family("nemotron_h")
def nemotron_h(fields: Fields) -> Anatomy:
    kinds = kinds_of(fields, "layers_block_type", "hybrid_override_pattern")
    if kinds is None:
        raise UnknownAnatomy(f"{fields.where} has no layers_block_type or hybrid_override_pattern")
    decoder = Decoder(fields, layers=len(kinds))
    decoder.embed()
    blocks(decoder, fields, kinds)
    decoder.norm(1)
    decoder.head(tied=False)  # the class never ties its head, whatever the config says
    store_prediction_layers(decoder, fields)
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))


def blocks(decoder: Decoder, fields: Fields, kinds: Sequence[str]) -> None:
    hidden = decoder.hidden
    decoder.norm(len(kinds))
    if attending := kinds.count("attention"):
        decoder.attention(attending, Heads.read(fields, hidden))
    if recurring := kinds.count("mamba"):
        mamba2(
            decoder,
            recurring,
            heads=fields.size("mamba_num_heads"),
            dim=fields.size("mamba_head_dim"),
            state=fields.size("ssm_state_size"),
            groups=fields.size("mamba_n_groups", "n_groups"),
            kernel=fields.size("mamba_d_conv", "conv_kernel"),
            conv_bias=fields.flag("mamba_conv_bias", "use_conv_bias"),
            bias=fields.flag("use_bias"),
            chunk=fields.size("chunk_size", "mamba_chunk_size"),
        )
    decoder.order([MIXERS.get(kind) for kind in kinds])
    bias = fields.flag("mlp_bias")
    if dense := kinds.count("mlp"):
        decoder.mlp(dense, fields.count("intermediate_size"), gated=False, bias=bias)
    if routed := kinds.count("moe"):
        latent = fields.count("moe_latent_size", default=None)
        decoder.moe(
            routed,
            fields.size("n_routed_experts"),
            fields.size("num_experts_per_tok"),
            fields.size("moe_intermediate_size"),
            shared_width=fields.size("moe_shared_expert_intermediate_size", least=0),
            gated=False,
            expert_inner=latent,
            correction=True,
            shared_bias=bias,
        )
        if latent is not None:
            decoder.linear("feed-forward", "latent_down", routed, latent, hidden, bias=bias)
            decoder.linear("feed-forward", "latent_up", routed, hidden, latent, bias=bias)


def store_prediction_layers(decoder: Decoder, fields: Fields) -> None:
    """Each is a few blocks, a projection of two streams [h, 2h] and three norms."""
    count = fields.times("num_nextn_predict_layers", least=0)
    if count == 0:
        return
    kinds = kinds_of(fields, "mtp_layers_block_type", "mtp_hybrid_override_pattern") or ["attention", "moe"]
    one = decoder.ahead(len(kinds))
    blocks(one, fields, kinds)
    one.norm(1, each=3)
    bias = one.stored_extra.pop("router bias buffers", 0)
    decoder.predict(one, count, listed=False)
    decoder.store("router bias of prediction layers", count * bias)
