"""Steps of TRL's own trainers on a card (tests/oracle/card.csv, tables card_trl and preference) against what is told of their release."""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import TYPES
from tests.formulas import step_account
from tests.formulas.at_once import at_once

ORACLE = Path(__file__).parents[1] / "oracle"
# the snapshot lacks its config
UNKNOWN = {"facebook/opt-1.3b"}
# models of the oracle alone (training_models.csv), which no anatomy is published of
MIXTURES = {"olmoe", "qwen3_moe", "mixtral"}


def steps() -> list[dict]:
    rows = csv.DictReader((ORACLE / "card.csv").read_text(encoding="utf-8").splitlines())
    found = [row | json.loads(row["row_json"]) for row in rows if row["table"] in ("card_trl", "preference")]
    return [row for row in found if row["model"] not in UNKNOWN]


STEPS = [row for row in steps() if row["model"] not in MIXTURES]
OF_MIXTURES = [row for row in steps() if row["model"] in MIXTURES]


def name(row: dict) -> str:
    parts = ("objective_id", "trl_version", "model", "phase_id", "dtype_id", "context_tokens", "pairs", "checkpointing")
    return "-".join([*(row[part] for part in parts), row.get("lora_targets", "")])


EMULATED = [
    row
    for row in csv.DictReader((ORACLE / "reserved_trl.csv").read_text(encoding="utf-8").splitlines())
    if row["peak_bytes"]
]


def case_of(row: dict) -> dict:
    said = {key: row[key] for key in ("phase_id", "dtype_id", "checkpointing", "lora_targets") if row.get(key)}
    said |= {key: int(row[key]) for key in ("context_tokens", "lora_rank") if row.get(key)}
    said |= {"lora_dropout": float(row.get("lora_dropout") or 0)} if row.get("lora_rank") else {}
    said |= {"program": "trl", "program_version": row["trl_version"], "sequences": int(row["pairs"])}
    return said | {"objective": row["objective_id"], "model": row["model"]}


@pytest.fixture(scope="module")
def told(book, footprints):
    """What the almanac says of a step: all are asked at once."""
    cases = [case_of(row) for row in [*STEPS, *EMULATED]]
    is_text = [case["objective"] == "sft" for case in cases]
    named = sorted({key for case in cases for key in case} - {"objective", "model"})
    texts = [
        {"model_id": case["model"]} | {key: case.get(key) for key in named}
        for case in cases
        if case["objective"] == "sft"
    ]
    others = [case for case in cases if case["objective"] != "sft"]
    of_texts = iter([row] for row in footprints(texts))
    of_others = iter(at_once(book, "preference_of", ("objective", "model"), others))
    answers = [next(of_texts if text else of_others)[0] for text in is_text]
    by_case = {json.dumps(case, sort_keys=True): answer for case, answer in zip(cases, answers, strict=True)}
    return lambda row: by_case[json.dumps(case_of(row), sort_keys=True)]


def live_bytes(row: dict) -> int:
    return int(row["peak_bytes"]) - int(row["workspace_bytes"])


def is_wide(row: dict) -> bool:
    """QLoRA whose base is told in fp32: peft's preparation is undone in part (adapters and embeddings of ORPO and the older KTO are in 16 bits),
    and a model with fused layer norms only flows in it."""
    return (
        row["objective_id"] == "orpo"
        or (row["trl_version"] == "1.0.0" and row["objective_id"] == "kto")
        or "phi-2" in row["model"]
    )


@pytest.mark.parametrize("row", STEPS, ids=name)
def test_a_step_of_a_trainer_is_what_is_told(told, row):
    """Live bytes: at most 2.25 % under (small models that keep all their layers), and 4 % over. QLoRA up to 9 % over, and 25 % where more is told
    in fp32 than is (`is_wide`, which says why): upper bounds."""
    answer = told(row)
    error = (answer["total_bytes"] - answer["overhead_bytes"]) / live_bytes(row) - 1
    most = {"qlora": 0.25 if is_wide(row) else 0.09}.get(row["phase_id"], 0.04)
    assert -0.0225 < error < most, error


def context(book) -> float:
    return dict(book.execute("SELECT constant_id, value FROM constant").fetchall())["process_context_bytes"]


