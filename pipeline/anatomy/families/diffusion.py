"""Diffusion transformers: the denoiser of an image or video pipeline, read from its own config (class names as `model_type`).

Only the denoiser is counted, as the totals of pipelines do; text encoders and the autoencoder are models of their own.
Blocks are of two kinds: joint (image and text each with their weights, one attention) and single (one stream).
"""

from __future__ import annotations

from typing import Any

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import architecture_of, ratio, sizes
from pipeline.anatomy.rows import Anatomy, AttentionLayer, Tensor
from pipeline.anatomy.towers.part import Part, divided


def denoiser() -> Part:
    return Part("denoiser", "denoiser")


def finish(fields: Fields, part: Part, hidden: int, layers: int, **facts: Any) -> Anatomy:
    name = architecture_of(fields) or fields.text("_class_name") or fields.text("model_type")
    return assemble(fields, [part], hidden=hidden, layers=layers, architecture=name, **facts)


def width_of(fields: Fields) -> tuple[int, int, int]:
    """Hidden width, heads and their size; here the width is the product."""
    heads, head_dim = fields.count("num_attention_heads"), fields.count("attention_head_dim", default=128)
    return heads * head_dim, heads, head_dim


def embed(part: Part, inputs: int, hidden: int, *, bias: bool = True) -> None:
    """Two matrices: of a timestep's sinusoids, a pooled text, a caption."""
    part.linear("time_embedding", inputs, hidden, bias=bias)
    part.linear("time_embedding", hidden, hidden, bias=bias)


def streams(
    part: Part,
    layers: int,
    hidden: int,
    heads: int,
    *,
    count: int = 2,
    bias: bool = True,
    norm: int = 0,
    last: bool = False,
):
    """Attention of `count` streams over all their tokens; `last` leaves out the final layer's output of the second."""
    for stream in range(count):
        part.linear("attention_q", hidden, hidden, bias=bias, layers=layers)
        part.linear("attention_k", hidden, hidden, bias=bias, layers=layers)
        part.linear("attention_v", hidden, hidden, bias=bias, layers=layers)
        part.linear("attention_o", hidden, hidden, bias=bias, layers=layers - (1 if last and stream else 0))
        part.norm(norm, layers=layers, count=2, bias=False)
    note(part, layers, hidden, heads)


def note(part: Part, layers: int, hidden: int, heads: int) -> None:
    if layers:
        dim = divided(hidden, heads, "denoiser width")
        part.attention_layers.append(
            AttentionLayer("denoiser", "bidirectional", layers, "denoiser", heads, heads, dim, dim)
        )


@family("FluxTransformer2DModel", "flux")
def read_flux(fields: Fields) -> Anatomy:
    hidden, heads, head_dim = width_of(fields)
    layers, single = fields.repeats("num_layers"), fields.repeats("num_single_layers")
    inputs, part = fields.count("in_channels"), denoiser()
    embed(part, 256, hidden)
    embed(part, fields.count("pooled_projection_dim", default=768), hidden)
    if fields.flag("guidance_embeds"):
        embed(part, 256, hidden)
    part.linear("context_embedding", fields.count("joint_attention_dim", default=4096), hidden)
    part.linear("patch_embedding", inputs, hidden)
    flux_blocks(part, layers, single, hidden, heads, head_dim, 4 * hidden)
    part.linear("modulation", hidden, 2 * hidden)
    outputs = fields.count("out_channels", default=inputs) * fields.count("patch_size", default=1) ** 2
    part.linear("patch_output", hidden, outputs)
    return finish(fields, part, hidden, layers + single)


