"""The words of SQL that rules are written in, for columns of polars: a row is a dict of columns, of a list the rows are known.

Nulls spread by themselves. What chooses a row is kept as its conditions (`Choice`), so that each column of it is chosen alike.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

add, sub, mul, div = operator.add, operator.sub, operator.mul, operator.truediv
eq, ne, lt, le, gt, ge = operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge


@dataclass
class Choice:
    """The row of the first condition that holds; none where that is None, or none holds."""

    ways: list[tuple[pl.Expr, dict | None]]

    def column(self, name: str) -> pl.Expr:
        return chain([(condition, None if row is None else row[name]) for condition, row in self.ways])

    def place(self, rows: list[dict]) -> pl.Expr:
        """Which of the rows it is."""
        places = [next((i for i, one in enumerate(rows) if one is row), None) for _, row in self.ways]
        ways = [(way[0], pl.lit(place, pl.UInt8)) for way, place in zip(self.ways, places, strict=True)]
        return chain(ways)


def chain(ways: list[tuple[Any, Any]], otherwise: Any = None) -> pl.Expr:
    made = pl
    for condition, value in ways:
        made = made.when(condition).then(pl.lit(value) if isinstance(value, str) else value)
    return made.otherwise(pl.lit(otherwise) if isinstance(otherwise, str) else otherwise)


def case(*parts: Callable) -> Any:
    checks = [(parts[i](), parts[i + 1]()) for i in range(0, len(parts) - 1, 2)]
    otherwise = parts[-1]()
    if not any(isinstance(value, Choice) for value in (*(value for _, value in checks), otherwise)):
        return chain(checks, otherwise)
    ways = []
    for condition, value in checks:
        ways += [(condition & each, row) for each, row in value.ways] + [(condition, None)]
    return Choice(ways + otherwise.ways)


def coalesce(*values: Any) -> Any:
    if any(isinstance(value, Choice) for value in values):
        return Choice([way for value in values for way in value.ways])
    return pl.coalesce(*(pl.lit(value) if isinstance(value, str) else value for value in values))


def is_null(value: Any) -> pl.Expr:
    return value.is_null()


def get(row: Any, name: str) -> pl.Expr:
    return row.column(name) if isinstance(row, Choice) else row[name]


def list_filter(rows: list[dict], holds: Callable) -> list[tuple[pl.Expr, dict]]:
    return [(holds(row), row) for row in rows]


def at(filtered: list[tuple[pl.Expr, dict]], place: int) -> Choice:
    if place != 1:
        raise NotImplementedError("a row of a list of columns that is not the first")
    return Choice(filtered)
