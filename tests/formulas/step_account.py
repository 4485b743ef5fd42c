"""What the formulas say of the steps in tests/oracle: rows of a table there, each with its answer."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Mapping
from pathlib import Path

import duckdb
import polars as pl

from pipeline.book.facts import read_facts
from pipeline.book.scenario import TYPES
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from pipeline.press.anatomise import anatomise
from tests import books
from tests.conftest import FEW_ROWS
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


def book() -> duckdb.DuckDBPyConnection:
    """Formulas over the models of training_models.csv, for questions of few rows."""
    connection = books.copied(once("book-of-steps", _fill))
    connection.execute(FEW_ROWS)
    return connection


def _fill(folder: Path) -> None:
    records = tuple(
        Record(row["model"], config=json.loads(row["config_json"]), config_kind="verbatim")
        for row in read("training_models.csv")
    )
    books.fill(folder, anatomise(Snapshot(ORACLE, datetime.date(2026, 11, 20), "oracle", records, {})))


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
    with book() as connection:
        return answered(connection, rows, also)


def answered(
    connection: duckdb.DuckDBPyConnection,
    rows: list[dict],
    also: Mapping[str, object] | None = None,
    macro: str = "footprints",
) -> list[dict]:
    """The rows with what a book of their models answers (see `judged`)."""
    named = ("model_id", "gpu_count", *SCENARIO, *ADAPTER_DEFAULTS, *DEFAULTS)
    asked = [
        dict.fromkeys(TYPES)
        | {"model_id": row["model"], "gpu_count": row.get("gpu_count") or "1"}
        | {"max_context_tokens": row["context_tokens"]}
        | {column: row[column] or None for column in SCENARIO}
        | {n: row.get(n) or (usual if row["lora_rank"] else None) for n, usual in ADAPTER_DEFAULTS.items()}
        | {column: row.get(column) or _default(row, column) for column in DEFAULTS}
        | dict(also or {})
        for row in rows
    ]
    kinds = {column: pl.Boolean if kind == pl.Boolean else pl.String for column, kind in TYPES.items()}
    frame = pl.DataFrame(asked, schema=kinds).cast(TYPES)
    connection.register("asked", frame.to_arrow())
    connection.execute("CREATE OR REPLACE TABLE batch AS FROM asked")
    answers = unoptimised(
        connection,
        f"SELECT {', '.join(named)}, total_bytes - overhead_bytes, adapters_bytes, overhead_bytes, error_band, unknown_reason FROM {macro}('batch')",
    )
    by_scenario = {answer[:-5]: answer[-5:] for answer in answers}
    for row, scenario in zip(rows, frame.select(named).rows(), strict=True):
        predicted, row["adapters_bytes"], row["overhead_bytes"], row["error_band"], row["reason"] = by_scenario[
            scenario
        ]
        row["error"] = None if predicted is None else predicted / int(row["peak_bytes"]) - 1
    return rows


def unoptimised(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple]:
    """Of some hundred rows, for which DuckDB's optimizer takes longer than it saves."""
    connection.execute("PRAGMA disable_optimizer")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.execute("PRAGMA enable_optimizer")


def reserved(rows: list[dict], column: str) -> list[dict]:
    """Of answered rows those whose `column` says what the allocator took, each with `off`: what we say is reserved ÷ what was, less one; `least`: the same with the band."""
    context = _context()
    some = [row for row in rows if row[column]]
    for row in some:
        assert row["reason"] is None, row
        said = int(row["peak_bytes"]) * (1 + row["error"]) + row["overhead_bytes"] - context
        row["off"] = said / int(row[column]) - 1
        row["least"] = ((said + context) * (1 + row["error_band"]) - context) / int(row[column]) - 1
    return some


def prefill(name: str) -> list[dict]:
    """Rows of prompts that Transformers reads, with `error`, predicted ÷ counted − 1, `activations_bytes`, and `beyond`: what the allocator took beyond
    what is told with its band."""
    context = _context()
    rows = read(name)
    connection = book()
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
    answers = unoptimised(
        connection,
        f"SELECT model_id, {', '.join(given)}, total_bytes - overhead_bytes, activations_bytes, total_bytes * (1 + error_band) "
        "FROM footprints_in('batch', 'inference', is_usual := true)",
    )
    connection.close()
    by_prompt = {tuple(map(str, answer[:-3])): answer[-3:] for answer in answers}
    for row in rows:
        predicted, row["activations_bytes"], most = by_prompt[row["model"], *(row[n] for n in given)]
        row["error"] = predicted / int(row["peak_bytes"]) - 1
        row["beyond"] = int(row["reserved_bytes"]) + context - most
    return rows


def _context() -> float:
    return dict(read_facts()["constant"].select("constant_id", "value").rows())["process_context_bytes"]


def said(row: dict) -> str:
    return " ".join(row[name] for name in ("model", *SCENARIO, *ADAPTER_DEFAULTS, *DEFAULTS) if row.get(name))
