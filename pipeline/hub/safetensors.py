"""Tensors from the headers of safetensors files: the format of github.com/huggingface/safetensors.

A file starts with the length of its header (8 bytes, little endian) and the header: JSON of tensor name → dtype, shape,
data_offsets. Shapes, dtypes and offsets must agree with each other and with the size of the file; a header that lies is
Malformed. The data are never asked for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from huggingface_hub.constants import SAFETENSORS_MAX_HEADER_LENGTH

from pipeline.base.bounds import LARGEST_TOTAL
from pipeline.hub.careful import Malformed, parse

FIRST_BYTES = 100_000  # holds the whole header of most files, as the library found
MOST_TENSORS = 2_000_000
# bits per element
BITS = {
    **dict.fromkeys(("F4", "F4_E2M1"), 4),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}

Tensor = tuple[str, str, list[int]]  # name, dtype, shape
Part = Callable[[int, int], tuple[bytes, int | None]]  # bytes start..stop of a file, and the size of the whole


def read_header(part: Part) -> tuple[Any, int | None]:
    """The header of one file and the bytes of data behind it, if the size of the file is known."""
    content, size = part(0, FIRST_BYTES)
    if len(content) < 8:
        raise Malformed("too short for a safetensors file")
    length = int.from_bytes(content[:8], "little")
    if not 2 <= length <= SAFETENSORS_MAX_HEADER_LENGTH or (size is not None and length + 8 > size):
        raise Malformed(f"a safetensors header of {length:,} bytes")
    if len(content) < length + 8:
        # the range ends where the file does, or the header is longer than the first guess
        more, _ = part(len(content), length + 8)
        content += more
    if len(content) < length + 8:
        raise Malformed("the safetensors header ends early")
    header = parse(content[8 : length + 8], deepest=8, most_nodes=5 * 10**6)
    return header, size - length - 8 if size is not None else None


def read_tensors(headers: Iterable[tuple[str, Any, int | None]]) -> list[Tensor]:
    """Every tensor of the files of a model: (file, header, bytes of data). Raises Malformed with the tensor's name."""
    found: list[Tensor] = []
    seen: dict[str, str] = {}
    for file, header, size in headers:
        if not isinstance(header, Mapping):
            raise Malformed(f"the header of {file[:80]!r} is no object")
        spans = []
        for name, tensor in header.items():
            if name == "__metadata__":
                continue
            if name in seen:
                raise Malformed(f"tensor {name[:80]!r} is in {seen[name][:80]!r} and in {file[:80]!r}")
            seen[name] = file
            dtype, shape, span = _tensor(name, tensor)
            found.append((name, dtype, shape))
            spans.append(span)
            if len(seen) > MOST_TENSORS:  # before the next file is asked for
                break
        _check_spans(file, spans, size)
        if len(seen) > MOST_TENSORS:
            break
    if not 0 < len(seen) <= MOST_TENSORS:
        raise Malformed(f"{len(seen):,} tensors")
    return found


def elements_by_dtype(tensors: Iterable[Tensor]) -> dict[str, int]:
    """Raises Malformed where they are none, or more than any model's."""
    counts: Counter[str] = Counter()
    for _, dtype, shape in tensors:
        counts[dtype] += math.prod(shape)
    if not 0 < sum(counts.values()) <= LARGEST_TOTAL:
        raise Malformed(f"{sum(counts.values()):,} elements")
    return dict(sorted(counts.items()))


def _tensor(name: str, tensor: Any) -> tuple[str, list[int], tuple[int, int]]:
    shown = name[:80]
    if not isinstance(tensor, Mapping):
        raise Malformed(f"tensor {shown!r} is no object")
    dtype, shape, offsets = tensor.get("dtype"), tensor.get("shape"), tensor.get("data_offsets")
    bits = BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        raise Malformed(f"tensor {shown!r} is of dtype {str(dtype)[:20]!r}")
    if not isinstance(shape, list) or len(shape) > 16 or not all(map(_is_count, shape)):
        raise Malformed(f"tensor {shown!r} has no shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise Malformed(f"tensor {shown!r} has no offsets")
    elements = math.prod(shape)
    start, stop = offsets
    if elements > LARGEST_TOTAL or -(-elements * bits // 8) != stop - start:
        raise Malformed(f"tensor {shown!r} of shape {str(shape)[:60]} and {dtype} does not take {stop - start:,} bytes")
    return dtype, shape, (start, stop)


def _check_spans(file: str, spans: list[tuple[int, int]], size: int | None) -> None:
    end = 0
    for start, stop in sorted(spans):
        if start < end:
            raise Malformed(f"tensors of {file[:80]!r} overlap")
        end = stop
    if size is not None and end > size:
        raise Malformed(f"{file[:80]!r} should hold {end:,} bytes of tensors, but has {size:,}")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2**63
