"""Denoisers that make sound, alone or with a video: MiniMax-H3, LTX-2, MiniMax-Music 3.

Source: diffusers 0.42.1, models/transformers: transformer_minimax_h3.py, transformer_ltx2.py, transformer_minimax_music3.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.anatomy.families import family
from pipeline.anatomy.families.diffusion import denoiser, finish
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import sizes
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy

SINUSOIDS = 256  # of a timestep, where no field says how many
MODALITIES, SETS = 3, 6  # what a row of MiniMax-H3 may be of, and scales, shifts and gates of a block


@family("MiniMaxH3Transformer3DModel")
def read_minimax_h3(fields: Fields) -> Anatomy:
    """One stream of text, sound and video rows; each block is modulated by matrices of its own, which weigh two fifths of the whole."""
    hidden, heads = fields.count("hidden_size", default=5376), fields.count("num_attention_heads", default=56)
    head_dim, width = fields.count("attention_head_dim", default=128), fields.count("ffn_dim", default=14336)
    layers, refiners = fields.repeats("num_layers", default=50), fields.repeats("num_refiner_layers", default=2)
    frames, high, wide = patch_of(fields)
    pixels = fields.count("in_channels", default=24) * frames * high * wide
    sound = fields.count("audio_in_channels", default=32)
    inner, time = fields.count("time_embed_hidden_dim", default=5376), fields.count("time_embed_dim", default=2688)
    part = denoiser()
    for inputs in (pixels, sound):
        part.linear("patch_embedding", inputs, hidden)
        part.linear("patch_output", hidden, inputs)
    part.linear("context_embedding", fields.count("text_dim", default=5120), hidden)
    part.linear("time_embedding", fields.count("freq_dim", default=SINUSOIDS), inner)
    part.linear("time_embedding", inner, time)
    every = layers + refiners
    part.mixer(every, hidden, heads, head_dim=head_dim, bias=False)
    part.norm(head_dim, layers=every, count=2, bias=False)
    part.mlp(every, hidden, width, gated=True, fused=True, bias=False)
    part.norm(hidden, layers=every, count=2, bias=False)
    part.norm(hidden, count=2, bias=False)  # of the refined text, and of the whole
    part.linear("modulation", time, MODALITIES * SETS * hidden, layers=layers)
    part.linear("modulation", time, 2 * hidden)
    rotary = fields.count("rope_freq_dim", default=16)
    return finish(fields, part, hidden, every, stored_extra={"rotary frequencies": rotary})


def patch_of(fields: Fields) -> list[int]:
    sides = sizes(fields, "patch_size", (1, 2, 2), least=1)
    if len(sides) != 3:
        raise UnknownAnatomy(f"{fields.where}.patch_size has {len(sides)} sides, and 3 are described")
    return sides


@dataclass(frozen=True)
class Stream:
    """One of LTX-2's two: the names of its fields begin alike."""

    hidden: int
    heads: int
    head_dim: int
    context: int
    inputs: int
    outputs: int
    is_gated: bool
    is_modulated: bool  # what it asks of the text is modulated too
    has_bias: bool

    @classmethod
    def read(cls, fields: Fields, before: str, heads: int, head_dim: int, context: int) -> Stream:
        heads = fields.count(f"{before}num_attention_heads", default=heads)
        head_dim = fields.count(f"{before}attention_head_dim", default=head_dim)
        inputs = fields.count(f"{before}in_channels", default=128)
        return cls(
            heads * head_dim,
            heads,
            head_dim,
            fields.count(f"{before}cross_attention_dim", default=context),
            inputs,
            inputs if fields.is_null(f"{before}out_channels") else fields.count(f"{before}out_channels", default=128),
            fields.flag(f"{before}gated_attn"),
            fields.flag(f"{before}cross_attn_mod"),
            fields.flag(f"{before}ff_bias", default=True),
        )


