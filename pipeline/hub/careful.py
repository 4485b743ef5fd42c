"""Reading JSON from strangers: no duplicate keys, no bombs of nesting or size, nothing that cannot be written again.

The one reader of all that the Hub or a person hands us: answers of the Hub, lines of a snapshot, a config.json.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from pipeline.hub.errors import HubError

DEEPEST = 40
MOST_NODES = 500_000
CONSTANTS = ("NaN", "Infinity", "-Infinity")  # which Python writes, and which are no JSON
_HALF = re.compile("[\ud800-\udfff]")


class Malformed(HubError):
    """What came is not what it should be; the message says how."""


def parse(content: bytes, deepest: int = DEEPEST, most_nodes: int = MOST_NODES, refused: tuple[str, ...] = ()) -> Any:
    """The JSON value of UTF-8 text, with a mark of byte order or without. Raises Malformed.

    Infinite numbers, which some configs hold, become text, but for those of CONSTANTS that are `refused`.
    """

    def constant(name: str) -> str:
        if name in refused:
            raise ValueError(f"{name} is no number of JSON")
        return name

    def number(text: str) -> float | str:
        value = float(text)
        if math.isinf(value):  # too large for a float: written again it would be no JSON
            return constant("-Infinity" if value < 0 else "Infinity")
        return value

    # counted before it is parsed: a value takes some sixty times the memory of its comma
    if content.count(b",") + content.count(b"[") + content.count(b"{") > most_nodes:
        raise Malformed(f"more than {most_nodes:,} values")
    start = content[:200].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise Malformed("HTML instead of JSON")
    try:
        value = json.loads(
            content.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=constant, parse_float=number
        )
    except RecursionError:
        raise Malformed("nested too deep") from None
    except UnicodeDecodeError:
        raise Malformed("not UTF-8") from None
    except ValueError as error:
        raise Malformed(f"not JSON: {str(error)[:120]}") from None
    if problem := size_problem(value, deepest, most_nodes):
        raise Malformed(problem)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:60]!r} is given twice")
        found[name] = value
    return found


def size_problem(value: Any, deepest: int = DEEPEST, most_nodes: int = MOST_NODES) -> str | None:
    """How a value that JSON can hold is deeper or larger than any honest one. Not recursive itself."""
    depth = count = 0
    for level in _levels(value):
        depth, count = depth + 1, count + len(level)
        if depth > deepest:
            return f"nested deeper than {deepest}"
        if count > most_nodes:
            return f"more than {most_nodes:,} values"
    return None


def problem_of(value: Any) -> str | None:
    """Why a value is not kept: too deep or too large, or with text in it that nothing can write again."""
    if problem := size_problem(value):
        return problem
    for level in _levels(value):
        for node in level:
            if isinstance(node, dict) and any(map(_is_half, node)):
                return "half a character in the name of a field"
            if _is_half(node):
                return f"half a character in {ascii(node)[:60]}"
    return None


def _levels(value: Any) -> Iterator[list[Any]]:
    """The values of each depth, from the outermost in."""
    level = [value]
    while level:
        yield level
        following: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                following += node.values()
            elif isinstance(node, list):
                following += node
        level = following


def _is_half(text: Any) -> bool:
    return isinstance(text, str) and _HALF.search(text) is not None
