"""Which constants inside the formulas nobody holds: each number in tables/sql is changed in turn, and the golden figures asked again.

    python -m tests.golden.mutants            # every file; prints the survivors, ends with 1 where there are any
    python -m tests.golden.mutants overhead activations/inference   # files whose paths in tables/sql begin so

A mutant is killed by any figure of components.csv that changes, or by SQL that fails. Survivors are numbers that no scenario of
that file feels; tests/golden/equal_mutants.csv lists those that cannot be felt, each with its reason. Takes seconds for each number.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb

from pipeline.press import formulas
from tests.golden import components

EQUAL = Path(__file__).with_name("equal_mutants.csv")
_TOKEN = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\"[^\"]*\"|[A-Za-z_][A-Za-z0-9_]*|\d+(?:\.\d+)?|.", re.DOTALL)
_TABLES = re.compile(r"CREATE OR REPLACE (TEMP )?TABLE")
# what is asked beside the components: the other readers of the same numbers
_QUERIES = (
    "SELECT gpu_id, capacity_bytes FROM gpu ORDER BY ALL",
    "SELECT model_id, dtype_id, COLUMNS('_bytes$') FROM weight ORDER BY ALL",
)


class Literal(NamedTuple):
    """A number in a file of SQL: where it begins, what it is, in which line."""

    start: int
    text: str
    line: int


def literals(text: str) -> list[Literal]:
    """Numbers outside comments, strings and names."""
    return [
        Literal(found.start(), found[0], text.count("\n", 0, found.start()) + 1)
        for found in _TOKEN.finditer(text)
        if found[0][0].isdigit()
    ]


def mutated(text: str, literal: Literal) -> str:
    """A whole number becomes the next one, a fraction a tenth more."""
    changed = str(round(float(literal.text) * 1.1, 6)) if "." in literal.text else str(int(literal.text) + 1)
    return text[: literal.start] + changed + text[literal.start + len(literal.text) :]


class Figures:
    """The book over the models of components.csv, and what it says now."""

    def __init__(self) -> None:
        self.rows = components.read()
        self.snapshot = components.small_snapshot(self.rows)
        self.connection = components.book_of(self.snapshot)
        self.truth = self._asked(self.connection)

    def _asked(self, connection: duckdb.DuckDBPyConnection) -> list:
        return [components.ask(connection, self.rows), *(connection.execute(query).fetchall() for query in _QUERIES)]

    def survives(self, path: Path, text: str) -> bool:
        """Whether all figures stay where that file says this text."""
        if _TABLES.search(text):
            return self._survives_anew(path, text)
        try:
            self.connection.execute(text)
            return self._asked(self.connection) == self.truth
        except duckdb.Error:
            return False
        finally:
            self.connection.execute(path.read_text(encoding="utf-8"))

    def _survives_anew(self, path: Path, text: str) -> bool:
        """Tables are made once: the whole book is made again."""
        try:
            with components.book_of(self.snapshot, {path: text}) as connection:
                return self._asked(connection) == self.truth
        except (duckdb.Error, formulas.FormulaError):
            return False


def equal() -> dict[tuple[str, str, str], str]:
    """(file, its line's text, number) → why no figure can feel it."""
    with EQUAL.open(encoding="utf-8", newline="") as file:
        return {(row["file"], row["line_text"], row["number"]): row["reason"] for row in csv.DictReader(file)}


def survivors(prefixes: list[str]) -> Iterator[tuple[Path, Literal, str]]:
    figures, known = Figures(), equal()
    for path in formulas.sql_files():
        name = path.relative_to(formulas.SQL).as_posix()
        if prefixes and not name.startswith(tuple(prefixes)):
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for literal in literals(text):
            line = lines[literal.line - 1].strip()
            if (name, line, literal.text) not in known and figures.survives(path, mutated(text, literal)):
                yield path, literal, line


def main(prefixes: list[str]) -> int:
    count = 0
    for path, literal, line in survivors(prefixes):
        count += 1
        print(f"{path.relative_to(formulas.SQL)}:{literal.line}: {literal.text} in: {line}", flush=True)
    print(f"{count} numbers are held by no figure")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
