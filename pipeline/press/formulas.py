"""The formulas of tables/sql in a database: facts and what is known of models as tables, then each statement after those that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from pipeline.book.facts import TABLES
from pipeline.book.scenario import written_out
from pipeline.book.schema import FACTS, PUBLISHED, Table
from pipeline.press.file import arguments_in, declared_columns
from pipeline.press.flat import ARGUMENTS
from pipeline.press.held import LADDER
from pipeline.press.layers import LAYER_COLUMNS, LAYERS
from pipeline.press.plans import PLANS

SQL = TABLES / "sql"
# facts that are published with more than was read
AS_READ = {
    "gpu": "gpu_fact",
    "rule_of_thumb": "rule_fact",
    "training_run": "training_run_fact",
    "serving_run": "serving_run_fact",
    "outcome": "outcome_fact",
}
# what is worked out of models, outside tables/sql
FILLED = ("work", "footprint", "ladder", LAYERS, "prediction", "accuracy", "outcome", *PLANS)
# comments and strings; what a statement makes
_NO_CODE = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_MADE = re.compile(r"\s*CREATE OR REPLACE (?:TEMP )?(?P<kind>MACRO|TABLE|VIEW) (?P<name>\w+)")


class FormulaError(RuntimeError):
    """A file of tables/sql that does not run: a fact or a formula was removed or misspelt."""


def load(
    connection: duckdb.DuckDBPyConnection, facts: Mapping[str, pl.DataFrame], frames: Mapping[str, pl.DataFrame]
) -> None:
    """Creates the tables that the formulas read: facts as they are, constants once more as a single wide row."""
    for name, frame in (*facts.items(), *frames.items()):
        table = FACTS.get(name) or PUBLISHED[name]
        # gpu is published with its capacity, a rule of thumb with its errors, runs with their shares: the SQL adds them
        create(connection, AS_READ.get(name, name), table, frame)
    for name in ("footprint", "prediction", "accuracy", "outcome", *PLANS, *({"work"} - frames.keys())):
        connection.execute(f"CREATE TABLE {name} ({declared_columns(PUBLISHED[name])})")
    connection.execute(f"CREATE TABLE {LAYERS} ({LAYER_COLUMNS})")
    connection.execute(f"CREATE TABLE ladder ({declared_columns(PUBLISHED['footprint'], LADDER)})")
    wide = dict(facts["constant"].select("constant_id", "value").rows())
    if not wide:
        raise FormulaError("tables/facts/constant.csv holds no constant, and formulas need them")
    columns = ", ".join(f"{_name(name)} DOUBLE" for name in wide)
    connection.execute(f"CREATE TABLE constants ({columns})")
    connection.execute(f"INSERT INTO constants VALUES ({', '.join('?' * len(wide))})", list(wide.values()))


def create(connection: duckdb.DuckDBPyConnection, name: str, table: Table, frame: pl.DataFrame) -> None:
    """A table with rows."""
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


def run_sql(connection: duckdb.DuckDBPyConnection) -> dict[str, Statement]:
    """Runs the files of tables/sql, each statement after those that make what it names: the order of files is nowhere a matter.
    Returns the statements as they were run, by what they make (macros end in a bracket).
    Raises FormulaError, which names the file."""
    statements = _statements(connection)
    try:
        order = list(TopologicalSorter(needs_of(statements)).static_order())
    except CycleError as error:
        raise FormulaError(f"formulas that need one another: {' → '.join(error.args[1])}") from error
    for name in order:
        run_of(statements[name].path, connection.execute, statements[name].text)
    return {name: statements[name] for name in order}


def needs_of(statements: Mapping[str, Statement]) -> dict[str, set[str]]:
    """What each statement names of what the others make."""
    # a macro is known by its bracket: columns and steps may have its name
    return {
        name: {word for word in re.findall(r"\w+\(?", one.code) if word in statements and word != name}
        for name, one in statements.items()
    }


def _statements(connection: duckdb.DuckDBPyConnection) -> dict[str, Statement]:
    statements: dict[str, Statement] = {}
    for path in sql_files():
        for name, statement in statements_of(connection, path, path.read_text(encoding="utf-8")):
            if name in statements:
                raise FormulaError(f"{path.relative_to(SQL)} makes {name.removesuffix('(')}, as another does")
            statements[name] = statement
    return statements


def statements_of(connection: duckdb.DuckDBPyConnection, path: Path, text: str) -> list[tuple[str, Statement]]:
    """The statements of a file of tables/sql that says this, in its order, by what they make (macros end in a bracket)."""
    found = []
    for statement in run_of(path, connection.extract_statements, written_out(text)):
        code = _NO_CODE.sub(" ", statement.query)
        made = _MADE.match(code)
        if made is None:
            raise FormulaError(f"{path.relative_to(SQL)} makes nothing: {code.strip()[:60]}")
        found.append((_made(made), Statement(path, statement.query, code, made["kind"])))
    return found


def arguments_of(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The arguments of every macro of tables/sql as they are written there, with their defaults, and of those that are made of them."""
    made = {
        name.removesuffix("("): arguments_in(one.text)
        for name, one in _statements(connection).items()
        if one.kind == "MACRO"
    }
    return made | ARGUMENTS


def _made(found: re.Match[str]) -> str:
    return found["name"] + ("(" if found["kind"] == "MACRO" else "")


def run_of(path: Path, run: Callable[[str], Any], text: str) -> Any:
    """Runs a statement of a file of tables/sql. Raises FormulaError, which names the file."""
    try:
        return run(text)
    except (duckdb.ProgrammingError, duckdb.DataError) as error:  # not of a disk, of memory or of Ctrl-C
        first = str(error).strip().partition("\n")[0]
        name = path.relative_to(SQL)
        raise FormulaError(f"tables/sql/{name} does not run with the facts as they are: {first}") from error


def _name(text: str) -> str:
    """A name of SQL, whatever it holds."""
    return '"' + text.replace('"', '""') + '"'
