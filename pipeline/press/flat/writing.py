"""A node as SQL."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.press.flat.values import Node


def written(node: Node, of: Callable[[Node], str] | None = None) -> str:
    """The text of a node, its parts as `of` writes them, or whole."""
    parts = [(of or written)(part) for part in node.parts]
    kind, about = node.kind, node.about
    if kind in ("constant", "variable"):
        return about
    if kind == "inner":
        return f"{about[0]}.{about[1]}"
    if kind == "column":
        return f"{about[0]}.{about[1]}"
    if kind == "infix":
        return f"({about}{parts[0]})" if len(parts) == 1 else f"({parts[0]} {about} {parts[1]})"
    if kind == "call":
        return f"{about}({', '.join(parts)})"
    if kind == "compare":
        return f"({parts[0]} {about} {parts[1]})"
    if kind == "case":
        checks = " ".join(f"WHEN {a} THEN {b}" for a, b in zip(parts[:-1:2], parts[1:-1:2], strict=True))
        return f"CASE {checks} ELSE {parts[-1]} END"
    if kind == "cast":
        return f"{'TRY_' if about[1] else ''}CAST({parts[0]} AS {about[0]})"
    if kind == "between":
        return f"({parts[0]} BETWEEN {parts[1]} AND {parts[2]})"
    if kind in ("and", "or"):
        return f"({f' {kind.upper()} '.join(parts)})"
    if kind == "not":
        return f"(NOT {parts[0]})"
    if kind == "is_null":
        return f"({parts[0]} IS NULL)"
    if kind == "coalesce":
        return f"coalesce({', '.join(parts)})"
    if kind == "field":
        return f"struct_extract({parts[0]}, '{about}')"
    if kind == "at":
        return f"list_extract({', '.join(parts)})"
    if kind == "in":
        return f"({parts[0]} IN ({', '.join(parts[1:])}))"
    if kind == "struct":
        return "{" + ", ".join(f"'{name}': {part}" for name, part in zip(about, parts, strict=True)) + "}"
    if kind == "insert":
        return f"struct_insert({parts[0]}, {', '.join(f'{n} := {p}' for n, p in zip(about, parts[1:], strict=True))})"
    if kind == "lambda":
        return f"lambda {', '.join(about)}: {parts[0]}"
    if kind == "subquery":
        table, alias, how = about
        query = f"(SELECT {parts[0]} FROM {table} AS {alias} WHERE {parts[1]})"
        return query if how == "SCALAR" else f"({parts[2]} IN {query})"
    raise AssertionError(kind)
