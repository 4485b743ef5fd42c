"""What the tensor headers of a model say, in few rows: a model of sixty layers and a million experts is some dozens of them.

A row is `[pattern, dtype, shape, count, layers]`. In a pattern `*` stands for a whole number between dots, so that the tensors
of all layers and experts are one row per shape and dtype; `count` is how many they are and `layers` the first of those
numbers, as ranges ("0-2,5"). Shapes are as PyTorch has them, outputs first. Names are other people's text and nothing else.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.base.bounds import CONTROL, LARGEST_TOTAL, MOST_TENSOR_ROWS
from pipeline.hub.careful import Malformed

DENOISERS = ("transformer", "unet", "prior")
FORMATS = ("safetensors", "gguf")
MOST_ROWS = 5000
LARGEST_SUMMARY = 256 * 2**10  # bytes of JSON text that a record may keep
LONGEST_NAME = 300
MOST_DIMENSIONS = 16
_NUMBER = re.compile(r"\d{1,6}")
_KEYS = {"format", "file", "file_count", "tensors"}

Tensor = tuple[str, str, Sequence[int]]  # name, dtype, shape


def summarise(form: str, file: str, file_count: int, tensors: Iterable[Tensor]) -> dict[str, Any]:
    """The summary that a record keeps. Raises Malformed where it would be none."""
    counts: dict[tuple[str, str, tuple[int, ...]], int] = defaultdict(int)
    layers: dict[tuple[str, str, tuple[int, ...]], set[int]] = defaultdict(set)
    for name, dtype, shape in tensors:
        if len(name) > LONGEST_NAME or CONTROL.search(name):
            raise Malformed(f"tensor {name[:80]!r} has no usable name")
        pattern, layer = _pattern(name)
        key = (pattern, dtype, tuple(shape))
        counts[key] += 1
        if layer is not None:
            layers[key].add(layer)
        if len(counts) > MOST_ROWS:
            raise Malformed(f"more than {MOST_ROWS:,} kinds of tensors")
    if sum(map(len, layers.values())) > MOST_TENSOR_ROWS:
        raise Malformed(f"tensors of more than {MOST_TENSOR_ROWS:,} layers")
    rows = [[*key[:2], list(key[2]), count, _ranges(layers[key])] for key, count in sorted(counts.items())]
    size = len(json.dumps(rows, ensure_ascii=False).encode())
    if size > LARGEST_SUMMARY:
        raise Malformed(f"a summary of {size:,} bytes")
    return {"format": form, "file": file, "file_count": file_count, "tensors": rows}


def _pattern(name: str) -> tuple[str, int | None]:
    parts, layer = name.split("."), None
    for place, part in enumerate(parts):
        if _NUMBER.fullmatch(part) and part.isascii():
            layer = int(part) if layer is None else layer
            parts[place] = "*"
    return ".".join(parts), layer


def _ranges(numbers: Iterable[int]) -> str:
    """0, 1, 2, 5 as "0-2,5"."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in spans)


def layer_numbers(ranges: str) -> frozenset[int]:
    """The numbers that `layers` of a row stands for."""
    found: set[int] = set()
    for span in ranges.split(",") if ranges else ():
        first, _, last = span.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _named_layers(ranges: str) -> int:
    """How many numbers `layers` of a row stands for."""
    spans = [span.partition("-") for span in ranges.split(",")] if ranges else []
    return sum(int(last or first) - int(first) + 1 for first, _, last in spans)


def problem_of(value: Any) -> str | None:
    """Why a value is no summary, or None."""
    if not isinstance(value, Mapping) or value.keys() != _KEYS or value["format"] not in FORMATS:
        return "not a summary of tensor headers"
    if not _is_text(value["file"]) or not _is_count(value["file_count"], 1, 10_000):
        return "a summary without its files"
    rows = value["tensors"]
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_ROWS:
        return "a summary without tensors"
    total = layers = 0
    for row in rows:
        if not isinstance(row, list) or len(row) != 5 or not _is_row(*row):
            return f"a summary with the row {str(row)[:80]}"
        total += math.prod(row[2]) * row[3]
        layers += _named_layers(row[4])
        if layers > MOST_TENSOR_ROWS:  # before they are counted out
            return f"a summary of tensors in more than {MOST_TENSOR_ROWS:,} layers"
    return None if total <= LARGEST_TOTAL else f"a summary of {total:,} elements"


def _is_row(pattern: Any, dtype: Any, shape: Any, count: Any, layers: Any) -> bool:
    is_shape = isinstance(shape, list) and len(shape) <= MOST_DIMENSIONS
    if not is_shape or not all(_is_count(size, 0, LARGEST_TOTAL) for size in shape):
        return False
    if not (_is_text(pattern) and _is_text(dtype) and _is_count(count, 1, 10**7) and isinstance(layers, str)):
        return False
    spans = [span.partition("-") for span in layers.split(",")] if layers else []
    return all(
        _NUMBER.fullmatch(first) and (not dash or (_NUMBER.fullmatch(last) and int(last) > int(first)))
        for first, dash, last in spans
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and not CONTROL.search(value)


def _is_count(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
