"""The columns, read from tables/schema/column.csv: name, type, unit, least value and meaning of each, declared once.

A name has one type and one unit everywhere. Where it means something else in one table than in another, it has a row for
each, with the tables' names in `tables`, separated by blanks; a row without `tables` speaks of all that have no row of their
own. A name declared twice for one table stops the build, and so does a number without a unit.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline import ROOT
from pipeline.base.failures import Failure

PATH = ROOT / "tables" / "schema" / "column.csv"
TYPES = ("string", "integer", "number", "boolean")
_FIELDS = ["name", "tables", "type", "least", "unit", "meaning"]
_EVERYWHERE = ""


class SchemaError(Failure):
    """Columns that contradict each other. The message lists each as 'file:line: what is wrong'."""


@dataclass(frozen=True)
class Column:
    """One quantity in a table. `least` bounds numbers from below; every number has a unit, and nothing else has."""

    name: str
    type: str  # one of TYPES
    meaning: str
    unit: str | None = None
    least: float | None = None


class Columns:
    """The declared columns. `columns.of("is_gated", "model")` is what that name means in that table."""

    def __init__(self, rows: Iterable[tuple[int, dict[str, str]]], where: str = PATH.name):
        self._columns: dict[str, dict[str, Column]] = {}
        wrong = []
        for line, row in rows:
            wrong += [f"{where}:{line}: {problem}" for problem in self._add(row)]
        if wrong:
            raise SchemaError("\n".join(wrong))

    def _add(self, row: dict[str, str]) -> Iterable[str]:
        name, kind, least = row["name"], row["type"], row["least"]
        if kind not in TYPES:
            yield f"column {name}: {kind!r} is none of {', '.join(TYPES)}"
        if not row["meaning"]:
            yield f"column {name}: has no meaning"
        if (kind in ("integer", "number")) != bool(row["unit"]):
            yield f"column {name}: {'needs a unit' if not row['unit'] else f'is a {kind} and can have no unit'}"
        column = Column(name, kind, row["meaning"], row["unit"] or None, float(least) if least else None)
        tables = self._columns.setdefault(name, {})
        for other in tables.values():
            if (other.type, other.unit) != (column.type, column.unit):
                yield f"column {name}: is {other.type} in {other.unit} elsewhere"
                break
        for table in row["tables"].split() or [_EVERYWHERE]:
            if table in tables:
                yield f"column {name}: is declared twice{f' for {table}' if table else ''}"
            tables[table] = column

    def of(self, name: str, table: str) -> Column:
        """Raises SchemaError where the name is not declared for that table."""
        tables = self._columns.get(name, {})
        column = tables.get(table) or tables.get(_EVERYWHERE)
        if column is None:
            raise SchemaError(f"{PATH.name}: no column {name} is declared for table {table}")
        return column

    def everywhere(self) -> Iterable[Column]:
        """Every declaration once, whichever tables it speaks of."""
        return (column for tables in self._columns.values() for column in dict.fromkeys(tables.values()))

    def unit_of(self, name: str) -> str | None:
        """The unit of a name, which is one in all tables; None where it has none or is not declared."""
        return next((column.unit for column in self._columns.get(name, {}).values()), None)


def read_columns(path: Path = PATH) -> Columns:
    """Raises SchemaError."""
    return Columns(declared(path, _FIELDS), path.name)


def declared(path: Path, fields: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a declaration in tables/schema, each with its line. Raises SchemaError where its columns are not `fields`."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        if reader.fieldnames != fields:
            raise SchemaError(f"{path.name}:1: the columns are {', '.join(fields)}")
        for row in reader:
            if None in row or None in row.values():
                raise SchemaError(f"{path.name}:{reader.line_num}: the row has not as many cells as the first line")
            yield reader.line_num, row


COLUMNS = read_columns()
