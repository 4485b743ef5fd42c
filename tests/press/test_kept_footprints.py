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
CREATE TABLE asked AS FROM (VALUES ('a', 'lora', 8), ('b', 'inference', 9)) AS given(model_id, phase_id, context_tokens);
CREATE VIEW parted AS FROM part;
"""
# what is asked again is told by more than what was kept
FORMULA = """
CREATE OR REPLACE MACRO footprints_of_{side}(asked) AS TABLE SELECT given.*, width + {more} AS width, sizes, (0.1 * context_tokens)::DOUBLE AS share
FROM query_table(asked) AS given JOIN model USING (model_id) JOIN parted USING (model_id) WHERE phase_id {compared} 'inference';
"""


def formulas(**more: int) -> str:
    """Both sides, with so much more."""
    sides = {"inference": "=", "training": "<>"}
    return "".join(FORMULA.format(side=side, compared=how, more=more.get(side, 0)) for side, how in sides.items())


def answered(connection: duckdb.DuckDBPyConnection, packs: Packs | None) -> list:
    answer(connection, "asked", "found", packs)
    columns = connection.execute("DESCRIBE found").fetchall()
    return [[row[:2] for row in columns], sorted(connection.execute("FROM found").fetchall())]


@pytest.mark.parametrize(
    ("change", "asked_again"),
    [
        ("SELECT 1", None),
        ("UPDATE part SET sizes = [5, 4] WHERE model_id = 'b'", "inference"),
        ("UPDATE model SET width = 11 WHERE model_id = 'a'", "training"),
        ("DELETE FROM part WHERE model_id = 'b'", "inference"),
        ("UPDATE asked SET context_tokens = 10 WHERE model_id = 'b'", "inference"),
        ("INSERT INTO asked VALUES ('c', 'lora', 8)", "training"),
        ("UPDATE asked SET model_id = 'c' WHERE model_id = 'b'", "inference"),
        ("UPDATE model SET width = 31, downloads_30d = 4 WHERE model_id = 'c'", None),
        ("UPDATE model SET downloads_30d = 9", None),
        ("UPDATE unread SET size = 8", None),
    ],
)
def test_what_is_kept_is_taken_while_all_that_it_is_made_of_is_the_same(tmp_path, change, asked_again):
    """What is asked again is told by formulas that say more."""
    packs = Packs(tmp_path)
    with duckdb.connect() as connection:
        connection.execute(TABLES + formulas())
        before = answered(connection, None)
        assert answered(connection, packs) == answered(connection, Packs(tmp_path)) == before
        connection.execute(change + ";" + formulas(inference=100, training=100))
        found = answered(connection, Packs(tmp_path))
        connection.execute(formulas(**{asked_again: 100} if asked_again else {}))
        assert found == answered(connection, None)
        assert (found == before) is (asked_again is None)


def test_other_formulas_are_asked(tmp_path, monkeypatch):
    with duckdb.connect() as connection:
        connection.execute(TABLES + formulas())
        before = answered(connection, Packs(tmp_path))
        connection.execute(formulas(inference=100, training=100))
        monkeypatch.setattr(kept_footprints, "fingerprint", lambda: "other")
        assert answered(connection, Packs(tmp_path)) != before
