"""What frames a layer of a decoder: which attention, biases and norms it has, said once for plain families and for those with experts."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.windows import Windows, whole_context
from pipeline.anatomy.reading import Heads, is_causal

# Fixed, or the config's field (its synonyms after it, and what holds for a type that the library lacks).
Flag = bool | str | tuple[str | bool, ...]


@dataclass(frozen=True)
class Plain:
    qkv_bias: Flag = False
    out_bias: Flag = False
    mlp_bias: Flag = False
    head_bias: Flag = False
    gated: bool = True
    fused_qkv: bool = False
    fused_mlp: bool = False
    norm_kind: str = "rms"
    norm_bias: bool | None = None
    rms_field: str | None = None  # a field whose value makes every norm an RMS norm
    norms: int = 2  # of the hidden size, in each layer; 0: norms without weights
    post_norms: Flag = False  # two more, after attention and after feed-forward
    sub_norms: bool = False  # before the two output projections
    qk_norm: str | None = None
    qk_norm_bias: bool | None = None
    qk_norm_flag: Flag = True
    parallel: Flag = False  # attention and feed-forward side by side, after one norm
    windows: Windows = whole_context
    sinks: bool = False  # a learned logit for each head
    output_gate: str | None = None  # a projection that gates each "element" or each "head" of what attention returns
    scalars: int = 0  # single learned values in each layer
    flash: bool = True
    stores_rotary: bool = False
    bare_qk_norms: bool = False  # of queries and keys, without a weight; GGUF files hold ones for them
    ties: bool | None = None  # where the config is silent and the library has no class to ask
    is_remote: bool = False  # its code travels with checkpoints and may be another's
    predicts: bool = False  # checkpoints may hold layers that predict further tokens, which nothing loads
    predicts_bare: bool = False  # which read the embedding and the head of the model, and hold none of their own


def flag(fields: Fields, value: Flag) -> bool:
    if isinstance(value, bool):
        return value
    names = (value,) if isinstance(value, str) else value
    *names, default = names if isinstance(names[-1], bool) else (*names, None)
    return fields.flag(*names, default=default)


def norm_kind(fields: Fields, plain: Plain) -> str:
    is_rms = plain.rms_field and fields.raw(plain.rms_field, default=fields.by_class(plain.rms_field)) is not None
    return "rms" if is_rms else plain.norm_kind


def attend(decoder: Decoder, fields: Fields, plain: Plain, windows: list[int | None]) -> Heads:
    """The attention of as many layers as there are windows."""
    heads = Heads.read(fields, decoder.hidden)
    decoder.attentions(
        windows,
        heads,
        bias=flag(fields, plain.qkv_bias),
        out_bias=flag(fields, plain.out_bias),
        fused=plain.fused_qkv,
        qk_norm=plain.qk_norm if flag(fields, plain.qk_norm_flag) else None,
        qk_norm_bias=plain.qk_norm_bias,
        causal=is_causal(fields),
    )
    if plain.sinks:
        decoder.vector("attention_sink", len(windows), heads.count, tensor_class="attention")
    if plain.output_gate:
        rows = heads.count * (heads.dim if plain.output_gate == "element" else 1)
        decoder.linear("attention", "attention_gate", len(windows), rows, decoder.hidden)
    return heads
