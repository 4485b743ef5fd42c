"""Footprints of a whole grid of scenarios, each part worked out once for all rows that share it.

What a step keeps of its inputs is the same whatever the optimizer is; what a card holds of the weights is the same at any context. Which
arguments a formula depends on is read off its text: a tier is a set of arguments, its table has one row for every combination of them that is
asked, and what depends on no more than these is a column there. A tier joins the rows of the smaller ones by their number.

The numbers are those of `footprints`: the text is the same, a test asks both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.press.flat.reading import ASKED, Lookup
from pipeline.press.flat.steps import Steps
from pipeline.press.flat.values import JOINED, Forest, Node

_NEVER_KEPT = ("constant", "lambda")


@dataclass(frozen=True)
class Tier:
    """The arguments that its rows are told apart by; of tiers the first that has what a formula depends on has the formula."""

    name: str
    keys: tuple[str, ...]

    @property
    def number(self) -> str:
        return f"{self.name}_number"

    def is_in(self, other: Tier) -> bool:
        return self is not other and set(self.keys) <= set(other.keys)


class Tiers:
    """`tiers` from few rows to many; the last has the outputs, and a row for each that is asked."""

    def __init__(
        self,
        forest: Forest,
        tiers: Sequence[Tier],
        lookups: Mapping[str, Lookup],
        outputs: Mapping[str, Node],
        worth: int,
    ) -> None:
        self.forest, self.tiers, self.lookups, self.worth = forest, tiers, lookups, worth
        self.reads: dict[Node, frozenset[str]] = {}
        self.made: dict[Tier, dict[Node, str]] = {tier: {} for tier in tiers}
        self.steps: dict[Tier, Steps] = {}
        for tier in reversed(tiers):
            wanted = {name: node for node, name in self.made[tier].items()} if tier is not tiers[-1] else outputs
            self.steps[tier] = self._steps(tier, wanted)

    def statements(self, asked: str) -> Iterator[str]:
        """What makes two temporary tables of each tier: `…_key`, its rows, with their numbers in the tiers that it joins, and `…_tier`, what is
        worked out for them. Of the last, whose rows are those of the relation `asked`, the second is the query that stands last."""
        for place, tier in enumerate(self.tiers):
            before = [one for one in self.tiers[:place] if one.is_in(tier)]
            largest = [one for one in before if not any(one.is_in(other) for other in before)]
            joins = "".join(
                f" JOIN {one.name}_key ON "
                + " AND ".join(f"{one.name}_key.{key} IS NOT DISTINCT FROM asked.{key}" for key in one.keys)
                for one in largest
            )
            given: dict[str, str] = {}
            for one in reversed(largest):
                given |= {
                    less.number: f"{one.name}_key.{less.number}" for less in (one, *(b for b in before if b.is_in(one)))
                }
            numbers = "".join(f", {of} AS {name}" for name, of in given.items())
            is_last = tier is self.tiers[-1]
            rows = asked if is_last else f"(SELECT DISTINCT {', '.join(tier.keys)} FROM {asked})"
            own = "" if is_last else f", row_number() OVER () AS {tier.number}"
            yield f"CREATE OR REPLACE TEMP TABLE {tier.name}_key AS SELECT asked.*{numbers}{own} FROM {rows} AS asked{joins}"
            if not is_last:
                yield f"CREATE OR REPLACE TEMP TABLE {tier.name}_tier AS {self._text(tier)}"
        yield self._text(self.tiers[-1])

    def _text(self, tier: Tier) -> str:
        return self.steps[tier].text_of(f"{tier.name}_key")

    def _steps(self, tier: Tier, wanted: Mapping[str, Node]) -> Steps:
        lowered: dict[Node, Node] = {}

        def below(node: Node) -> Node | None:
            return self._below(node, tier)

        def of(node: Node) -> Node:
            return self.forest.replaced(node, below, lowered)

        outputs = {name: of(node) for name, node in wanted.items()}
        if tier is not self.tiers[-1]:
            outputs[tier.number] = self.forest.node("column", (ASKED, tier.number))
        number = self.forest.node
        rows = {
            f"{one.name}_tier": Lookup(
                f"{one.name}_tier",
                f"{one.name}_tier",
                number("compare", "=", [number("column", (JOINED, one.number)), number("column", (ASKED, one.number))]),
            )
            for one in self.tiers
            if one.is_in(tier)
        }
        for name, lookup in self.lookups.items():
            rows[name] = Lookup(name, lookup.table, None if lookup.condition is None else of(lookup.condition))
        return Steps(rows, outputs, self.worth)

    def _below(self, node: Node, tier: Tier) -> Node | None:
        """The column of a smaller tier that holds what a node says."""
        if not node.is_closed or node.kind in _NEVER_KEPT or (node.kind == "column" and node.about[0] == ASKED):
            return None
        reads = self._reads(node)
        home = next((one for one in self.tiers if reads <= set(one.keys)), tier)
        if not reads or not home.is_in(tier):
            return None
        name = self.made[home].setdefault(node, f"{home.name}_{len(self.made[home])}")
        return self.forest.node("column", (f"{home.name}_tier", name))

    def _reads(self, node: Node) -> frozenset[str]:
        """The arguments that a node depends on."""
        if node not in self.reads:
            found = [self._reads(part) for part in node.parts]
            if node.kind == "column" and node.about[0] == ASKED:
                found.append(frozenset([node.about[1]]))
            elif node.kind == "column" and node.about[0] in self.lookups:
                condition = self.lookups[node.about[0]].condition
                found += [] if condition is None else [self._reads(condition)]
            self.reads[node] = frozenset().union(*found)
        return self.reads[node]
