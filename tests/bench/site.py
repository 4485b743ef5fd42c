"""How long a site of many models takes to render: `python -m tests.bench.site build/tables 10000 /tmp/large`.

The models of the tables are repeated under other names until there are so many; what is written can be opened in a browser, and
`python -m tests.browser.bench_site /tmp/large/site` measures it there. Not a part of the suite.
"""

from __future__ import annotations

import resource
import shutil
import sys
import time
from pathlib import Path

import duckdb
import polars as pl

from pipeline.render import render

DATABASE = "almanac.duckdb"
SKIPPED = ("compatibility", "prediction", "measured")


def enlarge(tables: Path, number: int, folder: Path) -> None:
    """The tables with so many models, in an empty folder."""
    folder.mkdir(parents=True)
    ids = pl.read_parquet(tables / "model.parquet", columns=["model_id"])["model_id"].sort()
    copies = -(-number // len(ids))
    wanted = pl.DataFrame({"model_id": ids}).join(pl.DataFrame({"copy": range(copies)}), how="cross")
    wanted = wanted.sort("copy", "model_id").head(number).lazy()
    for file in sorted(tables.glob("*.parquet")):
        lazy = pl.scan_parquet(file)
        columns = lazy.collect_schema().names()
        if file.stem in SKIPPED:
            continue
        if "model_id" not in columns:
            shutil.copy2(file, folder)
            continue
        name = pl.when(pl.col("copy") == 0).then("model_id").otherwise(pl.format("{}-no-{}", "model_id", "copy"))
        lazy.join(wanted, on="model_id").with_columns(model_id=name).select(columns).sink_parquet(folder / file.name)
    for name in ("digest.csv", "digest.json", "changes.csv", "changes.json"):
        if (tables / name).exists():
            shutil.copy2(tables / name, folder)
    _enlarge_database(tables / DATABASE, wanted.collect(), folder / DATABASE)


def _enlarge_database(source: Path, wanted: pl.DataFrame, target: Path) -> None:
    """The database with its formulas, and the copies of every model in each table that the site reads there."""
    shutil.copy2(source, target)
    with duckdb.connect(str(target)) as connection:
        connection.register("wanted", wanted.filter(pl.col("copy") > 0).to_arrow())
        query = "SELECT table_name FROM duckdb_columns() JOIN duckdb_tables() USING (table_name) WHERE column_name = 'model_id'"
        for (table,) in connection.execute(query).fetchall():
            if table not in (*SKIPPED, "footprint"):
                connection.execute(
                    f"INSERT INTO {table} SELECT t.* REPLACE (format('{{}}-no-{{}}', model_id, copy) AS model_id) "
                    f"FROM {table} AS t JOIN wanted USING (model_id)"
                )


def _spent() -> float:
    """What this process and those that it waited for have computed, in seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def main(tables: str, number: str, folder: str) -> None:
    target = Path(folder)
    shutil.rmtree(target, ignore_errors=True)
    enlarge(Path(tables), int(number), target / "tables")
    wall, cpu = time.perf_counter(), _spent()
    found = render(target / "tables", target / "site")
    wall, cpu = time.perf_counter() - wall, _spent() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{found['models']:,} models, {found['pages']:,} pages, {found['bytes'] / 1e9:.2f} GB: {wall:.0f} s, "
        f"{cpu:.0f} s of computing, {1000 * wall / found['pages']:.1f} ms a page, {memory:.1f} GiB at most"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
