"""Logical matrices from the tensors that packed formats make of them: shape, format, and the scales that come along.

A quantised matrix is several tensors of one module: the packed values and scales, zero points, tables, shapes. `unpack` takes
the tensors of a header and gives, for each matrix, its logical shape. Rules by format, with [out, in] the logical shape, b
bits and g elements that share a scale:

    GPTQ                qweight I32 [in·b/32, out], qzeros I32 [in/g, out·b/32], scales [in/g, out], g_idx [in]
    AWQ                 qweight I32 [in, out·b/32], qzeros I32 [in/g, out·b/32], scales [in/g, out]
    bitsandbytes 4-bit  weight U8 [out·in/2, 1], weight.absmax, weight.quant_map, weight.nested_*, weight.quant_state.*
    bitsandbytes 8-bit  weight I8 [out, in], SCB [out], weight_format
    compressed-tensors  weight_packed I32 [out, in·b/32] or U8 [out, in/2], weight_scale [out, in/g], weight_zero_point, weight_shape
    FP8, INT8           weight [out, in], weight_scale, weight_scale_inv [out/128, in/128], scale, input_scale
    NVFP4               weight U8 [out, in/2], weight_scale F8_E4M3 [out, in/16], weight_scale_2 or weight_global_scale
    MXFP4               *_blocks U8 [experts, out, in/32, 16], *_scales U8 [experts, out, in/32]; or as NVFP4 with g = 32
    MLX                 weight U32 [out, in·b/32], scales [out, in/g], biases [out, in/g]

Sources: AutoGPTQ, AutoAWQ, bitsandbytes, compressed-tensors, Model Optimizer, the MXFP4 of Transformers (5.23.0), MLX.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.hub.gguf_types import BLOCKS, bytes_of
from pipeline.hub.safetensors import BITS

# What a tensor is to its module, by how its name ends. The values come first.
_VALUES = ("qweight", "weight_packed", "_blocks", "weight")
_BESIDES = (
    "qzeros", "scales", "g_idx", "biases", "SCB", "weight_format", "input_scale", "output_scale", "scale", "scale_weight",
    "weight_scale", "weight_scale_2", "weight_scale_inv", "weight_zero_point", "weight_shape", "weight_g_idx",
    "weight_global_scale", "input_global_scale", "input_scale_ub", "activation_scale", "pre_quant_scale",
)  # fmt: skip
_SCALES = ("scale", "scales", "biases", "_scale", "_scales")  # that may be parameters of their own
_FUSED = ("_scales", "_scale_inv", "_weight_scale_2", "_weight_scale", "_input_scale", "_scale", "_global_scale")
_STATE = re.compile(r"\.weight\.(absmax|quant_map|nested_absmax|nested_quant_map|quant_state\.bitsandbytes__\w+)$")
_PLAIN = ("F64", "F32", "F16", "BF16")
_FLOATS8 = ("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ")
_WORDS = ("I32", "U32")
_CHOICES = (4, 8, 2, 3, 5, 6)  # bits of packed integers
_GROUPS = (16, 32, 64, 128, 256, 512, 1024)  # that share a scale


Form = tuple[int | None, int | None]  # bits of packed integers, and how many share a scale


class NotDescribed(ValueError):
    """The headers hold weights in a form that is not described; the message is for people."""


@dataclass(frozen=True)
class Row:
    """Tensors of one pattern, dtype and shape: `count` of them, in these layers."""

    pattern: str
    dtype: str
    shape: tuple[int, ...]
    count: int
    layers: frozenset[int] = frozenset()

    @property
    def element_count(self) -> int:
        return math.prod(self.shape) * self.count

    @property
    def bytes(self) -> int:
        """Raises NotDescribed for a type of unknown width."""
        if self.dtype in BITS:
            return -(-math.prod(self.shape) * BITS[self.dtype] // 8) * self.count
        if self.dtype in BLOCKS:
            try:
                return bytes_of(self.dtype, self.shape) * self.count
            except ValueError as problem:
                raise NotDescribed(f"{self.pattern}: {problem}") from None
        raise NotDescribed(f"tensors of type {self.dtype}")

    def within(self, layers: frozenset[int]) -> Row | None:
        """The part of the row that lies in these layers: each layer has as many."""
        inside = self.layers & layers
        if not inside or self.count % len(self.layers):
            return self if inside == self.layers and inside else None
        return replace(self, layers=inside, count=self.count // len(self.layers) * len(inside))


@dataclass(frozen=True)
class Matrix:
    """`row` as stored, and what it stands for: `shape` of one tensor, no elements where it only helps another.

    `name` is what the matrix is called without the format's endings, `storage` the format.
    """

    row: Row
    name: str
    storage: str
    shape: tuple[int, ...] | None


def unpack(rows: Sequence[Row], form: Form = (None, None)) -> list[Matrix]:
    """Every row with what it stands for. `form`: bits of packed integers and their group, where a config says so. Raises NotDescribed."""
    modules: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        module, part = _split(row.pattern)
        modules[module][part].append(row)
    widths = _widths(rows)
    form = (form[0] or _usual_bits(modules, widths), form[1])
    found = []
    for module, parts in modules.items():
        found += _module(module, parts, widths, form)
    return found


def _split(pattern: str) -> tuple[str, str]:
    """The module that a tensor belongs to, and what it is to it."""
    state = _STATE.search(pattern)
    if state:
        return pattern[: state.start()], "state"
    module, _, last = pattern.rpartition(".")
    if last in _VALUES or last in _BESIDES:
        return module, last
    for ending in ("_blocks", *_FUSED):
        if last.endswith(ending):
            return pattern.removesuffix(ending), ending
    return pattern, "weight"


def _widths(rows: Iterable[Row]) -> frozenset[int]:
    """Widths that the model is known to have: of its norms and of what its matrices give."""
    found = set()
    for row in rows:
        if row.dtype in _PLAIN and len(row.shape) == 1:
            found.add(row.shape[0])
        elif len(row.shape) >= 2 and row.pattern.endswith((".weight", ".weight_packed")):
            found.add(row.shape[-2])
    return frozenset(found)


def _module(module: str, parts: dict[str, list[Row]], widths: frozenset[int], form: Form) -> list[Matrix]:
    values = next((name for name in _VALUES if name in parts), None)
    if values is None:
        # a scale that belongs to no matrix: a parameter of that name
        return [Matrix(row, row.pattern, row.dtype, row.shape) for found in parts.values() for row in found]
    besides = {name: found for name, found in parts.items() if name != values}
    own = []
    if all(row.dtype in _PLAIN for row in parts[values]) and "state" not in parts:
        # beside plain weights a tensor of such a name is a parameter: the scale of a norm, a gate
        own = [row for name in _SCALES for row in besides.pop(name, ())]
    matrices = [Matrix(row, row.pattern, row.dtype, row.shape) for row in own]
    storage = ""
    for row in parts[values]:
        near = {name: _nearest(row, found) for name, found in besides.items()}
        storage, shape = _read(values, row, near, widths, form)
        matrices.append(Matrix(row, module, storage, shape))
    return matrices + [Matrix(row, module, storage, None) for found in besides.values() for row in found]


def _nearest(row: Row, found: list[Row]) -> Row:
    """Of the rows of one part the one that shares most layers."""
    return max(found, key=lambda other: (len(other.layers & row.layers), other.count == row.count))


def _read(
    values: str, row: Row, near: dict[str, Row], widths: frozenset[int], form: Form
) -> tuple[str, tuple[int, ...]]:
    """Format and logical shape of one matrix."""
    if values == "qweight":
        return _grouped(row, near)
    if values == "_blocks":
        *lead, groups, half = _shape(row, 3)
        return "mxfp4", (*lead, groups * half * 2)
    if values == "weight_packed":
        return _compressed(row, near, widths, form)
    if "state" in near and row.dtype in ("U8", "I8", "BF16", "F16", "F32"):
        per = 2 * BITS[row.dtype] // 8
        return "nf4", (row.shape[0] * per if row.shape else per,)
    if row.dtype in ("I8", "U8", "F4"):
        return _bytes(row, near)
    if row.dtype in _WORDS and "scales" in near:
        return _words(row, _shape(near["scales"], 1)[-1], "biases" in near, widths, form)
    if row.dtype in _WORDS and len(row.shape) > 1:
        raise NotDescribed(f"{row.pattern} holds {row.dtype} words without scales")
    if row.dtype in _FLOATS8:
        return "fp8", row.shape
    return row.dtype, row.shape


def _shape(row: Row, least: int) -> tuple[int, ...]:
    if len(row.shape) < least:
        raise NotDescribed(f"{row.pattern} has {len(row.shape)} dimensions")
    return row.shape


def _grouped(row: Row, near: dict[str, Row]) -> tuple[str, tuple[int, ...]]:
    if row.dtype not in _WORDS or "qzeros" not in near or "scales" not in near:
        raise NotDescribed(f"{row.pattern} comes without zero points or scales")
    rows, columns = _shape(row, 2)[-2:]
    out = _shape(near["scales"], 2)[-1]
    bits, rest = divmod(_shape(near["qzeros"], 2)[-1] * 32, out or 1)
    if rest or bits not in _CHOICES:
        raise NotDescribed(f"the zero points of {row.pattern} do not fit its scales")
    if columns == out:
        return f"gptq-int{bits}", (*row.shape[:-2], out, rows * 32 // bits)
    if columns * 32 == out * bits:
        return f"awq-int{bits}", (*row.shape[:-2], out, rows)
    raise NotDescribed(f"{row.pattern} fits neither GPTQ nor AWQ")


def _compressed(row: Row, near: dict[str, Row], widths: frozenset[int], form: Form) -> tuple[str, tuple[int, ...]]:
    scale = near.get("weight_scale")
    if scale is None:
        raise NotDescribed(f"{row.pattern} comes without scales")
    if row.dtype in ("U8", "I8"):
        return _bytes(row, near)
    if row.dtype not in _WORDS:
        raise NotDescribed(f"{row.pattern} holds {row.dtype}")
    zeros, out = near.get("weight_zero_point"), _shape(row, 2)[-2]
    if zeros is not None and zeros.dtype in _WORDS and len(zeros.shape) > 1 and 0 < zeros.shape[-2] < out:
        form = (zeros.shape[-2] * 32 // out, None)
    return _words(row, _shape(scale, 1)[-1], False, widths, form)


def _words(row: Row, groups: int, has_biases: bool, widths: frozenset[int], form: Form) -> tuple[str, tuple[int, ...]]:
    """Integers in 32-bit words along the inputs: as many bits as give a width that the model is known to have."""
    *lead, out, columns = _shape(row, 2)
    bits, group = form
    fits = _fitting_bits(columns, groups, widths)
    if bits and group and columns * 32 == bits * group * groups:
        chosen = bits
    elif len(fits) == 1:
        chosen = fits[0]
    elif bits and (bits in fits or not fits) and columns * 32 % bits == 0:
        chosen = bits
    else:
        raise NotDescribed(f"how many bits the integers of {row.pattern} have is not to be seen")
    name = f"mlx-{chosen}bit" if has_biases or row.dtype == "U32" else f"int{chosen}"
    return name, (*lead, out, columns * 32 // chosen)


def _fitting_bits(columns: int, groups: int, widths: frozenset[int]) -> list[int]:
    """The bits with which words are as wide as some part of the model, in groups of a usual size."""
    fits = []
    for bits in _CHOICES:
        width, rest = divmod(columns * 32, bits)
        is_whole = not rest and groups > 0 and width % groups == 0
        if is_whole and width in widths and (groups == 1 or width // groups in _GROUPS):
            fits.append(bits)
    return fits


def _usual_bits(modules: Mapping[str, Mapping[str, list[Row]]], widths: frozenset[int]) -> int | None:
    """The bits that fit most of the model's matrices, where one number does."""
    votes: Counter[int] = Counter()
    for parts in modules.values():
        scales = parts.get("scales") or parts.get("weight_scale") or []
        for row in (parts.get("weight_packed") or parts.get("weight") or []) if scales else []:
            scale = _nearest(row, scales)
            if row.dtype in _WORDS and len(row.shape) > 1 and scale.shape:
                votes.update(_fitting_bits(row.shape[-1], scale.shape[-1], widths))
    best = votes.most_common(2)
    return best[0][0] if best and (len(best) == 1 or best[0][1] > best[1][1]) else None


