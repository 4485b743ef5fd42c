"""The almanac of no model: facts, formulas as they are asked, and the statements that make what is known of a model. Whoever brings a model of
his own is answered from a copy of it, and formulas are not read and written anew for each question.

It is kept in a folder for caches, under the fingerprint of all that it is made of; other files of its kind are removed there. A build begins with
it too, and keeps it among its packs.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl

from pipeline import ROOT
from pipeline.book.facts import read_facts, read_measured
from pipeline.book.packs import Packs, fingerprint
from pipeline.hub.snapshot import Snapshot
from pipeline.press import formulas, kept_shapes
from pipeline.press.anatomise import anatomise
from pipeline.press.flat import DERIVED, flatten

KEPT = "blank.duckdb"  # among packs
REMADE = "blank_statement"  # the statements that are run again once there is a model, in their order
ENTERED = "blank_entered"  # the names of tables, views and macros that are not the same whatever models there are
# the tables that a statement reads, and the macros that it calls
_READ = re.compile(r"(?:\b(?:FROM|JOIN)\s+|,\s*)(\w+)|(\w+\()")
_TEMPORARY = re.compile(r"\s*CREATE OR REPLACE TEMP ")


def make(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes it in an empty database."""
    frames = anatomise(Snapshot(ROOT, datetime.date.min, "", (), {}))
    formulas.load(connection, read_facts(), {**frames, "measured": read_measured()})
    # in one transaction: else each statement goes through DuckDB's log by itself
    connection.execute("BEGIN")
    statements = formulas.run_sql(connection)
    derived = flatten(connection)
    connection.execute("COMMIT")
    statements[DERIVED] = formulas.Statement(formulas.SQL, derived, derived, "TABLE")
    entered = _entered(statements, {*frames, *formulas.FILLED})
    remade = _remade(statements, entered)
    connection.execute(
        f"CREATE TABLE {ENTERED} AS SELECT unnest($names::VARCHAR[]) AS name", {"names": sorted(entered)}
    )
    connection.execute(f"CREATE TABLE {REMADE} (place INTEGER, {', '.join(_COLUMNS)})")
    connection.executemany(
        f"INSERT INTO {REMADE} VALUES (?, ?, ?, ?, ?, ?)", [(i, *one.__dict__.values()) for i, one in enumerate(remade)]
    )


@dataclass(frozen=True)
class Remade:
    """A statement of tables/sql that is run again once there is a model: its file, its text, the table that it makes, whether that is gone with the
    connection, and the others of these that it needs."""

    file: str
    statement: str
    makes: str
    is_temporary: bool
    needs: list[str]


_COLUMNS = ("file VARCHAR", "statement VARCHAR", "makes VARCHAR", "is_temporary BOOLEAN", "needs VARCHAR[]")


def fill(
    connection: duckdb.DuckDBPyConnection, frames: Mapping[str, pl.DataFrame], packs: Packs | None = None
) -> set[str]:
    """Puts models into a copy: the rows of their anatomy, and what is made of them. Returns the names of what models enter: all other tables and
    views say the same whatever models there are. Shapes and weights that `packs` have are not made again. Raises FormulaError."""
    for name, frame in frames.items():
        connection.register("incoming", frame.to_arrow())
        connection.execute(f"INSERT INTO {name} BY NAME FROM incoming")
        connection.unregister("incoming")
    columns = ", ".join(column.partition(" ")[0] for column in _COLUMNS)
    remade = [Remade(*row) for row in connection.execute(f"SELECT {columns} FROM {REMADE} ORDER BY place").fetchall()]

    def make(names: Sequence[str], there: Sequence[str] = ()) -> None:
        """Makes these, and what they need that is not there."""
        for one in _needed(remade, names, there):
            formulas.run_of(formulas.SQL / one.file, connection.execute, one.statement)

    there = kept_shapes.KEPT if packs else ()
    if packs:
        kept_shapes.fill(connection, frames, make, packs)
    make([one.makes for one in remade if not one.is_temporary], there)
    entered = {name for (name,) in connection.execute(f"FROM {ENTERED}").fetchall()}
    connection.execute(f"DROP TABLE {REMADE}; DROP TABLE {ENTERED}")
    return entered


