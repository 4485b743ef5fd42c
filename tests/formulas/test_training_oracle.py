"""The training formulas against steps that were really run (tests/oracle/training_peaks.csv): real code on fake tensors."""

from __future__ import annotations

import statistics

import pytest

from tests.formulas import step_account
from tests.formulas.step_account import SCENARIO

MEAN, UNDER, OVER = 0.0022, -0.025, 0.06


@pytest.fixture(scope="module")
def judged():
    """Rows of training_peaks.csv with `error`, predicted ÷ counted − 1."""
    return step_account.judged("training_peaks.csv")


def test_every_row_is_answered(judged):
    assert len(judged) > 700
    assert not [(row["model"], row["reason"]) for row in judged if row["error"] is None]


def test_peaks_are_those_of_real_steps(judged):
    errors = [row["error"] for row in judged]
    assert statistics.mean(map(abs, errors)) < MEAN
    outside = [
        (row["model"], *(row[name] for name in SCENARIO), f"{row['error']:+.2%}")
        for row in judged
        if not UNDER <= row["error"] <= OVER
    ]
    assert not outside


def test_adapters_have_as_many_parameters_as_peft_gives_them(judged):
    lora = [row for row in judged if row["lora_rank"]]
    assert len(lora) > 150
    assert not [row["model"] for row in lora if row["adapters_bytes"] != 4 * int(row["adapter_parameters"])]
