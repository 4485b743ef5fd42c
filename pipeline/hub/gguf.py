"""Tensors from the header of a GGUF file: the format of docs/gguf.md in github.com/ggml-org/ggml.

The header is metadata (mostly the tokenizer, megabytes of it) and a list of tensors; its length is not told, so the file is
read from the front in growing parts until the list is whole. Versions 2 and 3, little endian. The data are never asked for.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pipeline.base.bounds import LARGEST_TOTAL, MOST_REPEATS
from pipeline.hub.careful import Malformed
from pipeline.hub.gguf_types import bytes_of, type_name

PARTS = (2**20, 6 * 2**20, 24 * 2**20, 64 * 2**20)  # bytes from the front that are asked for in turn
MOST_TENSORS = 200_000
MOST_PAIRS = 20_000
_STRING, _ARRAY = 8, 9
_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes by gguf_metadata_value_type
_FORMS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_DEEPEST = 4
_ARCHITECTURE = b"general.architecture"
_LONGEST_NAME = 200  # of metadata that are kept; of arrays MOST_REPEATS: longer ones have no entry for each layer
_MOST_KEPT = (
    20 * MOST_REPEATS
)  # of all arrays: a file has a few with an entry for each layer; a hostile one has megabytes of them

Tensor = tuple[str, str, list[int]]  # name, type, shape
Metadata = dict[str, int | float | bool | str | list]  # what the file says of its architecture, without the tokenizer
Part = Callable[[int, int], tuple[bytes, int | None]]


class _More(Exception):
    """The header goes on beyond what has been read."""


@dataclass
class _Reader:
    content: bytes
    at: int = 0
    kept: int = 0  # numbers of arrays

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

    def value(self, kind: int) -> int | float | bool | str | list | None:
        """A number, a short text or a list of numbers; None where it is something else, which is passed over."""
        if kind in _FORMS:
            return self.number(_FORMS[kind])
        start = self.at
        if kind == _STRING:
            text = self.text()
            return text.decode("utf-8", "replace") if len(text) <= _LONGEST_NAME else None
        if kind == _ARRAY:
            of, count = self.number("<I"), self.number("<Q")
            if of in _FORMS and count <= MOST_REPEATS and self.kept + count <= _MOST_KEPT:
                form = f"<{count}{_FORMS[of][1]}"
                self.kept += count
                return list(struct.unpack_from(form, self.content, self.take(struct.calcsize(form))))
        self.at = start
        self.skip(kind)
        return None

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


def read_tensors(part: Part) -> list[Tensor]:
    """Name, type and shape (outputs first) of every tensor of one file. Raises Malformed."""
    return read_header(part)[0]


def read_header(part: Part) -> tuple[list[Tensor], Metadata]:
    """The tensors of one file, and what it says of its architecture. Raises Malformed."""
    content, size = b"", None
    for stop in PARTS:
        if size is not None and len(content) >= size:
            break
        more, told = part(len(content), stop)
        size = told if told is not None else size
        content += more
        try:
            return _header(_Reader(content), size)
        except _More:
            if len(content) < stop:
                break  # the file ends here
    raise Malformed(f"the GGUF header does not end in {len(content):,} bytes")


def elements_by_type(tensors: Iterable[Tensor]) -> dict[str, int]:
    """Raises Malformed where they are more than any model's."""
    counts: Counter[str] = Counter()
    for _, kind, shape in tensors:
        counts[kind] += math.prod(shape)
    if sum(counts.values()) > LARGEST_TOTAL:
        raise Malformed(f"{sum(counts.values()):,} elements")
    return dict(sorted(counts.items()))


def _header(reader: _Reader, size: int | None) -> tuple[list[Tensor], Metadata]:
    if reader.content[:4] != b"GGUF":
        raise Malformed("not a GGUF file")
    reader.take(4)
    version = reader.number("<I")
    if version not in (2, 3):
        raise Malformed(f"GGUF version {version}")
    count, pairs = reader.number("<Q"), reader.number("<Q")
    if count > MOST_TENSORS or pairs > MOST_PAIRS:
        raise Malformed(f"a GGUF header of {count:,} tensors and {pairs:,} pairs")
    alignment, metadata = 32, {}
    for _ in range(pairs):
        name, kind = reader.text(), reader.number("<I")
        if name == b"general.alignment" and kind == 4:
            alignment = reader.number("<I")
        elif (name != _ARCHITECTURE and name.startswith((b"general.", b"tokenizer."))) or len(name) > _LONGEST_NAME:
            reader.skip(kind)
        elif (value := reader.value(kind)) is not None:
            metadata[name.decode("utf-8", "replace")] = value
    found: dict[str, tuple[str, list[int]]] = {}
    spans = []
    for _ in range(count):
        name, kind, shape, offset = _tensor(reader)
        if name in found:
            raise Malformed(f"GGUF tensor {name[:60]!r} is listed twice")
        found[name] = kind, shape
        try:
            length = bytes_of(kind, shape)
        except ValueError as problem:
            raise Malformed(f"GGUF tensor {name[:60]!r}: {problem}") from None
        spans.append((offset, offset + (length or 0), name))
    if not 0 < alignment <= 2**20:
        raise Malformed(f"a GGUF file aligned to {alignment:,} bytes")
    data = size - -(-reader.at // alignment) * alignment if size is not None else None
    _check_spans(spans, data)
    return [(name, kind, shape) for name, (kind, shape) in found.items()], metadata


def _tensor(reader: _Reader) -> tuple[str, str, list[int], int]:
    raw = reader.text()
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed(f"GGUF tensor {raw[:60]!r} has a name that is not UTF-8") from None
    dims = reader.number("<I")
    if dims > 8:
        raise Malformed(f"a GGUF tensor of {dims} dimensions")
    shape = [reader.number("<Q") for _ in range(dims)][::-1]
    kind, offset = reader.number("<I"), reader.number("<Q")
    elements = math.prod(shape)
    if elements > LARGEST_TOTAL or max(shape, default=0) > LARGEST_TOTAL or kind > 1000:
        raise Malformed(f"GGUF tensor {name[:60]!r} of {elements:,} elements, type {kind}")
    return name, type_name(kind), shape, offset


def _check_spans(spans: list[tuple[int, int, str]], size: int | None) -> None:
    end = 0
    for start, stop, name in sorted(spans):
        if start < end:
            raise Malformed(f"GGUF tensor {name[:60]!r} overlaps another")
        end = stop
    if size is not None and end > max(size, 0):
        raise Malformed(f"GGUF tensors of {end:,} bytes in {max(size, 0):,}")
