"""What a page and the calculator take where a reader has chosen nothing: the lines of scenario_set.csv whose purpose is `opening`.

One declaration for both, so that the same question has the same answer on either.
"""

from __future__ import annotations

import polars as pl

from pipeline import ROOT
from pipeline.book.scenario import scenario_grid

FACTS = ROOT / "tables" / "facts" / "scenario_set.csv"
NAMES = ("dtype_id", "context_tokens", "sequences", "optimizer_id", "checkpointing")


def read(scenario_sets: list[dict]) -> dict[str, dict]:
    """By phase the format, context, sequences, optimizer and checkpointing to begin with; a value that a phase has not is None.

    `scenario_sets` are the release's rows; a release that was built before it had such lines takes those of this checkout.
    """
    rows = [row for row in scenario_sets if row["purpose"] == "opening"]
    frame = pl.DataFrame(rows) if rows else pl.read_csv(FACTS, infer_schema=False).filter(purpose="opening")
    return {row["phase_id"]: {name: row[name] for name in NAMES} for row in scenario_grid(frame).to_dicts()}


def longest(published: list[int], wanted: int, limit: int | None) -> int | None:
    """The context to show first: the one wanted, or the longest published that the model reads where that is less."""
    most = min(wanted, limit or wanted)
    return max((c for c in published if c <= most), default=published[0] if published else None)
