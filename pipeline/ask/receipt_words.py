"""What a program really held beside what was told, as sentences."""

from __future__ import annotations

from typing import Any

from .naming import (
    GIB,
    format_name,
)
from .page import Page


def receipt(answer: dict[str, Any], page: Page) -> None:
    version = f" {answer['version']}" if answer["version"] else ""
    users = f", {answer['sequences']} at once" if answer["sequences"] > 1 else ""
    silent = (
        ""
        if answer["is_context_said"]
        else " (ours: the log does not say how many, nor do the rows; --context says it)"
    )
    page.say(
        f"{answer['model']} in {format_name(answer['dtype_id'])}, {answer['context_tokens']:,} tokens{silent}{users}: what {answer['program']}{version} "
        f"says that it held, and what we say ({answer['holds_for']}).",
        "bold",
    )
    page.gap()
    rows = [
        (row["component"], _gib_exact(row["log_bytes"]), _gib_exact(row["ours_bytes"]), f"{row['difference']:+.1%}")
        for row in answer["components"]
    ]
    if rows:
        page.table(("", "log, GiB", "ours, GiB", "difference"), rows, [None for _ in rows], drop=9)
    else:
        page.say("Nothing in it is a component of ours.")
    page.gap()
    page.say(
        "For tables/measured.csv (add an id, where the log can be read, and the card; CONTRIBUTING.md says how):", "dim"
    )
    for line in answer["csv"].splitlines():
        page.verbatim(line)


def _gib_exact(size: int) -> str:
    return f"{size / GIB:,.3f}"
