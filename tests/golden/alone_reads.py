"""What each macro of tables/sql that makes one value reads of its arguments, read off its text and that of those that it calls.

A field that is asked of an argument (`model.hidden_size`), of what lies in it (`model.tower.grid`), or of what a lambda goes through
(`list_transform(model.caches, lambda layer: layer.window_tokens)`) is a node of that argument, and what a macro reads of its own is read of what is
given to it. tests/golden/alone.py makes up what is read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import duckdb

from pipeline.press import formulas

# what has another type than a column of that name, or none that its name tells: of all macros, of an argument, or of one macro
with Path(__file__).with_name("alone_types.csv").open(encoding="utf-8", newline="") as _file:
    TYPES = {row["name"]: row["type"] for row in csv.DictReader(_file)}
STRING = re.compile(r"'(?:[^']|'')*'")
CALL = re.compile(r"(?<![\w.])(\w+)\(")
_PATH = re.compile(r"(?<![\w.])([a-z_]\w*)((?:\.\w+|\[\d+\])*)")
_ELEMENT = re.compile(r"\(([a-z_]\w*(?:\.\w+|\[\d+\])*)\)(?=\.)")  # as DuckDB writes `a.b[1].c`: (a.b[1]).c
_STEP = re.compile(r"\.(\w+)|\[\d+\]")
_LAMBDA = re.compile(r"lambda ([\w, ]+):")
_THROUGH = ("list_transform", "list_filter", "list_sort", "list_reduce")
# elements of lists that formulas take by their place
_LISTS = {
    "points": ("need", "at"),
    "totals": ("need", "total", "gpu_count"),
    "caches": ("mechanism",),
    "formats": ("weights_bytes", "holds_for", "first_bytes", "token_bytes", "working_bytes"),
    "stages": ("weights_bytes", "activations_bytes", "leaf_bytes", "pipeline_part"),
    "spans": ("from_number", "below_number", "min_version", "max_version"),
}


class Node:
    """What is read of a value: fields of a struct, or of each element of a list; neither where it is a plain one."""

    def __init__(self) -> None:
        self.fields: dict[str, Node] = {}
        self.element: Node | None = None

    def field(self, name: str) -> Node:
        return self.fields.setdefault(name, Node())

    def each(self) -> Node:
        self.element = self.element or Node()
        return self.element

    def take(self, other: Node) -> None:
        """All that is read of the other too."""
        for name, node in other.fields.items():
            self.field(name).take(node)
        if other.element is not None:
            self.each().take(other.element)


class Macro(NamedTuple):
    name: str
    parameters: list[str]
    text: str
    reads: dict[str, Node]


def macros(connection: duckdb.DuckDBPyConnection) -> dict[str, Macro]:
    """Those that make one value, by their names, with what each reads of its arguments."""
    asked = """
        SELECT function_name, any_value(parameters), any_value(macro_definition) FROM duckdb_functions()
        WHERE function_type = 'macro' AND list_contains($1, function_name) GROUP BY ALL ORDER BY ALL"""
    rows = connection.execute(asked, [list(formulas.arguments_of(connection))]).fetchall()
    given = {name: (parameters, text.replace('"', "")) for name, parameters, text in rows}
    found: dict[str, Macro] = {}

    def find(name: str) -> Macro:
        if name not in found:
            parameters, text = given[name]
            found[name] = Macro(name, parameters, text, {one: Node() for one in parameters})
            _read(
                found[name],
                {
                    called: find(called)
                    for called in CALL.findall(STRING.sub("''", text))
                    if called in given and called != name
                },
            )
        return found[name]

    return {name: find(name) for name in given}


def _read(macro: Macro, called: Mapping[str, Macro]) -> None:
    text = _ELEMENT.sub(r"\1", STRING.sub("''", macro.text))
    # a name may be that of several lambdas
    names = {name: [node] for name, node in macro.reads.items()}
    for name in names.keys() & _LISTS.keys():
        if f"{macro.name}.{name}" not in TYPES:
            _elements(name, macro.reads[name])
    # what a lambda goes through: the list that its function begins with
    for match in _LAMBDA.finditer(text):
        for node in _nodes(_list_before(text, match.start()), names):
            names.setdefault(match[1].partition(",")[0].strip(), []).append(node.each())
    for match in _PATH.finditer(text):
        _nodes(match[0], names)
    for match in CALL.finditer(text):
        if match[1] in called:
            other = called[match[1]]
            for parameter, argument in zip(other.parameters, arguments(text, match.end()), strict=False):
                for node in _nodes(argument.split(":=")[-1], names):
                    node.take(other.reads[parameter])


def _elements(name: str, node: Node) -> None:
    for field in _LISTS.get(name, ()):
        node.each().field(field)


def _nodes(path: str, names: Mapping[str, list[Node]]) -> list[Node]:
    match = _PATH.fullmatch(path.strip("() "))
    found = names.get(match[1], []) if match else []
    for step in _STEP.finditer(match[2]) if match else ():
        name = step[1]
        if name is None:
            # an element by its place
            found = [node.each() for node in found]
            continue
        found = [node.field(name) for node in found]
        for node in found:
            _elements(name, node)
    return found


def _list_before(text: str, place: int) -> str:
    """The list of the call around a lambda, without what filters it."""
    depth = 0
    for start in range(place - 1, -1, -1):
        depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(text[start], 0)
        if depth < 0 and text[start] == "(" and text[:start].endswith(_THROUGH):
            break
    said = arguments(text, start + 1)[0]
    while (inner := re.match(r"\(*(?:list_\w+|flatten|coalesce|COALESCE)\(", said)) is not None:
        said = arguments(said, inner.end())[0]
    return said


def arguments(text: str, start: int) -> list[str]:
    """Those of a call, from behind its bracket on."""
    found, depth, before = [], 0, start
    for place in range(start, len(text)):
        char = text[place]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if depth < 0 or (char == "," and depth == 0):
            found.append(text[before:place].strip())
            before = place + 1
            if depth < 0:
                break
    return found
