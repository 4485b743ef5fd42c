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
    """The tables with rows of models that some macros read, themselves or by others that they name. A word that is only called like one is one too
    many, which costs a key nothing; what is derived of shapes and weights (footprints) is said by these."""
    query = "SELECT table_name FROM duckdb_columns() WHERE column_name = 'model_id' AND NOT internal"
    tables = {name for (name,) in connection.execute(query).fetchall()} - _DERIVED
    texts = dict(connection.execute(_TEXTS).fetchall())
    known, waiting = set(), list(macros)
    while waiting:
        name = waiting.pop()
        if name not in known:
            known.add(name)
            waiting += set(_WORD.findall(texts.get(name, ""))) & (texts.keys() | tables)
    return sorted((known & tables - texts.keys()) | {SHAPE, WEIGHT} & tables)
