"""Elements by ggml type from the header of a GGUF file: the format of docs/gguf.md in github.com/ggml-org/ggml.

The header is metadata (mostly the tokenizer, megabytes of it) and a list of tensors; its length is not told, so the file is
read from the front in growing parts until the list is whole. Versions 2 and 3, little endian. The data are never asked for.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.hub.careful import Malformed
from pipeline.hub.record import LARGEST_TOTAL

PARTS = (2**20, 6 * 2**20, 24 * 2**20, 64 * 2**20)  # bytes from the front that are asked for in turn
MOST_TENSORS = 200_000
MOST_PAIRS = 20_000
# enum ggml_type of ggml.h
# fmt: off
_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0",
    9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K",
    16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S",
    23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M",
    30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}
# fmt: on
_STRING, _ARRAY = 8, 9
_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes by gguf_metadata_value_type
_DEEPEST = 4

Part = Callable[[int, int], tuple[bytes, int | None]]


class _More(Exception):
    """The header goes on beyond what has been read."""


@dataclass
class _Reader:
    content: bytes
    at: int = 0

    def take(self, size: int) -> int:
        """Moves on by so many bytes; gives where they start."""
        start = self.at
        if size > PARTS[-1]:
            raise Malformed(f"a field of {size:,} bytes in a GGUF header")
        if start + size > len(self.content):
            raise _More
        self.at = start + size
        return start

    def number(self, form: str) -> int:
        return struct.unpack_from(form, self.content, self.take(struct.calcsize(form)))[0]

    def text(self) -> bytes:
        size = self.number("<Q")
        start = self.take(size)
        return self.content[start : start + size]

    def skip(self, kind: int, depth: int = 0) -> None:
        if kind in _SCALARS:
            self.take(_SCALARS[kind])
        elif kind == _STRING:
            self.take(self.number("<Q"))
        elif kind == _ARRAY and depth < _DEEPEST:
            of, count = self.number("<I"), self.number("<Q")
            if of in _SCALARS:
                self.take(_SCALARS[of] * count)
            else:
                if count > PARTS[-1] // 8:
                    raise Malformed(f"an array of {count:,} in a GGUF header")
                for _ in range(count):
                    self.skip(of, depth + 1)
        else:
            raise Malformed(f"a GGUF value of type {kind}")


def read_types(part: Part) -> dict[str, int]:
    """Elements by type of one file. Raises Malformed."""
    content, size = b"", None
    for stop in PARTS:
        if size is not None and len(content) >= size:
            break
        more, told = part(len(content), stop)
        size = told if told is not None else size
        content += more
        try:
            return _types(_Reader(content))
        except _More:
            if len(content) < stop:
                break  # the file ends here
    raise Malformed(f"the GGUF header does not end in {len(content):,} bytes")


def _types(reader: _Reader) -> dict[str, int]:
    if reader.content[:4] != b"GGUF":
        raise Malformed("not a GGUF file")
    reader.take(4)
    version = reader.number("<I")
    if version not in (2, 3):
        raise Malformed(f"GGUF version {version}")
    tensors, pairs = reader.number("<Q"), reader.number("<Q")
    if tensors > MOST_TENSORS or pairs > MOST_PAIRS:
        raise Malformed(f"a GGUF header of {tensors:,} tensors and {pairs:,} pairs")
    for _ in range(pairs):
        reader.take(reader.number("<Q"))
        reader.skip(reader.number("<I"))
    counts: Counter[str] = Counter()
    seen = set()
    for _ in range(tensors):
        name = reader.text()
        if name in seen or len(name) > 1000:
            raise Malformed(f"GGUF tensor {name[:60]!r} is listed twice or has no name")
        seen.add(name)
        dims = reader.number("<I")
        if dims > 8:
            raise Malformed(f"a GGUF tensor of {dims} dimensions")
        elements = math.prod(reader.number("<Q") for _ in range(dims))
        kind = reader.number("<I")
        reader.take(8)  # the offset of its data
        if elements > LARGEST_TOTAL or kind > 1000:
            raise Malformed(f"GGUF tensor {name[:60]!r} of {elements:,} elements, type {kind}")
        counts[_name(kind)] += elements
    if sum(counts.values()) > LARGEST_TOTAL:
        raise Malformed(f"{sum(counts.values()):,} elements")
    return dict(sorted(counts.items()))


def _name(kind: int) -> str:
    return _TYPES.get(kind, f"type {kind}")
