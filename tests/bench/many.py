"""The stages that stream, with ten and a hundred times as many models: `python -m tests.bench.many build/tables`.

The models of a build are repeated under other names, so that shapes, formats and twins are distributed as they really are; each size is a process of
its own. Of each table some blocks in the middle are worked out and written, which are what a build does over and over: the rate is that of all,
and the most memory (MiB, of the process) is what must not grow. Beside them a plain write of the same rows as a reader has them (polars'
defaults), and a fill of as much memory. Writes many.csv.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import polars as pl

from pipeline.press import blocks, build
from pipeline.press.compatibility import CUT, write_compatibility
from tests.bench.build import cpu_seconds, exponent, forget_peak, peak_mib, write

TABLE = Path(__file__).with_suffix(".csv")
TIMES, BLOCKS = (1, 10, 100), 16
PLAIN_ROWS = 6_000_000  # as many are written plainly
DATABASE = "almanac.duckdb"


def enlarge(tables: Path, folder: Path, times: int) -> duckdb.DuckDBPyConnection:
    """A connection to a copy that has so many times as many models, bounded as in a build."""
    shutil.copyfile(tables / DATABASE, folder / DATABASE)
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{build.MEMORY}'; SET temp_directory = '{folder / 'spilled'}'")
    connection.execute(f"ATTACH '{folder / DATABASE}' AS almanac; USE almanac")
    for table in ("main.model", "internal.twin") if times > 1 else ():
        connection.execute(
            f"INSERT INTO {table} SELECT t.* REPLACE (format('{{}}-no-{{}}', model_id, number) AS model_id) "
            f"FROM {table} AS t, range(1, {times}) AS copies(number)"
        )
    connection.execute("CHECKPOINT almanac; SET search_path = 'almanac.main,almanac.internal'")
    return connection


def measure(tables: Path, folder: Path, times: int) -> list[dict[str, float]]:
    connection = enlarge(tables, folder, times)
    found = []
    writers = (
        ("compatibility", CUT, write_compatibility),
        ("footprint", build.FOOTPRINTS, build.write_footprints),
    )
    (models,) = connection.execute("SELECT count(*) FROM main.model").fetchall()[0]
    for name, cut, writer in writers:
        forget_peak()
        began = cpu_seconds()
        all_of = blocks.blocks_of(blocks.contents_of(connection, None), name, cut, None)
        finding, at_first = cpu_seconds() - began, peak_mib()
        middle = len(all_of) // 2
        blocks.blocks_of, real = lambda *_, some=all_of[middle : middle + BLOCKS]: some, blocks.blocks_of
        path = folder / f"{name}.parquet"
        forget_peak()
        began = cpu_seconds()
        writer(connection, path)
        seconds, most = cpu_seconds() - began, peak_mib()
        blocks.blocks_of = real
        told = {"table": name, "models": models, "blocks": len(all_of), "finding_cpu_seconds": round(finding, 1)}
        found.append(told | {"seconds": seconds, "mib": max(most, at_first)})
    for told in found:  # afterwards: what it reads stays with the process
        file = pl.scan_parquet(folder / f"{told['table']}.parquet")
        count, rows = file.select(pl.len()).collect().item(), file.head(PLAIN_ROWS).collect()
        began = time.process_time()
        rows.write_parquet(folder / "plain.parquet", row_group_size=1_000_000)
        plain, size = time.process_time() - began, rows.estimated_size()
        began = time.process_time()
        _ = bytearray(b"\x01") * size
        fill, seconds = time.process_time() - began, told.pop("seconds")
        told |= {
            "rows": count,
            "rows_a_cpu_second": round(count / seconds),
            "plain_rows_a_cpu_second": round(rows.height / plain),
            "filled_rows_a_cpu_second": round(rows.height / fill),
            "times_plain_write": round(seconds / count / plain * rows.height, 2),
        }
    return found


def main(tables: str) -> None:
    found = []
    for times in TIMES:
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".build-bench-") as scratch:
            command = [sys.executable, "-m", "tests.bench.many", tables, scratch, str(times)]
            found += json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(*found[-2:], sep="\n", file=sys.stderr, flush=True)
    for name in ("compatibility", "footprint"):
        own = [one for one in found if one["table"] == name]
        for one in own:
            one["rate_exponent"] = exponent([(o["models"], 1 / o["rows_a_cpu_second"]) for o in own])
            one["mib_exponent"] = exponent([(o["models"], o["mib"]) for o in own])
    found.sort(key=lambda one: one["table"])
    write(TABLE, list(found[0]), [list(one.values()) for one in found], found[0]["models"])


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(measure(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))))
    else:
        main(sys.argv[1])
