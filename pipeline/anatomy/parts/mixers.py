"""Token mixers with a state of constant size: Mamba, Mamba-2, gated delta nets, short convolutions, RG-LRU.

A state is counted in elements per layer and sequence, independent of the length. As transformers 5.23.0 keeps them, the
recurrent state is fp32 and the convolution's last inputs (channels × kernel) have the model's dtype.
Shapes are [out, in] with h the hidden size; a depthwise convolution has channels × kernel elements.
"""

from __future__ import annotations

from pipeline.anatomy.parts.builders import Decoder

DELTA_CHUNK = 64  # tokens that gated delta nets solve at once, whatever the config says


def recurrent(
    decoder: Decoder,
    layers: int,
    *,
    kind: str = "recurrent",
    state: int = 0,
    conv: int = 0,
    recurrence: str | None = None,
    heads: int = 0,
    key: int = 0,
    value: int = 0,
    channels: int = 0,
    chunk: int = 0,
) -> None:
    decoder.mixer(
        kind=kind,
        mechanism="recurrent",
        layer_count=layers,
        state_elements=state,
        conv_state_elements=conv,
        state_dtype_id="fp32" if state else None,
        recurrence=recurrence,
        recurrent_head_count=heads,
        recurrent_key_dim=key,
        recurrent_value_dim=value,
        convolution_width=channels,
        chunk_tokens=chunk,
    )


def convolution(decoder: Decoder, layers: int, channels: int, kernel: int, *, bias: bool) -> None:
    decoder.add("recurrent", "convolution", "conv", layers, channels * kernel)
    if bias:
        decoder.vector("bias", layers, channels)


def mamba(
    decoder: Decoder,
    layers: int,
    *,
    inner: int,
    state: int,
    kernel: int,
    rank: int,
    conv_bias: bool,
    bias: bool,
    has_norms: bool = False,
) -> None:
    """Mamba: in h → 2·inner, x inner → rank + 2·state, dt rank → inner, a decay of [inner, state], out inner → h."""
    linear = decoder.linear
    linear("recurrent", "mamba_in", layers, 2 * inner, decoder.hidden, bias=bias)
    convolution(decoder, layers, inner, kernel, bias=conv_bias)
    linear("recurrent", "mamba_x", layers, rank + 2 * state, inner)
    linear("recurrent", "mamba_dt", layers, inner, rank, bias=True)
    linear("recurrent", "mamba_out", layers, decoder.hidden, inner, bias=bias)
    decoder.parameter("recurrent", "decay", layers, inner * state)
    decoder.vector("skip", layers, inner, tensor_class="recurrent")
    if has_norms:
        decoder.norm(layers, rank)
        decoder.norm(layers, state, 2)
    widths = {"heads": inner, "key": state, "value": 1, "channels": inner}
    recurrent(decoder, layers, state=inner * state, conv=inner * kernel, recurrence="mamba", **widths)


def mamba2(
    decoder: Decoder,
    layers: int,
    *,
    heads: int,
    dim: int,
    state: int,
    groups: int,
    kernel: int,
    conv_bias: bool,
    bias: bool,
    out_bias: bool | None = None,
    has_norm: bool = True,
    chunk: int,
    kind: str = "recurrent",
) -> None:
    """Mamba-2: in h → 2·inner + 2·groups·state + heads, a convolution over inner + 2·groups·state channels."""
    inner = heads * dim
    channels = inner + 2 * groups * state
    decoder.linear("recurrent", "mamba_in", layers, inner + channels + heads, decoder.hidden, bias=bias)
    convolution(decoder, layers, channels, kernel, bias=conv_bias)
    out_bias = bias if out_bias is None else out_bias
    decoder.linear("recurrent", "mamba_out", layers, decoder.hidden, inner, bias=out_bias)
    decoder.vector("decay", layers, heads, 3, tensor_class="recurrent")  # step bias, decay, skip
    if has_norm:
        decoder.norm(layers, inner, bias=False)
    widths = {"heads": heads, "key": state, "value": dim, "channels": channels, "chunk": chunk}
    recurrent(decoder, layers, kind=kind, state=inner * state, conv=channels * kernel, recurrence="mamba2", **widths)


