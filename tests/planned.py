"""Footprints and verdicts of scenarios by statements that are planned once: most of what a question takes is its plan, and the tests ask hundreds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from pipeline.book.scenario import PLAIN, TYPES, USUAL

_ASKED = "asked_again"
_PYTHON = {pl.String: (str,), pl.Int64: (int,), pl.Float64: (int, float), pl.Boolean: (bool,)}
# as footprint_of.sql says it, of the row of a table in the place of what is said
_TEXT = """
    SELECT footprint.* REPLACE (with_nearest(footprint.unknown_reason, footprint.model_id) AS unknown_reason)
    FROM footprints_in('{asked}', '{phase}', is_plain := {plain}, is_usual := {usual}) AS footprint
"""
_CATALOGUE = "SELECT (SELECT max(table_oid) FROM duckdb_tables()), (SELECT max(view_oid) FROM duckdb_views())"

Scenario = Mapping[str, object]


class Planned:
    """What a connection answers. Where a table or a view was made since, DuckDB would plan at each question, and a plan is made anew here."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.known: set[str] = set()
        self.catalogue: list[tuple] = []
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {_ASKED} AS FROM no_scenario")

    @staticmethod
    def takes(scenario: Scenario) -> bool:
        """Whether a table of scenarios can say it: a number in words it cannot, nor a half of a card."""
        words = str(scenario.get("phase_id") or "inference").replace("-", "")
        return words.isalpha() and all(
            name in TYPES and (value is None or type(value) in _PYTHON[TYPES[name]]) for name, value in scenario.items()
        )

    def ask(self, scenario: Scenario) -> tuple[list[str], list[tuple]]:
        """Columns and rows, as of footprint_of."""
        said = {name: value for name, value in scenario.items() if value is not None}
        prepared = self._prepared(str(said.get("phase_id", "inference")).lower(), said.keys())
        self.connection.execute(f"DELETE FROM {_ASKED}")
        self.connection.execute(
            f"INSERT INTO {_ASKED} ({', '.join(said)}) VALUES ({', '.join('?' * len(said))})", list(said.values())
        )
        result = self.connection.execute(f"EXECUTE {prepared}")
        return [column[0] for column in result.description], result.fetchall()

    def _prepared(self, phase: str, said: Collection[str]) -> str:
        catalogue = self.connection.execute(_CATALOGUE).fetchall()
        if catalogue != self.catalogue:
            for name in self.known:
                self.connection.execute(f"DEALLOCATE {name}")
            self.known, self.catalogue = set(), catalogue
        is_plain, is_usual = PLAIN.issuperset(said), USUAL.issuperset(said)
        name = f"footprints_{phase.replace('-', '_')}_{'plain' if is_plain else 'usual' if is_usual else 'all'}"
        if name not in self.known:
            text = _TEXT.format(asked=_ASKED, phase=phase, plain=str(is_plain).lower(), usual=str(is_usual).lower())
            # (with the optimizer it would be planned again whenever it is asked)
            self.connection.execute("PRAGMA disable_optimizer")
            try:
                self.connection.execute(f"PREPARE {name} AS {text}")
            finally:
                self.connection.execute("PRAGMA enable_optimizer")
            self.known.add(name)
        return name


class PlannedFits:
    """`fits_in` of a published file as pipeline/ask asks it. (A card and what is free of it stand in a table: with arguments DuckDB plans anew.)"""

    def __init__(self, database: Path) -> None:
        self.connection = duckdb.connect(str(database), read_only=True)
        self.known: dict[str, str] = {}
        self.connection.execute(
            f"SET threads = 1; CREATE TEMP TABLE {_ASKED} AS FROM internal.no_scenario; CREATE TEMP TABLE on_card (id VARCHAR, free_bytes BIGINT)"
        )

    def ask(
        self, scenarios: Sequence[Scenario], card: str | None, free_bytes: int | None, told: str = "*", **how: Any
    ) -> list[dict[str, Any]]:
        """What `Almanac.ask` answers, for scenarios that a table can say (see `Planned.takes`)."""
        prepared = self._prepared(told, how)
        names = list(scenarios[0])
        self.connection.execute(f"DELETE FROM {_ASKED}; DELETE FROM on_card")
        self.connection.execute("INSERT INTO on_card VALUES (?, ?)", [card, free_bytes])
        self.connection.executemany(
            f"INSERT INTO {_ASKED} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
            [[scenario[name] for name in names] for scenario in scenarios],
        )
        result = self.connection.execute(f"EXECUTE {prepared}")
        columns = [column[0] for column in result.description]
        return [dict(zip(columns, row, strict=True)) for row in result.fetchall()]

    def _prepared(self, told: str, how: Mapping[str, Any]) -> str:
        said = "".join(f", {name} := {_literal(value)}" for name, value in sorted(how.items()))
        text = f"SELECT {told} FROM fits_in('{_ASKED}', (SELECT id FROM on_card), free_bytes := (SELECT free_bytes FROM on_card){said})"
        if text not in self.known:
            name = f"fits_{len(self.known)}"
            self.connection.execute("PRAGMA disable_optimizer")
            try:
                self.connection.execute(f"PREPARE {name} AS {text}")
            finally:
                self.connection.execute("PRAGMA enable_optimizer")
            self.known[text] = name
        return self.known[text]


def _literal(value: Any) -> str:
    return "NULL" if value is None else str(value).lower() if isinstance(value, bool | int | float) else f"'{value}'"
