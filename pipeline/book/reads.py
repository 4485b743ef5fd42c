"""Which rows of models formulas read, told by their texts."""

from __future__ import annotations

import re
from collections.abc import Iterable

import duckdb

from pipeline.book.content import SHAPE, WEIGHT

# what holds rows of footprints
_DERIVED = frozenset(["twin", "twin_footprint", "twin_ladder", "twin_layer", "twin_split"])
_TEXTS = """
SELECT function_name, macro_definition FROM duckdb_functions() WHERE NOT internal AND function_type IN ('macro', 'table_macro')
UNION ALL SELECT view_name, sql FROM duckdb_views() WHERE NOT internal
"""
_WORD = re.compile(r"\w+")


def read_by(connection: duckdb.DuckDBPyConnection, macros: Iterable[str]) -> list[str]:
    """The tables with rows of models that some macros read."""
    return Reads(connection).by(macros)


class Reads:
    """What the texts of a database name, read once for all questions."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        query = "SELECT table_name FROM duckdb_columns() WHERE column_name = 'model_id' AND NOT internal"
        self.tables = {name for (name,) in connection.execute(query).fetchall()} - _DERIVED
        self.texts = dict(connection.execute(_TEXTS).fetchall())
        self._named: dict[str, set[str]] = {}

    def by(self, macros: Iterable[str]) -> list[str]:
        """The tables that some macros read, themselves or by others that they name. A word that is only called like one is one too many, which
        costs a key nothing; what is derived of shapes and weights (footprints) is said by these."""
        known, waiting = set(), list(macros)
        while waiting:
            name = waiting.pop()
            if name not in known:
                known.add(name)
                waiting += self._names(name)
        return sorted((known & self.tables - self.texts.keys()) | {SHAPE, WEIGHT} & self.tables)

    def _names(self, name: str) -> set[str]:
        if name not in self._named:
            words = set(_WORD.findall(self.texts.get(name, "")))
            self._named[name] = {word for word in words if word in self.texts or word in self.tables}
        return self._named[name]
