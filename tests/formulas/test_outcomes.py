"""Trainings that people reported, nearly all of several cards: none that ran out of memory is told to fit, and none that ran is told not to."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pipeline.book.scenario import TYPES

# what nobody said of a run is what its program does, else what is least in one that ran out of memory and most in one that ran
with (Path(__file__).parents[1] / "golden" / "outcomes.csv").open(encoding="utf-8", newline="") as lines:
    RUNS = list(csv.DictReader(lines))
SAID = {"out of memory": ("no", "tight"), "ran": ("fits", "multi-gpu", "tight")}


@pytest.mark.some(12)
@pytest.mark.parametrize(
    "run",
    RUNS,
    ids=lambda run: f"{run['source'].rpartition('/')[2]}-{run['gpu_count']}-{run['outcome'].replace(' ', '-')}",
)
def test_a_run_is_told_as_it_went(book, run):
    said = {name: run[name] for name in run if name in TYPES and name != "model_id" and run[name]}
    # (some rows are longer than what their model was trained for)
    named = "".join(f", {name} := ${name}" for name in said) + ", max_context_tokens := $context_tokens"
    asked = {name: int(value) if value.isdecimal() else value for name, value in said.items()}
    (answer,) = book.execute(
        f"SELECT verdict, total_bytes, unknown_reason FROM fits_on($gpu_id, $model_id{named})",
        asked | {"gpu_id": run["gpu_id"], "model_id": run["model_id"]},
    ).fetchall()
    assert answer[0] in SAID[run["outcome"]], answer
