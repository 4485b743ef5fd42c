"""Sequences about as long as a window, and eager attention of windows, caps and sinks, against the real library (tests/oracle)."""

from __future__ import annotations

import statistics

import pytest

from tests.formulas import step_account


@pytest.fixture(scope="module")
def steps():
    return step_account.judged("training_windowed.csv")


def _outside(rows, least, most):
    named = ("model", "dtype_id", "context_tokens", "sequences")
    return [(*(row[n] for n in named), f"{row['error']:+.2%}") for row in rows if not least <= row["error"] <= most]


@pytest.mark.full
def test_a_step_as_long_as_the_window_is_counted_with_its_mask(steps):
    """training_windowed.csv: one token below the window, the window, one above; layers that are kept and layers that are recomputed."""
    assert len(steps) > 70
    assert not [(row["model"], row["reason"]) for row in steps if row["error"] is None]
    assert not _outside(steps, -0.0025, 0.0025)


def test_the_mask_comes_with_the_window_and_not_after_it(steps):
    """Mistral-7B's widths, window 4096: the last token of the window costs two sequences of four layers 0.6 GB, the next one nothing."""
    below, at, above = (
        row["error"] * int(row["peak_bytes"]) + int(row["peak_bytes"])
        for tokens in ("4095", "4096", "4097")
        for row in steps
        if (
            row["model"],
            row["context_tokens"],
            row["sequences"],
            row["phase_id"],
            row["precision"],
            row["checkpointing"],
        )
        == ("mistral_7b_w", tokens, "2", "full-finetune", "pure", "none")
    )
    assert at - below > 600e6 > 100 * (above - at)


@pytest.mark.full
def test_a_prompt_as_long_as_the_window_is_counted_with_its_mask():
    rows = step_account.prefill("prefill_boundary.csv")
    assert len(rows) > 50
    assert not _outside(rows, -0.005, 0.005)


@pytest.mark.full
def test_eager_prompts_hold_every_copy_of_their_scores():
    """prefill_eager.csv: sinks are one tensor of scores more, windows a mask more, and scores stay beside what follows them."""
    rows = step_account.prefill("prefill_eager.csv")
    assert len(rows) > 40
    assert not _outside(rows, -0.0175, 0.01)
    assert statistics.median(abs(row["error"]) for row in rows) < 0.0005
    long = [row for row in rows if row["model"] in ("gpt_oss", "gemma2") and int(row["context_tokens"]) >= 1024]
    assert len(long) > 6
    assert not _outside(long, -0.001, 0.001)