def gated_delta(
    decoder: Decoder,
    layers: int,
    *,
    key_heads: int,
    key_dim: int,
    value_heads: int,
    value_dim: int,
    kernel: int,
    fused: bool,
) -> None:
    """Gated delta net: a matrix of key_dim × value_dim for each value head.

    Queries, keys, values and the gate z are one projection or two, and so are the write and decay gates b and a.
    """
    key, value = key_heads * key_dim, value_heads * value_dim
    linear = decoder.linear
    if fused:
        linear("recurrent", "delta_qkvz", layers, 2 * key + 2 * value, decoder.hidden)
        linear("recurrent", "delta_ba", layers, 2 * value_heads, decoder.hidden)
    else:
        linear("recurrent", "delta_qkv", layers, 2 * key + value, decoder.hidden)
        linear("recurrent", "delta_z", layers, value, decoder.hidden)
        linear("recurrent", "delta_b", layers, value_heads, decoder.hidden)
        linear("recurrent", "delta_a", layers, value_heads, decoder.hidden)
    convolution(decoder, layers, 2 * key + value, kernel, bias=False)
    decoder.vector("decay", layers, value_heads, 2, tensor_class="recurrent")  # step bias, decay
    decoder.norm(layers, value_dim)
    linear("recurrent", "delta_out", layers, decoder.hidden, value)
    recurrent(
        decoder,
        layers,
        state=value_heads * key_dim * value_dim,
        conv=(2 * key + value) * kernel,
        recurrence="gated-delta-fused" if fused else "gated-delta",
        heads=value_heads,
        key=key_dim,
        value=value_dim,
        channels=2 * key + value,
        chunk=DELTA_CHUNK,
    )


def kimi_delta(
    decoder: Decoder,
    layers: int,
    *,
    heads: int,
    dim: int,
    kernel: int,
    full_rank: tuple[str, ...] = (),
    decays: int | None = None,
) -> None:
    """Kimi delta attention: a gated delta net whose decay is a vector, h → dim → heads·dim, like its output gate.

    `full_rank`: which of "decay" and "gate" are h → heads·dim at once. `decays`: logarithms of decay, one for each head.
    """
    inner, linear = heads * dim, decoder.linear
    for role in ("delta_q", "delta_k", "delta_v"):
        linear("recurrent", role, layers, inner, decoder.hidden)
    convolution(decoder, layers, 3 * inner, kernel, bias=False)
    linear("recurrent", "delta_b", layers, heads, decoder.hidden)
    for role in ("decay", "gate"):
        if role in full_rank:
            linear("recurrent", f"delta_{role}", layers, inner, decoder.hidden)
        else:
            linear("recurrent", f"delta_{role}_a", layers, dim, decoder.hidden)
            linear("recurrent", f"delta_{role}_b", layers, inner, dim)
    decoder.vector("decay", layers, inner, tensor_class="recurrent")
    decoder.vector("decay", layers, decays or heads, tensor_class="recurrent")
    decoder.norm(layers, dim)
    linear("recurrent", "delta_out", layers, decoder.hidden, inner)
    widths = {"heads": heads, "key": dim, "value": dim, "channels": 3 * inner, "chunk": DELTA_CHUNK}
    recurrent(decoder, layers, state=heads * dim * dim, conv=3 * inner * kernel, recurrence="kimi-delta", **widths)


def short_convolution(decoder: Decoder, layers: int, kernel: int, *, bias: bool) -> None:
    """LFM2: h → 3·h, a gated convolution over h channels, h → h. Nothing but its last inputs is kept."""
    decoder.linear("recurrent", "convolution_in", layers, 3 * decoder.hidden, decoder.hidden, bias=bias)
    convolution(decoder, layers, decoder.hidden, kernel, bias=bias)
    decoder.linear("recurrent", "convolution_out", layers, decoder.hidden, decoder.hidden, bias=bias)
    recurrent(
        decoder,
        layers,
        kind="convolution",
        conv=decoder.hidden * kernel,
        recurrence="short-convolution",
        channels=decoder.hidden,
    )


def rg_lru(decoder: Decoder, layers: int, *, width: int, heads: int, kernel: int) -> None:
    """RecurrentGemma: two projections h → width, a convolution, gates block-diagonal over the heads, width → h."""
    for role in ("lru_x", "lru_y"):
        decoder.linear("recurrent", role, layers, width, decoder.hidden, bias=True)
    convolution(decoder, layers, width, kernel, bias=True)
    decoder.vector("decay", layers, width, tensor_class="recurrent")
    decoder.parameter("recurrent", "lru_gate", layers, width * width // heads, 2)
    decoder.vector("bias", layers, width, 2)
    decoder.linear("recurrent", "lru_out", layers, decoder.hidden, width, bias=True)
    widths = {"heads": heads, "key": 1, "value": width // heads, "channels": width}
    recurrent(decoder, layers, state=width, conv=width * (kernel - 1), recurrence="rg-lru", **widths)
