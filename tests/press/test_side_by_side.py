"""Several questions at a time: answered in their order, each with what is temporary for itself; the first error ends all."""

import threading

import duckdb
import pytest

from pipeline.press.side_by_side import HANDS, side_by_side


@pytest.fixture
def connection():
    with duckdb.connect() as connection:
        connection.execute('ATTACH \':memory:\' AS "a book"; USE "a book"; CREATE TABLE fact AS SELECT 7 AS n')
        yield connection


def doubled(cursor, item):
    cursor.execute("CREATE OR REPLACE TEMP TABLE own AS SELECT $1 * n AS n FROM fact", [item])
    return cursor.execute("SELECT n FROM own").fetchall()[0][0]


def test_answers_come_in_the_order_of_the_questions(connection):
    assert list(side_by_side(connection, doubled, range(20))) == [7 * n for n in range(20)]
    assert connection.execute("FROM duckdb_tables() SELECT table_name").fetchall() == [("fact",)]


def test_two_are_worked_out_at_a_time_and_no_more_than_are_waited_for(connection):
    both, asked = threading.Barrier(HANDS, timeout=30), []

    def together(_cursor, item):
        asked.append(item)
        if item < HANDS:
            both.wait()
        return item

    found = side_by_side(connection, together, range(100 * HANDS))
    assert next(found) == 0 and len(asked) <= 2 * HANDS + 1
    found.close()


def test_an_error_ends_all_and_is_the_one_that_is_told(connection):
    def fails(cursor, item):
        return cursor.execute("SELECT error('no third')" if item == 3 else "SELECT 1").fetchall()

    with pytest.raises(duckdb.InvalidInputException, match="no third"):
        list(side_by_side(connection, fails, range(1000)))
    assert connection.execute("SELECT 1").fetchall() == [(1,)]
    assert not any("side by side" in thread.name for thread in threading.enumerate())


def test_of_nothing_there_is_no_answer(connection):
    assert list(side_by_side(connection, doubled, [])) == []