def flux_blocks(
    part: Part, layers: int, single: int, hidden: int, heads: int, head_dim: int, width: int, *, modulated: bool = True
) -> None:
    """Joint blocks, then single ones whose feed-forward runs beside attention into one output matrix."""
    if modulated:
        part.linear("modulation", hidden, 6 * hidden, layers=layers, count=2)
        part.linear("modulation", hidden, 3 * hidden, layers=single)
    streams(part, layers, hidden, heads, norm=head_dim)
    for _ in range(2):
        part.mlp(layers, hidden, width)
    for role in ("attention_q", "attention_k", "attention_v"):
        part.linear(role, hidden, hidden, layers=single)
    part.norm(head_dim, layers=single, count=2, bias=False)
    part.linear("ffn_up", hidden, width, layers=single)
    part.linear("attention_ffn_o", hidden + width, hidden, layers=single)
    note(part, single, hidden, heads)


@family("ChromaTransformer2DModel")
def read_chroma(fields: Fields) -> Anatomy:
    """FLUX whose blocks have no modulation of their own: one small network works out all of it."""
    fields = fields.but({"num_attention_heads": fields.count("num_attention_heads", default=24)})
    hidden, heads, head_dim = width_of(fields)
    layers, single = fields.repeats("num_layers", default=19), fields.repeats("num_single_layers", default=38)
    inputs, part = fields.count("in_channels", default=64), denoiser()
    guide, waves = (
        fields.count("approximator_hidden_dim", default=5120),
        fields.count("approximator_num_channels", default=64),
    )
    steps = fields.repeats("approximator_layers", default=5)
    part.linear("modulation", waves, guide)
    part.linear("modulation", guide, guide, layers=steps, count=2)
    part.norm(guide, layers=steps, bias=False)
    part.linear("modulation", guide, hidden)
    part.linear("context_embedding", fields.count("joint_attention_dim", default=4096), hidden)
    part.linear("patch_embedding", inputs, hidden)
    flux_blocks(part, layers, single, hidden, heads, head_dim, 4 * hidden, modulated=False)
    outputs = fields.count("out_channels", default=inputs) * fields.count("patch_size", default=1) ** 2
    part.linear("patch_output", hidden, outputs)
    return finish(fields, part, hidden, layers + single)


@family("Flux2Transformer2DModel")
def read_flux2(fields: Fields) -> Anatomy:
    """No biases, gated feed-forwards, one modulation for all blocks of a kind."""
    hidden, heads, head_dim = width_of(fields)
    layers, single = fields.repeats("num_layers"), fields.repeats("num_single_layers")
    inputs, part, sinusoids = (
        fields.count("in_channels"),
        denoiser(),
        fields.count("timestep_guidance_channels", default=256),
    )
    width = int(hidden * ratio(fields, "mlp_ratio", 3.0))
    for _ in range(2 if fields.flag("guidance_embeds", default=True) else 1):
        embed(part, sinusoids, hidden, bias=False)
    part.linear("modulation", hidden, 6 * hidden, bias=False, count=2)
    part.linear("modulation", hidden, 3 * hidden, bias=False)
    part.linear("patch_embedding", inputs, hidden, bias=False)
    part.linear("context_embedding", fields.count("joint_attention_dim"), hidden, bias=False)
    streams(part, layers, hidden, heads, bias=False, norm=head_dim)
    for _ in range(2):
        part.mlp(layers, hidden, width, gated=True, fused=True, bias=False)
    part.linear("attention_qkv_ffn", hidden, 3 * hidden + 2 * width, bias=False, layers=single)
    part.norm(head_dim, layers=single, count=2, bias=False)
    part.linear("attention_ffn_o", hidden + width, hidden, bias=False, layers=single)
    note(part, single, hidden, heads)
    part.linear("modulation", hidden, 2 * hidden, bias=False)
    outputs = fields.count("out_channels", default=inputs) * fields.count("patch_size", default=1) ** 2
    part.linear("patch_output", hidden, outputs, bias=False)
    return finish(fields, part, hidden, layers + single)


