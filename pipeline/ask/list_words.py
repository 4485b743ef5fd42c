"""What fits a card, as a list for the terminal."""

from __future__ import annotations

from typing import Any

from . import host_words
from .naming import cards, format_name, gib_of, in_short, reach_of
from .page import Page


def what(answer: dict[str, Any], page: Page, again: str) -> None:
    """The models of a card; `again` is how the first of them is asked for."""
    card, models = answer["card"], answer["models"]
    many = f" for {answer['sequences']:,} users at once" if answer["sequences"] > 1 else ""
    at = f"at {answer['context_tokens']:,} tokens{many}"
    if answer["reason"]:
        page.say(f"Not known: {answer['reason']}.", "bold")
    elif not models:
        page.say(f"Nothing: none of {answer['of']:,} models to {answer['label']} fits {cards(card)} {at}.", "bold")
    else:
        page.say(
            f"{answer['fitting']:,} of {answer['of']:,} models to {answer['label']} fit {cards(card)} {at}; the newest and most downloaded:",
            "bold",
        )
    for note in card["notes"]:
        page.say(note)
    if models:
        page.gap()
        rows = [
            (
                m["model"],
                in_short(m["parameter_count"]),
                m["created_at"] or "",
                format_name(m["dtype_id"]),
                gib_of(m["total_bytes"]),
                reach_of(m),
            )
            for m in models
        ]
        page.table(
            ("model", "size", "made", "format ", "needs", "longest context"),
            rows,
            [m["verdict"] for m in models],
            drop=2,
        )
    if "beside" in answer:
        host_words.all_beside(answer["beside"], page, gib_of, in_short)
    if again:
        page.gap()
        page.verbatim(f"More of one: vram-almanac fits {again}")
