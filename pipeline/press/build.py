"""Facts, anatomy and the SQL of the book become the published tables.

`build_tables(folder, ...)` fills an empty folder with `almanac.duckdb`, and one Parquet and one CSV per table. The formulas are
the macros of tables/sql: the same text fills the tables here and answers whoever opens the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.base.failures import interruptible
from pipeline.base.progress import Progress, quiet, step
from pipeline.book.facts import TABLES, read_facts, read_measured
from pipeline.book.scenario import written_out
from pipeline.book.schema import FACTS, PUBLISHED, Table
from pipeline.hub.snapshot import Snapshot
from pipeline.press import file, same_bytes
from pipeline.press.accuracy import fill_accuracy
from pipeline.press.anatomise import anatomise
from pipeline.press.file import DATABASE, arguments_in, declared_columns
from pipeline.press.flat import ARGUMENTS, flatten
from pipeline.press.lookup import LADDER, LAYER_COLUMNS, LAYERS, ORDER, share_footprints
from pipeline.press.packs import Packs
from pipeline.press.plans import PLANS, fill_plans
from pipeline.press.work import work_of

SQL = TABLES / "sql"
ROW_GROUP_ROWS = 50_000
# what a person opens in a spreadsheet
CSV_ROWS = 50_000
_MODELS_PER_STEP = 200
# rows of a group of footprint.parquet: footer and group are alike then (tests/press/test_over_http.py asks what a reader fetches)
FOOTPRINT_ROWS = 70_000
# (a copy of the schema in Arrow's words would be read by everybody, and says nothing more)
_PAGES = {"data_page_version": "2.0", "compression_level": 9, "store_schema": False}
# facts that are published with more than was read
_AS_READ = {
    "gpu": "gpu_fact",
    "rule_of_thumb": "rule_fact",
    "training_run": "training_run_fact",
    "serving_run": "serving_run_fact",
}
# comments and strings; what a statement makes
_NO_CODE = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_MADE = re.compile(r"\s*CREATE OR REPLACE (?:TEMP )?(?P<kind>MACRO|TABLE|VIEW) (?P<name>\w+)")


class FormulaError(RuntimeError):
    """A file of tables/sql that does not run: a fact or a formula was removed or misspelt."""


def build_tables(
    folder: Path, snapshot: Snapshot, progress: Progress = quiet, packs: Packs | None = None
) -> dict[str, int]:
    """Builds every published table into `folder`, which must exist and be empty. Returns rows by table. What `packs` hold is taken from
    there, and what they do not is put there.

    Raises FactError where the book cannot be read. Nothing outside the folder is touched.
    """
    facts = read_facts()
    frames = {**anatomise(snapshot, progress), "measured": read_measured()}
    frames["work"] = work_of(frames["model"])
    workshop = folder / "workshop.duckdb"
    with duckdb.connect() as connection, interruptible(connection):
        connection.execute(f"ATTACH '{_quoted(workshop)}' AS workshop")
        connection.execute("USE workshop")
        with step(progress, "formulas"):
            load(connection, facts, frames)
            run_sql(connection)
            flatten(connection)
        with step(progress, "accuracy"):
            fill_accuracy(connection)
        share_footprints(connection, facts["scenario_set"], progress, packs)
        with step(progress, "plans"):
            fill_plans(connection, packs)
            _keep_rows(connection, "rule_error")
        with step(progress, DATABASE):
            arguments = _arguments(connection)
            connection.execute("USE memory; DETACH workshop")
            same_bytes.write(workshop, folder / DATABASE, arguments)
            connection.execute(f"ATTACH '{_quoted(workshop)}' AS workshop; USE workshop")
        counts = _export(connection, folder, progress)
    workshop.unlink()
    if packs:
        packs.tidy()
    return counts


def _keep_rows(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """A table in the place of a view: it is asked for again and again, and each time would be worked out of all footprints."""
    connection.execute(f"CREATE TEMP TABLE kept_rows AS FROM {name}")
    connection.execute(f"DROP VIEW {name}")
    _create(connection, name, PUBLISHED[name], connection.sql("FROM kept_rows").pl())
    connection.execute("DROP TABLE kept_rows")


def load(
    connection: duckdb.DuckDBPyConnection, facts: Mapping[str, pl.DataFrame], frames: Mapping[str, pl.DataFrame]
) -> None:
    """Creates the tables that the formulas read: facts as they are, constants once more as a single wide row."""
    for name, frame in (*facts.items(), *frames.items()):
        table = FACTS.get(name) or PUBLISHED[name]
        # gpu is published with its capacity, a rule of thumb with its errors, runs with their shares: the SQL adds them
        _create(connection, _AS_READ.get(name, name), table, frame)
    for name in ("footprint", "prediction", "accuracy", *PLANS, *({"work"} - frames.keys())):
        connection.execute(f"CREATE TABLE {name} ({declared_columns(PUBLISHED[name])})")
    connection.execute(f"CREATE TABLE {LAYERS} ({LAYER_COLUMNS})")
    connection.execute(f"CREATE TABLE ladder ({declared_columns(PUBLISHED['footprint'], LADDER)})")
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


def sql_files(folder: Path = SQL) -> list[Path]:
    """The files of formulas: a folder for each component."""
    return sorted(folder.rglob("*.sql"))


@dataclass(frozen=True)
class Statement:
    """One statement of tables/sql: its file, its text, that without comments and strings, and whether it makes a MACRO, a TABLE or a VIEW."""

    path: Path
    text: str
    code: str
    kind: str


def run_sql(connection: duckdb.DuckDBPyConnection, texts: Mapping[Path, str] | None = None) -> dict[str, Statement]:
    """Runs the files of tables/sql, each statement after those that make what it names: the order of files is nowhere a matter.
    `texts` are other words for some of the files. Returns the statements as they were run, by what they make (macros end in a bracket).
    Raises FormulaError, which names the file."""
    statements = _statements(connection, texts or {})
    # a macro is known by its bracket: columns and steps may have its name
    needs = {
        name: {word for word in re.findall(r"\w+\(?", one.code) if word in statements and word != name}
        for name, one in statements.items()
    }
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        raise FormulaError(f"formulas that need one another: {' → '.join(error.args[1])}") from error
    for name in order:
        _run(statements[name].path, connection.execute, statements[name].text)
    return {name: statements[name] for name in order}


def _statements(connection: duckdb.DuckDBPyConnection, texts: Mapping[Path, str]) -> dict[str, Statement]:
    statements: dict[str, Statement] = {}
    for path in sql_files():
        text = written_out(texts.get(path) or path.read_text(encoding="utf-8"))
        for statement in _run(path, connection.extract_statements, text):
            code = _NO_CODE.sub(" ", statement.query)
            made = _MADE.match(code)
            if made is None or _made(made) in statements:
                raise FormulaError(f"{path.relative_to(SQL)} makes nothing, or what another makes: {code.strip()[:60]}")
            statements[_made(made)] = Statement(path, statement.query, code, made["kind"])
    return statements


def write_file(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """What the connection holds, as the file that is published (but for its bytes, which `same_bytes` settles)."""
    file.write(connection, path, _arguments(connection))


def _arguments(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The arguments of every macro of tables/sql as they are written there, with their defaults, and of those that are made of them."""
    made = {
        name.removesuffix("("): arguments_in(one.text)
        for name, one in _statements(connection, {}).items()
        if one.kind == "MACRO"
    }
    return made | ARGUMENTS


