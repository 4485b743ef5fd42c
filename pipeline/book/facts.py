"""Reading the book: every `tables/facts/*.csv` and `tables/measured.csv`, held strictly to `pipeline.book.schema`.

A fact file with an unknown or missing column, a wrong type, a value out of range, a duplicate key or a source that
`source.csv` does not know stops the build. The message names file, line and column, and all errors come together:

    tables/facts/gpu.csv:17: column memory_gib_nominal: 'abc' is not a number

Frames come typed: Int64, Float64, String, Boolean, Date. Never an unsigned type, since polars turns Int64 with UInt64
into Int128, which Parquet readers refuse.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import ROOT
from pipeline.book.schema import ENUMS, FACTS, PUBLISHED, Column, Table

TABLES = ROOT / "tables"
POLARS_TYPES = {
    "string": pl.String,
    "integer": pl.Int64,
    "number": pl.Float64,
    "boolean": pl.Boolean,
}
SOURCE_COLUMNS = ("source", "memory_reported_source")  # hold ids of source.csv, several joined by ';'
_LARGEST_INTEGER = 2**63 - 1
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SHOWN_ERRORS = 50
# Ids are words of addresses, file names and SQL. Constants are columns besides, which formulas name as they stand.
_ID = re.compile(r"[a-z0-9][a-z0-9._-]*"), "is no id (small letters, digits, '.', '_', '-')"
_SQL_NAME = re.compile(r"[a-z][a-z0-9_]*"), "is no name (small letters, digits, '_', a letter first)"
_OF_OTHERS = ("model_id", "of_model_id")  # ids that the Hub gives


class FactError(ValueError):
    """Facts that cannot be used. `errors` lists each as 'file:line: column name: what is wrong'."""

    def __init__(self, errors: Iterable[str]):
        self.errors = list(errors)
        shown = self.errors[:_SHOWN_ERRORS]
        if len(self.errors) > len(shown):
            shown.append(f"... and {len(self.errors) - len(shown)} more")
        super().__init__("\n".join(shown))


def read_facts(folder: Path = TABLES / "facts") -> dict[str, pl.DataFrame]:
    """Every fact table of the folder by name, each a typed frame in the order of its file.

    Raises FactError with the errors of all files. References are checked too: a source id must be in source.csv, and a
    column named like the key of another fact table (engine_id, gguf_type ...) must hold one of its keys.
    """
    errors: list[str] = []
    frames: dict[str, pl.DataFrame] = {}
    lines: dict[str, list[int]] = {}
    files = sorted(folder.glob("*.csv"))
    missing = sorted(FACTS.keys() - {path.stem for path in files})
    errors += [f"{_shown_path(folder / name)}.csv: file is missing" for name in missing]
    for path in files:
        table = FACTS.get(path.stem)
        if table is None:
            errors.append(
                f"{_shown_path(path)}: no fact table is called '{path.stem}' (tables/schema/table.csv lists them)"
            )
            continue
        try:
            frames[table.name], lines[table.name] = _read(path, table)
        except FactError as error:
            errors += error.errors
    for name, frame in frames.items():
        errors += _unresolved(folder / f"{name}.csv", FACTS[name], frame, lines[name], frames)
    if errors:
        raise FactError(errors)
    return frames


def read_measured(path: Path = TABLES / "measured.csv") -> pl.DataFrame:
    """Published measurements; `source` is the citation itself. Raises FactError."""
    return _read(path, PUBLISHED["measured"])[0]


def read_table(path: Path, table: Table) -> pl.DataFrame:
    """One CSV file held to one table of the schema; references to other tables are not looked at. Raises FactError."""
    return _read(path, table)[0]


def _read(path: Path, table: Table) -> tuple[pl.DataFrame, list[int]]:
    """The typed frame, and the line of the file that each row starts at."""
    where = _shown_path(path)
    errors: list[str] = []
    rows: list[list[Any]] = []
    lines: list[int] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            names = next(reader, [])
            errors += [f"{where}:1: {problem}" for problem in _header_problems(names, table)]
            if errors:
                raise FactError(errors)
            columns = [next(c for c in table.columns if c.name == name) for name in names]
            line = reader.line_num + 1
            for cells in reader:
                problems, row = _row(cells, columns, table)
                errors += [f"{where}:{line}: {problem}" for problem in problems]
                rows.append(row)
                lines.append(line)
                line = reader.line_num + 1
    except FileNotFoundError:
        raise FactError([f"{where}: file is missing"]) from None
    except UnicodeDecodeError as error:
        raise FactError([*errors, f"{where}: not UTF-8 text ({error.reason} at byte {error.start})"]) from None
    except csv.Error as error:
        raise FactError([*errors, f"{where}:{reader.line_num}: not CSV: {error}"]) from None
    key = [names.index(name) for name in table.key]
    first: dict[tuple, int] = {}
    for row, line in zip(rows, lines, strict=True):
        values = tuple(row[i] for i in key) if row else ()
        if values and first.setdefault(values, line) != line:
            shown = ", ".join(f"{name} {value!r}" for name, value in zip(table.key, values, strict=True))
            errors.append(f"{where}:{line}: duplicate key: {shown} is already at line {first[values]}")
    if errors:
        raise FactError(errors)
    schema = {column.name: POLARS_TYPES[column.type] for column in columns}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.select(table.column_names), lines


def _header_problems(names: list[str], table: Table) -> Iterable[str]:
    if not names:
        yield "file is empty; the first line must name the columns"
        return
    known = set(table.column_names)
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"column {name}: named twice"
    for name in names:
        if name not in known:
            yield f"column {name}: unknown column of table '{table.name}'"
    for name in table.column_names:
        if name not in names:
            yield f"column {name}: missing column of table '{table.name}'"


def _row(cells: list[str], columns: list[Column], table: Table) -> tuple[list[str], list[Any]]:
    """What is wrong with a row, and its values (empty where they cannot be told)."""
    if len(cells) != len(columns):
        return [f"{len(cells)} fields where the header names {len(columns)}"], []
    problems, row = [], []
    for cell, column in zip(cells, columns, strict=True):
        value, problem = None, None
        if cell != "":
            value, problem = _value(cell, column)
            problem = problem or _id_problem(cell, column, table)
        elif column.name not in table.nullable:
            problem = "no source is given" if column.name == "source" else "is empty, but must have a value"
        if problem:
            problems.append(f"column {column.name}: {problem}")
        row.append(value)
    return problems, row


def _id_problem(cell: str, column: Column, table: Table) -> str | None:
    """What is wrong with an id of the book's own."""
    if table.name not in FACTS or not column.name.endswith("_id") or column.name in _OF_OTHERS:
        return None
    form, complaint = _SQL_NAME if column.name == "constant_id" else _ID
    return None if form.fullmatch(cell) else f"{cell[:60]!r} {complaint}"


