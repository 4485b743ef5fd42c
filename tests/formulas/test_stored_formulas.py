"""What is published is a file: the formulas must say the same after they were stored and opened again."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.base.readonly import reading
from pipeline.book.schema import MACROS, PUBLISHED
from pipeline.press import build
from pipeline.render.data.calculator import Calculator
from pipeline.render.data.kept import Kept
from pipeline.render.data.mirror import Mirror, Untranslatable
from tests import few

ASKED = [
    "'Qwen/Qwen3-8B', context_tokens := 40000, sequences := 7",
    "'Qwen/Qwen3-8B', phase_id := 'full-finetune', gpu_count := 8",
    "'Qwen/Qwen3-8B', phase_id := 'qlora', dtype_id := 'nf4', checkpointing := 'full'",
    "'openai/gpt-oss-20b', dtype_id := 'gguf-q4_k_m', context_tokens := 131072",
    "'nobody/nothing'",
]


@pytest.fixture(scope="module")
def stored():
    with reading(few.written() / build.DATABASE) as opened:
        yield opened


@pytest.mark.some(1)
@pytest.mark.parametrize("asked", ASKED)
def test_a_stored_formula_says_what_it_said(book, stored, asked):
    # (which models have a name that is near one hangs on which there are)
    query = f"SELECT * REPLACE (regexp_replace(unknown_reason, '\\(nearest: .*', '') AS unknown_reason) FROM footprint_of({asked})"
    assert stored.execute(query).fetchall() == book.execute(query).fetchall()


def test_cards_are_judged_from_the_file(stored):
    rows = stored.execute(
        "SELECT verdict FROM fits_on('rtx-4090', 'Qwen/Qwen3-8B', dtype_id := 'gguf-q4_k_m')"
    ).fetchall()
    assert rows == [("fits",)]


@pytest.mark.full
def test_the_calculator_is_translated_from_the_file(stored):
    assert "export function footprints" in Mirror(stored).module()


def test_a_word_that_cannot_be_translated_stops_the_site_and_leaves_no_calculator_out(tmp_path):
    with duckdb.connect(str(tmp_path / build.DATABASE)) as connection:
        connection.execute("CREATE MACRO odd(a) AS regexp_replace(a, 'x', 'y')")
        connection.execute(
            "CREATE MACRO footprints_as_written(relation) AS TABLE SELECT odd('a') AS b FROM query_table(relation)"
        )
    with pytest.raises(Untranslatable, match="regexp_replace"):
        Calculator(tmp_path, Kept({}))


def test_a_database_without_formulas_has_no_calculator(tmp_path):
    duckdb.connect(str(tmp_path / build.DATABASE)).close()
    assert Calculator(tmp_path, Kept({})).module == ""


def test_the_file_shows_what_the_dictionary_lists_and_nothing_else(stored):
    """What people see of the file is theirs: all that the formulas need besides is in a schema of its own."""
    stored.execute("SET search_path = 'main'")
    try:
        shown = {row[0] for row in stored.execute("SHOW TABLES").fetchall()}
        macros = stored.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() "
            "WHERE database_name = current_database() AND schema_name = 'main' AND function_type IN ('macro', 'table_macro')"
        ).fetchall()
    finally:
        stored.execute("SET search_path = 'main,internal'")
    assert shown == set(PUBLISHED)
    assert {name for (name,) in macros} == set(MACROS)


@pytest.mark.full
def test_every_macro_that_people_call_answers_without_a_search_path(stored):
    """Opened as anybody opens it, with nothing set."""
    database = stored.execute("SELECT path FROM duckdb_databases() WHERE database_name = current_database()").fetchall()
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{database[0][0]}' AS somewhere (READ_ONLY)")
        connection.execute("USE somewhere")
        assert connection.execute(f"SELECT total_bytes > 0 FROM footprint_of({ASKED[0]})").fetchall() == [(True,)]
        assert connection.execute("SELECT verdict FROM fits_on('rtx-4090', 'Qwen/Qwen3-8B')").fetchall() == [("fits",)]
