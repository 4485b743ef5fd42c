"""fp8 linear layers in training hold what bf16 ones do, and little more while they cast: steps of torchao, counted (tests/oracle/float8_peaks.csv)."""

from __future__ import annotations

import pytest

from tests.formulas import step_account

SAME = ("model", "context_tokens", "sequences", "checkpointing")
# what the casts add at most, where the peak stands inside a layer
MORE = 0.025


@pytest.fixture(scope="module")
def steps():
    """Peaks by recipe, for each step."""
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for row in step_account.read("float8_peaks.csv"):
        found.setdefault(tuple(row[name] for name in SAME), {})[row["recipe"]] = int(row["peak_bytes"])
    return found


def test_every_step_was_counted_in_bf16_too(steps):
    assert len(steps) >= 5
    assert all({"bf16", "tensorwise", "rowwise"} == set(peaks) for peaks in steps.values())


def test_fp8_saves_nothing_and_adds_little(steps):
    ratios = [peaks[recipe] / peaks["bf16"] for peaks in steps.values() for recipe in ("tensorwise", "rowwise")]
    assert min(ratios) >= 1
    assert 1 < max(ratios) <= 1 + MORE


def test_who_asks_for_fp8_is_sent_to_bf16(footprint_of):
    row = footprint_of("Qwen/Qwen3-8B", phase_id="full-finetune", dtype_id="fp8")
    assert row["total_bytes"] is None
    assert "dtype_id := bf16" in row["unknown_reason"]
