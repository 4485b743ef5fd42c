"""Qwen3-Next and Qwen3.5: three gated delta nets for each layer of gated attention, dense or with experts.

Source: transformers 5.23.0, models/qwen3_next, qwen3_5, qwen3_5_moe.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.mixers import gated_delta
from pipeline.anatomy.parts.windows import every
from pipeline.anatomy.reading import Heads, layer_types
from pipeline.anatomy.rows import Anatomy

LINEAR, FULL = "linear_attention", "full_attention"


def mixers(fields: Fields, layers: int) -> list[str]:
    """What kind each layer is: one that attends, or a recurrent one."""
    types = layer_types(fields, layers, known=(LINEAR, FULL))
    types = types or every(layers, fields.count("full_attention_interval", default=4))
    return ["full" if kind == FULL else "recurrent" for kind in types]


def mix(
    decoder: Decoder,
    fields: Fields,
    attending: int,
    recurring: int,
    heads: Heads,
    *,
    fused: bool,
    cached: int | None = None,
) -> None:
    bias = fields.flag("attention_bias")
    gate = fields.flag("attn_output_gate", default=True)
    decoder.attention(attending, heads, bias=bias, gate=gate, qk_norm="head", cached=cached)
    gated_delta(
        decoder,
        recurring,
        key_heads=fields.size("linear_num_key_heads"),
        key_dim=fields.size("linear_key_head_dim"),
        value_heads=fields.size("linear_num_value_heads"),
        value_dim=fields.size("linear_value_head_dim"),
        kernel=fields.size("linear_conv_kernel_dim"),
        fused=fused,
    )


def mix_in_turn(decoder: Decoder, fields: Fields, heads: Heads, *, fused: bool) -> None:
    kinds = mixers(fields, decoder.layers)
    mix(decoder, fields, kinds.count("full"), kinds.count("recurrent"), heads, fused=fused)
    decoder.order(kinds)


def sparse(decoder: Decoder, fields: Fields, layers: int, *, experts: int, chosen: int) -> None:
    if layers == 0:
        return
    decoder.moe(
        layers,
        fields.count("num_experts", default=experts),
        fields.count("num_experts_per_tok", default=chosen),
        fields.size("moe_intermediate_size"),
        shared_width=fields.size("shared_expert_intermediate_size"),
        shared_gate=True,
    )


def prediction_layer(
    decoder: Decoder, fields: Fields, heads: Heads, *, experts: int | None = None, chosen: int | None = None
) -> None:
    """One layer of attention after a projection of two streams [h, 2h], and three norms more; the ends are shared."""
    if fields.count("mtp_num_hidden_layers", default=1, least=0) != 1:
        return
    one = decoder.ahead()
    mix(one, fields, 1, 0, heads, fused=False)
    if experts is not None:
        sparse(one, fields, 1, experts=experts, chosen=chosen)
    else:
        one.mlp(1, fields.count("intermediate_size"))
    one.norm(1, each=5)
    decoder.predict(one, listed=False)


@family("qwen3_next")
def qwen3_next(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    heads = Heads.read(fields, decoder.hidden)
    mix_in_turn(decoder, fields, heads, fused=True)
    step = fields.size("decoder_sparse_step")
    only = {i for i in fields.items("mlp_only_layers") or [] if isinstance(i, int)}
    routed = sum((i + 1) % step == 0 and i not in only for i in range(layers))
    sparse(decoder, fields, routed, experts=512, chosen=10)
    decoder.dense_mlp(layers - routed, "intermediate_size")
    prediction_layer(decoder, fields, heads, experts=512, chosen=10)
    return decoder.finish()


@family("qwen3_5_text")
def qwen3_5_text(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    decoder.embed()
    heads = Heads.read(fields, decoder.hidden)
    mix_in_turn(decoder, fields, heads, fused=False)
    decoder.mlp(decoder.layers, fields.count("intermediate_size"))
    prediction_layer(decoder, fields, heads)
    return decoder.finish()


@family("qwen3_5_moe_text")
def qwen3_5_moe_text(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    decoder.embed()
    heads = Heads.read(fields, decoder.hidden)
    mix_in_turn(decoder, fields, heads, fused=False)
    sparse(decoder, fields, decoder.layers, experts=256, chosen=8)
    prediction_layer(decoder, fields, heads, experts=256, chosen=8)
    return decoder.finish()