@pytest.mark.parametrize("row", STEPS, ids=name)
def test_no_step_of_a_trainer_reserved_more_than_is_told_with_its_band(told, book, row):
    """What decides whether it runs: with it a card is said to be large enough."""
    answer = told(row)
    assert int(row["reserved_bytes"]) + context(book) <= answer["total_bytes"] * (1 + answer["error_band"])


def told_of_texts(connection, cases: list[dict]) -> list[dict]:
    """Trainings on texts, each phase planned once."""
    rows = [
        {"model_id": case["model"]} | {k: v for k, v in case.items() if k not in ("model", "objective")}
        for case in cases
    ]
    found = {}
    for phase in {row["phase_id"] for row in rows}:
        asked = [row for row in rows if row["phase_id"] == phase]
        connection.register("asked_rows", pl.DataFrame(asked, schema_overrides=TYPES, strict=False).to_arrow())
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE batch AS FROM no_scenario; INSERT INTO batch BY NAME FROM asked_rows"
        )
        answers = connection.execute(f"FROM footprints_in('batch', '{phase}')")
        columns = [column[0] for column in answers.description]
        for row in answers.fetchall():
            answer = dict(zip(columns, row, strict=True))
            found[answer["model_id"], phase, answer["program_version"]] = answer
    return [found[row["model_id"], row["phase_id"], row["program_version"]] for row in rows]


@pytest.mark.full
def test_mixtures_of_experts_are_told_as_the_card_held_them():
    """With the load-balancing loss that TRL takes of them since 1.7 (SFT, GRPO) and 1.8 (DPO, KTO)."""
    assert {row["model"] for row in OF_MIXTURES} == MIXTURES
    assert {row["objective_id"] for row in OF_MIXTURES} == {"sft", "dpo", "kto", "grpo"}
    cases = [case_of(row) for row in OF_MIXTURES]
    with step_account.book() as connection:
        texts = [case for case in cases if case["objective"] == "sft"]
        others = [case for case in cases if case["objective"] != "sft"]
        answers = told_of_texts(connection, texts)
        answers += [row for (row,) in at_once(connection, "preference_of", ("objective", "model"), others)]
        held = context(connection)
    rows = sorted(OF_MIXTURES, key=lambda row: row["objective_id"] != "sft")
    for row, answer in zip(rows, answers, strict=True):
        error = (answer["total_bytes"] - answer["overhead_bytes"]) / live_bytes(row) - 1
        assert -0.001 < error < 0.021, (name(row), error)
        assert int(row["reserved_bytes"]) + held <= answer["total_bytes"] * (1 + answer["error_band"]), name(row)
        has_balance = answer["holds_for"].count("Transformers 5.16 or later") == 1
        assert has_balance == (row["trl_version"] not in ("1.2.0", "1.6.0")), answer["holds_for"]


@pytest.mark.parametrize("is_adapter", [True, False])
def test_what_a_trainers_allocator_holds_is_known_to_a_few_percent(told, book, is_adapter):
    """Beside the live bytes that were measured: nothing more than 8 % below, half within 4 %. Above lie steps whose logits are copied into
    segments that fit by chance, and QLoRA of small models, told with a layer's blocks."""
    off = []
    for row in STEPS:
        if bool(row.get("lora_rank")) == is_adapter:
            answer = told(row)
            said = live_bytes(row) + answer["overhead_bytes"]
            off.append(said / (int(row["reserved_bytes"]) + context(book)) - 1)
    assert len(off) > 35
    assert min(off) > -0.09 and max(off) < 0.21, sorted(off)
    assert statistics.median(map(abs, off)) < 0.04, sorted(off)


def test_what_was_not_measured_is_told_as_an_emulated_allocator_has_it(told, book):
    """Steps of models that set nothing (reserved_trl.csv): none holds more than is told with its band, or 6 % more
    than is told. Where logits are much more than the weights, all of which are trained, up to 35 % less is held."""
    off = []
    for row in EMULATED:
        answer = told(row)
        held = int(row["reserved_bytes"]) + context(book)
        assert held <= answer["total_bytes"] * (1 + answer["error_band"]), row
        off.append((int(row["peak_bytes"]) + answer["overhead_bytes"]) / held - 1)
    assert len(off) > 8
    assert min(off) > -0.06 and max(off) < 0.36, sorted(off)
