"""A database with facts, formulas and some models, as formulas see it: filled by one worker, and copied by all, which takes a tenth of the time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb
import polars as pl

from pipeline.press import blank
from pipeline.press.work import work_of
from tests.once import blank_folder


def fill(folder: Path, frames: Mapping[str, pl.DataFrame]) -> None:
    """Writes it into a folder: what a file keeps, and what is of a connection alone."""
    with blank.copied(blank_folder(), folder / "book.duckdb") as connection:
        blank.fill(connection, {**frames, "work": work_of(frames["model"])})
        connection.execute(f"ATTACH '{folder / 'temporary.duckdb'}' AS temporary")
        for name in _tables(connection, "temp"):
            connection.execute(f"CREATE TABLE temporary.{name} AS FROM temp.{name}")


def copied(folder: Path) -> duckdb.DuckDBPyConnection:
    """A copy of it in memory."""
    connection = duckdb.connect()
    for name in ("book", "temporary"):
        connection.execute(f"ATTACH '{folder / name}.duckdb' AS {name} (READ_ONLY)")
    connection.execute("COPY FROM DATABASE book TO memory")
    for name in _tables(connection, "temporary"):
        connection.execute(f"CREATE TEMP TABLE {name} AS FROM temporary.{name}")
    connection.execute("DETACH book; DETACH temporary")
    return connection


def _tables(connection: duckdb.DuckDBPyConnection, database: str) -> list[str]:
    """All of a database, in their order."""
    asked = "SELECT table_name FROM duckdb_tables() WHERE database_name = $1 ORDER BY table_name"
    return [name for (name,) in connection.execute(asked, [database]).fetchall()]
