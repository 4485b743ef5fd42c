"""What the formulas say of the steps with pictures in tests/oracle/image_training.csv: its rows, each with its answer."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping

import duckdb
import polars as pl

from pipeline.book.scenario import TYPES
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from pipeline.press.anatomise import anatomise
from pipeline.press.flat import AS_WRITTEN
from tests import books
from tests.conftest import FEW_ROWS, answering
from tests.formulas import step_account
from tests.named import named_snapshot
from tests.once import bundled_snapshot, once
from tests.oracle.rows import changed

SAID = ("phase_id", "dtype_id", "optimizer_id", "precision", "checkpointing", "lora_targets", "loss")
COUNTED = ("context_tokens", "sequences", "lora_rank", "images")
# a program whose tower is what the column says
PROGRAMS = {
    "hooked": ("ms-swift", "4.5"),
    "frozen": ("ms-swift", "4.6"),
    "whole": ("llama-factory", "0.9.5"),
    "adapted": (None, None),  # all linear layers, by peft itself
}
UNPREPARED = ("axolotl", "0.19")
LOSSES = {"tiled": ("trl", "1.16"), "recomputed": ("trl", "1.13")}


def rows() -> list[dict[str, str]]:
    """Those that have a peak."""
    return [row for row in step_account.read("image_training.csv") if row["peak_bytes"]]


def model_of(row: Mapping[str, str]) -> str:
    """One of the snapshot, or the same with other numbers in its config."""
    return "-with-".join((row["model_id"], *row["changes"].replace("=", "-").split()))


def made_up() -> duckdb.DuckDBPyConnection:
    """Formulas over the models whose configs were changed."""
    return _book("book-of-images", _changed)


def published() -> duckdb.DuckDBPyConnection:
    """Formulas over the others, for a script: tests have a book of these already."""
    return _book("book-of-named", named_snapshot)


def _book(name: str, snapshot) -> duckdb.DuckDBPyConnection:
    connection = books.copied(once(name, lambda folder: books.fill(folder, anatomise(snapshot()))))
    connection.execute(FEW_ROWS)
    return connection


def _changed() -> Snapshot:
    known = {record.model_id: record for record in bundled_snapshot().records}
    records = {
        model_of(row): Record(
            model_of(row), config=changed(known[row["model_id"]].config, row["changes"]), config_kind="verbatim"
        )
        for row in step_account.read("image_training.csv")
        if row["changes"]
    }
    return Snapshot(step_account.ORACLE, datetime.date(2026, 11, 20), "oracle", tuple(records.values()), {})


def asked_of(row: Mapping[str, str]) -> dict:
    said = {"model_id": model_of(row), "gradient_accumulation": 1, "lora_dropout": 0.0}
    said |= {name: row[name] for name in SAID} | {name: int(row[name]) for name in COUNTED}
    side = math.isqrt(int(row["image_pixels"])) if row["image_pixels"] else None
    said |= {"image_width": side, "image_height": side, "engine_id": "transformers"}
    program = (None, None) if row["lora_targets"] == "attention" else PROGRAMS[row["tower"]]
    program = UNPREPARED if row["prepares_base"] == "false" else LOSSES.get(row["loss"], program)
    return said | dict(zip(("program", "program_version"), program, strict=True))


def judged(
    connection: duckdb.DuckDBPyConnection, steps: list[dict[str, str]], *, as_written: bool = False
) -> list[dict]:
    """The rows with `answer`, and `error`, predicted ÷ counted − 1. As they are written the formulas read the table of models that a script may have changed."""
    asked = [asked_of(row) for row in steps]
    answers = _as_written(connection, asked) if as_written else answering(connection)(asked)
    unknown = [
        (model_of(row), a["unknown_reason"]) for row, a in zip(steps, answers, strict=True) if a["unknown_reason"]
    ]
    assert not unknown, unknown
    return [
        row
        | {"answer": answer, "error": (answer["total_bytes"] - answer["overhead_bytes"]) / int(row["peak_bytes"]) - 1}
        for row, answer in zip(steps, answers, strict=True)
    ]


def _as_written(connection: duckdb.DuckDBPyConnection, asked: list[dict]) -> list[dict]:
    connection.register("batch_rows", pl.DataFrame(asked, schema_overrides=TYPES, strict=False).to_arrow())
    connection.execute("CREATE OR REPLACE TABLE batch AS FROM no_scenario")
    connection.execute("INSERT INTO batch BY NAME FROM batch_rows")
    names = list(asked[0])
    columns = (*names, "total_bytes", "overhead_bytes", "adapters_bytes", "unknown_reason")
    rows = step_account.unoptimised(connection, f"SELECT {', '.join(columns)} FROM {AS_WRITTEN}('batch')")
    found = {row[: len(names)]: dict(zip(columns, row, strict=True)) for row in rows}
    return [found[tuple(scenario.values())] for scenario in asked]
