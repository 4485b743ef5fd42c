"""Many questions of one macro in one statement: it is planned once, which takes a second and more, and each further answer next to nothing.

A phase says which text of the formulas is planned (tables/sql/ask/footprint_of.sql): a statement for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import duckdb
import polars as pl

Case = Mapping[str, object]
_PHASE = "phase_id"
_TYPES: dict[type, pl.DataType] = {bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64(), str: pl.String()}


def at_once(
    connection: duckdb.DuckDBPyConnection, macro: str, first: Sequence[str], cases: Iterable[Case]
) -> list[list[dict[str, object]]]:
    """The rows of each case, in their order. `first` are what stands first in the macro; what a case does not name is null, as it is where nobody
    names it. An argument of which cases say numbers and words is given as text, as a reader of a file would."""
    cases = list(cases)
    found: list[list[dict[str, object]]] = [[] for _ in cases]
    for phase in sorted({case.get(_PHASE) for case in cases}, key=str):
        places = [place for place, case in enumerate(cases) if case.get(_PHASE) == phase]
        for place, row in _asked(connection, macro, first, phase, [cases[place] for place in places]):
            found[places[place]].append(row)
    return found


def _asked(
    connection: duckdb.DuckDBPyConnection, macro: str, first: Sequence[str], phase: object, cases: Sequence[Case]
) -> list[tuple[int, dict[str, object]]]:
    names = [name for name in dict.fromkeys(name for case in cases for name in case) if name not in (*first, _PHASE)]
    columns = [_column(name, [case.get(name) for case in cases]) for name in (*first, *names)]
    given = [f"said.{name}" for name in first] + [f"{name} := said.{name}" for name in names]
    given += [f"{_PHASE} := '{phase}'"] if phase else []
    connection.register("cases_at_once", pl.DataFrame(columns).with_row_index("case_place").to_arrow())
    is_long = macro.startswith("preference")  # of whose plan DuckDB's optimizer is a third
    if is_long:
        connection.execute("PRAGMA disable_optimizer")
    try:
        asked = connection.execute(
            f"SELECT said.case_place, answer.* FROM cases_at_once AS said, LATERAL (FROM {macro}({', '.join(given)})) AS answer"
        )
        told = [column[0] for column in asked.description][1:]
        return [(place, dict(zip(told, row, strict=True))) for place, *row in asked.fetchall()]
    finally:
        if is_long:
            connection.execute("PRAGMA enable_optimizer")
        connection.unregister("cases_at_once")


def one_each(
    connection: duckdb.DuckDBPyConnection, macro: str, first: Sequence[str], cases: Mapping[str, Case]
) -> dict[str, dict[str, object]]:
    """The one row of each case, by its name."""
    answers = {}
    for name, rows in zip(cases, at_once(connection, macro, first, cases.values()), strict=True):
        (answers[name],) = rows
    return answers


def _column(name: str, values: list[object]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1:
        values = [None if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in values]
        kinds = {str}
    return pl.Series(name, values, _TYPES[kinds.pop()] if kinds else pl.String())
