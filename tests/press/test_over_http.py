"""Who joins our tables over HTTP reads a few ranges and not the file: DuckDB's httpfs and polars against a host on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from pipeline.book.schema import PUBLISHED
from pipeline.press import blank, build, same_bytes
from pipeline.press.lookup import share_footprints
from pipeline.render.addresses import REMOTE
from tests import few
from tests.once import blank_folder
from tests.press.range_server import serving

# DuckDB and its httpfs, which is no part of the wheel that builds (tests/old-duckdb.lock)
FOLDER = Path(os.environ.get("OLD_DUCKDB") or Path(sys.prefix) / "old-duckdb")
MODELS = ["Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct", "openai/gpt-oss-20b"]
COPIES = 60  # of each, under other names: enough for several groups of rows
PROGRAM = """
import glob, json, sys
sys.path.insert(0, sys.argv[1])
import duckdb
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")  # printed where a query takes two seconds
(extension,) = glob.glob(sys.argv[1] + "/duckdb_extension_httpfs/extensions/*/httpfs.duckdb_extension")
connection.execute(f"LOAD '{extension}'")
print(json.dumps([connection.execute(query).fetchall() for query in json.loads(sys.argv[2])]))
"""


pytestmark = pytest.mark.full  # (the same statements on files of this machine: tests/test_readme.py)


@pytest.fixture(scope="module")
def tables(named, tmp_path_factory):
    """The published form of a few models, each with many that share its shape."""
    folder = tmp_path_factory.mktemp("tables")
    frames = {}
    for name, frame in named.items():
        if "model_id" in frame.columns:
            frame = frame.filter(pl.col("model_id").is_in(MODELS))
            if name != "rejected":
                named = [frame.with_columns(pl.col("model_id") + f"-copy-{n:02}") for n in range(COPIES)]
                frame = pl.concat([frame, *named])
        frames[name] = frame
    with blank.copied(blank_folder()) as connection:
        blank.fill(connection, frames)
        share_footprints(connection)
        build.write_footprints(connection, folder / "footprint.parquet")
        for name in PUBLISHED.keys() - {"footprint"}:
            # of the others what is asked below; of the rest their columns
            rows = "" if name in ("model", "weight", "dtype") else "WHERE false"
            connection.execute(f"COPY (FROM {name} {rows}) TO '{folder}/{name}.parquet' (FORMAT parquet)")
    return folder


def ask(*queries: str) -> list[list[list[object]]]:
    if not (FOLDER / "duckdb_extension_httpfs").is_dir():
        reason = f"no DuckDB with httpfs in {FOLDER}: `make check-full` installs it where there are wheels for this Python and machine"
        pytest.fail(reason, pytrace=False) if os.environ.get("CI") else pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(FOLDER), json.dumps(queries)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_one_models_rows_are_a_few_ranges_of_the_parquet_file(tables):
    size = (tables / "footprint.parquet").stat().st_size
    with serving(tables) as host:
        (rows,) = ask(
            f"SELECT count(*), sum(total_bytes) FROM '{host.address}/footprint.parquet' WHERE model_id = '{MODELS[0]}'"
        )
    wanted = pl.scan_parquet(tables / "footprint.parquet").filter(model_id=MODELS[0]).collect()
    assert rows == [[wanted.height, wanted["total_bytes"].sum()]] and wanted.height > 500
    assert len(host.asked) <= 8
    assert host.sent_bytes < size / 3


def test_a_group_of_footprints_holds_whole_models(tables):
    models = pq.ParquetFile(tables / "footprint.parquet")
    held = [set(models.read_row_group(n, ["model_id"])["model_id"].to_pylist()) for n in range(models.num_row_groups)]
    assert len(held) > 3 and sum(map(len, held)) == len(set().union(*held)) == len(MODELS) * (COPIES + 1)
    assert max(map(len, held)) <= build.FOOTPRINTS.most


@pytest.mark.parametrize("how", ["READ_ONLY", "TYPE duckdb, READ_ONLY"])
def test_all_tables_are_joined_over_http_from_one_small_file(tables, how):
    """The names are those of the file that is saved, from any catalogue; what is fetched is the catalogue, and of a table what is asked."""
    with serving(tables) as host:
        path = tables / REMOTE
        path.unlink(missing_ok=True)
        places = {name: tables / f"{name}.parquet" for name in PUBLISHED}
        same_bytes.write_remote(path, {name: (near, f"{host.address}/{near.name}") for name, near in places.items()})
        attach = f"ATTACH '{host.address}/{path.name}' AS almanac ({how})"
        _, shown = ask(attach, "SELECT view_name FROM duckdb_views() WHERE database_name = 'almanac' AND NOT internal")
        assert {name for (name,) in shown} == PUBLISHED.keys()
        # the catalogue is all that this file holds: it is read twice at most, and its first blocks once more
        assert len(host.asked) <= 10 and host.sent_bytes <= 2 * path.stat().st_size + 8 * 4096
        _, rows, joined = ask(
            attach,
            f"SELECT count(*), sum(total_bytes) FROM almanac.footprint WHERE model_id = '{MODELS[0]}'",
            "SELECT count(*) FROM almanac.weight JOIN almanac.model USING (model_id) JOIN almanac.dtype USING (dtype_id)",
        )
    wanted = pl.scan_parquet(places["footprint"]).filter(model_id=MODELS[0]).collect()
    assert rows == [[wanted.height, wanted["total_bytes"].sum()]] and joined[0][0] > 1_000


def test_polars_reads_the_same_rows_over_http(tables):
    with serving(tables) as host:
        far = pl.scan_parquet(f"{host.address}/footprint.parquet").filter(model_id=MODELS[1]).collect()
        assert all(method == "HEAD" or sent < 10_000_000 for method, _path, _first, sent in host.asked)
    assert far.equals(pl.scan_parquet(tables / "footprint.parquet").filter(model_id=MODELS[1]).collect())


def test_the_file_is_attached_over_http_and_its_macros_answer():
    """That of a few models, whose lookup has no rows: the view of it is found all the same."""
    folder = few.written()
    with serving(folder) as host:
        *_, asked, shown, rows, weights = ask(
            f"ATTACH '{host.address}/{build.DATABASE}' AS almanac (READ_ONLY)",
            "USE almanac",
            f"SELECT total_bytes FROM footprint_of('{few.TEXT}', context_tokens := 40000, sequences := 7)",
            "SELECT count(*) FROM (SHOW TABLES) WHERE name = 'shape'",
            f"SELECT count(*), sum(total_bytes) FROM footprint WHERE model_id = '{few.TEXT}'",
            f"SELECT count(*) FROM weight WHERE model_id = '{few.TEXT}' AND weights_bytes > 0",
        )
        size = (folder / build.DATABASE).stat().st_size
        assert host.sent_bytes < size
    assert asked[0][0] > 15_000_000_000 and shown == [[0]] and rows == [[0, None]] and weights[0][0] > 10
