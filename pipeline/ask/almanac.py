"""Finding the almanac and asking it: a build on this machine, a file, or a copy of what lies at an address.

An `Almanac` asks macros and small tables only. Its large tables may lie elsewhere; nothing here needs them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from pipeline.base.bounds import visible
from pipeline.base.readonly import reading

from .problems import NoData

DATABASE = "almanac.duckdb"
# What DuckDB does to a query that only many rows repay, as far as its version knows the name: a question of few rows takes longest to plan.
FOR_MANY_ROWS = (
    "cte_inlining",
    "projection_pullup",
    "statistics_propagation",
    "duplicate_groups",
    "common_subexpressions",
)
MANIFEST = "manifest.json"
SCHEMA_MAJOR = 1  # of manifest.json; another major may say something else in the same words
PLACE = "VRAM_ALMANAC"  # a folder, a file or an address, in the environment
_LOCAL = (Path("build") / "tables" / DATABASE, Path("tables") / DATABASE, Path(DATABASE))
HOW = f"Build one (`make publish` in a checkout), or name a folder, a file or an address: --data, or {PLACE} in the environment"

Row = dict[str, Any]


@dataclass
class Almanac:
    """An open file, where it is from, and what its manifest says of it (empty where none lies beside it)."""

    connection: duckdb.DuckDBPyConnection
    place: str
    manifest: Mapping[str, Any]
    note: str = ""  # how old a copy is, where its address does not answer
    _named: dict[str, Row] = field(default_factory=dict, init=False, repr=False)
    _schemas: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    def rows(self, query: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> list[Row]:
        """What a query answers, as dicts. Raises NoData where the file is not one of this almanac, or older than this command."""
        try:
            asked = self.connection.execute(query, values)
            names = [column[0] for column in asked.description]
            return [dict(zip(names, row, strict=True)) for row in asked.fetchall()]
        except (duckdb.CatalogException, duckdb.BinderException) as error:
            raise NoData(self._foreign(error)) from None
        except duckdb.InvalidInputException as error:
            raise NoData(f"{self.place} does not answer: {_first(error)}") from None
        except duckdb.Error as error:
            raise NoData(f"{self.place} is damaged: {_first(error)}") from None

    def value(self, query: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Any:
        """The one value that a query answers."""
        return next(iter(self.rows(query, values)[0].values()))

    def schema_of(self, table: str) -> str | None:
        """Where a table is: what is not published has a schema of its own, but in a file made of a config; None in a file from before there was
        such a table."""
        if not self._schemas:
            tables = self.rows("SELECT table_name, min(schema_name) AS schema FROM duckdb_tables() GROUP BY table_name")
            self._schemas = {row["table_name"]: row["schema"] for row in tables}
        return self._schemas.get(table)

    def repository(self, name: str) -> Row:
        """What a name speaks of: the row of `repository_of`, asked once."""
        if name not in self._named:
            (self._named[name],) = self.rows("FROM repository_of($name)", {"name": name})
        return self._named[name]

    def ask(
        self, scenarios: Sequence[Row], card: str | None, free_bytes: int | None, told: str = "*", **how: Any
    ) -> list[Row]:
        """`fits_in` of scenarios that name the same columns; `told` are the columns that are wanted of it."""
        names = list(scenarios[0])
        columns = ", ".join(f"unnest(${name}) AS {name}" for name in names)
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE asked AS SELECT {columns}",
            {name: [s[name] for s in scenarios] for name in names},
        )
        more = "".join(f", {name} := ${name}" for name in how)
        return self.rows(
            f"SELECT {told} FROM fits_in('asked', $card, free_bytes := $free{more})",
            {"card": card, "free": free_bytes, **how},
        )

    def ask_pipelines(self, columns: Mapping[str, Sequence[Any]], card: str) -> list[Row]:
        """`pipeline_fits_in` of diffusion pipelines: a list for each column, as long as there are questions."""
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE asked AS SELECT {', '.join(f'unnest(${name}) AS {name}' for name in columns)}",
            {name: list(values) for name, values in columns.items()},
        )
        return self.rows("FROM pipeline_fits_in('asked', $card)", {"card": card})

    def _foreign(self, error: Exception) -> str:
        version = self.manifest.get("schema_version")
        if version:
            return (
                f"{self.place} is of an older release (schema {version}) than this command, which asks what it does not have "
                f"({_first(error)})"
            )
        return f"{self.place} is no almanac, or one of an older release: {_first(error)}"


@contextmanager
def opened(place: str | None, *, is_fresh: bool = False) -> Iterator[Almanac]:
    """The almanac at a folder, a file or an address; by default that of the environment, of this machine's build, or the copy that was
    last asked. Raises NoData."""
    place = place or os.environ.get(PLACE) or ""
    note = ""
    if _is_address(place) or (not place and _local() is None):
        from . import remote

        copy = remote.copy_of(place.rstrip("/"), is_fresh=is_fresh) if place else remote.last_copy()
        if copy is None:
            raise NoData(f"There is no almanac here. {HOW}")
        path, shown, note = copy.path, copy.address, copy.note
    else:
        path = _file(Path(place)) if place else _local()
        shown = str(path)
    manifest = _manifest(path.with_name(MANIFEST))
    check_version(manifest.get("schema_version"), shown)
    try:
        # this command may be of another release than the file: it asks what is promised, and nothing else
        with reading(path, is_inside=False) as connection:
            _hasten(connection)
            yield Almanac(connection, visible(shown), manifest, note)
    except (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException) as error:
        raise NoData(f"{shown} cannot be read: {_first(error)}") from None


def _hasten(connection: duckdb.DuckDBPyConnection) -> None:
    """For questions of few rows: a third less of the CPU, the same answers."""
    known = {name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
    left_out = ",".join(name for name in FOR_MANY_ROWS if name in known)
    connection.execute("SET threads = 1")
    connection.execute(f"SET disabled_optimizers = '{left_out}'")


def check_version(version: Any, place: str) -> None:
    """Raises NoData where a file may say other things in the same words."""
    major = str(version).partition(".")[0] if version else str(SCHEMA_MAJOR)
    if major.isdigit() and int(major) > SCHEMA_MAJOR:
        raise NoData(
            f"{place} has schema {version}, and this command knows {SCHEMA_MAJOR}.x: a newer vram-almanac is needed"
        )
    if major != str(SCHEMA_MAJOR):
        raise NoData(
            f"{place} has schema {version}, and this command knows {SCHEMA_MAJOR}.x: a newer almanac is needed"
        )


def _is_address(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _file(place: Path) -> Path:
    path = place / DATABASE if place.is_dir() else place
    if place.is_dir() and not path.exists() and (place / "tables" / DATABASE).exists():
        path = place / "tables" / DATABASE
    if not path.exists():
        raise NoData(f"{path} is not there. {HOW}")
    return path


def _local() -> Path | None:
    """The build in this folder, or of the checkout that this runs from."""
    from pipeline import ROOT

    for path in (*_LOCAL, ROOT / "build" / "tables" / DATABASE):
        if path.exists():
            return path
    return None


def _manifest(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}


def _first(error: Exception) -> str:
    return visible(str(error).strip().partition("\n")[0])
