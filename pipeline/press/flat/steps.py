"""Outputs of one row as a query of steps: each step reads the one before it, joins rows of tables, and adds columns that later ones read.

What is said more than once is a column, where that saves text; a column is handed on as long as somebody reads it. A table is joined again
where columns of it are first read late: to hand them on from the start took DuckDB longer than to look the row up once more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pipeline.press.flat.reading import ASKED, Lookup
from pipeline.press.flat.values import JOINED, Node
from pipeline.press.flat.writing import written

_NO_COLUMNS = ("constant", "column", "lambda")
# a join more pays where it saves so many columns that are handed on, each from one step to the next; measured: from 25 to 60 all plan and run
# alike. (To make columns themselves late saved no more, and DuckDB planned some questions far longer.)
JOIN_WORTH = 30


class Steps:
    """A column is worth it where it saves so many `worth` words, a second join of a row where it saves so many `join_worth` columns: 0 where
    each row is joined once. `order` holds every node of the outputs, parts first."""

    def __init__(self, lookups: dict[str, Lookup], outputs: dict[str, Node], worth: int, join_worth: int = 0) -> None:
        self.lookups, self.outputs = lookups, outputs
        self.order = list(_in_order(outputs.values(), lookups))
        joined = {node.about[0] for node in self.order if node.kind == "column"} & lookups.keys()
        self.conditions = {name: lookups[name].condition for name in lookups if name in joined}
        self.kept = self._kept(worth)
        self._levels: dict[Node, int] = {}
        self._joins: dict[str, int] = {}
        self.last = 1 + max([*map(self._level, self.kept), *map(self._join, self.conditions), 0])
        self._taken = self._joined_late(join_worth) if join_worth else {}

    def _kept(self, worth: int) -> dict[Node, str]:
        """Nodes that become columns, by their names."""
        uses: Counter[Node] = Counter(part for node in self.order for part in node.parts)
        uses.update(self.outputs.values())
        uses.update(condition for condition in self.conditions.values() if condition is not None)
        kept: dict[Node, str] = {}
        size: dict[Node, int] = {}
        for node in self.order:
            size[node] = 1 + sum(1 if part in kept else size[part] for part in node.parts)
            saved = (uses[node] - 1) * (size[node] - 1)
            if node.is_closed and node.kind not in _NO_COLUMNS and uses[node] > 1 and saved >= worth:
                kept[node] = f"c{len(kept)}"
        return kept

    # ---- when

    def _named(self, node: Node, is_own: bool = False) -> Iterator[Node]:
        """The columns that the text of a node names; with `is_own` the text that makes it a column."""
        if node.kind == "column" or (node in self.kept and not is_own):
            yield node
            return
        for part in node.parts:
            yield from self._named(part)

    def _join(self, name: str) -> int:
        """The step that joins a row first."""
        if name not in self._joins:
            condition = self.conditions[name]
            named = () if condition is None else self._named(condition)
            self._joins[name] = 1 + max((self._ready(node) for node in named), default=0)
        return self._joins[name]

    def _ready(self, node: Node) -> int:
        """The step after which a column can be read."""
        if node.kind != "column":
            return self._level(node)
        return 0 if node.about[0] in (ASKED, JOINED) else self._join(node.about[0])

    def _joined_late(self, worth: int) -> dict[Node, int]:
        """The step that takes a column from its row: of those that could, as late as joins are worth it."""
        first: dict[str, dict[Node, int]] = defaultdict(dict)
        for reader, level, is_own in self._readers():
            for node in self._named(reader, is_own):
                if node.kind == "column" and self.conditions.get(node.about[0]) is not None:
                    columns = first[node.about[0]]
                    columns[node] = min(columns.get(node, level), level, self.last - 1)
        taken: dict[Node, int] = {}
        for columns in first.values():
            levels = joins_of(Counter(columns.values()), worth)
            taken |= {node: max(one for one in levels if one <= level) for node, level in columns.items()}
        return taken

    def _level(self, node: Node) -> int:
        """The step that makes a column. It can read what it joins itself."""
        if node not in self._levels:
            named = self._named(node, is_own=True)
            self._levels[node] = max((self._ready(n) + (n.kind != "column") for n in named), default=1) or 1
        return self._levels[node]

    # ---- text

    def text_of(self, source: str, rows: Node | None = None) -> str:
        """The query of the outputs over a relation, or over those of its rows that a condition holds for."""
        made, joined = defaultdict(list), defaultdict(list)
        for node in self.kept:
            made[self._level(node)].append(node)
        for name in self.conditions:
            again = {level for node, level in self._taken.items() if node.about[0] == name}
            for level in again or {self._join(name)}:
                joined[level].append(name)
        until = self._read_last()
        steps, here, before = [], {}, f"{source} AS {ASKED}"
        for level in range(1, self.last):
            joins = "".join(self._join_text(name, here) for name in joined[level])
            after = {node: here.get(node) or self._handed_on(node, level) for node, end in until.items() if end > level}
            after = {node: name for node, name in after.items() if name}
            columns = [
                name if here.get(node) == name else f"{self._text(node, here, True)} AS {name}"
                for node, name in after.items()
            ]
            columns = columns or ["1 AS one"]
            kept = f" WHERE {written(rows)}" if rows is not None and level == 1 else ""
            steps.append(f"step_{level} AS (SELECT {', '.join(columns)} FROM {before}{joins}{kept})")
            before, here = f"step_{level}", after
        outputs = ", ".join(f'{self._text(node, here)} AS "{name}"' for name, node in self.outputs.items())
        kept = f" WHERE {written(rows)}" if rows is not None and not steps else ""
        return f"{'WITH ' if steps else ''}{', '.join(steps)} SELECT {outputs} FROM {before}{kept}"

    def _handed_on(self, node: Node, level: int) -> str | None:
        """The name under which this step is the first to hand a column on."""
        if node.kind != "column":
            return self.kept[node] if self._level(node) == level else None
        taken = self._taken.get(node) or max(self._ready(node), 1)
        return f"{node.about[0]}_{node.about[1]}" if taken == level else None

    def _readers(self) -> Iterator[tuple[Node, int, bool]]:
        """What is written, in which step, and whether it is a column there."""
        yield from ((node, self._level(node), True) for node in self.kept)
        yield from ((node, self.last, False) for node in self.outputs.values())
        for name, condition in self.conditions.items():
            if condition is not None:
                yield condition, self._join(name), False

    def _read_last(self) -> dict[Node, int]:
        """The step that reads a column last."""
        until: dict[Node, int] = {}
        again = ((self.conditions[node.about[0]], level, False) for node, level in self._taken.items())
        for reader, level, is_own in (*self._readers(), *again):
            for node in self._named(reader, is_own):
                if node.kind != "column" or node.about[0] != JOINED:
                    until[node] = max(until.get(node, 0), level)
        return until

    def _join_text(self, name: str, here: dict[Node, str]) -> str:
        table, condition = self.lookups[name].table, self.conditions[name]
        if condition is None:
            return f" CROSS JOIN {table} AS {name}"
        own = {n: f"{name}.{n.about[1]}" for n in self._named(condition) if n.kind == "column" and n.about[0] == JOINED}
        return f" LEFT JOIN {table} AS {name} ON {self._text(condition, {**here, **own})}"

    def _text(self, node: Node, here: dict[Node, str], is_own: bool = False) -> str:
        if node in here and not (is_own and node.kind != "column"):
            return here[node]
        if node.kind == "column":
            return f"{node.about[0]}.{node.about[1]}"
        return written(node, lambda part: self._text(part, here))


def joins_of(first: Mapping[int, int], worth: int) -> list[int]:
    """The steps that join a row, of which so many columns are `first` read in each step: those that cost least."""
    levels = sorted(first)
    best: list[tuple[int, list[int]]] = [(0, [])]  # of the columns from each level on
    for place in reversed(range(len(levels))):
        cost, found = worth, []
        for until in range(place, len(levels)):
            cost += first[levels[until]] * (levels[until] - levels[place])
            more, joins = best[until - place]
            found.append((cost + more, [levels[place], *joins]))
        best.insert(0, min(found))
    return best[0][1]


def _in_order(roots: Iterable[Node], lookups: dict[str, Lookup]) -> Iterator[Node]:
    """Every node that the roots are made of, and those that find the rows which they read; parts first."""
    seen: set[Node] = set()
    stack = [(node, False) for node in reversed(list(roots))]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(part, False) for part in node.parts]
            if node.kind == "column" and node.about[0] in lookups:
                condition = lookups[node.about[0]].condition
                stack += [] if condition is None else [(condition, False)]
