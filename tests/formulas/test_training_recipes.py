"""Recipes beyond the usual: the formulas against steps that were really run (tests/oracle/training_recipes.csv)."""

from __future__ import annotations

import pytest

from tests.formulas import step_account

UNDER, OVER = -0.01, 0.02


@pytest.fixture(scope="module")
def judged():
    return step_account.judged("training_recipes.csv")


def test_every_recipe_is_answered(judged):
    assert len(judged) > 65
    assert not [(step_account.said(row), row["reason"]) for row in judged if row["error"] is None]


def test_peaks_of_recipes_are_those_of_real_steps(judged):
    outside = [f"{step_account.said(row)}: {row['error']:+.2%}" for row in judged if not UNDER <= row["error"] <= OVER]
    assert not outside


def test_adapters_of_routed_experts_alone_are_those_of_real_steps(judged):
    experts = [row for row in judged if row["lora_targets"] == "experts"]
    assert len({row["model"] for row in experts}) >= 5
    assert {row["checkpointing"] for row in experts} == {"none", "full"}
    assert sum(abs(row["error"]) for row in experts) / len(experts) < 0.005


def test_dropout_of_adapters_costs_what_real_steps_hold(judged):
    """A tenth of a step where nothing is recomputed: formulas that left it out would be far outside of this."""
    dropped = [row for row in judged if row["lora_dropout"]]
    assert len({row["model"] for row in dropped}) >= 7
    assert {row["precision"] for row in dropped} == {"mixed", "amp", "pure"}
    assert max(abs(row["error"]) for row in dropped) < 0.006


@pytest.mark.parametrize("adapter", ["lora", "dora"])
def test_adapters_have_as_many_parameters_as_peft_gives_them(judged, adapter):
    rows = [row for row in judged if row["lora_rank"] and (row["adapter"] or "lora") == adapter]
    assert len(rows) > 4
    each = {"mixed": 4, "amp": 4, "pure": 2}
    held = lambda row: 4 if row["dtype_id"] == "fp32" else each[row["precision"]]  # noqa: E731
    wrong = [
        step_account.said(row) for row in rows if row["adapters_bytes"] != held(row) * int(row["adapter_parameters"])
    ]
    assert not wrong
