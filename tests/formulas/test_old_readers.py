"""The database as a file in an older DuckDB, with every macro: nearly everybody has an older one than the build.

`make test` installs it beside the suite's own (tests/old-duckdb.lock), since one environment holds one DuckDB.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

from pipeline.book.scenario import TYPES
from pipeline.press import blank, build
from pipeline.press.layers import LAYERS, WEIGHED
from tests.formulas import old_readers
from tests.once import blank_folder

FOLDER = Path(os.environ.get("OLD_DUCKDB") or Path(sys.prefix) / "old-duckdb")
FEW = [old_readers.TEXT, old_readers.PIPELINE, old_readers.SEES]


@pytest.fixture(scope="module")
def small_file(named, tmp_path_factory):
    """A book of three models as a file, with two published footprints."""
    path = tmp_path_factory.mktemp("old") / build.DATABASE
    frames = {
        name: frame.filter(pl.col("model_id").is_in(FEW)) if "model_id" in frame.columns else frame
        for name, frame in named.items()
    }
    with blank.copied(blank_folder()) as connection:
        blank.fill(connection, frames)
        connection.execute(f"CREATE TEMP TABLE asked AS {old_readers.scenario(list(TYPES))}")
        connection.execute("CREATE TEMP TABLE asked_layers AS FROM no_scenario")
        connection.execute(  # what layers on the CPU are told of
            f"INSERT INTO asked_layers BY NAME SELECT '{old_readers.TEXT}' AS model_id, 'gguf-q4_k_m' AS dtype_id, 8192 AS context_tokens, "
            "1 AS sequences, 1 AS gpu_count"
        )
        columns = ", ".join(row[0] for row in connection.execute("DESCRIBE footprint").fetchall())
        for asked in ("asked", "asked_layers"):
            connection.execute(f"INSERT INTO footprint BY NAME SELECT {columns} FROM footprints('{asked}')")
        layered = "SELECT model_id, dtype_id FROM footprint WHERE engine_id = 'llama.cpp'"
        connection.execute(f"INSERT INTO {LAYERS} BY NAME WITH layered AS ({layered}) {WEIGHED}")
        build.write_file(connection, path)
    return path


@pytest.mark.full  # (asked of the whole file too, by three versions: tests/full/test_every_old_reader.py)
def test_every_macro_answers_in_an_older_version(small_file):
    asked = old_readers.queries(small_file)
    if not (FOLDER / "duckdb").is_dir():
        reason = f"no older DuckDB in {FOLDER}: `make check-full` installs it where a wheel for this Python and machine exists"
        pytest.fail(reason, pytrace=False) if os.environ.get("CI") else pytest.skip(reason)
    version, answers = old_readers.ask(FOLDER, small_file, asked, old_readers.scenario(list(TYPES)))
    assert version == "1.5.5" and not version.startswith(duckdb.__version__)
    assert dict(zip(asked, answers, strict=True)) == dict.fromkeys(asked, True)
