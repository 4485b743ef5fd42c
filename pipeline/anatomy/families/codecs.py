"""Audio codecs and vocoders: convolutions over the waveform, down and up again, with a quantiser or a flow between."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, Tensor, UnknownAnatomy
from pipeline.anatomy.towers.part import Part
from pipeline.base.bounds import MOST_REPEATS

WIDEST = 10_000  # kilobits a second: beyond any codec


def codec() -> Part:
    return Part("audio", "audio-tower")


def buffers(elements: Mapping[str, int]) -> dict[str, Any]:
    """What lies on the card beside the parameters."""
    sizes = [size for size in elements.values() if size]
    held = tuple(Tensor("audio", "audio-tower", "embedding", "embedding", 1, 1, size) for size in sizes)
    return (
        {"apart": held, "apart_note": "Its codebooks are buffers: they are no parameters, and are loaded"}
        if held
        else {}
    )


def ratios(fields: Fields, name: str) -> list[int]:
    values = sizes(fields, name, least=1)
    if not 0 < len(values) <= 20:
        raise ContradictoryConfig(f"{fields.where}.{name} has {len(values)} entries")
    return values


def halved(fields: Fields, width: int, times: int) -> int:
    if width >> times < 1:
        raise ContradictoryConfig(f"{fields.where}: a width of {width} cannot be halved {times} times")
    return width >> times


class Seanet:
    """EnCodec's convolutions: plain, or with the weight split into direction and length, or with a norm after."""

    def __init__(self, part: Part, style: str):
        self.part, self.style = part, style

    def conv(self, outputs: int, inputs: int, kernel: int, *, transposed: bool = False) -> None:
        self.part.conv(outputs, inputs, kernel)
        if self.style == "weight_norm":
            self.part.vector(inputs if transposed else outputs)
        elif self.style == "time_group_norm":
            self.part.norm(outputs)

    def residuals(self, fields: Fields, width: int, shortcut: bool) -> None:
        inner = max(width // fields.size("compress"), 1)
        for _ in range(fields.times("num_residual_layers")):
            self.conv(inner, width, fields.size("residual_kernel_size"))
            self.conv(width, inner, 1)
            if shortcut:
                self.conv(width, width, 1)


def seanet(
    fields: Fields,
    part: Part,
    style: str,
    *,
    hidden: int,
    filters: int,
    scales: list[int],
    last: int,
    lstm: int,
    shortcut: bool,
):
    """Down to `hidden` channels and up again."""
    net, channels = Seanet(part, style), fields.size("audio_channels")
    kernel = fields.size("kernel_size")
    if fields.times("num_residual_layers") > 100:
        raise ContradictoryConfig(f"{fields.where}.num_residual_layers is more than any codec has")
    net.conv(filters, channels, kernel)
    width = filters
    for scale in reversed(scales):
        net.residuals(fields, width, shortcut)
        net.conv(2 * width, width, 2 * scale)
        width *= 2
    net.conv(hidden, width, last)
    net.conv(width, hidden, kernel)
    part.parameter(4 * width * (2 * width + 2), "lstm", layers=lstm, count=2)
    for scale in scales:
        net.conv(width // 2, width, 2 * scale, transposed=True)
        width //= 2
        net.residuals(fields, width, shortcut)
    net.conv(channels, filters, last)


@family("encodec")
def read_encodec(fields: Fields) -> Anatomy:
    part, hidden = codec(), fields.count("hidden_size")
    scales = ratios(fields, "upsampling_ratios")
    seanet(
        fields,
        part,
        fields.text("norm_type"),
        hidden=hidden,
        filters=fields.size("num_filters"),
        scales=scales,
        last=fields.size("last_kernel_size"),
        lstm=fields.times("num_lstm_layers"),
        shortcut=fields.flag("use_conv_shortcut"),
    )
    stored = _codebooks(fields, hidden, prod(scales))
    return assemble(fields, [part], hidden=hidden, layers=2 * len(scales), stored_extra=stored, **buffers(stored))


def _codebooks(fields: Fields, hidden: int, hop: int) -> dict[str, int]:
    """What its class keeps as buffers: as many books as its widest band takes of ten bits for each frame."""
    band = (fields.items("target_bandwidths") or fields.unsaid.get("target_bandwidths") or [None])[-1]
    if isinstance(band, bool) or not isinstance(band, int | float) or not 0 < band < WIDEST:
        raise UnknownAnatomy(f"{fields.where}.target_bandwidths does not say how many codebooks there are")
    frames_per_second = -(-fields.size("sampling_rate") // hop)
    rows, row = fields.size("codebook_size"), fields.count("codebook_dim", default=hidden)
    books = int(1000 * band // (10 * frames_per_second))
    return {"codebooks, and the running means that they were made of": books * (2 * rows * row + rows + 1)}


@family("mimi")
def read_mimi(fields: Fields) -> Anatomy:
    """EnCodec's convolutions without normalised weights, a transformer on each side, codebooks kept as buffers."""
    part, hidden = codec(), fields.count("hidden_size")
    fields = fields.filled()
    seanet(
        fields,
        part,
        "plain",
        hidden=hidden,
        filters=fields.size("num_filters"),
        scales=ratios(fields, "upsampling_ratios"),
        last=fields.size("last_kernel_size"),
        lstm=0,
        shortcut=fields.flag("use_conv_shortcut"),
    )
    layers, heads = fields.repeats("num_hidden_layers"), fields.count("num_attention_heads")
    shape = {
        "kv_heads": fields.count("num_key_value_heads", default=heads),
        "head_dim": fields.count("head_dim", default=None),
    }
    for _ in range(2):
        part.mixer(
            layers, hidden, heads, bias=fields.flag("attention_bias"), window=fields.size("sliding_window"), **shape
        )
        part.mlp(layers, hidden, fields.count("intermediate_size"), bias=False)
        part.norm(hidden, layers=layers, count=2)
        part.vector(hidden, layers=layers, count=2)
    part.conv(hidden, hidden, 4, bias=False)
    groups = fields.size("upsample_groups")
    part.conv(hidden, max(hidden // groups, 1), 4, bias=False)
    part.conv(fields.count("vector_quantization_hidden_dimension"), hidden, 1, bias=False, count=4)
    rows = fields.size("codebook_size")
    book = rows * fields.size("codebook_dim")
    books = fields.size("num_quantizers")
    stored = {"codebooks, and how often each row was used": books * (book + rows + 1)}
    # (the class divides the one by the other, and keeps the quotient)
    loaded = stored | {"codebooks that are read": books * book}
    return assemble(fields, [part], hidden=hidden, layers=2 * layers, stored_extra=stored, **buffers(loaded))


@family("dac")
def read_dac(fields: Fields) -> Anatomy:
    """Residual units with a learned periodic activation; each codebook projects down to a few numbers and back."""
    part, width = codec(), fields.size("encoder_hidden_size")
    fields.count("n_codebooks", "codebook_size", "hidden_size")
    down, up = ratios(fields, "downsampling_ratios"), ratios(fields, "upsampling_ratios")

    def unit(channels: int) -> None:
        part.vector(channels, count=6)
        part.conv(channels, channels, 7, count=3)
        part.conv(channels, channels, 1, count=3)

    part.conv(width, 1, 7)
    for scale in down:
        unit(width)
        part.vector(width)
        part.conv(2 * width, width, 2 * scale)
        width *= 2
    hidden = fields.count("hidden_size", default=width)
    part.vector(width)
    part.conv(hidden, width, 3)
    books, small = fields.size("n_codebooks"), fields.size("codebook_dim")
    part.conv(small, hidden, 1, count=books)
    part.conv(hidden, small, 1, count=books)
    part.embedding("embedding", fields.size("codebook_size"), small, count=books)
    wide = fields.size("decoder_hidden_size")
    halved(fields, wide, len(up))
    part.conv(wide, hidden, 7)
    for scale in up:
        part.vector(wide)
        part.conv(wide // 2, wide, 2 * scale)
        wide //= 2
        unit(wide)
    part.vector(wide)
    part.conv(1, wide, 7)
    return assemble(fields, [part], hidden=hidden, layers=len(down) + len(up))


@family("vits")
def read_vits(fields: Fields) -> Anatomy:
    """Text to speech: a text encoder, a flow, a stochastic predictor of durations, a vocoder, a posterior encoder."""
    hidden, layers = fields.count("hidden_size"), fields.times("num_hidden_layers")
    heads, width = fields.size("num_attention_heads"), fields.size("ffn_dim")
    head_dim = fields.divide(hidden, heads, "hidden_size")
    kernel, flow = fields.size("ffn_kernel_size"), fields.size("flow_size")
    speakers, voice = (fields.size("num_speakers"), fields.size("speaker_embedding_size", least=0))
    vocabulary, text, part = fields.size("vocab_size"), Part("text"), codec()
    text.embedding("embedding", vocabulary, hidden)
    text.mixer(layers, hidden, heads, bias=fields.flag("use_bias"))
    window = fields.size("window_size", least=0)
    text.parameter((2 * window + 1) * head_dim if window else 0, "position_embedding", layers=layers, count=2)
    text.conv(width, hidden, kernel, layers=layers)
    text.conv(hidden, width, kernel, layers=layers)
    text.norm(hidden, layers=layers, count=2)
    text.conv(2 * flow, hidden, 1)
    part.embedding("speaker_embedding", speakers if speakers > 1 else 0, voice)
    flows = fields.times("prior_encoder_num_flows")
    part.conv(hidden, flow // 2, 1, count=flows)
    wavenet(part, fields, hidden, fields.times("prior_encoder_num_wavenet_layers"), voice, flows)
    part.conv(flow // 2, hidden, 1, count=flows)
    vocoder(part, fields, flow, voice)
    durations(part, fields, hidden, voice)
    part.conv(hidden, fields.size("spectrogram_bins"), 1)
    wavenet(part, fields, hidden, fields.times("posterior_encoder_num_wavenet_layers"), voice, 1)
    part.conv(2 * flow, hidden, 1)
    return assemble(fields, [text, part], hidden=hidden, layers=layers, vocab_size=vocabulary)


def wavenet(part: Part, fields: Fields, hidden: int, layers: int, voice: int, count: int) -> None:
    """Gated convolutions whose weights are split into direction and length (two tensors)."""
    if layers:
        kernel = fields.size("wavenet_kernel_size")
        part.conv(2 * hidden, hidden, kernel, layers=layers, count=count)
        part.conv(2 * hidden, hidden, 1, layers=layers - 1, count=count)
        part.conv(hidden, hidden, 1, count=count)
        part.vector(2 * hidden, layers=2 * layers - 1, count=count)
        part.vector(hidden, count=count)
        if voice:
            part.conv(2 * hidden * layers, voice, 1, count=count)
            part.vector(2 * hidden * layers, count=count)


def vocoder(part: Part, fields: Fields, flow: int, voice: int) -> None:
    width = fields.size("upsample_initial_channel")
    kernels = ratios(fields, "upsample_kernel_sizes")
    halved(fields, width, len(kernels))
    blocks = ratios(fields, "resblock_kernel_sizes")
    dilations = fields.items("resblock_dilation_sizes") or fields.by_class("resblock_dilation_sizes")
    if len(dilations) != len(blocks) or not all(isinstance(d, list) and len(d) <= MOST_REPEATS for d in dilations):
        raise ContradictoryConfig(f"{fields.where}.resblock_dilation_sizes does not fit resblock_kernel_sizes")
    part.conv(width, flow, 7)
    if voice:
        part.conv(width, voice, 1)
    for kernel in kernels:
        part.conv(width // 2, width, kernel)
        width //= 2
        for size, steps in zip(blocks, dilations, strict=True):
            part.conv(width, width, size, count=2 * len(steps))
    part.conv(1, width, 7, bias=False)


def durations(part: Part, fields: Fields, hidden: int, voice: int) -> None:
    kernel = fields.size("duration_predictor_kernel_size")
    if not fields.flag("use_stochastic_duration_prediction"):
        inner = fields.size("duration_predictor_filter_channels")
        part.conv(inner, hidden, kernel)
        part.conv(inner, inner, kernel)
        part.norm(inner, count=2)
        part.conv(1, inner, 1)
        if voice:
            part.conv(hidden, voice, 1)
        return
    flows, depth = (fields.times("duration_predictor_num_flows"), fields.times("depth_separable_num_layers"))
    channels, bins = (fields.size("depth_separable_channels"), fields.size("duration_predictor_flow_bins"))
    if channels % 2:
        raise UnknownAnatomy(f"{fields.where}.depth_separable_channels is odd")
    stacks = 2 + 2 * flows  # one for the text, one for the durations, one in every flow of both directions
    part.conv(hidden, 1, kernel, layers=depth, count=stacks)
    part.conv(hidden, hidden, 1, layers=depth, count=stacks)
    part.norm(hidden, layers=depth, count=2 * stacks)
    part.conv(hidden, hidden, 1, count=3)
    part.conv(hidden, 1, 1)
    if voice:
        part.conv(hidden, voice, 1)
    part.vector(channels, count=4)
    part.conv(hidden, channels // 2, 1, count=2 * flows)
    part.conv(channels // 2 * (3 * bins - 1), hidden, 1, count=2 * flows)