def _needed(remade: Sequence[Remade], names: Iterable[str], there: Collection[str]) -> list[Remade]:
    """Those that make some tables, and what these are made of but for what is there, in their order."""
    by_name = {one.makes: one for one in remade}
    wanted, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name not in wanted and name not in there:
            wanted.add(name)
            waiting += by_name[name].needs
    return [one for one in remade if one.makes in wanted]


def begin(database: Path, packs: Packs | None) -> None:
    """Makes a new file of it, or copies what `packs` hold."""
    key = pack_key()
    known = packs.places([key]) if packs else {}
    content = packs.content(known[key], KEPT) if known else None
    if content is not None:
        database.write_bytes(content)
        return
    with duckdb.connect(str(database)) as connection:
        make(connection)
    if packs:
        packs.put_files([key], {KEPT: database.read_bytes()})


def pack_key() -> str:
    """Under which packs hold it."""
    return hashlib.sha256(f"{KEPT} {fingerprint()}".encode()).hexdigest()


def copied(folder: Path, database: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A copy in memory, or in a new file: of what is kept in the folder, or made anew where that takes none or holds a damaged one."""
    found = kept(folder)
    if found is not None:
        try:
            return _file_of(found, database) if database is not None else _memory_of(found)
        except (duckdb.IOException, duckdb.SerializationException, duckdb.InternalException):
            for path in (found, database):
                if path is not None:
                    path.unlink(missing_ok=True)
    connection = duckdb.connect(str(database or ":memory:"))
    try:
        make(connection)
        return connection
    except BaseException:
        connection.close()
        if database is not None:
            database.unlink(missing_ok=True)
        raise


def _file_of(found: Path, database: Path) -> duckdb.DuckDBPyConnection:
    """A copied file is opened in a fifth of the time that its tables and macros take one by one."""
    try:
        shutil.copyfile(found, database)
        connection = duckdb.connect(str(database))
    except BaseException:
        database.unlink(missing_ok=True)
        raise
    return connection


def _memory_of(found: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    try:
        place = str(found).replace("'", "''")
        connection.execute(f"ATTACH '{place}' AS kept (READ_ONLY)")
        connection.execute("COPY FROM DATABASE kept TO memory; DETACH kept")
    except BaseException:
        connection.close()
        raise
    return connection


def kept(folder: Path) -> Path | None:
    """The file, made if it is not there; None where the folder takes none."""
    path = folder / f"blank-{fingerprint()[:16]}.duckdb"
    if path.exists():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="blank-") as making:
            with duckdb.connect(Path(making, "blank.duckdb")) as connection:
                make(connection)
            Path(making, "blank.duckdb").replace(path)
        for other in folder.glob("blank-*.duckdb"):
            if other != path:
                other.unlink(missing_ok=True)
    except (OSError, duckdb.IOException):
        return None
    return path


def _entered(statements: Mapping[str, formulas.Statement], filled: set[str]) -> set[str]:
    """These tables, and all that is made of them (macros end in a bracket)."""
    entered = set(filled)
    for name, one in statements.items():  # each after those that it needs
        if not entered.isdisjoint(found for pair in _READ.findall(one.code) for found in pair):
            entered.add(name)
    return entered


def _remade(statements: Mapping[str, formulas.Statement], entered: set[str]) -> list[Remade]:
    """What makes the tables that models enter, and those that no file keeps, in their order."""
    made = {
        name: bool(_TEMPORARY.match(one.code))
        for name, one in statements.items()
        if one.kind == "TABLE" and (name in entered or _TEMPORARY.match(one.code))
    }
    named = formulas.needs_of(statements)

    def needs(name: str) -> list[str]:
        found, waiting = set(), list(named[name])
        while waiting:
            other = waiting.pop()
            if other not in found:
                found.add(other)
                # by a macro or a view, too
                waiting += () if other in made else named[other]
        return sorted(found & made.keys())

    return [
        Remade(one.path.relative_to(formulas.SQL).as_posix(), one.text, name, made[name], needs(name))
        for name, one in statements.items()
        if name in made
    ]
