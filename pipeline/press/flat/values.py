"""Formulas as values: an expression of SQL as a node that is held once, however often formulas name it.

A row of a step is a record of such nodes, so that what a formula reads of a row is found when the text is taken apart and not at each
question. What is decided by the text alone (a branch whose condition is a constant) is decided here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

JOINED = "?"  # the row that a join is about, in its own condition
_SIGNS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}
# what is null where its first part is
_NULL_OF_NULL = frozenset(
    [
        "lower",
        "floor",
        "ceil",
        "round",
        "abs",
        "sqrt",
        "pow",
        "log2",
        "starts_with",
        "string_split",
        "len",
        "list_sum",
        "list_max",
        "list_min",
        "list_bool_or",
        "list_bool_and",
        "list_transform",
        "list_filter",
        "list_contains",
        "list_distinct",
        "list_extract",
        "list_sort",
        "list_reverse_sort",
        "flatten",
    ]
)

Value = Any  # Node, Record, Chosen, Items or Row


class Node:
    """An expression: its kind, what it says besides its parts, its parts. Equal expressions are one object of a Forest."""

    __slots__ = ("about", "free", "has_inner", "kind", "number", "parts", "sources")

    def __init__(self, number: int, kind: str, about: Any, parts: tuple[Node, ...]) -> None:
        self.number, self.kind, self.about, self.parts = number, kind, about, parts
        free = {about} if kind == "variable" else set().union(*(p.free for p in parts)) if parts else set()
        self.free = frozenset(free - set(about) if kind == "lambda" else free)
        own = {about[0]} if kind == "column" else set()
        self.sources = frozenset(own.union(*(p.sources for p in parts)))
        self.has_inner = kind == "inner" or (kind != "subquery" and any(p.has_inner for p in parts))

    @property
    def is_closed(self) -> bool:
        """Whether it has a value of its own: it names no variable of a lambda, and no row of a subquery or of a join that is being made."""
        return not self.free and not self.has_inner and JOINED not in self.sources

    def __repr__(self) -> str:
        return f"{self.kind}:{self.about}({len(self.parts)})"


@dataclass(eq=False)
class Record:
    """A struct, or a row of a step, whose fields are known by name."""

    fields: dict[str, Value]


@dataclass(eq=False)
class Chosen:
    """One of several records, by conditions that are asked in turn."""

    checks: list[tuple[Node, Value]]
    otherwise: Value


@dataclass(eq=False)
class Items:
    """A list whose members are known by place."""

    members: list[Value]


@dataclass(eq=False)
class Row:
    """The row of a table that a join found: its columns, each null where none was found."""

    name: str
    columns: frozenset[str]


class Forest:
    """All nodes, each once."""

    def __init__(self) -> None:
        self.nodes: dict[tuple, Node] = {}
        self.null = self.node("constant", "NULL")
        self.true, self.false = self.node("constant", "true"), self.node("constant", "false")

    def node(self, kind: str, about: Any = None, parts: Iterable[Node] = ()) -> Node:
        parts = tuple(parts)
        key = (kind, about, tuple(part.number for part in parts))
        if key not in self.nodes:
            self.nodes[key] = Node(len(self.nodes), kind, about, parts)
        return self.nodes[key]

    def text(self, word: str) -> Node:
        return self.node("constant", "'" + word.replace("'", "''") + "'")

    # ---- values

    def whole(self, value: Value) -> Node:
        """A value as one node: records become structs, lists lists."""
        if isinstance(value, Node):
            return value
        if isinstance(value, Record):
            return self.node("struct", tuple(value.fields), [self.whole(v) for v in value.fields.values()])
        if isinstance(value, Items):
            return self.node("call", "list_value", [self.whole(v) for v in value.members])
        if isinstance(value, Chosen):
            flat = [self.whole(v) for check in value.checks for v in check]
            return self.node("case", None, [*flat, self.whole(value.otherwise)])
        raise TypeError(f"a whole row of {value.name} as a value")

    def field(self, value: Value, name: str) -> Value:
        if isinstance(value, Record):
            if name not in value.fields:
                raise KeyError(name)
            return value.fields[name]
        if isinstance(value, Row):
            if name not in value.columns:
                raise KeyError(name)
            return self.node("column", (value.name, name))
        if isinstance(value, Chosen):
            return self.case([(c, self.field(v, name)) for c, v in value.checks], self.field(value.otherwise, name))
        if value is self.null:
            return value
        return self.node("field", name, [value])

    def case(self, checks: list[tuple[Node, Value]], otherwise: Value) -> Value:
        """CASE WHEN … ELSE … END, without the branches that the text rules out."""
        kept: list[tuple[Node, Value]] = []
        for condition, value in checks:
            if condition in (self.false, self.null):
                continue
            if condition is self.true:
                otherwise = value
                break
            kept.append((condition, value))
        while kept and kept[-1][1] is otherwise:
            kept.pop()
        if not kept:
            return otherwise
        if len(kept) == 1 and kept[0][0].kind == "is_null" and kept[0][1] is self.true and otherwise is self.false:
            return kept[0][0]
        values = [v for _, v in kept] + [otherwise]
        if all(isinstance(v, Node) for v in values):
            return self.node("case", None, [*(part for check in kept for part in check), otherwise])
        if any(isinstance(v, Items) for v in values):
            return self.node("case", None, [*(self.whole(p) for check in kept for p in check), self.whole(otherwise)])
        return Chosen(kept, otherwise)

    def one_of(self, node: Node, words: Sequence[str]) -> Node:
        """A node as a choice among the words that it can be, so that what is the same for all of them is known."""
        *before, last = map(self.text, words)
        return self.case([(self.compared("=", node, word), word) for word in before], last)

    def is_null(self, value: Value) -> Node:
        if isinstance(value, Record | Items):
            return self.false
        if isinstance(value, Chosen):
            checks = [(c, self.is_null(v)) for c, v in value.checks]
            return self.case(checks, self.is_null(value.otherwise))
        if isinstance(value, Row):
            raise TypeError(f"whether there is a row of {value.name}")
        if value is self.null:
            return self.true
        if value.kind == "constant":
            return self.false
        return self.node("is_null", None, [value])

    def compared(self, sign: str, left: Node, right: Node) -> Node:
        if sign.startswith("IS"):
            return self.node("compare", sign, [left, right])
        if self.null in (left, right):
            return self.null
        if _is_word(left) and _is_word(right) and sign in ("=", "<>"):
            return self.true if (left is right) == (sign == "=") else self.false
        numbers = _whole_number(left), _whole_number(right)
        if None not in numbers:
            return self.true if _SIGNS[sign](*numbers) else self.false
        alike = self._of_each_word(left, lambda word: self.compared(sign, word, right)) if _is_word(right) else None
        return alike or self.node("compare", sign, [left, right])

    def _of_each_word(self, node: Node, of: Callable[[Node], Node]) -> Node | None:
        """What is said of a word, where it is the same for each of those among which a CASE chooses."""
        if node.kind != "case" or not all(map(_is_word, _results(node))):
            return None
        said = {of(word) for word in _results(node)}
        return said.pop() if len(said) == 1 else None

    def among(self, parts: list[Node]) -> Node:
        if parts[0] is self.null:
            return self.null
        if all(map(_is_word, parts)):
            return self.true if parts[0] in parts[1:] else self.false
        alike = all(map(_is_word, parts[1:])) and self._of_each_word(parts[0], lambda w: self.among([w, *parts[1:]]))
        return alike or self.node("in", None, parts)

    def called(self, kind: str, name: str, parts: list[Node]) -> Node:
        """A function or an operator: null where a part is null, if it is one of those that say so."""
        if self.null in parts:
            if kind == "infix" or (parts[0] is self.null and name in _NULL_OF_NULL):
                return self.null
            if name in ("greatest", "least"):
                parts = [p for p in parts if p is not self.null]
                if not parts:
                    return self.null
        if name in ("greatest", "least"):
            parts = list(dict.fromkeys(parts))
            if len(parts) == 1:
                return parts[0]
        return self.node(kind, name, parts)

    def cast(self, about: tuple[str, bool], part: Node) -> Node:
        return part if part is self.null else self.node("cast", about, [part])

    def both(self, parts: list[Node]) -> Node:
        left = [p for p in dict.fromkeys(parts) if p is not self.true]
        if self.false in left:
            return self.false
        return left[0] if len(left) == 1 else self.node("and", None, left) if left else self.true

    def either(self, parts: list[Node]) -> Node:
        left = [p for p in dict.fromkeys(parts) if p is not self.false]
        if self.true in left:
            return self.true
        return left[0] if len(left) == 1 else self.node("or", None, left) if left else self.false

    def negated(self, part: Node) -> Node:
        if part in (self.true, self.false):
            return self.false if part is self.true else self.true
        return part if part is self.null else self.node("not", None, [part])

    def coalesced(self, parts: list[Value]) -> Value:
        left: list[Value] = []
        for part in parts:
            if part is self.null:
                continue
            left.append(part)
            if isinstance(part, Record) or (isinstance(part, Node) and _is_never_null(part)):
                break
        if not left:
            return self.null
        return left[0] if len(left) == 1 else self.node("coalesce", None, [self.whole(p) for p in left])

    def replaced(self, node: Node, swap: Callable[[Node], Node | None], seen: dict[Node, Value] | None = None) -> Node:
        """The node with others in the place of some of its parts, decided anew."""
        seen = {} if seen is None else seen
        if node not in seen:
            found = swap(node)
            if found is not None:
                seen[node] = found
            else:
                parts = [self.replaced(part, swap, seen) for part in node.parts]
                seen[node] = (
                    node if all(a is b for a, b in zip(parts, node.parts, strict=True)) else self._again(node, parts)
                )
        return seen[node]

    def _again(self, node: Node, parts: list[Node]) -> Node:
        if node.kind == "case":
            checks = list(zip(parts[:-1:2], parts[1:-1:2], strict=True))
            return self.case(checks, parts[-1])
        made = {"and": self.both, "or": self.either, "coalesce": self.coalesced}.get(node.kind)
        if made:
            return made(parts)
        if node.kind == "not":
            return self.negated(parts[0])
        if node.kind == "compare":
            return self.compared(node.about, *parts)
        if node.kind == "in":
            return self.among(parts)
        if node.kind in ("call", "infix"):
            return self.called(node.kind, node.about, parts)
        if node.kind == "cast":
            return self.cast(node.about, parts[0])
        if node.kind == "between" and self.null is parts[0]:
            return self.null
        if node.kind in ("field", "at") and parts[0] is self.null:
            return self.null
        if node.kind == "is_null":
            return self.is_null(parts[0])
        if node.kind == "field" and parts[0].kind == "struct":
            return parts[0].parts[parts[0].about.index(node.about)]
        return self.node(node.kind, node.about, parts)


def _is_word(node: Node) -> bool:
    return node.kind == "constant" and node.about[0] == "'"


def _results(node: Node) -> tuple[Node, ...]:
    """What a CASE chooses among."""
    return (*node.parts[1:-1:2], node.parts[-1])


def _is_never_null(node: Node) -> bool:
    return (node.kind == "constant" and node.about != "NULL") or (
        node.kind == "case" and all(map(_is_never_null, _results(node)))
    )


def _whole_number(node: Node) -> int | None:
    """The number that a node is by its text."""
    if node.kind == "cast" and node.about[0] in ("BIGINT", "INTEGER"):
        node = node.parts[0]
    return int(node.about) if node.kind == "constant" and node.about.isdigit() else None
