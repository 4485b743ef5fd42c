"""Why a number moved: what of all that it rests on is not what it was.

Nothing is guessed. Of everything that can move a number a hash is kept (digest.py); what is as it was cannot have. Where one kind
of thing is left, it is the cause; where several are, they are named and not told apart.

    snapshot   the Hub says something else of the model (or of the relative whose shape it has)
    reader     the code that reads a model's anatomy
    fact       a row of tables/facts or tables/library
    constant   a constant of the formulas
    formula    a file of tables/sql
    code       the code that runs the formulas, or the libraries beneath it
    card       the capacity of a card        (verdicts alone)
    support    what an engine runs on a card (verdicts alone)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.press.digest import Seen

NOT_TOLD_APART = "not told apart"
# a person's words for each
WORDS = {
    "snapshot": "the Hub says otherwise",
    "reader": "its anatomy is read otherwise",
    "fact": "fact",
    "constant": "constant",
    "formula": "formula",
    "code": "code",
    "card": "capacity of a card",
    "support": "what a card runs",
    NOT_TOLD_APART: NOT_TOLD_APART,
}
# facts that decide verdicts, errors or which numbers there are, and no number; constants are told by their values
_NO_NUMBER = {
    *("gpu.csv", "gpu_class.csv", "support.csv", "source.csv", "reading.csv", "phase.csv", "constant.csv"),
    *(
        "rule_of_thumb.csv",
        "plan_set.csv",
        "training_run.csv",
        "technique.csv",
        "serving_run.csv",
        "serving_speed.csv",
        "outcome.csv",
    ),
}
_OF_READERS = ("checkpoint_gap.csv", "correction.csv", "library/")
_READERS = ("anatomy", "confirm", "hub", "book")
_RUNNERS = ("press", "book", "libraries")


@dataclass(frozen=True)
class Cause:
    """`kind` is one of WORDS. `among` names what changed, each `kind: what`; of a cause not told apart that is all it may be."""

    kind: str
    among: tuple[str, ...] = ()


def _cause(found: Mapping[str, tuple[str, ...]]) -> Cause:
    among = tuple(f"{kind}: {name}" for kind, names in found.items() for name in names)
    return Cause(next(iter(found)) if len(found) == 1 else NOT_TOLD_APART, among)


def together(*causes: Cause) -> Cause:
    """One cause of several that may each be it."""
    kinds = {cause.kind for cause in causes}
    among = tuple(dict.fromkeys(name for cause in causes for name in cause.among))
    return Cause(kinds.pop() if len(kinds) == 1 else NOT_TOLD_APART, among)


class Grounds:
    """What changed between two releases of what numbers rest on, and of a model what can have moved its numbers."""

    def __init__(self, before: Mapping[str, Any], now: Mapping[str, Any], has_new_records: bool):
        self.has_new_records = has_new_records
        self._shared: dict[str, tuple[str, ...]] = {}
        facts = [name for name in _changed(before, now, "facts") if name not in _NO_NUMBER]
        self._of_readers = tuple(name for name in facts if name.startswith(_OF_READERS))
        rooms = _changed(before, now, "code")
        self._readers = tuple(room for room in rooms if room in _READERS)
        old, new = before.get("constants", {}), now.get("constants", {})
        constants = tuple(
            f"{n} {_shown(old.get(n))} → {_shown(new.get(n))}" for n in _changed(before, now, "constants")
        )
        self._same_constants = old.keys() == new.keys()
        # before code was fingerprinted, nobody can say that it is as it was
        runners = tuple(r for r in rooms if r in _RUNNERS) if "code" in before else ("no fingerprint was kept",)
        for kind, names in (
            ("fact", tuple(name for name in facts if not name.startswith(_OF_READERS))),
            ("constant", constants),
            ("formula", tuple(_changed(before, now, "formulas"))),
            ("code", runners),
        ):
            if names:
                self._shared[kind] = names

    def of(self, before: Seen, now: Seen, is_of_knowing: bool = False) -> Cause:
        """What can have moved the numbers of a model; with `is_of_knowing` all of them became known or unknown, which no other value
        of a constant makes them."""
        own: dict[str, tuple[str, ...]] = {}
        if before.anatomy != now.anatomy:
            commit = f"commit {before.revision[:12] or 'unknown'} → {now.revision[:12] or 'unknown'}"
            if not before.record:
                if before.revision != now.revision:
                    own["snapshot"] = (commit,)
            elif before.record != now.record:
                own["snapshot"] = (commit if before.revision != now.revision else "another record of it",)
            elif self.has_new_records:
                own["snapshot"] = ("the record of a relative",)
            if self._readers:
                own["reader"] = self._readers
            if self._of_readers:
                own["fact"] = self._of_readers
        for kind, names in self._shared.items():
            if is_of_knowing and kind == "constant" and self._same_constants:
                continue
            own[kind] = own.get(kind, ()) + names
        return _cause(own)


def _changed(before: Mapping[str, Any], now: Mapping[str, Any], kind: str) -> list[str]:
    if kind not in before:
        return []
    old, new = before[kind], now.get(kind, {})
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.12g}"
