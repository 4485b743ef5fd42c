"""Answers by seconds of sound, in words."""

from __future__ import annotations

from typing import Any

from pipeline.base import durations

from .naming import VERDICTS, cards, format_name, gib_of
from .page import Page


def fits(answer: dict[str, Any], page: Page) -> None:
    card, best, rows, seconds = answer["card"], answer["best"], answer["sounds"], answer["use"]["seconds"]
    page.say(_sentence(answer), "bold")
    for note in card["notes"]:
        page.say(note)
    if answer.get("taken"):
        page.say(answer["taken"])
    known = [row for row in rows if row["verdict"] is not None]
    if known:
        lengths = sorted({n for row in known for n, size in row["bytes_by_seconds"].items() if size is not None})
        cells = [
            (
                format_name(row["dtype_id"]), row["runs_in"],
                *(gib_of(size) if (size := row["bytes_by_seconds"][n]) is not None else "–" for n in lengths), VERDICTS[row["verdict"]],
            )
            for row in known
        ]  # fmt: skip
        page.gap()
        page.table(
            ("format", "runs in", *(durations.in_words(n) for n in lengths), ""),
            cells,
            [row["verdict"] for row in known],
            drop=1,
        )
        page.say(f"GiB by length of the sound; the verdict is of {durations.in_words(seconds)}.", "dim", "  ")
    for row in rows if known else ():
        if row["verdict"] is None:
            page.say(f"{format_name(row['dtype_id'])} in {row['runs_in']}: {row['unknown_reason']}", "dim", "  ")
    if known and answer["note"]:
        page.gap()
        page.say(f"{answer['note']}.")
    if best and answer["verdict"] == "tight":
        page.gap()
        page.say("“Barely” is without the margin for what nobody can know beforehand: it may run out of memory.", "dim")


def _sentence(answer: dict[str, Any]) -> str:
    card, best, verdict = answer["card"], answer["best"], answer["verdict"]
    if verdict is None:
        return f"Not known: {answer['reason'] or 'no figure of this model'}."
    how = {"fits": "Yes", "tight": "Barely", "no": "No"}[verdict]
    does = "does not run" if verdict == "no" else "runs"
    return (
        f"{how}: {answer['model']} {does} on {cards(card)} with {durations.in_words(answer['use']['seconds'])} of sound, in "
        f"{format_name(best['dtype_id'])} ({best['runs_in']}): {gib_of(best['total_bytes'])} of {gib_of(best['capacity_bytes'])} GiB."
    )