def _made(found: re.Match[str]) -> str:
    return found["name"] + ("(" if found["kind"] == "MACRO" else "")


def _run(path: Path, run: Callable[[str], Any], text: str) -> Any:
    try:
        return run(text)
    except (duckdb.ProgrammingError, duckdb.DataError) as error:  # not of a disk, of memory or of Ctrl-C
        first = str(error).strip().partition("\n")[0]
        name = path.relative_to(SQL)
        raise FormulaError(f"tables/sql/{name} does not run with the facts as they are: {first}") from error


def _export(connection: duckdb.DuckDBPyConnection, folder: Path, progress: Progress) -> dict[str, int]:
    """One Parquet file per table, sorted so that a remote reader fetches little; and a CSV of what a person opens."""
    # (it knows the rules of verdicts as pages do; who reads one config needs neither)
    from pipeline.press.compatibility import write_compatibility

    counts = {}
    for name, table in progress(list(PUBLISHED.items()), desc="tables"):
        path = folder / f"{name}.parquet"
        if name == "compatibility":
            counts[name] = write_compatibility(connection, path)
            continue
        counts[name] = connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
        if name == "footprint":
            write_footprints(connection, path)
            continue
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        query = f"SELECT {columns} FROM {name} ORDER BY {', '.join(table.key)}"
        connection.execute(
            f"COPY ({query}) TO '{_quoted(path)}' "
            f"(FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
        )
        if counts[name] <= CSV_ROWS:
            connection.execute(f"COPY ({query}) TO '{_quoted(folder / name)}.csv' (FORMAT csv, HEADER)")
    return counts


def write_footprints(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """A few models at a time, so that memory stays flat. Who reads one model over a network reads the footer and one group of rows: groups
    are as many as make the two alike and hold whole models, and the footer has ranges of values for models alone, since a group has all of
    whatever else rows are looked up by."""
    table = PUBLISHED["footprint"]
    columns = ", ".join(f'"{name}"' for name in table.column_names)
    # bytes differ from row to row: a dictionary of them is longer than they are
    repeated = [name for name in table.column_names if not name.endswith("_bytes")]
    models = [row[0] for row in connection.execute("SELECT DISTINCT model_id FROM twin ORDER BY 1").fetchall()]
    with ExitStack() as held:
        writer = None
        for start in range(0, len(models), _MODELS_PER_STEP):
            rows = connection.sql(
                f"SELECT {columns} FROM footprint WHERE list_contains($models, model_id) ORDER BY {ORDER}",
                params={"models": models[start : start + _MODELS_PER_STEP]},
            ).to_arrow_table()
            rows = rows.cast(pa.schema([field.with_nullable(field.name in table.nullable) for field in rows.schema]))
            if writer is None:
                how = {"write_statistics": ["model_id"], "use_dictionary": repeated, **_PAGES}
                writer = held.enter_context(pq.ParquetWriter(path, rows.schema, compression="zstd", **how))
            for group in _groups(rows):
                writer.write_table(group, row_group_size=max(group.num_rows, 1))


def _groups(rows: pa.Table) -> Iterator[pa.Table]:
    """Rows of whole models, about FOOTPRINT_ROWS in each group."""
    ends = pc.run_end_encode(rows["model_id"].combine_chunks()).run_ends.to_pylist()
    most = max(round(rows.num_rows / FOOTPRINT_ROWS), 1)
    start = 0
    for n in range(1, most + 1):
        # the model that the share of this group ends in is its last
        end = ends[bisect_left(ends, round(rows.num_rows * n / most))] if ends else 0
        if end > start or not ends:
            yield rows.slice(start, end - start)
        start = end


def _name(text: str) -> str:
    """A name of SQL, whatever it holds."""
    return '"' + text.replace('"', '""') + '"'


def _quoted(text: object) -> str:
    return str(text).replace("'", "''")
