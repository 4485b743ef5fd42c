"""Serving and training: what `footprints` says of each where it is known which of them is asked, and what else is known of a question."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from pipeline.book.scenario import TYPES
from pipeline.book.schema import COLUMNS, DUCKDB_TYPES
from pipeline.press.flat.reading import ASKED, Lookup, Reading
from pipeline.press.flat.steps import JOIN_WORTH, Steps
from pipeline.press.flat.values import Node

OF_MODEL = "shape"  # the one table of which formulas read more than they join
DERIVED = "shape_derived"
SERVING = "'inference'"
# a column pays where it saves this many words of text; measured: from 6 to 20 all plan and run alike
WORTH = 12


class Formulas:
    """The rows that `footprints` gives, under what is known of the question."""

    def __init__(self, reading: Reading) -> None:
        self.reading, self.forest = reading, reading.forest
        self.alternatives = reading.macro("footprints")
        self.shape = next(name for name, lookup in self._lookups() if lookup.table == OF_MODEL)
        self.derived: dict[Node, str] = {}
        self.without_model: dict[Node, Node] = {}
        self.read: dict[str, None] = {}  # columns of the model that are read as they are
        row = reading.connection.execute("FROM constants")
        self.constants = dict(zip([column[0] for column in row.description], row.fetchall()[0], strict=True))
        self.of_constants = {name for name, lookup in self._lookups() if lookup.table == "constants"}
        forest = self.forest
        text = forest.cast(("VARCHAR", False), forest.node("column", (ASKED, "phase_id")))
        self.phase_asked = forest.node("call", "lower", [text])
        self.serving = forest.node("constant", SERVING)
        self.phase = forest.node("coalesce", None, [self.phase_asked, self.serving])
        self.arguments = tuple(TYPES)
        self.argument_reason = reading.steps["checked"][0][1].fields["argument_reason"]

    def _lookups(self) -> list[tuple[str, Lookup]]:
        return [(lookup.name, lookup) for lookup in self.reading.lookups.values()]

    def relation(
        self, is_serving: bool, said: Collection[str] = TYPES, phases: Sequence[str] = ()
    ) -> tuple[Steps, Node]:
        """The steps of one side, where nothing is `said` but these arguments, and none but some `phases` asked for; and which rows of what is
        asked it answers: one of another phase is left out, since it would be answered as one of these."""
        forest = self.forest
        asked = {forest.node("column", (ASKED, name)): forest.null for name in TYPES if name not in said}
        if phases:
            asked |= dict.fromkeys((self.phase, self.phase_asked), forest.one_of(self.phase_asked, phases))
        lookups, outputs = self.side(is_serving, asked)
        steps = Steps(lookups, outputs, WORTH, JOIN_WORTH)
        self.read_of_model(steps.order)
        if phases:
            return steps, forest.among([self.phase_asked, *map(forest.text, phases)])
        return steps, forest.node("compare", "=" if is_serving else "<>", [self.phase, self.serving])

    def side(
        self, is_serving: bool, asked: Mapping[Node, Node], derived: str = DERIVED
    ) -> tuple[dict[str, Lookup], dict[str, Node]]:
        """The rows that one side joins, and its columns, where some nodes are known to be others."""
        forest, seen, again, absent = self.forest, {}, {}, set()

        def told(node: Node) -> Node | None:
            if node in asked:
                return asked[node]
            is_absent = node.kind == "column" and node.about[0] in absent
            return forest.null if is_absent else self._known(node, is_serving)

        def known(node: Node) -> Node:
            return forest.replaced(forest.replaced(node, told, seen), self._derive, again)

        lookups = {}
        for name, lookup in self._lookups():  # each asks for no rows but those before it
            condition = None if lookup.condition is None else known(lookup.condition)
            lookups[name] = Lookup(name, derived if lookup.table == OF_MODEL else lookup.table, condition)
            # no row is found where a part of the condition is null
            parts = condition.parts if condition is not None and condition.kind == "and" else (condition,)
            if forest.false in parts or forest.null in parts:
                absent.add(name)
        sides = [(forest.both([known(g) for g in guards]), record) for guards, record in self.alternatives]
        sides = [(guard, record) for guard, record in sides if guard is not forest.false]
        outputs = {}
        for name in sides[0][1].fields:
            # every row is on one side: the last needs no condition
            *before, last = [(guard, known(forest.whole(record.fields[name]))) for guard, record in sides]
            value = forest.case(before, last[1])
            outputs[name] = forest.node("cast", (_declared(name), False), [forest.whole(value)])
        return lookups, outputs

    def read_of_model(self, nodes: Iterable[Node]) -> None:
        """Notes the columns of a model's shape that some nodes read as they are."""
        for node in nodes:
            if node.kind == "column" and node.about[0] == self.shape and node.about[1] not in self.derived.values():
                self.read[node.about[1]] = None

    def text(self, relation: tuple[Steps, Node]) -> str:
        steps, rows = relation
        # what a relation leaves out is null
        return steps.text_of("(FROM no_scenario UNION ALL BY NAME FROM query_table(relation))", rows)

    def derived_table(self) -> str:
        """What the relations read of a model: columns of its shape, and what formulas make of these alone."""
        columns = {name: self.forest.node("column", (self.shape, name)) for name in ("model_id", *sorted(self.read))}
        made = {name: node for node, name in self.derived.items()}
        return Steps({self.shape: Lookup(self.shape, OF_MODEL, None)}, columns | made, WORTH).text_of("(SELECT 1)")

    def _known(self, node: Node, is_serving: bool) -> Node | None:
        """What a node is once the side is known."""
        forest = self.forest
        if node.kind == "column":
            source, name = node.about
            return forest.node("constant", _number(self.constants[name])) if source in self.of_constants else None
        if node in (self.phase, self.phase_asked):
            return self.serving if is_serving else self.phase_asked
        if is_serving or (self.phase_asked not in node.parts and self.phase not in node.parts):
            return None
        if node.kind == "is_null":
            return forest.false
        if node.kind == "compare" and self.serving in node.parts and node.about in ("=", "<>"):
            return forest.true if node.about == "<>" else forest.false
        return None

    def _derive(self, node: Node) -> Node | None:
        """A column of the model in the place of what is made of the model alone, and is null where there is no such model."""
        if node.sources != {self.shape} or node.kind in ("column", "lambda") or not node.is_closed:
            return None
        if self.forest.replaced(node, self._absent, self.without_model) is not self.forest.null:
            return None
        name = self.derived.setdefault(node, f"derived_{len(self.derived)}")
        return self.forest.node("column", (self.shape, name))

    def _absent(self, node: Node) -> Node | None:
        return self.forest.null if node.kind == "column" and node.about[0] == self.shape else None


def _declared(name: str) -> str:
    """The type of a column of footprints: that of the argument which it answers, else as published."""
    if name in TYPES:
        return {pl.String: "VARCHAR", pl.Int64: "BIGINT", pl.Float64: "DOUBLE", pl.Boolean: "BOOLEAN"}[TYPES[name]]
    return DUCKDB_TYPES[COLUMNS.of(name, "footprint").type]


def _number(value: float | None) -> str:
    """A constant as a DOUBLE, to the bit: without an exponent it would be a decimal."""
    if value is None:
        return "NULL"
    text = repr(float(value))
    return f"({text})" if "e" in text else f"({text}e0)" if value < 0 else f"{text}e0"
