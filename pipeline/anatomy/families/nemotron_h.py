"""Nemotron-H: every layer is one block, a Mamba-2 mixer, attention, a feed-forward or experts, after one norm.

Experts may work on a narrower latent of the hidden state. Source: transformers 5.23.0, models/nemotron_h; the prediction
layers are held to the published totals of Nemotron-3 Super and Ultra.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.parts.mixers import mamba2
from pipeline.anatomy.reading import Heads, dropout
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.base.bounds import MOST_REPEATS

KINDS = {
    "M": "mamba", "mamba": "mamba", "linear_attention": "mamba", "*": "attention", "attention": "attention",
    "full_attention": "attention", "E": "moe", "moe": "moe", "-": "mlp", "mlp": "mlp",
}  # fmt: skip


def kinds_of(fields: Fields, listed: str, pattern: str) -> list[str] | None:
    """One kind for each layer, from a list or from a pattern like M-M*; None where the config has neither."""
    kinds = fields.items(listed, "layer_types" if listed == "layers_block_type" else listed) or fields.text(pattern)
    if not kinds:
        return None
    if len(kinds) > MOST_REPEATS:
        raise ContradictoryConfig(f"{fields.where} has {len(kinds)} layers, more than any model")
    known = [KINDS.get(kind) if isinstance(kind, str) else None for kind in kinds]
    if None in known:
        raise UnknownAnatomy(f"{fields.where} has a layer of kind {str(kinds[known.index(None)])[:40]!r}")
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
        decoder.attention(attending, Heads.read(fields, hidden, kv_default=8, dim_default=128))
    if recurring := kinds.count("mamba"):
        mamba2(
            decoder,
            recurring,
            heads=fields.count("mamba_num_heads", default=128),
            dim=fields.count("mamba_head_dim", default=64),
            state=fields.count("ssm_state_size", default=128),
            groups=fields.count("mamba_n_groups", "n_groups", default=8),
            kernel=fields.count("mamba_d_conv", "conv_kernel", default=4),
            conv_bias=fields.flag("mamba_conv_bias", "use_conv_bias", default=True),
            bias=fields.flag("use_bias"),
            chunk=fields.count("chunk_size", "mamba_chunk_size", default=128),
        )
    bias = fields.flag("mlp_bias")
    if dense := kinds.count("mlp"):
        decoder.mlp(dense, fields.count("intermediate_size"), gated=False, bias=bias)
    if routed := kinds.count("moe"):
        latent = fields.count("moe_latent_size", default=None)
        decoder.moe(
            routed,
            fields.count("n_routed_experts", default=8),
            fields.count("num_experts_per_tok", default=2),
            fields.count("moe_intermediate_size", default=7688),
            shared_width=fields.count("moe_shared_expert_intermediate_size", default=7688, least=0),
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
    count = fields.repeats("num_nextn_predict_layers", default=0, least=0)
    if count == 0:
        return
    kinds = kinds_of(fields, "mtp_layers_block_type", "mtp_hybrid_override_pattern") or ["attention", "moe"]
    one = Decoder(fields, layers=len(kinds))
    blocks(one, fields, kinds)
    one.norm(1, each=3)
    elements = sum(tensor.element_count for tensor in one.tensors) + 2 * decoder.hidden**2
    decoder.store("multi-token prediction layers", count * elements)
    decoder.store("router bias of prediction layers", count * one.stored_extra.get("router bias buffers", 0))