def _bytes(row: Row, near: dict[str, Row]) -> tuple[str, tuple[int, ...]]:
    """Bytes that hold an 8-bit integer, or two 4-bit floats where the scales lie that close."""
    if row.dtype == "F4":
        return "nvfp4" if near else row.dtype, row.shape
    if "SCB" in near:
        return "int8", row.shape
    scale = next((near[n] for n in ("weight_scale", "scale", "_weight_scale", "_scale") if n in near), None)
    if scale is None:
        raise NotDescribed(f"{row.pattern} holds {row.dtype} without scales")
    if len(row.shape) > 1 and len(scale.shape) == len(row.shape) and scale.shape[-1] > 0:
        group, rest = divmod(2 * row.shape[-1], scale.shape[-1])
        is_block = scale.shape[-2] == row.shape[-2] and not rest
        if is_block and group == 16 and scale.dtype in _FLOATS8:
            return "nvfp4", (*row.shape[:-1], 2 * row.shape[-1])
        if is_block and group == 32 and scale.dtype in ("U8", "F8_E8M0"):
            return "mxfp4", (*row.shape[:-1], 2 * row.shape[-1])
    if row.dtype != "I8":
        raise NotDescribed(f"{row.pattern} holds bytes whose scales are {list(scale.shape)} {scale.dtype}")
    return "int8", row.shape
