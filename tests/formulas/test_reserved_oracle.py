"""What the allocator keeps beyond live tensors: the constant against an emulated allocator under real steps (tests/oracle/reserved.csv)."""

from __future__ import annotations

import statistics

import pytest

from pipeline.book.facts import read_facts
from tests.formulas import step_account


def test_unused_blocks_are_the_median_of_emulated_steps_that_recompute_layers():
    """It was read from measured runs with fused attention; other kinds are noted beside the constant."""
    constants = dict(read_facts()["constant"].select("constant_id", "value").rows())
    shares = [
        (int(row["reserved_bytes"]) - int(row["peak_bytes"])) / (int(row["peak_bytes"]) - int(row["standing_bytes"]))
        for row in step_account.read("reserved.csv")
        if row["checkpointing"] == "full" and row["attention"] == "flash"
    ]
    assert len(shares) >= 8
    assert constants["unused_blocks_training"] == pytest.approx(statistics.median(shares), abs=0.02)