@family("QwenImageTransformer2DModel")
def read_qwen_image(fields: Fields) -> Anatomy:
    hidden, heads, head_dim = width_of(fields)
    layers, inputs, part = fields.repeats("num_layers"), fields.count("in_channels"), denoiser()
    context = fields.count("joint_attention_dim", default=3584)
    embed(part, 256, hidden)
    part.embedding("time_embedding", 2 if fields.flag("use_additional_t_cond") else 0, hidden)
    part.norm(context, bias=False)
    part.linear("patch_embedding", inputs, hidden)
    part.linear("context_embedding", context, hidden)
    part.linear("modulation", hidden, 6 * hidden, layers=layers, count=2)
    streams(part, layers, hidden, heads, norm=head_dim)
    for _ in range(2):
        part.mlp(layers, hidden, 4 * hidden)
    part.linear("modulation", hidden, 2 * hidden)
    part.linear(
        "patch_output", hidden, fields.count("out_channels", default=16) * fields.count("patch_size", default=2) ** 2
    )
    return finish(fields, part, hidden, layers)


@family("SD3Transformer2DModel")
def read_sd3(fields: Fields) -> Anatomy:
    """Joint blocks, the last of which drops the text; some attend a second time to the image alone."""
    hidden, heads, head_dim = width_of(fields)
    layers, part, patch = fields.repeats("num_layers"), denoiser(), fields.count("patch_size", default=2)
    dual = len({i for i in sizes(fields, "dual_attention_layers", ()) if i < layers})
    norm = head_dim if fields.text("qk_norm") == "rms_norm" else 0
    part.conv(hidden, fields.count("in_channels"), patch, patch)
    embed(part, 256, hidden)
    embed(part, fields.count("pooled_projection_dim", default=2048), hidden)
    part.linear(
        "context_embedding",
        fields.count("joint_attention_dim", default=4096),
        fields.count("caption_projection_dim", default=hidden),
    )
    part.linear("modulation", hidden, 6 * hidden, layers=layers - dual)
    part.linear("modulation", hidden, 9 * hidden, layers=dual)
    part.linear("modulation", hidden, 6 * hidden, layers=max(layers - 1, 0))
    part.linear("modulation", hidden, 2 * hidden, layers=min(layers, 1))
    streams(part, layers, hidden, heads, norm=norm, last=True)
    streams(part, dual, hidden, heads, count=1, norm=norm)
    part.mlp(layers, hidden, 4 * hidden)
    part.mlp(max(layers - 1, 0), hidden, 4 * hidden)
    part.linear("modulation", hidden, 2 * hidden)
    part.linear("patch_output", hidden, fields.count("out_channels", default=16) * patch * patch)
    positions = fields.count("pos_embed_max_size", default=96) ** 2 * hidden
    table = Tensor("denoiser", "denoiser", "position_embedding", "embedding", 1, 1, positions)
    note = "Its table of positions is a buffer: it is no parameter, and is loaded"
    extra = {"fixed positions": positions}
    return finish(fields, part, hidden, layers, stored_extra=extra, apart=(table,), apart_note=note)


@family("AuraFlowTransformer2DModel")
def read_aura_flow(fields: Fields) -> Anatomy:
    hidden, heads, _ = width_of(fields)
    joint, single = fields.repeats("num_mmdit_layers"), fields.repeats("num_single_dit_layers")
    patch, part = fields.count("patch_size", default=2), denoiser()
    width = (8 * hidden // 3 + 255) // 256 * 256
    part.parameter(8 * hidden, "register_embedding")
    part.parameter(fields.count("pos_embed_max_size", default=1024) * hidden, "position_embedding")
    part.linear("patch_embedding", fields.count("in_channels") * patch * patch, hidden)
    part.linear("context_embedding", fields.count("joint_attention_dim", default=2048), hidden, bias=False)
    embed(part, 256, hidden)
    for layers, count in ((joint, 2), (single, 1)):
        part.linear("modulation", hidden, 6 * hidden, bias=False, layers=layers, count=count)
        streams(part, layers, hidden, heads, count=count, bias=False)
        for _ in range(count):
            part.mlp(layers, hidden, width, gated=True, bias=False)
    part.linear("modulation", hidden, 2 * hidden, bias=False)
    part.linear("patch_output", hidden, fields.count("out_channels", default=4) * patch * patch, bias=False)
    return finish(fields, part, hidden, joint + single)
