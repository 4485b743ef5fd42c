"""Techniques of training on one model: what everybody knows of each, in our numbers."""

from __future__ import annotations

import pytest

TEXT = "Qwen/Qwen3-8B"


@pytest.fixture(scope="module")
def told(book):
    result = book.execute("FROM techniques_for('h100-sxm', $1)", [TEXT])
    columns = [column[0] for column in result.description]
    rows = [dict(zip(columns, row, strict=True)) for row in result.fetchall()]
    assert [row["technique_rank"] for row in rows] == list(range(1, 18))
    return {row["technique_id"]: row for row in rows}


def test_every_technique_is_held_against_the_plain_one(told, footprint_of):
    plain = footprint_of(TEXT, phase_id="full-finetune", context_tokens=2048)
    assert told["plain"]["total_bytes"] == plain["total_bytes"] and told["plain"]["saved_bytes"] == 0
    assert all(row["saved_bytes"] == plain["total_bytes"] - row["total_bytes"] for row in told.values())
    assert all(row["unknown_reason"] is None and row["verdict"] for row in told.values())
    lora = footprint_of(TEXT, phase_id="lora", context_tokens=2048)
    assert told["lora"]["total_bytes"] == lora["total_bytes"]


def test_what_each_saves_and_costs(told):
    saved = {name: row["saved_bytes"] for name, row in told.items()}
    assert saved["zero3"] > saved["zero2"] > saved["zero1"] > 0
    assert saved["adamw-8bit"] > saved["lion"] > 0 and saved["qlora"] > saved["lora"] > 0 and saved["checkpointing"] > 0
    assert saved["fp32"] < 0 and saved["eager"] < 0 and saved["accumulation"] < 0
    assert told["offload"]["host_bytes"] > 0 == told["plain"]["host_bytes"]
    ratio = {name: row["operations_ratio"] for name, row in told.items()}
    assert ratio["plain"] == 1 and ratio["checkpointing"] == pytest.approx(4 / 3)
    assert 2 / 3 < ratio["lora"] == ratio["qlora"] < 0.75
    assert (told["plain"]["verdict"], told["zero3"]["verdict"], told["lora"]["verdict"]) == ("no", "multi-gpu", "fits")
