"""Reading JSON from strangers: no duplicate keys, no bombs of nesting or size, nothing that cannot be written again."""

from __future__ import annotations

import json
from typing import Any

from pipeline.hub.traffic import HubError

DEEPEST = 40
MOST_NODES = 500_000


class Malformed(HubError):
    """What came is not what it should be; the message says how."""


def parse(content: bytes, deepest: int = DEEPEST, most_nodes: int = MOST_NODES) -> Any:
    """The JSON value of UTF-8 text. Infinite numbers, which some configs hold, become text. Raises Malformed."""
    # counted before it is parsed: a value takes some sixty times the memory of its comma
    if content.count(b",") + content.count(b"[") + content.count(b"{") > most_nodes:
        raise Malformed(f"more than {most_nodes:,} values")
    start = content[:200].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise Malformed("HTML instead of JSON")
    try:
        value = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=str)
    except RecursionError:
        raise Malformed("nested too deep") from None
    except UnicodeDecodeError:
        raise Malformed("not UTF-8") from None
    except ValueError as error:
        raise Malformed(f"not JSON: {str(error)[:120]}") from None
    _measure(value, deepest, most_nodes)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:60]!r} is given twice")
        found[name] = value
    return found


def _measure(value: Any, deepest: int, most_nodes: int) -> None:
    """Raises Malformed where a value is deeper or larger than any honest one. Not recursive itself."""
    level, depth, count = [value], 0, 0
    while level:
        depth, count = depth + 1, count + len(level)
        if depth > deepest:
            raise Malformed(f"nested deeper than {deepest}")
        if count > most_nodes:
            raise Malformed(f"more than {most_nodes:,} values")
        following: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                following += node.values()
            elif isinstance(node, list):
                following += node
        level = following
