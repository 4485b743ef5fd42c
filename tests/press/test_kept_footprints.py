"""Footprints of measured and reported runs are asked again where a scenario, or a row of its model that formulas read, is another; else they are those
that were kept, in the same types."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.book.packs import Packs
from pipeline.press import kept_footprints
from pipeline.press.kept_footprints import answer

TABLES = """
CREATE TABLE model (model_id VARCHAR, downloads_30d INTEGER, width HUGEINT);
INSERT INTO model VALUES ('a', 1, 10), ('b', 2, 20), ('c', 3, 30);
CREATE TABLE part (model_id VARCHAR, sizes INTEGER[]);
INSERT INTO part VALUES ('a', [3]), ('b', [4, 5]), ('c', [6]);
CREATE TABLE unread (model_id VARCHAR, size INTEGER);
INSERT INTO unread VALUES ('a', 7);
CREATE TABLE asked AS FROM (VALUES ('a', 8), ('b', 9)) AS given(model_id, context_tokens);
CREATE VIEW parted AS FROM part;
"""
# what is asked again is told by more than what was kept
FORMULA = """
CREATE OR REPLACE MACRO footprints(asked) AS TABLE SELECT given.*, width + {more} AS width, sizes, (0.1 * context_tokens)::DOUBLE AS share
FROM query_table(asked) AS given JOIN model USING (model_id) JOIN parted USING (model_id)
"""


def answered(connection: duckdb.DuckDBPyConnection, packs: Packs | None) -> list:
    answer(connection, "asked", "found", packs)
    columns = connection.execute("DESCRIBE found").fetchall()
    return [[row[:2] for row in columns], sorted(connection.execute("FROM found").fetchall())]


@pytest.mark.parametrize(
    ("change", "is_asked_again"),
    [
        ("SELECT 1", False),
        ("UPDATE part SET sizes = [5, 4] WHERE model_id = 'b'", True),
        ("UPDATE model SET width = 11 WHERE model_id = 'a'", True),
        ("DELETE FROM part WHERE model_id = 'b'", True),
        ("UPDATE asked SET context_tokens = 10 WHERE model_id = 'b'", True),
        ("INSERT INTO asked VALUES ('c', 8)", True),
        ("UPDATE asked SET model_id = 'c' WHERE model_id = 'b'", True),
        ("UPDATE model SET width = 31, downloads_30d = 4 WHERE model_id = 'c'", False),
        ("UPDATE model SET downloads_30d = 9", False),
        ("UPDATE unread SET size = 8", False),
    ],
)
def test_what_is_kept_is_taken_while_all_that_it_is_made_of_is_the_same(tmp_path, change, is_asked_again):
    packs = Packs(tmp_path)
    with duckdb.connect() as connection:
        connection.execute(TABLES + FORMULA.format(more=0))
        before = answered(connection, None)
        assert answered(connection, packs) == answered(connection, Packs(tmp_path)) == before
        connection.execute(change + ";" + FORMULA.format(more=100))
        found = answered(connection, Packs(tmp_path))
        assert found == (answered(connection, None) if is_asked_again else before)
        assert (found == before) is not is_asked_again


def test_other_formulas_are_asked(tmp_path, monkeypatch):
    with duckdb.connect() as connection:
        connection.execute(TABLES + FORMULA.format(more=0))
        before = answered(connection, Packs(tmp_path))
        connection.execute(FORMULA.format(more=100))
        monkeypatch.setattr(kept_footprints, "fingerprint", lambda: "other")
        assert answered(connection, Packs(tmp_path)) != before
