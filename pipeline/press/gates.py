"""Whether a release may take the place of the last: nothing is published that lost models, answers or accuracy, or broke the promise.

How much each measure may lose is a row of tables/gate.csv with its reason. What a gate refuses can be published knowingly, with a
reason that stands in the release notes from then on.
"""

from __future__ import annotations

import csv
import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.base.failures import Failure
from pipeline.book import promise
from pipeline.book.facts import TABLES
from pipeline.press.digest import Digest
from pipeline.press.measures import WORDS

FILE = TABLES / "gate.csv"
_COLUMNS = ("measure", "kind", "moves", "most", "as", "least_models", "reason")
_MOVES, _AS = ("falls", "rises"), ("share", "points", "count")


class GateError(Failure):
    """A row of tables/gate.csv that cannot be used."""


@dataclass(frozen=True)
class Gate:
    """A measure of kinds that match may fall or rise by `most`: a share of what it was, points of a share, or a count."""

    line: int
    measure: str
    kind: str
    moves: str
    most: float
    unit: str
    least_models: int
    reason: str


def gates(file: Path = FILE) -> list[Gate]:
    """Raises GateError."""
    with file.open(encoding="utf-8", newline="") as opened:
        reader = csv.DictReader(opened)
        if tuple(reader.fieldnames or ()) != _COLUMNS:
            raise GateError(f"{file.name}:1: the columns are {', '.join(_COLUMNS)}")
        return [_gate(file.name, reader.line_num, row) for row in reader]


def _gate(name: str, line: int, row: Mapping[str, str]) -> Gate:
    where = f"{name}:{line}"
    if row["measure"] not in WORDS or row["moves"] not in _MOVES or row["as"] not in _AS or not row["reason"]:
        raise GateError(
            f"{where}: a row names a measure ({', '.join(WORDS)}), how it moves ({', '.join(_MOVES)}), what `most` is "
            f"({', '.join(_AS)}) and a reason"
        )
    try:
        most, least = float(row["most"]), int(row["least_models"] or 0)
    except ValueError as error:
        raise GateError(f"{where}: {error}") from None
    return Gate(line, row["measure"], row["kind"], row["moves"], most, row["as"], least, row["reason"])


def refused(before: Digest | None, now: Digest, file: Path = FILE) -> list[str]:
    """Why a release may not take the place of the one before, each a sentence with its numbers; empty where it may, or where there is
    none before it."""
    if before is None:
        return []
    told = list(_measured(before.basis.get("measures", {}), now.basis["measures"], gates(file)))
    was, becomes = (kept.basis.get("snapshot_date") or "" for kept in (before, now))
    if becomes < was:
        told.append(
            f"snapshot: it is of {becomes}, and that of the last release of {was}: a crawl that was lost is no news"
        )
    if old := before.basis.get("promise"):
        told += [f"promise: {broken}" for broken in promise.broken(old, now.basis["promise"])]
    return told


def _measured(
    old: Mapping[str, Mapping[str, float]], new: Mapping[str, Mapping[str, float]], rows: list[Gate]
) -> Iterator[str]:
    decided = set()
    for gate in rows:
        were, are = old.get(gate.measure, {}), new.get(gate.measure, {})
        for kind in fnmatch.filter(sorted(were), gate.kind):
            # the first row that speaks of a kind decides, as a more special one stands before a general one
            if (gate.measure, kind) in decided:
                continue
            decided.add((gate.measure, kind))
            if old.get("models", {}).get(kind, 0) < gate.least_models:
                continue
            # of an error that nobody can work out any more `compared` tells
            missing = 0.0 if gate.moves == "falls" else were[kind]
            was, becomes = were[kind], are.get(kind, missing)
            if _lost(gate, was, becomes) > gate.most + 1e-9:
                yield _told(gate, kind, was, becomes)


def _lost(gate: Gate, was: float, becomes: float) -> float:
    by = was - becomes if gate.moves == "falls" else becomes - was
    return by / was if gate.unit == "share" and was else by


def _told(gate: Gate, kind: str, was: float, becomes: float) -> str:
    words, unit = WORDS[gate.measure]
    show = (lambda v: f"{100 * v:.2f} %") if unit == "share" else (lambda v: f"{v:,.0f}")
    how = {"share": f"{100 * gate.most:g} %", "points": f"{100 * gate.most:g} points", "count": f"{gate.most:g}"}[
        gate.unit
    ]
    verb = "fell" if gate.moves == "falls" else "rose"
    may = "none may be lost" if gate.moves == "falls" else "it may not rise"
    limit = may if not gate.most else f"at most {how} may be {'lost' if gate.moves == 'falls' else 'added'}"
    about = words if kind == "all" and not words.endswith(("of", "with")) else f"{words} {kind}"
    return f"{gate.measure}: {about} {verb} from {show(was)} to {show(becomes)}; {limit} (tables/{FILE.name}:{gate.line}: {gate.reason})"


def sentence(why: list[str]) -> str:
    """What a person is told of a release that is refused."""
    listed = "\n".join(f"  {line}" for line in why)
    return (
        f"the release is refused, and the last one stays: {len(why)} gate{'s' * (len(why) > 1)} failed\n{listed}\n"
        "To publish it knowingly: ARGS=\"--accept 'the reason, which goes into the release notes'\""
    )


def accepted(reason: str, why: list[str]) -> dict[str, Any]:
    """What the summary of a release keeps of gates that it passed by."""
    return {"reason": reason, "gates": why}
