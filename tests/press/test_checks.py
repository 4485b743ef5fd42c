"""The checks of the data find what they are for: each is given a bad row, and must name it."""

from __future__ import annotations

import shutil

import duckdb
import pytest

from pipeline.book.content import keep_contents
from pipeline.book.packs import Packs
from pipeline.press import held
from pipeline.press.checks import all_checks, run_checks
from pipeline.press.lookup import fill_footprints

MODELS = ["Qwen/Qwen3-0.6B"]


@pytest.fixture(scope="module")
def good(book, tmp_path_factory):
    """A file with the tables of the book and the lookup of one model."""
    cursor = book.cursor()
    fill_footprints(cursor, models=MODELS)
    path = tmp_path_factory.mktemp("good") / "almanac.duckdb"
    cursor.execute(f"ATTACH '{path}' AS copy")
    names = cursor.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'memory' AND NOT temporary "
        "UNION ALL SELECT view_name FROM duckdb_views() WHERE view_name IN "
        "('rule_of_thumb', 'rule_error', 'cpu_split', 'pipeline_compatibility', 'runs_on')"
    ).fetchall()
    for (name,) in names:
        cursor.execute(f"CREATE TABLE copy.{name} AS FROM memory.{name}")
    cursor.execute("DETACH copy")
    cursor.execute("DELETE FROM footprint; DELETE FROM ladder")
    cursor.close()
    return path


@pytest.fixture
def database(good, tmp_path):
    """A copy to damage."""
    return shutil.copy(good, tmp_path / "almanac.duckdb")


def test_the_bundled_facts_pass(database):
    assert run_checks(database) == []
    assert len(list(all_checks())) > 50


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("INSERT INTO gpu FROM gpu WHERE gpu_id = 't4'", "gpu: key is unique"),
        ("UPDATE gpu SET tdp_w = -1 WHERE gpu_id = 't4'", "gpu: numbers are in range"),
        ("UPDATE model SET anatomy_grade = 'sure'", "model: anatomy_grade is one of its values"),
        ("DELETE FROM phase WHERE phase_id = 'lora'", "footprint: phase_id exists"),
        ("UPDATE footprint SET total_bytes = total_bytes + 1 WHERE dtype_id = 'nf4'", "footprint_adds_up"),
        ("UPDATE footprint SET unknown_reason = NULL", "footprint_adds_up"),
        ("UPDATE weight SET weights_bytes = 1 WHERE dtype_id = 'bf16'", "weights_are_plausible"),
        ("UPDATE weight SET weights_bytes = 1 WHERE dtype_id = 'stored'", "weights_are_plausible"),
        ("UPDATE gpu SET capacity_bytes = capacity_bytes * 2", "capacity_is_below_sticker"),
        ("UPDATE tensor SET element_count = 0 WHERE role = 'head'", "every_known_model_has_a_census"),
        ("UPDATE model SET anatomy_note = '' WHERE anatomy_grade = 'unknown'", "unknown_models_have_a_reason"),
    ],
)
def test_each_check_names_the_bad_rows(database, damage, named):
    with duckdb.connect(str(database)) as connection:
        connection.execute(damage)
    assert any(failure.startswith(named) for failure in run_checks(database)), run_checks(database)


@pytest.mark.full
@pytest.mark.parametrize("table", ["serving_run", "repository_file", "measured"])
def test_a_crawl_that_lacks_a_model_of_others_is_published(database, table):
    with duckdb.connect(str(database)) as connection:
        rows = connection.execute(
            f"UPDATE {table} SET model_id = 'nobody/gone' WHERE model_id = (SELECT min(model_id) FROM {table})"
        )
        assert rows.fetchall()[0][0]
    assert run_checks(database) == []


def share(database) -> None:
    """Makes footprints a view, as a build does."""
    with duckdb.connect(str(database)) as connection:
        connection.execute(
            """
            CREATE TABLE twin AS SELECT DISTINCT model_id, dtype_id, model_id AS first_id FROM footprint;
            CREATE TABLE whole AS FROM footprint
            """
        )
        growing = held.begin(connection, "footprint")
        growing.append(*held.apart(connection, "footprint", "FROM whole").values())
        growing.end()
        connection.execute(f"DROP TABLE footprint; CREATE VIEW footprint AS {held.of_twins('footprint')}")
        keep_contents(connection)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("SELECT 1", None),
        ("INSERT INTO twin FROM twin LIMIT 1", "footprint: who shares does so once"),
        ("UPDATE twin SET first_id = 'no/model' WHERE dtype_id = 'nf4'", "footprint: who is shared has its own"),
        (
            "INSERT INTO twin SELECT 'no/model' AS model_id, * EXCLUDE (model_id) FROM twin",
            "footprint: model_id exists",
        ),
        ("INSERT INTO twin_footprint FROM twin_footprint LIMIT 1", "footprint: key is unique"),
        ("UPDATE footprint_scenario SET phase_id = 'sleep'", "footprint: phase_id exists"),
        ("UPDATE twin_footprint SET weights_bytes = -1 WHERE dtype_id = 'nf4'", "footprint: numbers are in range"),
    ],
)
def test_what_is_wrong_with_footprints_that_models_share_is_found_in_those_of_the_first(database, damage, named):
    share(database)
    with duckdb.connect(str(database)) as connection:
        connection.execute(damage)
    failures = run_checks(database)
    assert [failure.partition(": ")[0] for failure in failures] == [] if named is None else named in str(failures)


def test_what_passed_is_not_asked_again_while_it_is_made_of_the_same(database, tmp_path):
    """Rows of one content are the same rows; what failed, or is of another content, is looked at."""
    share(database)

    def failed(statement: str = "") -> list[str]:
        with duckdb.connect(str(database)) as connection:
            connection.execute(statement)
        return [said.partition(" (")[0] for said in run_checks(database, packs=Packs(tmp_path / "packs"))]

    assert failed() == []
    assert failed("UPDATE twin_footprint SET weights_bytes = -1") == []
    assert run_checks(database)
    for _time in range(2):
        assert failed("UPDATE model_content SET content = 'another'")[0].startswith("footprint: numbers are in range")
