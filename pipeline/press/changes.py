"""What this release says otherwise than the last: which models' totals or verdicts changed, by how much and why.

The last release is a digest in the checkout (`tables/release/`), kept there by `make release`. Comparing with a kept release, and not
with whatever `build/` holds, makes two builds of one checkout equal. With none kept, the comparison says so.

    changes.json   the summary: what moved underneath, models by how far their numbers moved, verdicts that changed
    changes.csv    every number that changed: model_id, scenario, old_bytes, new_bytes
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

from pipeline.press import digest
from pipeline.press.digest import Digest
from pipeline.render.data.rules import in_python

SUMMARY, NUMBERS = "changes.json", "changes.csv"
CAPACITY, SUPPORT = "capacity of a card", "what a card runs"
REFUSED = {"no": "won’t run", "untold": "not known to run"}
REVISION, ANATOMY = "new revision on the Hub", "its anatomy is read otherwise"
FORMULA, FACT, SCHEMA, UNTOLD = "formula", "fact", "schema", "code"


def write(tables: Path, sources: Path, versions: dict, release: Path) -> None:
    """Writes the digest of the tables and the comparison with the kept release beside them."""
    now = digest.take(tables, sources, versions)
    digest.write(now, tables)
    before = digest.read(release)
    summary, rows = compare(before, now) if before else ({"since": None}, [])
    text = json.dumps(summary, ensure_ascii=False, separators=(",", ":"))
    (tables / SUMMARY).write_text(text + "\n", encoding="utf-8")
    with (tables / NUMBERS).open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerows([("model_id", "scenario", "old_bytes", "new_bytes"), *rows])


def keep(tables: Path, release: Path) -> None:
    """Marks what is built as released: the next builds compare with it."""
    found = digest.read(tables)
    if found is None:
        raise FileNotFoundError(f"{tables} holds no digest; run `make publish` first")
    digest.write(found, release)


def compare(before: Digest, now: Digest) -> tuple[dict, list[tuple]]:
    """The summary, and every number that changed."""
    underneath = _underneath(before.basis, now.basis)
    old_cards, new_cards = before.basis["capacities"], now.basis["capacities"]
    both = [m for m in now.models if m in before.models]
    rows, models = [], []
    for model_id in both:
        old, new = before.numbers.get(model_id, {}), now.numbers.get(model_id, {})
        changed = [(s, old.get(s), new.get(s)) for s in sorted(old.keys() | new.keys()) if old.get(s) != new.get(s)]
        verdicts = _verdicts(old, new, before.basis, now.basis)
        totals = [(s, o and o[0], n and n[0]) for s, o, n in changed if (o and o[0]) != (n and n[0])]
        rows += [(model_id, *row) for row in totals]
        if changed or verdicts:
            why = _why(before.models[model_id], now.models[model_id], underneath, bool(changed), verdicts)
            models.append(_entry(model_id, totals, len(old.keys() | new.keys()), verdicts, why))
    models.sort(key=lambda entry: (-abs(entry["most"] or 0), entry["model_id"]))
    summary = {
        "since": {k: before.basis.get(k) for k in ("data_version", "snapshot_date", "schema_version")},
        "compared": len(both),
        "underneath": underneath,
        "added": sorted(now.models.keys() - before.models.keys()),
        "removed": sorted(before.models.keys() - now.models.keys()),
        "added_gpus": sorted(new_cards.keys() - old_cards.keys()),
        "removed_gpus": sorted(old_cards.keys() - new_cards.keys()),
        "models": models,
    }
    return summary, rows


def _entry(model_id: str, totals: list[tuple], number: int, verdicts: list[tuple], why: list[str]) -> dict:
    moved = [(n / o - 1, s, o, n) for s, o, n in totals if o and n]
    most = max(moved, key=lambda m: (abs(m[0]), m[1]), default=None)
    return {
        "model_id": model_id,
        "changed": len(totals),
        "of": number,
        "known": sum(o is None for _s, o, _n in totals),
        "unknown": sum(n is None for _s, _o, n in totals),
        "most": most and round(most[0], 6),
        "where": most and most[1:],
        "least": min((round(m[0], 6) for m in moved), key=abs, default=None),
        "verdicts": len(verdicts),
        "examples": verdicts[:3],
        "why": why,
    }


def _verdicts(old: dict, new: dict, before: dict, now: dict) -> list[tuple]:
    """(scenario, card, verdict before, verdict now) on one card, for what both releases know."""
    cards = sorted(before["capacities"].keys() & now["capacities"].keys())
    refused = now["refusals"]
    found = []
    for scenario in sorted(old.keys() & new.keys()):
        # a digest from before refusals were kept says nothing of them
        were, are = before.get("refusals", refused).get(scenario, {}), refused.get(scenario, {})
        for gpu in cards:
            then, today = (
                (each[scenario], basis["capacities"][gpu], refusals.get(gpu))
                for each, basis, refusals in ((old, before, were), (new, now, are))
            )
            if then != today and (was := _verdict(*then)) != (becomes := _verdict(*today)):
                found.append((scenario, gpu, was, becomes))
    return found


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


def _why(
    before: tuple[str, str], now: tuple[str, str], underneath: dict, has_moved: bool, verdicts: list[tuple]
) -> list[str]:
    """Why a model's numbers moved. What is its own comes first; formulas and facts are named where nothing else explains it."""
    if not has_moved:
        words = set(REFUSED.values())
        by_support = [bool(words & {was, becomes}) for _scenario, _gpu, was, becomes in verdicts]
        return [why for why, is_it in ((CAPACITY, not all(by_support)), (SUPPORT, any(by_support))) if is_it]
    if before[1] != now[1]:
        return [REVISION if before[0] != now[0] else ANATOMY]
    shared = [(FORMULA, "formulas"), (FACT, "facts"), (SCHEMA, "schema")]
    return [reason for reason, kind in shared if kind in underneath] or [UNTOLD]
