"""Reading a published database whoever else has it open.

A DuckDB shell that opens the file for writing locks it, even where nobody writes. Our own readers need what is published and nothing
newer, so that they take a copy then.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb

from pipeline.base.failures import interruptible


@contextmanager
def at_hand(database: Path) -> Iterator[None]:
    """While this lasts, `reading` finds the file open: DuckDB reads all macros of a file that it opens, which takes longer than most questions."""
    with ExitStack() as held:
        if database.exists():
            held.enter_context(reading(database))
        yield


@contextmanager
def reading(database: Path, *, is_inside: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that cannot write; from inside, what is `internal` is found without its schema, from outside it is not.
    Raises duckdb.Error where the file is no database."""
    with ExitStack() as held:
        try:
            connection = duckdb.connect(str(database), read_only=True)
        except duckdb.IOException as error:
            if "lock" not in str(error).lower():
                raise
            scratch = Path(held.enter_context(tempfile.TemporaryDirectory()))
            copy = shutil.copyfile(database, scratch / database.name)
            connection = duckdb.connect(str(copy), read_only=True)
        held.enter_context(connection)
        if is_inside and connection.execute("SELECT 1 FROM duckdb_schemas() WHERE schema_name = 'internal'").fetchall():
            # the build's own readers are at home in both
            connection.execute("SET search_path = 'main,internal'")
        yield held.enter_context(interruptible(connection))
