"""Answers of macros are kept by the rows that the macros read: a row that changes has its model asked again, and no other."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from pipeline.book.packs import Packs
from pipeline.book.reads import read_by
from pipeline.render.data.kept import Answers, Kept

TABLES = """
CREATE TABLE model (model_id VARCHAR, downloads_30d INTEGER, width INTEGER);
INSERT INTO model VALUES ('a', 1, 10), ('b', 2, 20);
CREATE TABLE part (model_id VARCHAR, size INTEGER);
INSERT INTO part VALUES ('a', 3), ('b', 4), ('b', 5);
CREATE TABLE other (model_id VARCHAR, size INTEGER);
INSERT INTO other VALUES ('a', 6), ('b', 7);
CREATE VIEW held AS SELECT model_id, sum(size) AS size FROM part GROUP BY ALL;
CREATE MACRO held_by(name) AS (SELECT size FROM held WHERE model_id = name);
CREATE MACRO told_of(name) AS TABLE SELECT held_by(name) * width AS said FROM model WHERE model_id = name;
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "almanac.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLES)
        assert read_by(connection, ["told_of"]) == ["model", "part"]
        assert read_by(connection, ["held_by", "other"]) == ["other", "part"]
    return path


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ("SELECT 1", []),
        ("UPDATE part SET size = 6 WHERE size = 5", ["b"]),
        ("INSERT INTO part VALUES ('a', 1)", ["a"]),
        ("UPDATE model SET width = 30", ["a", "b"]),
        ("UPDATE model SET downloads_30d = 9", []),
        ("UPDATE other SET size = 9", []),
    ],
)
def test_a_model_is_asked_again_where_a_row_of_its_own_that_is_read_changed(tmp_path, database, change, again):
    asked: list[str] = []

    def make(names: list[str]) -> dict[str, int]:
        asked.extend(names)
        with duckdb.connect(str(database), read_only=True) as connection:
            return {name: row[0] for name in names for row in connection.execute("FROM told_of(?)", [name]).fetchall()}

    def answers() -> dict[str, int]:
        kept = Kept({}, packs=Packs(tmp_path / "packs"))
        return Answers(kept, database).of("told", ["a", "b", "none"], ("told_of",), make, {"size": 1})

    assert answers() == {"a": 30, "b": 180}
    with duckdb.connect(str(database)) as connection:
        connection.execute(change)
    asked.clear()
    found = answers()
    assert sorted(asked) == again
    asked.clear()
    assert found == make(["a", "b"])
