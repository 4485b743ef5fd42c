"""What the allocator keeps beyond live tensors: the formula against an emulated allocator under real steps (tests/oracle/reserved.csv)."""

from __future__ import annotations

import statistics

import pytest

from pipeline.book.facts import read_facts
from tests.formulas import step_account

Row = dict


@pytest.fixture(scope="module")
def steps() -> list[Row]:
    """Each with `off`: what we say is reserved ÷ what was, less one."""
    context = dict(read_facts()["constant"].select("constant_id", "value").rows())["process_context_bytes"]
    rows = step_account.judged("reserved.csv")
    for row in rows:
        assert row["reason"] is None, row
        said = int(row["peak_bytes"]) * (1 + row["error"]) + row["overhead_bytes"] - context
        row["off"] = said / int(row["reserved_bytes"]) - 1
    return rows


def _of(steps: list[Row], **named: str) -> list[float]:
    return [row["off"] for row in steps if row["lora_rank"] and all(row[n] == v for n, v in named.items())]


@pytest.mark.parametrize(("checkpointing", "least"), [("full", 20), ("none", 10)])
def test_what_an_adapters_step_reserves_is_known_to_a_few_percent(steps, checkpointing, least):
    """Never more than 8 % too little, half of the steps within 4 %."""
    off = _of(steps, checkpointing=checkpointing)
    assert len(off) >= least
    assert min(off) > -0.08 and statistics.median(map(abs, off)) < 0.04, sorted(off)


def test_steps_that_train_all_weights_are_within_their_band(steps):
    """What lies unused there follows no rule that was found: the band takes it in."""
    band = dict(read_facts()["constant"].select("constant_id", "value").rows())["error_band_training"]
    off = [row["off"] for row in steps if not row["lora_rank"]]
    assert len(off) >= 8 and max(map(abs, off)) < band, sorted(off)


def test_expandable_segments_reserve_less_than_segments_of_their_own(steps):
    """They never take less than what lives, and of adapters' steps half of what lies unused and more is spared."""
    rows = [row for row in steps if row["expandable_bytes"] and row["lora_rank"] and row["checkpointing"] == "full"]
    assert len(rows) >= 8
    for row in rows:
        assert int(row["peak_bytes"]) <= int(row["expandable_bytes"]) < int(row["reserved_bytes"]), row
