"""Mamba and its mixtures with attention. Source: transformers 5.23.0, one folder for each model_type."""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.mixers import mamba, mamba2
from pipeline.anatomy.reading import Heads, layer_types
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig

MAMBA = ("mamba", "linear_attention")
ATTENTION = ("attention", "full_attention")


def auto(fields: Fields, *names: str, otherwise: int) -> int:
    """A size that may be missing or the word `auto`, which both mean `otherwise`."""
    value = fields.raw(*names)
    return otherwise if value is None or value == "auto" else fields.count(*names)


def rank(fields: Fields, name: str, hidden: int) -> int:
    return auto(fields, name, otherwise=-(-hidden // 16))


def heads_of_mamba2(fields: Fields, hidden: int, *, heads: str = "mamba_n_heads", dim: str = "mamba_d_head") -> tuple:
    count = fields.count(heads, default=128)
    inner = fields.size("mamba_expand") * hidden
    given = fields.raw(dim)
    if given is None or given == "auto":
        return count, fields.divide(inner, count, "inner size")
    return count, fields.count(dim)


@family("mamba", "falcon_mamba")
def mamba_only(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    decoder.embed()
    mamba(
        decoder,
        decoder.layers,
        # a width that the config states is the class's, whatever it says of `expand`
        inner=fields.count("intermediate_size", default=fields.size("expand") * decoder.hidden),
        state=fields.size("state_size"),
        kernel=fields.size("conv_kernel"),
        rank=rank(fields, "time_step_rank", decoder.hidden),
        conv_bias=fields.flag("use_conv_bias"),
        bias=fields.flag("use_bias"),
    )
    decoder.norm(decoder.layers)
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings"))
    return decoder.build()


@family("mamba2")
def mamba2_only(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    decoder.embed()
    heads, dim = fields.size("num_heads"), fields.size("head_dim")
    if heads * dim != fields.size("expand") * decoder.hidden:
        raise ContradictoryConfig(f"{fields.where}: {heads} heads of {dim} are not the expanded hidden size")
    mamba2(
        decoder,
        decoder.layers,
        heads=heads,
        dim=dim,
        state=fields.size("state_size"),
        groups=fields.size("n_groups"),
        kernel=fields.size("conv_kernel"),
        conv_bias=fields.flag("use_conv_bias"),
        bias=fields.flag("use_bias"),
        chunk=fields.size("chunk_size"),
    )
    decoder.norm(decoder.layers)
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings"))
    return decoder.build()


@family("jamba")
def jamba(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    period, offset = fields.size("attn_layer_period"), fields.size("attn_layer_offset", least=0)
    attending = sum(i % period == offset for i in range(layers))
    decoder.attention(attending, Heads.read(fields, hidden))
    mamba(
        decoder,
        layers - attending,
        inner=fields.size("mamba_expand") * hidden,
        state=fields.size("mamba_d_state"),
        kernel=fields.size("mamba_d_conv"),
        rank=rank(fields, "mamba_dt_rank", hidden),
        conv_bias=fields.flag("mamba_conv_bias"),
        bias=fields.flag("mamba_proj_bias"),
        has_norms=True,
    )
    experts, width = fields.size("num_experts"), fields.count("intermediate_size")
    period = fields.size("expert_layer_period")
    offset = fields.size("expert_layer_offset", least=0)
    routed = sum(i % period == offset for i in range(layers)) if experts > 1 else 0
    if routed:
        decoder.moe(routed, experts, fields.size("num_experts_per_tok"), width)
    decoder.mlp(layers - routed, width)
    return decoder.finish()


def mix_mamba2(decoder: Decoder, fields: Fields, layers: int, *, kind: str = "recurrent") -> None:
    heads, dim = heads_of_mamba2(fields, decoder.hidden)
    mamba2(
        decoder,
        layers,
        heads=heads,
        dim=dim,
        state=fields.size("mamba_d_state"),
        groups=fields.size("mamba_n_groups"),
        kernel=fields.size("mamba_d_conv"),
        conv_bias=fields.flag("mamba_conv_bias"),
        bias=fields.flag("mamba_proj_bias"),
        chunk=fields.size("mamba_chunk_size"),
        kind=kind,
    )


@family("bamba")
def bamba(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    types = layer_types(fields, layers, "layers_block_type", "layer_types", known=MAMBA + ATTENTION)
    if types is not None:
        attends = [kind in ATTENTION for kind in types]
    else:
        listed = fields.items("attn_layer_indices") or []
        attends = [i in listed for i in range(layers)]
    attending = sum(attends)
    bias = fields.flag("attention_bias")
    decoder.attention(attending, Heads.read(fields, decoder.hidden), bias=bias)
    mix_mamba2(decoder, fields, layers - attending)
    decoder.order(["full" if attending else "recurrent" for attending in attends])
    decoder.mlp(layers, fields.count("intermediate_size"), bias=fields.flag("mlp_bias"))
    return decoder.finish()


@family("falcon_h1")
def falcon_h1(fields: Fields) -> Anatomy:
    """Attention and Mamba-2 side by side in every layer: both rows count all layers."""
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    bias = fields.flag("attention_bias")
    decoder.attention(layers, Heads.read(fields, decoder.hidden), bias=bias)
    heads = fields.size("mamba_n_heads")
    if "mamba_d_ssm" in fields.config and fields.raw("mamba_d_ssm") is None:
        inner = fields.count("mamba_expand", default=2) * decoder.hidden
    else:
        inner = fields.size("mamba_d_ssm")
    mamba2(
        decoder,
        layers,
        heads=heads,
        dim=fields.divide(inner, heads, "inner size"),
        state=fields.size("mamba_d_state"),
        groups=fields.size("mamba_n_groups"),
        kernel=fields.size("mamba_d_conv"),
        conv_bias=fields.flag("mamba_conv_bias"),
        bias=fields.flag("mamba_proj_bias"),
        out_bias=fields.flag("projectors_bias"),
        has_norm=fields.flag("mamba_rms_norm"),
        chunk=fields.size("mamba_chunk_size"),
    )
    decoder.mlp(layers, fields.count("intermediate_size"), bias=fields.flag("mlp_bias"))
    return decoder.finish()


@family("granitemoehybrid")
def granite_hybrid(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    types = layer_types(fields, layers, "layer_types", "layers_block_type", known=MAMBA + ATTENTION)
    attending = sum(kind in ATTENTION for kind in types) if types is not None else 0
    bias = fields.flag("attention_bias")
    decoder.attention(attending, Heads.read(fields, decoder.hidden), bias=bias)
    if attending < layers:
        mix_mamba2(decoder, fields, layers - attending)
    shared = fields.size("shared_intermediate_size")
    experts = fields.size("num_local_experts", "num_experts", least=0)
    if experts:
        chosen, width = fields.size("num_experts_per_tok"), fields.count("intermediate_size")
        decoder.moe(layers, experts, chosen, width, shared_width=shared, shared_fused=True)
    else:
        decoder.mlp(layers, shared, fused=True)
    return decoder.finish()
