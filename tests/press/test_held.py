"""Rows of footprints and what their scenarios say are told apart and put together again: the same rows, in whatever order they came."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from pipeline.book.schema import PUBLISHED
from pipeline.press import held
from pipeline.press.file import declared_columns
from pipeline.press.held import ScenarioError, apart, begin, numbers, of_twins, scenarios

NAMES = held.COLUMNS["footprint"]
COLUMNS = declared_columns(PUBLISHED["footprint"])
ROW = {name: "NULL" for name in NAMES} | {
    **{name: "0" for name in NAMES if name.endswith("_bytes")},
    **{"phase_id": "'inference'", "engine_id": "'vllm'", "sequences": "1", "attention": "'sdpa'", "gpu_count": "1"},
    **{"images": "0", "lora_targets": "'all'", "error_band": "0.1", "dtype_id": "'bf16'", "sharding": "NULL"},
}


@pytest.fixture
def whole() -> duckdb.DuckDBPyConnection:
    """`whole`: rows of two models, one of them with an unknown total; and what of them is twins."""
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE footprint ({COLUMNS.replace(' NOT NULL', '')}); CREATE TABLE whole AS FROM footprint"
    )
    for model, context, count, weights in (
        ("b", 2048, 1, "7"),
        ("a", 2048, 2, "5"),
        ("a", 8192, 1, "5"),
        ("b", 8192, 1, "NULL"),
    ):
        row = ROW | {"model_id": f"'{model}'", "context_tokens": context, "gpu_count": count, "weights_bytes": weights}
        row["total_bytes"] = weights
        connection.execute(
            f"INSERT INTO whole ({', '.join(NAMES)}) VALUES ({', '.join(str(row[name]) for name in NAMES)})"
        )
    connection.execute("CREATE TABLE twin AS SELECT DISTINCT model_id, dtype_id, model_id AS first_id FROM whole")
    return connection


def put(connection: duckdb.DuckDBPyConnection, *queries: str, more: pa.Table | None = None) -> None:
    growing = begin(connection, "footprint")
    for query in queries:
        rows, said = apart(connection, "footprint", query).values()
        growing.append(rows, said if more is None else pa.concat_tables([said, more]))
    growing.end()


def file_of(connection: duckdb.DuckDBPyConnection) -> list[list[tuple]]:
    """Both tables as the published file has them."""
    source = "memory.main"
    queries = [held.published(source, of("footprint")) for of in (numbers, scenarios)]
    return [connection.execute(query).fetchall() for query in queries if query]


def test_rows_come_back_as_they_were(whole):
    put(whole, "FROM whole")
    assert (
        whole.execute(of_twins("footprint") + " ORDER BY ALL").fetchall()
        == whole.execute("FROM whole ORDER BY ALL").fetchall()
    )
    assert whole.execute(f"SELECT count(*) FROM {scenarios('footprint')}").fetchall() == [(2,)], (
        "of one card and of two"
    )


def test_the_published_file_is_the_same_whatever_was_there_first_and_beside(whole):
    put(whole, "FROM whole")
    first = file_of(whole)
    assert [row[0] for row in first[1]] == [1, 2] and len(first[0]) == 4
    other = apart(whole, "footprint", "SELECT * REPLACE ('tgi' AS engine_id) FROM whole")[scenarios("footprint")]
    put(whole, *(f"FROM whole WHERE model_id = '{model}'" for model in "ba"), more=other)
    assert file_of(whole) == first
    assert whole.execute(f"SELECT DISTINCT engine_id FROM {scenarios('footprint')}").fetchall() == [("vllm",)]


def test_two_scenarios_of_one_hash_are_an_error(whole):
    rows, said = apart(whole, "footprint", "FROM whole").values()
    growing = begin(whole, "footprint")
    growing.append(rows, said.set_column(0, "scenario", pa.array([rows["scenario"][0].as_py()] * 2, pa.uint64())))
    with pytest.raises(ScenarioError):
        growing.end()


def test_of_nothing_both_tables_are_empty(whole):
    begin(whole, "footprint").end()
    assert file_of(whole) == [[], []]
    assert held.published("memory.main", "model") is None