@family("LTX2VideoTransformer3DModel")
def read_ltx2(fields: Fields) -> Anatomy:
    """A stream of video and a narrower one of sound: each attends to itself, to the text and to the other."""
    video, sound = Stream.read(fields, "", 32, 128, 4096), Stream.read(fields, "audio_", 32, 64, 2048)
    layers, part = fields.repeats("num_layers", default=48), denoiser()
    if fields.text("qk_norm", default="rms_norm_across_heads") != "rms_norm_across_heads":
        raise UnknownAnatomy(f"{fields.where}.qk_norm is not described yet")
    if not fields.text("activation_fn", default="gelu-approximate").startswith("gelu"):
        raise UnknownAnatomy(f"{fields.where}.activation_fn is not described yet")
    captions = fields.count("caption_channels", default=3840)
    both = video.is_modulated or sound.is_modulated
    part.vector(video.hidden if fields.flag("use_keyframes_abs_pos_embedding") else 0, "position_embedding")
    affine = fields.flag("norm_elementwise_affine")
    for one in (video, sound):
        hidden, many = one.hidden, 9 if one.is_modulated else SETS
        part.linear("patch_embedding", one.inputs, hidden)
        part.linear("patch_output", hidden, one.outputs)
        if fields.flag("use_prompt_embeddings", default=True):
            part.linear("context_embedding", captions, hidden)
            part.linear("context_embedding", hidden, hidden)
        prompts = [2] if both and fields.flag("use_prompt_adaln_single", default=True) else []
        for outputs in (many, 4, 1, *prompts):  # of the stream, of what it takes from the other, its gate, of the text
            part.linear("time_embedding", SINUSOIDS, hidden)
            part.linear("time_embedding", hidden, hidden)
            part.linear("modulation", hidden, outputs * hidden)
        part.parameter(2 * hidden, "modulation")
        part.parameter((many + 5 + (2 if both else 0)) * hidden, "modulation", layers=layers)
        part.mlp(layers, hidden, 4 * hidden, bias=one.has_bias)
        part.norm(hidden if affine else 0, layers=layers, count=4, bias=False)
    for one, heads, reads in (
        (video, video, video.hidden), (video, video, video.context), (video, sound, sound.hidden),
        (sound, sound, sound.hidden), (sound, sound, sound.context), (sound, sound, video.hidden),
    ):  # fmt: skip
        part.mixer(
            layers,
            one.hidden,
            heads.heads,
            head_dim=heads.head_dim,
            bias=fields.flag("attention_bias", default=True),
            output_bias=fields.flag("attention_out_bias", default=True),
            kv_inputs=reads,
        )
        part.norm(heads.hidden, layers=layers, count=2, bias=False)
        if one.is_gated:
            part.linear("attention_gate", one.hidden, heads.heads, layers=layers)
    return finish(fields, part, video.hidden, layers)


@family("MiniMaxMusic3Transformer1DModel")
def read_minimax_music(fields: Fields) -> Anatomy:
    """Latents of sound beside what conditions them, one stream."""
    heads, head_dim = (
        fields.count("num_attention_heads", default=32),
        fields.count("attention_head_dim", default=64),
    )
    hidden, layers, part = heads * head_dim, fields.repeats("num_layers", default=36), denoiser()
    inputs, width = fields.count("in_channels", default=128), fields.count("ff_inner_dim", default=8192)
    read = 2 * inputs + fields.count("condition_dim", default=2048)
    waves = fields.count("fourier_embedding_dim", default=256)
    part.parameter(waves // 2, "time_embedding")
    part.linear("time_embedding", waves // 2 * 2, hidden)
    part.linear("time_embedding", hidden, hidden)
    part.conv(read, read, 1, bias=False)
    part.linear("patch_embedding", read, hidden, bias=False)
    part.mixer(layers, hidden, heads, head_dim=head_dim, bias=False)
    part.mlp(layers, hidden, width, gated=True, fused=True)
    part.norm(hidden, layers=layers, count=2)
    part.linear("patch_output", hidden, inputs, bias=False)
    part.conv(inputs, inputs, 1, bias=False)
    return finish(fields, part, hidden, layers)
