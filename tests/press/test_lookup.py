"""The default lookup: what is worked out once for models of equal shape and weights is what each of them is asked for itself."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.book.facts import read_facts
from pipeline.book.scenario import TYPES, scenario_grid
from pipeline.press.lookup import SHAPE, WEIGHT, fill_footprints
from pipeline.render.data.mirror import Mirror


@pytest.fixture(scope="module")
def twins(book: duckdb.DuckDBPyConnection) -> list[str]:
    """Models of one shape that differ in what a footprint must not depend on: name, popularity, licence."""
    columns = [row[0] for row in book.execute("DESCRIBE shape").fetchall() if row[0] != "model_id"]
    same = ", ".join(f'shape."{name}"' for name in columns)
    rows = book.execute(
        f"""
        SELECT list(model_id ORDER BY model_id) FROM shape JOIN model USING (model_id)
        GROUP BY {same} HAVING count(DISTINCT model.license) > 1 ORDER BY count(*) DESC, 1 LIMIT 1
        """
    ).fetchall()
    return rows[0][0][:3] + rows[0][0][-2:]


@pytest.fixture(scope="module")
def filled(book: duckdb.DuckDBPyConnection, twins: list[str]) -> duckdb.DuckDBPyConnection:
    cursor = book.cursor()
    for table in ("footprint", "ladder"):
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS FROM {table} LIMIT 0")
    fill_footprints(cursor, models=twins)
    return cursor


def test_of_several_ways_to_share_the_one_that_needs_least_is_published(
    book: duckdb.DuckDBPyConnection, footprints
) -> None:
    """A small model whose embedding is most of it: FSDP gathers it whole, ZeRO-2 does not."""
    cursor = book.cursor()
    for table in ("footprint", "ladder"):
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS FROM {table} LIMIT 0")
    fill_footprints(cursor, models=["BAAI/bge-m3"])
    rows = cursor.execute(
        "SELECT phase_id, dtype_id, context_tokens, sequences, optimizer_id, checkpointing, gpu_count, sharding, total_bytes, error_band "
        "FROM footprint WHERE gpu_count > 1 AND phase_id = 'full-finetune' AND optimizer_id = 'adamw'"
    ).fetchall()
    assert {row[7] for row in rows} == {"zero2", "zero3"}
    assert len(rows) == len({row[:7] for row in rows}), "one row a number of GPUs"
    names = ("phase_id", "dtype_id", "context_tokens", "sequences", "optimizer_id", "checkpointing", "gpu_count")
    ways = ("zero3", "zero2", "zero1", "ddp")
    asked = [
        {"model_id": "BAAI/bge-m3", "sharding": way} | dict(zip(names, row, strict=False))
        for row in rows
        for way in ways
    ]
    needs = [row["total_bytes"] * (1 + row["error_band"]) for row in footprints(asked)]
    for place, row in enumerate(rows):
        assert row[8] * (1 + row[9]) == min(needs[place * len(ways) : (place + 1) * len(ways)])


@pytest.mark.full
def test_a_model_gets_the_footprints_it_would_get_alone(filled: duckdb.DuckDBPyConnection, twins: list[str]) -> None:
    for model_id in twins:
        cursor = filled
        columns = [row[0] for row in cursor.execute("DESCRIBE footprint").fetchall()]
        # the lookup has no column for arguments that keep their defaults in it
        others = "".join(f", NULL AS {name}" for name in TYPES if name not in columns)
        cursor.execute("CREATE OR REPLACE TEMP TABLE alone AS FROM footprint WHERE model_id = ?", [model_id])
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE asked_alone AS SELECT *{others} FROM alone")
        cursor.execute(
            f"CREATE OR REPLACE TEMP TABLE alone_answered AS SELECT {', '.join(columns)} FROM footprints('asked_alone')"
        )
        assert cursor.execute("SELECT count(*) FROM alone").fetchall()[0][0] > 1_000
        assert cursor.execute("FROM alone EXCEPT FROM alone_answered").fetchall() == []


def test_the_published_rows_are_sorted_by_model(filled: duckdb.DuckDBPyConnection, twins: list[str]) -> None:
    models = [row[0] for row in filled.execute("SELECT model_id FROM footprint").fetchall()]
    assert models == sorted(models)
    assert set(models) == set(twins)


@pytest.mark.full
def test_formulas_read_nothing_else_of_a_model(book: duckdb.DuckDBPyConnection) -> None:
    """A formula that starts to read another table of models must be added to what makes two models twins."""
    mirror = Mirror(book)
    mirror.module()
    of_models = {
        row[0]
        for row in book.execute("SELECT table_name FROM duckdb_columns() WHERE column_name = 'model_id'").fetchall()
    }
    # `model` is read for the reason why one without a shape has no footprint, `model_name` for how its id is spelled, `program_model` where a
    # program is named: the lookup names none
    assert mirror.tables & of_models - {"model", "model_name", "program_model"} == {SHAPE, WEIGHT}
    assert scenario_grid(read_facts()["scenario_set"])["program"].is_null().all()
