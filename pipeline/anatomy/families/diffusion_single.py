"""Diffusion transformers of one stream that attend to text across: PixArt, Sana, LTX-Video, Lumina 2, PRX."""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.families.diffusion import denoiser, embed, finish, note, width_of
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy, FeedForwardLayer, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, layer_count, ratio


def conditioned(part: Part, fields: Fields, hidden: int, layers: int, caption: int) -> None:
    """Time once for all blocks, tables that each block adds to it, two matrices for the caption."""
    embed(part, 256, hidden)
    part.linear("modulation", hidden, 6 * hidden)
    embed(part, caption, hidden)
    part.parameter(6 * hidden, "modulation", layers=layers)
    part.parameter(2 * hidden, "modulation")


@family("PixArtTransformer2DModel", "Transformer2DModel")
def read_pixart(fields: Fields) -> Anatomy:
    if (
        fields.text("norm_type", default="ada_norm_single") != "ada_norm_single"
        or fields.raw("caption_channels") is None
    ):
        raise UnknownAnatomy(f"{fields.where}: only transformers with captions and one shared modulation are described")
    if fields.text("activation_fn", default="gelu-approximate") != "gelu-approximate":
        raise UnknownAnatomy(f"{fields.where}: this activation_fn is not described yet")
    hidden, heads, _ = width_of(fields)
    layers, patch, part = layer_count(fields, "num_layers"), fields.count("patch_size", default=2), denoiser()
    part.conv(hidden, fields.count("in_channels"), patch, patch)
    conditioned(part, fields, hidden, layers, fields.count("caption_channels"))
    bias, across = fields.flag("attention_bias", default=True), fields.count("cross_attention_dim", default=hidden)
    part.mixer(layers, hidden, heads, bias=bias, output_bias=True)
    part.mixer(layers, hidden, heads, bias=bias, output_bias=True, kv_inputs=across)
    part.mlp(layers, hidden, 4 * hidden)
    part.norm(hidden if fields.flag("norm_elementwise_affine") else 0, layers=layers, count=2)
    if fields.raw("use_additional_conditions") is True:
        third = hidden // 3
        for _ in range(2):
            embed(part, 256, third)
    part.linear("patch_output", hidden, fields.count("out_channels", default=8) * patch * patch)
    return finish(fields, part, hidden, layers)