def _integer(cell: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", cell) or abs(int(cell)) > _LARGEST_INTEGER:
        raise ValueError
    return int(cell)


def _number(cell: str) -> float:
    if "_" in cell or not math.isfinite(value := float(cell)):
        raise ValueError
    return value


def _text(cell: str) -> str:
    if cell != cell.strip() or _CONTROL.search(cell):
        raise ValueError
    return cell


_PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "integer": (_integer, "is not a whole number of 64 bits"),
    "number": (_number, "is not a number"),
    "boolean": ({"true": True, "false": False}.__getitem__, "is neither true nor false"),
    "string": (_text, "has blanks at an end, a line break or a control character"),
}


def _value(cell: str, column: Column) -> tuple[Any, str | None]:
    """The typed value of a cell that is not empty, or what is wrong with it."""
    shown = repr(cell if len(cell) <= 60 else cell[:57] + "...")
    parse, complaint = _PARSERS[column.type]
    try:
        value = parse(cell)
    except (ValueError, KeyError):
        return None, f"{shown} {complaint}"
    if column.least is not None and value < column.least:
        return None, f"{shown} is less than {column.least:g}"
    allowed = ENUMS.get(column.name)
    if allowed and value not in allowed:
        return None, f"{shown} is none of {', '.join(allowed)}"
    return value, None


def _unresolved(
    path: Path, table: Table, frame: pl.DataFrame, lines: list[int], frames: Mapping[str, pl.DataFrame]
) -> list[str]:
    """References of a table that lead nowhere."""
    where = _shown_path(path)
    keys = {t.key[0]: t.name for t in FACTS.values() if len(t.key) == 1 and t.name in frames and t.name != table.name}
    errors = []
    for column in table.column_names:
        to = "source" if column in SOURCE_COLUMNS and "source" in frames else keys.get(column)
        if to is None:
            continue
        known = set(frames[to][FACTS[to].key[0]])
        for line, value in zip(lines, frame[column], strict=True):
            ids = source_ids(value) if to == "source" else [value]
            errors += [
                f"{where}:{line}: column {column}: {one!r} is not in {to}.csv"
                for one in ids
                if value is not None and one not in known
            ]
    return errors


def source_ids(value: str | None) -> list[str]:
    """The ids of a `source` cell: 'a; b' -> ['a', 'b']. An empty part stays, so that a stray ';' is an error."""
    return [] if value is None else [part.strip() for part in value.split(";")]


def _shown_path(path: Path) -> str:
    """The path as people write it: from the top of the checkout where the file is inside it."""
    path = path.absolute()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()
