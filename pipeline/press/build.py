"""Facts, anatomy and the SQL of the book become the published tables.

`build_tables(folder, ...)` fills an empty folder with `almanac.duckdb`, and one Parquet and one CSV per table. The formulas are
the macros of tables/sql: the same text fills the tables here and answers whoever opens the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from pipeline.base.failures import interruptible
from pipeline.base.progress import Progress, quiet, step
from pipeline.book.facts import TABLES, read_facts, read_measured
from pipeline.book.schema import DUCKDB_TYPES, FACTS, PUBLISHED, Table
from pipeline.hub.snapshot import Snapshot
from pipeline.press.accuracy import fill_accuracy
from pipeline.press.anatomise import anatomise
from pipeline.press.compatibility import write_compatibility
from pipeline.press.flat import flatten
from pipeline.press.lookup import fill_footprints

SQL = TABLES / "sql"
DATABASE = "almanac.duckdb"
# Files that any DuckDB since 1.2 opens; newer storage would shut out everybody else.
STORAGE_VERSION = "v1.2.0"
ROW_GROUP_ROWS = 36_000
CSV_ROWS = 500_000
# comments and strings; what a statement makes
_NO_CODE = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_MADE = re.compile(r"\s*CREATE OR REPLACE (?:TEMP )?(?P<kind>MACRO|TABLE|VIEW) (?P<name>\w+)")


class FormulaError(RuntimeError):
    """A file of tables/sql that does not run: a fact or a formula was removed or misspelt."""


def build_tables(folder: Path, snapshot: Snapshot, progress: Progress = quiet) -> dict[str, int]:
    """Builds every published table into `folder`, which must exist and be empty. Returns rows by table.

    Raises FactError where the book cannot be read. Nothing outside the folder is touched.
    """
    facts = read_facts()
    frames = {**anatomise(snapshot, progress), "measured": read_measured()}
    with duckdb.connect() as connection, interruptible(connection):
        connection.execute(f"ATTACH '{_quoted(folder / DATABASE)}' AS almanac (STORAGE_VERSION '{STORAGE_VERSION}')")
        connection.execute("USE almanac")
        with step(progress, "formulas"):
            load(connection, facts, frames)
            run_sql(connection)
            flatten(connection)
        with step(progress, "accuracy"):
            fill_accuracy(connection)
        fill_footprints(connection, facts["scenario_set"], progress)
        _comment(connection)
        counts = _export(connection, folder, progress)
    return counts


def load(
    connection: duckdb.DuckDBPyConnection, facts: Mapping[str, pl.DataFrame], frames: Mapping[str, pl.DataFrame]
) -> None:
    """Creates the tables that the formulas read: facts as they are, constants once more as a single wide row."""
    for name, frame in (*facts.items(), *frames.items()):
        table = FACTS.get(name) or PUBLISHED[name]
        # gpu is published with its capacity, which the SQL adds
        _create(connection, "gpu_fact" if name == "gpu" else name, table, frame)
    for name in ("footprint", "prediction", "accuracy"):
        connection.execute(f"CREATE TABLE {name} ({declared_columns(PUBLISHED[name])})")
    connection.execute(f"CREATE TABLE ladder ({declared_columns(PUBLISHED['footprint'])})")
    wide = dict(facts["constant"].select("constant_id", "value").rows())
    if not wide:
        raise FormulaError("tables/facts/constant.csv holds no constant, and formulas need them")
    columns = ", ".join(f"{_name(name)} DOUBLE" for name in wide)
    connection.execute(f"CREATE TABLE constants ({columns})")
    connection.execute(f"INSERT INTO constants VALUES ({', '.join('?' * len(wide))})", list(wide.values()))


def _create(connection: duckdb.DuckDBPyConnection, name: str, table: Table, frame: pl.DataFrame) -> None:
    connection.execute(f"CREATE TABLE {name} ({declared_columns(table)})")
    connection.register("incoming", frame.to_arrow())
    connection.execute(f"INSERT INTO {name} BY NAME FROM incoming")
    connection.unregister("incoming")


def declared_columns(table: Table) -> str:
    return ", ".join(
        f'"{column.name}" {DUCKDB_TYPES[column.type]}{"" if column.name in table.nullable else " NOT NULL"}'
        for column in table.columns
    )


def sql_files(folder: Path = SQL) -> list[Path]:
    """The files of formulas: a folder for each component."""
    return sorted(folder.rglob("*.sql"))


def run_sql(connection: duckdb.DuckDBPyConnection, texts: Mapping[Path, str] | None = None) -> None:
    """Runs the files of tables/sql, each statement after those that make what it names: the order of files is nowhere a matter.
    `texts` are other words for some of the files. Raises FormulaError, which names the file."""
    statements: dict[str, tuple[Path, str, str]] = {}
    for path in sql_files():
        text = (texts or {}).get(path) or path.read_text(encoding="utf-8")
        for statement in _run(path, connection.extract_statements, text):
            code = _NO_CODE.sub(" ", statement.query)
            made = _MADE.match(code)
            if made is None or _made(made) in statements:
                raise FormulaError(f"{path.relative_to(SQL)} makes nothing, or what another makes: {code.strip()[:60]}")
            statements[_made(made)] = (path, statement.query, code)
    # a macro is known by its bracket: columns and steps may have its name
    needs = {
        name: {word for word in re.findall(r"\w+\(?", code) if word in statements and word != name}
        for name, (_path, _text, code) in statements.items()
    }
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        raise FormulaError(f"formulas that need one another: {' → '.join(error.args[1])}") from error
    for name in order:
        path, text, _code = statements[name]
        _run(path, connection.execute, text)


def _made(found: re.Match[str]) -> str:
    return found["name"] + ("(" if found["kind"] == "MACRO" else "")


def _run(path: Path, run: Callable[[str], Any], text: str) -> Any:
    try:
        return run(text)
    except (duckdb.ProgrammingError, duckdb.DataError) as error:  # not of a disk, of memory or of Ctrl-C
        first = str(error).strip().partition("\n")[0]
        name = path.relative_to(SQL)
        raise FormulaError(f"tables/sql/{name} does not run with the facts as they are: {first}") from error


def _comment(connection: duckdb.DuckDBPyConnection) -> None:
    """Meanings travel with the file: comments on tables and columns."""
    kinds = dict(
        connection.execute(
            "SELECT table_name, table_type FROM information_schema.tables WHERE table_catalog = 'almanac'"
        ).fetchall()
    )
    for table in PUBLISHED.values():
        kind = kinds.get(table.name)
        if kind is None:
            continue
        connection.execute(
            f"COMMENT ON {'VIEW' if kind == 'VIEW' else 'TABLE'} {table.name} IS '{_quoted(table.meaning)}'"
        )
        if kind != "VIEW":
            for column in table.columns:
                unit = f" ({column.unit})" if column.unit else ""
                connection.execute(
                    f"COMMENT ON COLUMN {table.name}.\"{column.name}\" IS '{_quoted(column.meaning + unit)}'"
                )


def _export(connection: duckdb.DuckDBPyConnection, folder: Path, progress: Progress) -> dict[str, int]:
    """One Parquet and one CSV per table, sorted by key, so that a remote reader fetches little.

    The CSV of a table beyond CSV_ROWS is compressed; the one big product has none.
    """
    counts = {}
    for name, table in progress(list(PUBLISHED.items()), desc="tables"):
        if name == "compatibility":
            counts[name] = write_compatibility(connection, folder / f"{name}.parquet")
            continue
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        counts[name] = connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
        # footprints are filled in order
        order = "" if name == "footprint" else f"ORDER BY {', '.join(table.key)}"
        query = f"SELECT {columns} FROM {name} {order}"
        connection.execute(
            f"COPY ({query}) TO '{_quoted(folder / name)}.parquet' "
            f"(FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
        )
        packed, how = (".zst", ", COMPRESSION zstd") if counts[name] > CSV_ROWS else ("", "")
        connection.execute(f"COPY ({query}) TO '{_quoted(folder / name)}.csv{packed}' (FORMAT csv, HEADER{how})")
    return counts


def _name(text: str) -> str:
    """A name of SQL, whatever it holds."""
    return '"' + text.replace('"', '""') + '"'


def _quoted(text: object) -> str:
    return str(text).replace("'", "''")
