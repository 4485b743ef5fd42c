"""What the formulas say of the steps in tests/oracle: rows of a table there, each with its answer."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Mapping
from pathlib import Path

import duckdb
import polars as pl

from pipeline.base.caches import cache_folder
from pipeline.book.scenario import TYPES
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from pipeline.press import blank
from pipeline.press.anatomise import anatomise
from tests.once import once

ORACLE = Path(__file__).parents[1] / "oracle"
SCENARIO = (
    "phase_id", "dtype_id", "context_tokens", "sequences", "optimizer_id", "precision", "checkpointing", "lora_rank",
    "lora_targets", "attention",
)  # fmt: skip
# arguments that a table may leave out or empty, and what they then are
DEFAULTS = {"engine_id": "transformers", "loss": "full", "gradient_accumulation": "1"}
ADAPTER_DEFAULTS = {"adapter": "lora", "lora_dropout": "0"}


def _default(row: dict[str, str], column: str) -> str | None:
    """A prompt that is read has neither loss nor gradients."""
    return None if row["phase_id"] == "inference" and column != "engine_id" else DEFAULTS[column]


def read(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((ORACLE / name).read_text(encoding="utf-8").splitlines()))


def book(rows: list[dict[str, str]]) -> duckdb.DuckDBPyConnection:
    """Formulas over those models of training_models.csv that the rows name."""
    named = {row["model"] for row in rows}
    records = tuple(
        Record(row["model"], config=json.loads(row["config_json"]), config_kind="verbatim")
        for row in read("training_models.csv")
        if row["model"] in named
    )
    snapshot = Snapshot(ORACLE, datetime.date(2026, 11, 20), "oracle", records, {})
    connection = blank.copied(cache_folder())
    blank.fill(connection, anatomise(snapshot))
    return connection


def judged(name: str, **also: object) -> list[dict]:
    """Rows that have a peak, with `error` (predicted ÷ counted − 1), `adapters_bytes`, `overhead_bytes`, `error_band` and `reason`; `also`: what all are asked besides.
    They are worked out by one worker for all: several files hold the same steps to something."""
    words = ("judged", name.removesuffix(".csv"), *(f"{argument}-{value}" for argument, value in also.items()))
    folder = once(
        "-".join(words),
        lambda making: (making / "rows.json").write_text(json.dumps(_judged(name, also)), encoding="utf-8"),
    )
    return json.loads((folder / "rows.json").read_text(encoding="utf-8"))


def _judged(name: str, also: Mapping[str, object]) -> list[dict]:
    # a row without a peak waits to be counted
    rows = [row for row in read(name) if row["peak_bytes"]]
    connection = book(rows)
    named = ("model_id", *SCENARIO, *ADAPTER_DEFAULTS, *DEFAULTS)
    asked = [
        dict.fromkeys(TYPES)
        | {"model_id": row["model"], "gpu_count": "1", "max_context_tokens": row["context_tokens"]}
        | {column: row[column] or None for column in SCENARIO}
        | {n: row.get(n) or (usual if row["lora_rank"] else None) for n, usual in ADAPTER_DEFAULTS.items()}
        | {column: row.get(column) or _default(row, column) for column in DEFAULTS}
        | also
        for row in rows
    ]
    kinds = {column: pl.Boolean if kind == pl.Boolean else pl.String for column, kind in TYPES.items()}
    frame = pl.DataFrame(asked, schema=kinds).cast(TYPES)
    connection.register("asked", frame.to_arrow())
    connection.execute("CREATE TABLE batch AS FROM asked")
    answers = connection.execute(
        f"SELECT {', '.join(named)}, total_bytes - overhead_bytes, adapters_bytes, overhead_bytes, error_band, unknown_reason FROM footprints('batch')"
    ).fetchall()
    connection.close()
    by_scenario = {answer[:-5]: answer[-5:] for answer in answers}
    for row, scenario in zip(rows, frame.select(named).rows(), strict=True):
        predicted, row["adapters_bytes"], row["overhead_bytes"], row["error_band"], row["reason"] = by_scenario[
            scenario
        ]
        row["error"] = None if predicted is None else predicted / int(row["peak_bytes"]) - 1
    return rows


def prefill(name: str) -> list[dict]:
    """Rows of prompts that Transformers reads, with `error`, predicted ÷ counted − 1."""
    rows = read(name)
    connection = book(rows)
    given = [column for column in ("dtype_id", "context_tokens", "sequences", "attention") if column in rows[0]]
    asked = [
        dict.fromkeys(TYPES)
        | {"model_id": row["model"], "engine_id": "transformers", "max_context_tokens": row["context_tokens"]}
        | {n: row[n] for n in given}
        for row in rows
    ]
    frame = pl.DataFrame(asked, schema=dict.fromkeys(TYPES, pl.String)).cast(TYPES)
    connection.register("asked", frame.with_columns(gpu_count=pl.lit(1)).to_arrow())
    connection.execute("CREATE TABLE batch AS FROM asked")
    answers = connection.execute(
        f"SELECT model_id, {', '.join(given)}, total_bytes - overhead_bytes FROM footprints('batch')"
    ).fetchall()
    connection.close()
    predicted = {tuple(map(str, answer[:-1])): answer[-1] for answer in answers}
    for row in rows:
        row["error"] = predicted[row["model"], *(row[n] for n in given)] / int(row["peak_bytes"]) - 1
    return rows


def said(row: dict) -> str:
    return " ".join(row[name] for name in ("model", *SCENARIO, *ADAPTER_DEFAULTS, *DEFAULTS) if row.get(name))
