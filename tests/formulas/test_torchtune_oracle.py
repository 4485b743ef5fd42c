"""torchtune's engines against its own steps that were really run (tests/oracle/torchtune_peaks.csv)."""

from __future__ import annotations

import pytest

from tests.formulas import step_account

UNDER, OVER = -0.003, 0.003


@pytest.fixture(scope="module")
def judged():
    return step_account.judged("torchtune_peaks.csv")


def test_every_step_of_both_versions_is_answered(judged):
    assert len(judged) >= 24
    assert {row["engine_id"] for row in judged} == {"torchtune", "torchtune-0.4"}
    assert not [(step_account.said(row), row["reason"]) for row in judged if row["error"] is None]


def test_peaks_are_those_of_its_steps(judged):
    outside = [f"{step_account.said(row)}: {row['error']:+.2%}" for row in judged if not UNDER <= row["error"] <= OVER]
    assert not outside


def test_adapters_have_as_many_parameters_as_it_gives_them(judged):
    lora = [row for row in judged if row["lora_rank"]]
    assert len(lora) >= 8
    # in the dtype of the weights, 2 bytes
    assert not [step_account.said(row) for row in lora if row["adapters_bytes"] != 2 * int(row["adapter_parameters"])]


def test_how_it_shards_is_not_claimed(footprints):
    asked = {
        "model_id": "meta-llama/Llama-3.1-8B",
        "phase_id": "full-finetune",
        "engine_id": "torchtune",
        "gpu_count": 8,
    }
    answer = footprints([asked])[0]
    assert answer["total_bytes"] is None
    assert answer["unknown_reason"] == "no source in the book says how torchtune trains with sharding zero3"
