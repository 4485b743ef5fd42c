"""The ways in which checkpoints hold a quantised matrix, and what the Hub's total counts of each.

`extra` is what a published total has beyond one element per weight: negative where several weights share a stored element,
positive where scales and zero points are counted. Which of them are depends on the format and on when the Hub read the
repository, so a format may have several lines here.

Sources: the safetensors accounting of huggingface.js (packages/hub, parse-safetensors-metadata.ts) for what is counted;
AutoGPTQ, AutoAWQ, bitsandbytes, compressed-tensors, Model Optimizer and MXFP4 in vLLM for what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

Shape = Callable[[int, int], int]  # (out_features, in_features) of one matrix → elements or bytes


@dataclass(frozen=True)
class Storage:
    """One way to hold a quantised matrix. `extra`: elements of the Hub's total beyond one per weight."""

    name: str
    dtype_id: str | None  # our format of the same bits, where the total tells it
    extra: Shape
    matrix_bytes: Shape | None = None  # None where a scale may be of two widths
    also: tuple[str, ...] = ()  # formats that this may be too, if the config says so
    spread: int = 0  # further elements per matrix that may be there, for a text of varying length
    has_own_bias: bool = False  # a bias is added where the model has none
    spared_layers: int = 0  # the first and the last are left in 16 bits
    is_fused: bool = False  # a routed expert's gate and up are one matrix, as the class of Transformers holds them
    held: str | None = None  # how its matrices are held (weight_format.csv), where that is not how dtype_id holds them


def _per(size: int, by: int) -> int:
    return -(-size // by)


def _grouped(bits: int, group: int, has_zero_points: bool, is_unpacked: bool, words: int) -> tuple[Shape, Shape]:
    """Integers packed into 32-bit words with a 16-bit scale per group, and `words` further elements per matrix."""

    def extra(out: int, into: int) -> int:
        groups = out * _per(into, group)
        weights = 0 if is_unpacked else out * into * bits // 32 - out * into
        zeros = (groups if is_unpacked else groups * bits // 32) if has_zero_points else 0
        return weights + groups + zeros + words

    def size(out: int, into: int) -> int:
        groups = out * _per(into, group)
        return out * into * bits // 8 + 2 * groups + (groups * bits // 8 if has_zero_points else 0) + 8 * words

    return extra, size


def _storages() -> Iterator[Storage]:
    yield Storage("one scale per block of 128 × 128", "fp8", lambda o, i: _per(o, 128) * _per(i, 128))
    yield Storage("one scale per output row, 8 bits", None, lambda o, i: o, also=("fp8", "int8"))
    spared = "one scale per output row, 8 bits, in all layers but the first and the last"
    yield Storage(spared, "fp8", lambda o, i: o, spared_layers=2)  # Llama 3.1 405B in FP8, feed-forward alone
    yield Storage("one scale per matrix", "fp8", lambda o, i: 1)
    yield Storage("a weight and an input scale per matrix", "fp8", lambda o, i: 2)
    fused = "a weight and an input scale per matrix, gate and up of an expert as one"
    yield Storage(fused, "fp8", lambda o, i: 2, is_fused=True)  # Mistral Small 4
    yield Storage("a bias of zeros beside each packed matrix", "gptq-int4", lambda o, i: o, has_own_bias=True)
    half, block = (lambda o, i: -o * i // 2), (lambda o, i: o * i // 2 + o * _per(i, 16))
    for name, scales, more in (
        ("4-bit floats counted in pairs", 0, 0),
        ("4-bit floats counted in pairs, a scale per 16", 1, 0),
        ("4-bit floats counted in pairs, a scale per 16 and one per matrix", 1, 1),
        ("4-bit floats counted in pairs, a scale per 16 and two per matrix", 1, 2),
        ("4-bit floats counted in pairs, two scales per matrix", 0, 2),
    ):
        yield Storage(
            name,
            "nvfp4",
            lambda o, i, s=scales, m=more: half(o, i) + s * o * _per(i, 16) + m,
            lambda o, i: block(o, i) + 8,
        )
    for more, name in ((0, "4-bit floats, a scale per 16"), (2, "4-bit floats, a scale per 16 and two per matrix")):
        yield Storage(name, "nvfp4", lambda o, i, m=more: o * _per(i, 16) + m, lambda o, i: block(o, i) + 8)
    for name, extra in (
        ("4-bit floats and a scale per 32", lambda o, i: o * _per(i, 32)),
        ("4-bit floats counted in pairs, a scale per 32", lambda o, i: half(o, i) + o * _per(i, 32)),
    ):
        yield Storage(name, "mxfp4", extra, lambda o, i: o * i // 2 + o * _per(i, 32))
    for group in (128, 64, 32):
        for zeros in (False, True):
            for unpacked in (True, False):
                for words in (2, 0):
                    extra, size = _grouped(4, group, zeros, unpacked, words)
                    counted = "4-bit integers" if unpacked else "4-bit integers counted as 32-bit words"
                    name = f"{counted}, a scale{' and a zero point' if zeros else ''} per {group}"
                    name += " and the shape of each matrix" if words else ""
                    dtype_id = ("awq-int4" if zeros else "gptq-int4") if group == 128 else None
                    also = ("awq-int4", "gptq-int4") if group == 128 else ()
                    held = None if group == 128 else f"gptq-int4-g{group}"
                    yield Storage(name, dtype_id, extra, size, also, held=held)
    # bitsandbytes: U8 counts double, so does the scale per 64 in double quantisation; 16 + 256 values of the code tables;
    # the state is a JSON text of 150 to 190 bytes, counted double
    yield Storage(
        "4-bit NormalFloat with its scales, tables and a text per matrix",
        "nf4",
        lambda o, i: 2 * _per(o * i, 64) + _per(_per(o * i, 64), 256) + 272 + 2 * 150,
        lambda o, i: o * i // 2 + _per(o * i, 64) + 4 * _per(_per(o * i, 64), 256) + 4 * 272 + 170,
        spread=2 * 40,
    )


STORAGES = tuple(_storages())
