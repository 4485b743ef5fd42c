"""The almanac of no model: what is put into a copy of it comes out as if it had been built whole."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest

from pipeline.base.caches import cache_folder
from pipeline.book.facts import read_facts, read_measured
from pipeline.book.schema import PUBLISHED
from pipeline.cli import own
from pipeline.press import blank, formulas
from pipeline.press.anatomise import anatomise
from pipeline.press.flat import flatten
from tests.once import bundled_snapshot

# text, experts and windows, images, an encoder with a decoder, a pipeline of parts
FEW = {
    "Qwen/Qwen3-8B",
    "openai/gpt-oss-20b",
    "Qwen/Qwen2.5-VL-7B-Instruct",
    "openai/whisper-large-v3",
    "stabilityai/stable-diffusion-xl-base-1.0",
}


@pytest.fixture(scope="module")
def frames():
    snapshot = bundled_snapshot()
    found = anatomise(replace(snapshot, records=tuple(r for r in snapshot.records if r.model_id in FEW), rejected=()))
    assert set(found["model"]["model_id"]) == FEW
    return found


def made(connection):
    """Every table, its rows in any order; every macro and view by its name; and what a few questions are answered."""
    tables = [row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()]
    rows = {name: sorted(map(repr, connection.execute(f'FROM "{name}"').fetchall())) for name in tables}
    macros = connection.execute(
        "SELECT function_name, parameters FROM duckdb_functions() WHERE NOT internal ORDER BY ALL"
    ).fetchall()
    views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL").fetchall()
    asked = "(SELECT DISTINCT model_id, unnest(['inference', 'lora']) AS phase_id FROM model)"
    connection.execute("CREATE TEMP TABLE few AS FROM no_scenario")
    connection.execute(f"INSERT INTO few BY NAME FROM {asked}")
    return rows, macros, views, connection.execute("FROM footprints('few') ORDER BY ALL").fetchall()


@pytest.mark.full
def test_a_filled_copy_is_what_a_build_makes(frames):
    with duckdb.connect() as whole, blank.copied(cache_folder()) as copy:
        formulas.load(whole, read_facts(), {**frames, "measured": read_measured()})
        formulas.run_sql(whole)
        flatten(whole)
        blank.fill(copy, frames)
        one, other = made(whole), made(copy)
    assert [name for name in one[0] | other[0] if one[0].get(name) != other[0].get(name)] == []
    assert one[1:] == other[1:]


def test_what_models_do_not_enter_is_the_same_with_and_without_them(frames):
    with blank.copied(cache_folder()) as none, blank.copied(cache_folder()) as some:
        entered = blank.fill(some, frames)
        said = {name: table.column_names for name, table in PUBLISHED.items() if name not in entered}
        queries = {name: f"SELECT {', '.join(columns)} FROM {name}" for name, columns in said.items()}
        assert {"runs_on", "gpu", "measured"} <= said.keys()
        for name, query in queries.items():
            one, other = (sorted(map(repr, connection.execute(query).fetchall())) for connection in (none, some))
            assert one == other, name
    assert {"model", "work", "weight", "footprint", "rule_error", "pipeline_compatibility", "cpu_split"} <= entered


@pytest.mark.full
def test_a_copy_that_cannot_be_read_is_made_again_and_one_that_cannot_be_kept_is_done_without(
    config_path, tmp_path, monkeypatch
):
    kept = blank.kept(cache_folder())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_folder().mkdir()
    broken = cache_folder() / kept.name
    broken.write_bytes(kept.read_bytes()[: kept.stat().st_size // 3])
    query = f"SELECT total_bytes FROM footprint_of('{own.MODEL_ID}')"
    with own.book_of(config_path) as connection:
        told = connection.execute(query).fetchall()
    assert not broken.exists() and told[0][0] > 10**9
    cache_folder().rmdir()
    cache_folder().write_text("a file where a folder is wanted", encoding="utf-8")
    assert blank.kept(cache_folder()) is None


def test_another_fingerprint_takes_the_place_of_the_one_before(tmp_path, monkeypatch):
    monkeypatch.setattr(blank, "make", lambda connection: connection.execute("CREATE TABLE one (a INTEGER)"))
    monkeypatch.setattr(blank, "fingerprint", lambda: "1")
    first = blank.kept(tmp_path)
    assert blank.kept(tmp_path) == first
    monkeypatch.setattr(blank, "fingerprint", lambda: "2")
    assert [blank.kept(tmp_path)] == list(tmp_path.iterdir()) != [first]
