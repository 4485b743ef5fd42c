"""Decoders that are Llama with variations: norms, attention, gated feed-forward, one after the other, in every layer.

A family is a row of `PLAIN`: what its config class sets where a config is silent, and which parts differ.
Source: the config and modeling files of transformers 5.23.0, one folder for each model_type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.anatomy.builders import Decoder
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import Heads, every, window_of, windows_by_type
from pipeline.anatomy.rows import Anatomy

Flag = bool | tuple[str, bool]  # fixed, or the config's field and its default
Windows = Callable[[Fields, int], list[int | None]]


def whole_context(fields: Fields, layers: int) -> list[int | None]:
    return [None] * layers


def one_window(fields: Fields, layers: int) -> list[int | None]:
    """The same window everywhere. A config without the field states no window: then every token counts."""
    return [window_of(fields)] * layers


def upper_layers(fields: Fields, layers: int) -> list[int | None]:
    """Qwen: with `use_sliding_window`, the layers from `max_window_layers` on; `layer_types` overrules."""
    window = window_of(fields, default=4096) if fields.flag("use_sliding_window") else None
    first = fields.count("max_window_layers", default=28, least=0)
    types = ["sliding_attention" if window and i >= first else "full_attention" for i in range(layers)]
    return windows_by_type(fields, layers, window or window_of(fields), types)


def last_of_period(period: int, window: int) -> Windows:
    """Sliding layers with a full one at the end of each period (`sliding_window_pattern` where the config has it)."""

    def windows(fields: Fields, layers: int) -> list[int | None]:
        n = fields.count("sliding_window_pattern", "_sliding_window_pattern", default=period)
        return windows_by_type(fields, layers, window_of(fields, default=window), every(layers, n))

    return windows


def listed(window: int | None = None) -> Windows:
    """Only what `layer_types` lists."""
    return lambda fields, layers: windows_by_type(fields, layers, window_of(fields, default=window))


@dataclass(frozen=True)
class Plain:
    tied: bool = False
    kv_heads: int | None = None  # the class default; None: one for each head
    head_dim: int | None = None  # the class default; None: hidden size by heads
    qkv_bias: Flag = False
    out_bias: Flag = False
    mlp_bias: Flag = False
    head_bias: Flag = False
    gated: bool = True
    fused_qkv: bool = False
    fused_mlp: bool = False
    norm_kind: str = "rms"
    norm_bias: bool | None = None
    norms: int = 2  # of the hidden size, in each layer
    final_norm: bool = True
    qk_norm: str | None = None
    qk_norm_flag: str | None = None  # the field that switches it on
    parallel: Flag = False
    windows: Windows = whole_context
    sinks: bool = False  # a learned logit for each head
    scalars: int = 0  # single learned values in each layer
    attention_dropout: float = 0.0
    flash: bool = True


def flag(fields: Fields, value: Flag) -> bool:
    return value if isinstance(value, bool) else fields.flag(value[0], default=value[1])


def read_plain(fields: Fields, plain: Plain) -> Anatomy:
    decoder = Decoder(fields, norm_kind=plain.norm_kind, norm_bias=plain.norm_bias)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    heads = Heads.read(fields, hidden, kv_default=plain.kv_heads, dim_default=plain.head_dim)
    qk_norm = plain.qk_norm if plain.qk_norm_flag is None or fields.flag(plain.qk_norm_flag) else None
    decoder.attentions(
        plain.windows(fields, layers),
        heads,
        bias=flag(fields, plain.qkv_bias),
        out_bias=flag(fields, plain.out_bias),
        fused=plain.fused_qkv,
        qk_norm=qk_norm,
    )
    if plain.sinks:
        decoder.vector("attention_sink", layers, heads.count, tensor_class="attention")
    decoder.mlp(
        layers,
        fields.count("intermediate_size"),
        gated=plain.gated,
        fused=plain.fused_mlp,
        bias=flag(fields, plain.mlp_bias),
    )
    if plain.scalars:
        decoder.vector("activation_scalar", layers, 1, plain.scalars, tensor_class="feed-forward")
    decoder.norm(layers, each=plain.norms)
    if plain.final_norm:
        decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings", default=plain.tied), bias=flag(fields, plain.head_bias))
    return decoder.build(is_block_parallel=flag(fields, plain.parallel), has_flash_attention=plain.flash)


ATTENTION_BIAS = ("attention_bias", False)
MLP_BIAS = ("mlp_bias", False)
LLAMA = Plain(qkv_bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS, mlp_bias=MLP_BIAS)

PLAIN: dict[str, Plain] = {
    "llama": LLAMA,
    "mistral": Plain(kv_heads=8, windows=one_window),
    "qwen2": Plain(qkv_bias=True, kv_heads=32, windows=upper_layers),
    "qwen3": Plain(
        qkv_bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS, kv_heads=32, head_dim=128, qk_norm="head",
        windows=upper_layers,
    ),
}  # fmt: skip


def _register(model_type: str, plain: Plain) -> None:
    @family(model_type)
    def read(fields: Fields) -> Anatomy:
        return read_plain(fields, plain)


for _model_type, _plain in PLAIN.items():
    _register(_model_type, _plain)
