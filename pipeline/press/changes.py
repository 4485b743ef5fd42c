"""What this release says otherwise than the last: models, cards, totals and verdicts, by how much and why.

The last release is a digest in the checkout (`tables/release/`), kept there by `make release` or taken from where it is published (`make
last-release`). Comparing with a kept release, and not with whatever `build/` holds, makes two builds of one checkout equal. With none
kept, the comparison says so.

    changes.json           the summary: what moved underneath, models by how far their numbers moved, verdicts that changed
    changes.csv            every number that changed: model_id, scenario, old_bytes, new_bytes, change, cause
    changed_verdicts.csv   every verdict on one card that changed: model_id, scenario, gpu_id, old_verdict, new_verdict, cause

CONTRIBUTING.md says which fields of the summary stay.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.book.packs import Packs
from pipeline.hub.record import Record
from pipeline.press import digest
from pipeline.press.causes import WORDS, Cause, Grounds, together
from pipeline.press.digest import Digest
from pipeline.render.data.rules import in_python

SUMMARY, NUMBERS, VERDICTS = "changes.json", "changes.csv", "changed_verdicts.csv"
REFUSED = {"no": "won’t run", "untold": "not known to run"}
MOVED = 0.01  # a number that moved by more is counted as moved
NUMBER_COLUMNS = ("model_id", "scenario", "old_bytes", "new_bytes", "change", "cause")
VERDICT_COLUMNS = ("model_id", "scenario", "gpu_id", "old_verdict", "new_verdict", "cause")
Verdict = tuple[str, str, str, str, Cause]  # scenario, card, before, now, why


@dataclass(frozen=True)
class Compared:
    """`summary` is what changes.json says; `numbers` and `verdicts` are the rows of the two tables."""

    summary: dict[str, Any]
    numbers: list[tuple] = field(default_factory=list)
    verdicts: list[tuple] = field(default_factory=list)


def write(
    tables: Path,
    sources: Path,
    versions: dict,
    release: Path,
    records: Iterable[Record] = (),
    packs: Packs | None = None,
) -> Digest:
    """Writes the digest of the tables and the comparison with the kept release beside them. Returns the digest."""
    now = digest.take(tables, sources, versions, records, packs=packs)
    digest.write(now, tables)
    before = digest.last(release)
    found = compare(before, now) if before else Compared({"since": None})
    _write_summary(found.summary, tables)
    write_tables(found, tables)
    return now


def accept(tables: Path, accepted: Mapping[str, Any]) -> None:
    """Keeps in the summary that gates refused this release, and why it is published all the same."""
    summary = json.loads((tables / SUMMARY).read_text(encoding="utf-8"))
    _write_summary(summary | {"accepted": dict(accepted)}, tables)


def _write_summary(summary: Mapping[str, Any], folder: Path) -> None:
    text = json.dumps(summary, ensure_ascii=False, separators=(",", ":"))
    (folder / SUMMARY).write_text(text + "\n", encoding="utf-8")


def write_tables(found: Compared, folder: Path) -> None:
    """The two tables of a comparison, into a folder."""
    for name, columns, rows in (
        (NUMBERS, NUMBER_COLUMNS, found.numbers),
        (VERDICTS, VERDICT_COLUMNS, found.verdicts),
    ):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerows([columns, *rows])


def keep(tables: Path, release: Path) -> None:
    """Marks what is built as released: the next builds compare with it."""
    found = digest.read(tables)
    if found is None:
        raise FileNotFoundError(f"{tables} holds no digest; run `make publish` first")
    digest.keep(found, release)


def compare(before: Digest, now: Digest) -> Compared:
    """The summary, every number that changed and every verdict."""
    old_cards, new_cards = before.basis["capacities"], now.basis["capacities"]
    both = [m for m in now.models if m in before.models]
    grounds = Grounds(
        before.basis,
        now.basis,
        any(before.models[m].record != now.models[m].record for m in both if before.models[m].record),
    )
    judge = _Judge(before.basis, now.basis)
    numbers, flipped, models = [], [], []
    for model_id in both:
        old, new = before.numbers.get(model_id, {}), now.numbers.get(model_id, {})
        changed = [(s, old.get(s), new.get(s)) for s in sorted(old.keys() | new.keys()) if old.get(s) != new.get(s)]
        is_of_knowing = all(o is None or n is None for _scenario, o, n in changed)
        why = grounds.of(before.models[model_id], now.models[model_id], is_of_knowing) if changed else Cause("")
        verdicts = judge.flips(old, new, why)
        totals = [(s, o and o[0], n and n[0]) for s, o, n in changed if (o and o[0]) != (n and n[0])]
        numbers += [(model_id, s, o, n, round(n / o - 1, 6) if o and n else None, why.kind) for s, o, n in totals]
        flipped += [(model_id, *verdict[:4], verdict[4].kind) for verdict in verdicts]
        if changed or verdicts:
            # the models without a changed number are told for what changed their verdicts
            cause = why if changed else together(*(verdict[4] for verdict in verdicts))
            models.append(_entry(model_id, totals, len(old.keys() | new.keys()), verdicts, cause))
    models.sort(key=lambda entry: (-abs(entry["most"] or 0), entry["model_id"]))
    known = lambda kept: {m for m in both if kept.numbers.get(m)}  # noqa: E731
    summary = {
        "since": {k: before.basis.get(k) for k in ("data_version", "snapshot_date", "schema_version")},
        "until": {k: now.basis.get(k) for k in ("data_version", "snapshot_date", "schema_version")},
        "compared": len(both),
        "underneath": _underneath(before.basis, now.basis),
        "added": sorted(now.models.keys() - before.models.keys()),
        "removed": sorted(before.models.keys() - now.models.keys()),
        "newly_known": sorted(known(now) - known(before)),
        "withdrawn": sorted(known(before) - known(now)),
        "added_gpus": sorted(new_cards.keys() - old_cards.keys()),
        "removed_gpus": sorted(old_cards.keys() - new_cards.keys()),
        "numbers": {"changed": len(numbers), "moved": sum(abs(row[4] or 0) > MOVED for row in numbers)},
        "verdicts": dict(sorted(Counter(f"{row[3]} → {row[4]}" for row in flipped).items())),
        "causes": _causes(models),
        "models": models,
    }
    return Compared(summary, numbers, flipped)


def _causes(models: list[dict]) -> dict[str, dict[str, Any]]:
    """By cause how many models, numbers and verdicts it changed, and what it may be."""
    found: dict[str, dict[str, Any]] = {}
    for entry in models:
        kind = found.setdefault(entry["cause"], {"models": 0, "numbers": 0, "moved": 0, "verdicts": 0, "among": []})
        kind["models"] += 1
        kind["numbers"] += entry["changed"]
        kind["moved"] += entry["moved"]
        kind["verdicts"] += entry["verdicts"]
        kind["among"] = sorted({*kind["among"], *entry["among"]})
    return dict(sorted(found.items()))


def _entry(model_id: str, totals: list[tuple], number: int, verdicts: list[Verdict], cause: Cause) -> dict:
    moved = [(n / o - 1, s, o, n) for s, o, n in totals if o and n]
    most = max(moved, key=lambda m: (abs(m[0]), m[1]), default=None)
    reasons = dict.fromkeys((cause.kind, *(verdict[4].kind for verdict in verdicts)))
    return {
        "model_id": model_id,
        "changed": len(totals),
        "of": number,
        "moved": sum(abs(m[0]) > MOVED for m in moved),
        "known": sum(o is None for _s, o, _n in totals),
        "unknown": sum(n is None for _s, _o, n in totals),
        "most": most and round(most[0], 6),
        "where": most and most[1:],
        "least": min((round(m[0], 6) for m in moved), key=abs, default=None),
        "verdicts": len(verdicts),
        "examples": [verdict[:4] for verdict in verdicts[:3]],
        "cause": cause.kind,
        "among": list(cause.among),
        "why": [WORDS[kind] for kind in reasons],
    }


class _Judge:
    """Verdicts on one card before and now, for what both releases know."""

    def __init__(self, before: Mapping[str, Any], now: Mapping[str, Any]):
        self.old, self.new = before["capacities"], now["capacities"]
        self.cards = sorted(self.old.keys() & self.new.keys())
        # a digest from before refusals were kept says nothing of them
        self.are = now["refusals"]
        self.were = before.get("refusals", self.are)

    def flips(self, old: Mapping, new: Mapping, why: Cause) -> list[Verdict]:
        found = []
        for scenario in sorted(old.keys() & new.keys()):
            were, are = self.were.get(scenario, {}), self.are.get(scenario, {})
            is_still = old[scenario] == new[scenario]
            for gpu in self.cards:
                if is_still and self.old[gpu] == self.new[gpu] and were.get(gpu) == are.get(gpu):
                    continue
                was = _verdict(old[scenario], self.old[gpu], were.get(gpu))
                becomes = _verdict(new[scenario], self.new[gpu], are.get(gpu))
                if was != becomes:
                    cause = self._cause(old[scenario], new[scenario], gpu, (were.get(gpu), are.get(gpu)), why)
                    found.append((scenario, gpu, was, becomes, cause))
        return found

    def _cause(self, old: tuple, new: tuple, gpu: str, refusals: tuple, why: Cause) -> Cause:
        """What flips the verdict: each of what changed is tried alone, with all else as it was."""
        was = _verdict(old, self.old[gpu], refusals[0])
        card = Cause("card", (f"card: {gpu} gave {self.old[gpu]:,} bytes and gives {self.new[gpu]:,}",))
        support = Cause("support", (f"support: {gpu}",))
        tried = (
            (why, old != new, _verdict(new, self.old[gpu], refusals[0])),
            (card, self.old[gpu] != self.new[gpu], _verdict(old, self.new[gpu], refusals[0])),
            (support, refusals[0] != refusals[1], _verdict(old, self.old[gpu], refusals[1])),
        )
        alone = [cause for cause, has_changed, verdict in tried if has_changed and verdict != was]
        # none does it alone: all that changed did it together
        return together(*(alone or [cause for cause, has_changed, _verdict in tried if has_changed]))


def _verdict(number: tuple[int, float], capacity: int, refusal: str | None) -> str:
    total, band = number
    if refusal:
        return REFUSED[refusal]
    return in_python().card_verdict(total, band, capacity, 1)


def _underneath(before: dict, now: dict) -> dict:
    """What the numbers rest on and what of it changed, by kind; empty kinds are left out."""
    old = lambda kind: before.get(kind, {})  # noqa: E731
    names = lambda kind: sorted(n for n in old(kind).keys() | now[kind].keys() if old(kind).get(n) != now[kind].get(n))  # noqa: E731
    pairs = lambda kind: [(n, old(kind).get(n), now[kind].get(n)) for n in names(kind)]  # noqa: E731
    found = {
        "schema": [(before.get("schema_version"), now["schema_version"])]
        if before.get("schema_version") != now["schema_version"]
        else [],
        "formulas": names("formulas"),
        "facts": names("facts"),
        "code": names("code") if "code" in before else [],
        "constants": pairs("constants"),
        "engines": pairs("engines"),
        "capacities": [c for c in pairs("capacities") if None not in c],
        "support": _support(before.get("refusals", now["refusals"]), now["refusals"]),
    }
    return {kind: changed for kind, changed in found.items() if changed}


def _support(before: dict, now: dict) -> list[str]:
    """By scenario how many cards run it that did not, and the reverse."""
    told = []
    for scenario in sorted(before.keys() | now.keys()):
        were, are = before.get(scenario, {}), now.get(scenario, {})
        parts = (("runs on {} more", were.keys() - are.keys()), ("no longer on {}", are.keys() - were.keys()))
        parts = (*parts, ("otherwise refused on {}", {g for g in were.keys() & are.keys() if were[g] != are[g]}))
        if said := [text.format(len(cards)) for text, cards in parts if cards]:
            told.append(f"{scenario}: {', '.join(said)}")
    return told
