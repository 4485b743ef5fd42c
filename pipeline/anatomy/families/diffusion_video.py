"""Diffusion transformers of video: Wan, HunyuanVideo, Mochi, CogVideoX."""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.families.diffusion import denoiser, embed, finish, flux_blocks, note, streams, width_of
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import ratio, sizes
from pipeline.anatomy.rows import Anatomy, FeedForwardLayer


def sees_a_picture(fields: Fields) -> bool:
    """Whether an encoder of pictures tells it of the first frame: of Wan 2.1, by either of its configs."""
    said = fields.raw("has_image_input", default=fields.raw("model_kind") == "i2v")
    return str(said).lower() == "true" or fields.count("image_dim", default=None) is not None


@family("WanTransformer3DModel", "wan")
def read_wan(fields: Fields) -> Anatomy:
    """Self-attention over frames, cross-attention to text (and to an image's features), one shared time projection."""
    original = fields.text("model_type") == "wan"
    if original:
        hidden, heads = fields.count("dim"), fields.count("num_heads")
        inputs, outputs = fields.count("in_dim", default=16), fields.count("out_dim", default=16)
        image, added = (1280, hidden) if sees_a_picture(fields) else (None, None)
    else:
        hidden, heads, _ = width_of(fields)
        inputs, outputs = fields.count("in_channels", default=16), fields.count("out_channels", default=16)
        image, added = fields.count("image_dim", default=None), fields.count("added_kv_proj_dim", default=None)
    layers, width = fields.repeats("num_layers"), fields.count("ffn_dim")
    frames, high, wide = [*sizes(fields, "patch_size", (1, 2, 2), least=1), 1, 1, 1][:3]
    part = denoiser()
    part.conv(hidden, inputs, frames, high, wide)
    embed(part, fields.count("freq_dim", default=256), hidden)
    embed(part, fields.count("text_dim", default=4096), hidden)
    part.linear("modulation", hidden, 6 * hidden)
    if image:
        part.norm(image)
        part.linear("context_embedding", image, image)
        part.linear("context_embedding", image, hidden)
        part.norm(hidden)
        rows = fields.count("pos_embed_seq_len", default=None)
        part.parameter((rows or 0) * image, "position_embedding")
    for _ in range(2):
        streams(part, layers, hidden, heads, count=1, norm=hidden)
    if added:
        part.linear("attention_k", added, hidden, layers=layers)
        part.linear("attention_v", added, hidden, layers=layers)
        part.norm(hidden, layers=layers, bias=False)
    part.mlp(layers, hidden, width)
    part.norm(hidden if fields.flag("cross_attn_norm", default=True) else 0, layers=layers)
    part.parameter(6 * hidden, "modulation", layers=layers)
    part.parameter(2 * hidden, "modulation")
    part.linear("patch_output", hidden, outputs * frames * high * wide)
    return finish(fields, part, hidden, layers)


@family("HunyuanVideoTransformer3DModel")
def read_hunyuan_video(fields: Fields) -> Anatomy:
    """Flux's blocks over video patches; a small refiner reads the text first."""
    hidden, heads, head_dim = width_of(fields)
    layers, single = fields.repeats("num_layers"), fields.repeats("num_single_layers")
    refiners, context = (fields.repeats("num_refiner_layers", default=2), fields.count("text_embed_dim", default=4096))
    patch, frames, part = fields.count("patch_size", default=2), fields.count("patch_size_t", default=1), denoiser()
    width = int(hidden * ratio(fields, "mlp_ratio", 4.0))
    part.conv(hidden, fields.count("in_channels"), frames, patch, patch)
    embed(part, 256, hidden)
    embed(part, context, hidden)
    part.linear("context_embedding", context, hidden)
    streams(part, refiners, hidden, heads, count=1)
    part.mlp(refiners, hidden, width)
    part.norm(hidden, layers=refiners, count=2)
    part.linear("modulation", hidden, 2 * hidden, layers=refiners)
    embed(part, 256, hidden)
    embed(part, fields.count("pooled_projection_dim", default=768), hidden)
    if fields.flag("guidance_embeds", default=True):
        embed(part, 256, hidden)
    flux_blocks(part, layers, single, hidden, heads, head_dim, width)
    part.linear("modulation", hidden, 2 * hidden)
    part.linear("patch_output", hidden, fields.count("out_channels", default=16) * patch * patch * frames)
    return finish(fields, part, hidden, layers + single)


