"""Prefill in Transformers: peaks of the real library under fake tensors (source transformers-step-oracle), weights included.

tests/oracle/prefill.csv holds one row per run: a prompt's forward that asks for the last token's logits, encoders for all.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests import step_account

ROWS = list(csv.DictReader((Path(__file__).parent / "oracle" / "prefill.csv").read_text(encoding="utf-8").splitlines()))
TOLERANCE = 0.005


@pytest.fixture(scope="module")
def answers(footprints):
    scenarios = [
        {name: row[name] for name in ("model_id", "dtype_id", "attention")}
        | {name: int(row[name]) for name in ("context_tokens", "sequences")}
        | {"engine_id": "transformers", "max_context_tokens": int(row["context_tokens"])}
        for row in ROWS
    ]
    # fake tensors run beyond learned positions, which a real step cannot
    both = [
        (row, answer)
        for row, answer in zip(ROWS, footprints(scenarios), strict=True)
        if "positions that this model has learned" not in (answer["unknown_reason"] or "")
    ]
    assert len(both) > 0.8 * len(ROWS)
    return both


def test_peaks_of_prefill_are_those_of_the_library(answers):
    outside = []
    for row, answer in answers:
        peak, predicted = int(row["peak_bytes"]), answer["total_bytes"] - answer["overhead_bytes"]
        if abs(predicted / peak - 1) > TOLERANCE:
            outside.append(
                (row["model_id"], row["dtype_id"], row["attention"], row["context_tokens"], predicted / peak - 1)
            )
    assert not outside


def test_half_of_the_activations_are_within_a_thousandth_of_the_peak(answers):
    """Weights hide what is wrong with activations; most rows must be far better than the tolerance."""
    errors = sorted(
        abs((answer["total_bytes"] - answer["overhead_bytes"]) / int(row["peak_bytes"]) - 1) for row, answer in answers
    )
    assert errors[len(errors) // 2] < 0.0002
    assert errors[int(len(errors) * 0.9)] < 0.002


def test_prompts_beyond_a_window_have_their_mask():
    """prefill_windowed.csv: models with sliding windows, embeddings per layer and routers with scales, by count_prefill.py."""
    rows = step_account.prefill("prefill_windowed.csv")
    assert len(rows) > 20
    outside = [
        (row["model"], row["context_tokens"], f"{row['error']:+.2%}")
        for row in rows
        if not -0.02 <= row["error"] <= 0.06
    ]
    assert not outside
    assert sorted(abs(row["error"]) for row in rows)[len(rows) // 2] < 0.01
