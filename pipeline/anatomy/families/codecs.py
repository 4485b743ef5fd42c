"""Audio codecs and vocoders: convolutions over the waveform, down and up again, with a quantiser or a flow between."""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, assemble, layer_count, over, sizes


def codec() -> Part:
    return Part("audio", "audio-tower")


def ratios(fields: Fields, name: str, default: tuple[int, ...]) -> list[int]:
    values = sizes(fields, name, default, least=1)
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
        inner = max(width // fields.count("compress", default=2), 1)
        for _ in range(layer_count(fields, "num_residual_layers", default=1)):
            self.conv(inner, width, fields.count("residual_kernel_size", default=3))
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
    net, channels = Seanet(part, style), fields.count("audio_channels", default=1)
    kernel = fields.count("kernel_size", default=7)
    if layer_count(fields, "num_residual_layers", default=1) > 100:
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
    scales = ratios(fields, "upsampling_ratios", (8, 5, 4, 2))
    seanet(
        fields,
        part,
        fields.text("norm_type", default="weight_norm"),
        hidden=hidden,
        filters=fields.count("num_filters", default=32),
        scales=scales,
        last=fields.count("last_kernel_size", default=7),
        lstm=layer_count(fields, "num_lstm_layers", default=2),
        shortcut=fields.flag("use_conv_shortcut", default=True),
    )
    return assemble(fields, [part], hidden=hidden, layers=2 * len(scales))


@family("mimi")
def read_mimi(fields: Fields) -> Anatomy:
    """EnCodec's convolutions without normalised weights, a transformer on each side, codebooks kept as buffers."""
    part, hidden = codec(), fields.count("hidden_size")
    defaults = {
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "intermediate_size": 2048,
        "vector_quantization_hidden_dimension": 256,
    }
    fields = over(fields, defaults)
    seanet(
        fields,
        part,
        "plain",
        hidden=hidden,
        filters=fields.count("num_filters", default=64),
        scales=ratios(fields, "upsampling_ratios", (8, 6, 5, 4)),
        last=fields.count("last_kernel_size", default=3),
        lstm=0,
        shortcut=fields.flag("use_conv_shortcut"),
    )
    layers, heads = layer_count(fields, "num_hidden_layers"), fields.count("num_attention_heads")
    shape = {
        "kv_heads": fields.count("num_key_value_heads", default=heads),
        "head_dim": fields.count("head_dim", default=None),
    }
    for _ in range(2):
        part.mixer(
            layers,
            hidden,
            heads,
            bias=fields.flag("attention_bias"),
            window=fields.count("sliding_window", default=250),
            **shape,
        )
        part.mlp(layers, hidden, fields.count("intermediate_size"), bias=False)
        part.norm(hidden, layers=layers, count=2)
        part.vector(hidden, layers=layers, count=2)
    part.conv(hidden, hidden, 4, bias=False)
    groups = fields.count("upsample_groups", default=512)
    part.conv(hidden, max(hidden // groups, 1), 4, bias=False)
    part.conv(fields.count("vector_quantization_hidden_dimension"), hidden, 1, bias=False, count=4)
    return assemble(fields, [part], hidden=hidden, layers=2 * layers)


@family("dac")
def read_dac(fields: Fields) -> Anatomy:
    """Residual units with a learned periodic activation; each codebook projects down to a few numbers and back."""
    part, width = codec(), fields.count("encoder_hidden_size", default=64)
    fields.count("n_codebooks", "codebook_size", "hidden_size")
    down, up = ratios(fields, "downsampling_ratios", (2, 4, 8, 8)), ratios(fields, "upsampling_ratios", (8, 8, 4, 2))

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
    books, small = fields.count("n_codebooks", default=9), fields.count("codebook_dim", default=8)
    part.conv(small, hidden, 1, count=books)
    part.conv(hidden, small, 1, count=books)
    part.embedding("embedding", fields.count("codebook_size", default=1024), small, count=books)
    wide = fields.count("decoder_hidden_size", default=1536)
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
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers", default=6)
    heads, width = fields.count("num_attention_heads", default=2), fields.count("ffn_dim", default=768)
    head_dim = fields.divide(hidden, heads, "hidden_size")
    kernel, flow = fields.count("ffn_kernel_size", default=3), fields.count("flow_size", default=192)
    speakers, voice = (
        fields.count("num_speakers", default=1),
        fields.count("speaker_embedding_size", default=0, least=0),
    )
    vocabulary, text, part = fields.count("vocab_size", default=38), Part("text"), codec()
    text.embedding("embedding", vocabulary, hidden)
    text.mixer(layers, hidden, heads, bias=fields.flag("use_bias", default=True))
    window = fields.count("window_size", default=4, least=0)
    text.parameter((2 * window + 1) * head_dim if window else 0, "position_embedding", layers=layers, count=2)
    text.conv(width, hidden, kernel, layers=layers)
    text.conv(hidden, width, kernel, layers=layers)
    text.norm(hidden, layers=layers, count=2)
    text.conv(2 * flow, hidden, 1)
    part.embedding("speaker_embedding", speakers if speakers > 1 else 0, voice)
    flows = layer_count(fields, "prior_encoder_num_flows", default=4)
    part.conv(hidden, flow // 2, 1, count=flows)
    wavenet(part, fields, hidden, layer_count(fields, "prior_encoder_num_wavenet_layers", default=4), voice, flows)
    part.conv(flow // 2, hidden, 1, count=flows)
    vocoder(part, fields, flow, voice)
    durations(part, fields, hidden, voice)
    part.conv(hidden, fields.count("spectrogram_bins", default=513), 1)
    wavenet(part, fields, hidden, layer_count(fields, "posterior_encoder_num_wavenet_layers", default=16), voice, 1)
    part.conv(2 * flow, hidden, 1)
    return assemble(fields, [text, part], hidden=hidden, layers=layers, vocab_size=vocabulary)


def wavenet(part: Part, fields: Fields, hidden: int, layers: int, voice: int, count: int) -> None:
    """Gated convolutions whose weights are split into direction and length (two tensors)."""
    if layers:
        kernel = fields.count("wavenet_kernel_size", default=5)
        part.conv(2 * hidden, hidden, kernel, layers=layers, count=count)
        part.conv(2 * hidden, hidden, 1, layers=layers - 1, count=count)
        part.conv(hidden, hidden, 1, count=count)
        part.vector(2 * hidden, layers=2 * layers - 1, count=count)
        part.vector(hidden, count=count)
        if voice:
            part.conv(2 * hidden * layers, voice, 1, count=count)
            part.vector(2 * hidden * layers, count=count)


def vocoder(part: Part, fields: Fields, flow: int, voice: int) -> None:
    width = fields.count("upsample_initial_channel", default=512)
    kernels = ratios(fields, "upsample_kernel_sizes", (16, 16, 4, 4))
    halved(fields, width, len(kernels))
    blocks = ratios(fields, "resblock_kernel_sizes", (3, 7, 11))
    dilations = fields.items("resblock_dilation_sizes") or [[1, 3, 5]] * len(blocks)
    if len(dilations) != len(blocks) or not all(isinstance(d, list) and len(d) < 100 for d in dilations):
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
    kernel = fields.count("duration_predictor_kernel_size", default=3)
    if not fields.flag("use_stochastic_duration_prediction", default=True):
        inner = fields.count("duration_predictor_filter_channels", default=256)
        part.conv(inner, hidden, kernel)
        part.conv(inner, inner, kernel)
        part.norm(inner, count=2)
        part.conv(1, inner, 1)
        if voice:
            part.conv(hidden, voice, 1)
        return
    flows, depth = (
        layer_count(fields, "duration_predictor_num_flows", default=4),
        layer_count(fields, "depth_separable_num_layers", default=3),
    )
    channels, bins = (
        fields.count("depth_separable_channels", default=2),
        fields.count("duration_predictor_flow_bins", default=10),
    )
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