@family("MochiTransformer3DModel")
def read_mochi(fields: Fields) -> Anatomy:
    """Joint blocks with a narrower text stream, gated feed-forwards, a pooler over the text."""
    hidden, heads, head_dim = width_of(fields)
    layers, text = fields.repeats("num_layers"), fields.count("pooled_projection_dim", default=1536)
    context, patch, inputs = (
        fields.count("text_embed_dim", default=4096),
        fields.count("patch_size", default=2),
        fields.count("in_channels"),
    )
    part, most = denoiser(), max(layers - 1, 0)
    part.parameter(3 * heads * (head_dim // 2), "position_embedding")
    part.conv(hidden, inputs, patch, patch)
    embed(part, fields.count("time_embed_dim", default=256), hidden)
    part.linear("context_embedding", context, 2 * context)
    part.linear("context_embedding", context, context)
    part.linear("context_embedding", context, hidden)
    part.linear("context_embedding", context, text)
    part.linear("modulation", hidden, 4 * hidden, layers=layers)
    part.linear("modulation", hidden, 4 * text, layers=most)
    part.linear("modulation", hidden, text, layers=min(layers, 1))
    part.norm(head_dim, layers=layers, count=4, bias=False)
    for role in ("attention_q", "attention_k", "attention_v"):
        part.linear(role, hidden, hidden, bias=False, layers=layers)
        part.linear(role, text, hidden, bias=False, layers=layers)
    part.linear("attention_o", hidden, hidden, layers=layers)
    part.linear("attention_o", hidden, text, layers=most)
    note(part, layers, hidden, heads)
    for count, width in ((layers, hidden), (most, text)):
        inner = 4 * width * 2 // 3
        part.linear("ffn_gate_up", width, 2 * inner, bias=False, layers=count)
        part.linear("ffn_down", inner, width, bias=False, layers=count)
        if count:
            part.feed_forward.append(FeedForwardLayer("denoiser", count, "denoiser", inner))
    part.linear("modulation", hidden, 2 * hidden)
    part.linear("patch_output", hidden, fields.count("out_channels", default=inputs) * patch * patch)
    return finish(fields, part, hidden, layers)


@family("CogVideoXTransformer3DModel")
def read_cogvideox(fields: Fields) -> Anatomy:
    """One stream of text and video tokens; a learned table of positions only where they are not rotary and learned."""
    hidden, heads, head_dim = width_of(fields)
    layers, time = fields.repeats("num_layers"), fields.count("time_embed_dim", default=512)
    patch, frames, inputs = (
        fields.count("patch_size", default=2),
        fields.count("patch_size_t", default=None),
        fields.count("in_channels", default=16),
    )
    part, bias = denoiser(), fields.flag("patch_bias", default=True)
    affine = hidden if fields.flag("norm_elementwise_affine", default=True) else 0
    if frames:
        part.linear("patch_embedding", inputs * patch * patch * frames, hidden, bias=bias)
    else:
        part.conv(hidden, inputs, patch, patch, bias=bias)
    part.linear("context_embedding", fields.count("text_embed_dim", default=4096), hidden)
    part.linear("time_embedding", hidden, time)
    part.linear("time_embedding", time, time)
    part.linear("modulation", time, 6 * hidden, layers=layers, count=2)
    part.norm(affine, layers=layers, count=2)
    part.mixer(layers, hidden, heads, bias=fields.flag("attention_bias", default=True), output_bias=True)
    part.norm(head_dim, layers=layers, count=2)
    part.mlp(layers, hidden, 4 * hidden)
    part.linear("modulation", time, 2 * hidden)
    part.norm(affine, count=2)
    part.linear("patch_output", hidden, fields.count("out_channels", default=16) * patch * patch * (frames or 1))
    return finish(fields, part, hidden, layers)