@family("SanaTransformer2DModel")
def read_sana(fields: Fields) -> Anatomy:
    """Linear attention, and a feed-forward of convolutions with a gate."""
    hidden, heads, head_dim = width_of(fields)
    layers, patch, inputs = (
        layer_count(fields, "num_layers"),
        fields.count("patch_size", default=1),
        fields.count("in_channels"),
    )
    part, width = denoiser(), int(hidden * ratio(fields, "mlp_ratio", 2.5))
    part.conv(hidden, inputs, patch, patch)
    conditioned(part, fields, hidden, layers, fields.count("caption_channels"))
    part.norm(hidden, bias=False)
    crossing = fields.count("num_cross_attention_heads", default=heads)
    inner = crossing * fields.count("cross_attention_head_dim", default=head_dim)
    part.mixer(layers, hidden, heads, bias=fields.flag("attention_bias"), output_bias=True)
    across = fields.count("cross_attention_dim", default=hidden)
    part.mixer(layers, hidden, crossing, head_dim=inner // crossing, kv_inputs=across)
    if fields.text("qk_norm") is not None:
        part.norm(hidden, layers=layers, count=4, bias=False)
    if fields.flag("guidance_embeds"):
        embed(part, 256, hidden)
    part.norm(hidden if fields.flag("norm_elementwise_affine") else 0, layers=layers)
    part.conv(2 * width, hidden, 1, 1, layers=layers)
    part.conv(2 * width, 1, 3, 3, layers=layers)
    part.conv(hidden, width, 1, 1, bias=False, layers=layers)
    if layers:
        part.feed_forward.append(FeedForwardLayer("denoiser", layers, "denoiser", width))
    part.linear("patch_output", hidden, fields.count("out_channels", default=inputs) * patch * patch)
    return finish(fields, part, hidden, layers)


@family("LTXVideoTransformer3DModel")
def read_ltx(fields: Fields) -> Anatomy:
    hidden, heads, _ = width_of(fields)
    layers, inputs, part = layer_count(fields, "num_layers"), fields.count("in_channels"), denoiser()
    bias, out_bias = fields.flag("attention_bias", default=True), fields.flag("attention_out_bias", default=True)
    part.linear("patch_embedding", inputs, hidden)
    conditioned(part, fields, hidden, layers, fields.count("caption_channels", default=4096))
    for inner in (hidden, fields.count("cross_attention_dim", default=hidden)):
        part.mixer(layers, hidden, heads, bias=bias, output_bias=out_bias, kv_inputs=inner)
        part.norm(hidden, layers=layers, count=2, bias=False)
    part.mlp(layers, hidden, 4 * hidden)
    affine = hidden if fields.flag("norm_elementwise_affine") else 0
    part.norm(affine, layers=layers, count=2, bias=False)
    part.linear("patch_output", hidden, fields.count("out_channels", default=inputs))
    return finish(fields, part, hidden, layers)


@family("Lumina2Transformer2DModel")
def read_lumina2(fields: Fields) -> Anatomy:
    """Grouped attention and four norms a layer; refiners for noise (modulated) and for text (not)."""
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    layers, refiners = layer_count(fields, "num_layers"), layer_count(fields, "num_refiner_layers", default=2)
    patch, inputs, part = fields.count("patch_size", default=2), fields.count("in_channels", default=16), denoiser()
    kv_heads, caption, multiple = (
        fields.count("num_kv_heads", default=8),
        fields.count("cap_feat_dim", default=1024),
        fields.count("multiple_of", default=256),
    )
    width = 4 * hidden
    factor = ratio(fields, "ffn_dim_multiplier", 0)
    width = int(factor * width) if factor else width
    width = (width + multiple - 1) // multiple * multiple
    time = min(hidden, 1024)
    head_dim = fields.divide(hidden, heads, "hidden_size")
    part.linear("patch_embedding", inputs * patch * patch, hidden)
    part.linear("time_embedding", 256, time)
    part.linear("time_embedding", time, time)
    part.norm(caption, bias=False)
    part.linear("context_embedding", caption, hidden)
    every = layers + 2 * refiners
    part.mixer(every, hidden, heads, kv_heads=kv_heads, bias=False, qk_norm=True)
    part.norm(head_dim, layers=every, count=2, bias=False)
    part.mlp(every, hidden, width, gated=True, bias=False)
    part.norm(hidden, layers=every, count=4, bias=False)
    part.linear("modulation", time, 4 * hidden, layers=layers + refiners)
    part.linear("modulation", time, hidden)
    part.linear("patch_output", hidden, fields.count("out_channels", default=inputs) * patch * patch)
    return finish(fields, part, hidden, every)


@family("PRXTransformer2DModel")
def read_prx(fields: Fields) -> Anatomy:
    """Image tokens attend to themselves and to text whose keys and values each block projects."""
    hidden, heads, layers = fields.count("hidden_size"), fields.count("num_heads"), layer_count(fields, "depth")
    pixels = fields.count("in_channels", default=16) * fields.count("patch_size", default=2) ** 2
    width, bottleneck, part = (
        int(hidden * ratio(fields, "mlp_ratio", 3.5)),
        fields.count("bottleneck_size", default=None),
        denoiser(),
    )
    head_dim = fields.divide(hidden, heads, "hidden_size")
    part.linear("patch_embedding", pixels, bottleneck or hidden)
    part.linear("patch_embedding", bottleneck or 0, hidden)
    for _ in range(2 if fields.flag("resolution_embeds") else 1):
        embed(part, 256, hidden)
    part.linear("context_embedding", fields.count("context_in_dim", default=2304), hidden)
    part.linear("attention_qkv", hidden, 3 * hidden, bias=False, layers=layers)
    part.linear("attention_kv", hidden, 2 * hidden, bias=False, layers=layers)
    part.linear("attention_o", hidden, hidden, bias=False, layers=layers)
    part.norm(head_dim, layers=layers, count=3, bias=False)
    note(part, layers, hidden, heads)
    part.mlp(layers, hidden, width, gated=True, bias=False)
    part.linear("modulation", hidden, 6 * hidden, layers=layers)
    part.linear("modulation", hidden, 2 * hidden)
    part.linear("patch_output", hidden, pixels)
    return finish(fields, part, hidden, layers)
