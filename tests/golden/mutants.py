"""Which numbers and operators inside the formulas nobody holds: each in tables/sql is changed in turn, and the golden figures asked again.

    python -m tests.golden.mutants            # every file; prints the survivors, ends with 1 where there are any
    python -m tests.golden.mutants overhead activations/inference   # files whose paths in tables/sql begin so
    python -m tests.golden.mutants 40 state   # so many places of them, drawn at random

A whole number becomes the next one, a comparison loses or gains its end, sums become differences, `least` becomes `greatest`, AND becomes OR.
A mutant is killed by any figure of components.csv that changes; one that does not run as SQL counts neither way. Survivors are what no scenario
of that file feels; tests/golden/equal_mutants.csv lists those that cannot be felt, each with its reason. Takes seconds for each place.
"""

from __future__ import annotations

import csv
import random
import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import duckdb

from pipeline.book.scenario import written_out
from pipeline.press import formulas
from tests.golden import components

EQUAL = Path(__file__).with_name("equal_mutants.csv")
_TOKEN = re.compile(
    r"--[^\n]*|'(?:[^']|'')*'|\"[^\"]*\"|[A-Za-z_][A-Za-z0-9_]*|\d+(?:\.\d+)?|:=|::|->|=>|\|\||<=|>=|<>|//|.", re.DOTALL
)
_OTHERS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "<>", "<>": "=", "+": "-", "-": "+", "*": "/", "/": "*", "//": "*",
    "AND": "OR", "OR": "AND", "least": "greatest", "greatest": "least", "min": "max", "max": "min", "ceil": "floor", "floor": "ceil",
}  # fmt: skip
# behind these a star means all columns, and a minus the sign of a number
_NO_VALUE = {"SELECT", "DISTINCT", "(", ",", ".", ":=", "->", "[", "BY", "THEN", "ELSE", "WHEN", "RETURN", *_OTHERS}
_TABLES = re.compile(r"CREATE OR REPLACE (TEMP )?TABLE")
# what is asked beside the components: the other readers of the same numbers
_QUERIES = (
    "SELECT gpu_id, capacity_bytes FROM gpu ORDER BY ALL",
    "SELECT model_id, dtype_id, COLUMNS('_bytes$') FROM weight ORDER BY ALL",
    "FROM pictures('asked_pictures') ORDER BY ALL",
    "FROM layer_weights_in('asked_layers') ORDER BY ALL",
)
# pictures of every form, and formats whose layers may lie beside the CPU
_ASKED = """
    CREATE OR REPLACE TEMP TABLE asked_pictures AS
    SELECT model_id, side.*
    FROM (SELECT DISTINCT model_id FROM tower WHERE component = 'vision'),
        (VALUES (1920, 1080), (333, 777), (4000, 3000), (64, 900)) AS side(image_width, image_height);
    CREATE OR REPLACE TEMP TABLE asked_layers AS
    SELECT model_id, dtype_id FROM weight WHERE dtype_id IN ('gguf-q4_k_m', 'gguf-q2_k', 'gguf-q8_0')
"""


class Place(NamedTuple):
    """What is changed in a file of SQL: where it begins, what stands there, in which line, and what it becomes."""

    start: int
    text: str
    line: int
    other: str


def places(text: str) -> list[Place]:
    """Numbers and operators outside comments, strings and names."""
    found, before, is_between = [], "", False
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word.isspace() or word.startswith("--"):
            continue
        other = _other(word, before, is_between)
        is_between = word == "BETWEEN" or (is_between and word != "AND")  # its AND is none
        if other is not None:
            found.append(Place(token.start(), word, text.count("\n", 0, token.start()) + 1, other))
        before = word
    return found


def _other(word: str, before: str, is_between: bool) -> str | None:
    if word[0].isdigit():  # a fraction becomes a tenth more
        return str(round(float(word) * 1.1, 6)) if "." in word else str(int(word) + 1)
    if (word in "*-+" and before in _NO_VALUE) or (word == "AND" and is_between):
        return None
    return _OTHERS.get(word)


def mutated(text: str, place: Place) -> str:
    return text[: place.start] + place.other + text[place.start + len(place.text) :]


class Figures:
    """The book over the models of components.csv, and what it says now."""

    def __init__(self) -> None:
        self.rows = components.read()
        self.snapshot = components.small_snapshot(self.rows)
        self.connection = components.book_of(self.snapshot)
        self.truth = self._asked(self.connection)

    def _asked(self, connection: duckdb.DuckDBPyConnection) -> list:
        connection.execute(_ASKED)
        return [components.ask(connection, self.rows), *(connection.execute(query).fetchall() for query in _QUERIES)]

    def survives(self, path: Path, text: str) -> bool | None:
        """Whether all figures stay where that file says this text; None where it does not run."""
        if _TABLES.search(text):
            return self._survives_anew(path, text)
        try:
            self.connection.execute(written_out(text))
            return self._asked(self.connection) == self.truth
        except duckdb.Error:
            return None
        finally:
            self.connection.execute(written_out(path.read_text(encoding="utf-8")))

    def _survives_anew(self, path: Path, text: str) -> bool | None:
        """Tables are made once: the whole book is made again."""
        try:
            with components.book_of(self.snapshot, {path: text}) as connection:
                return self._asked(connection) == self.truth
        except (duckdb.Error, formulas.FormulaError):
            return None


def equal() -> dict[tuple[str, str, str], str]:
    """(file, its line's text, number) → why no figure can feel it."""
    with EQUAL.open(encoding="utf-8", newline="") as file:
        return {(row["file"], row["line_text"], row["number"]): row["reason"] for row in csv.DictReader(file)}


def asked(prefixes: list[str]) -> list[tuple[Path, str, Place]]:
    """The places of these files but those that no figure can feel, each with its line."""
    known, found = equal(), []
    for path in formulas.sql_files():
        name = path.relative_to(formulas.SQL).as_posix()
        if prefixes and not name.startswith(tuple(prefixes)):
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for place in places(text):
            line = lines[place.line - 1].strip()
            if (name, line, place.text) not in known:
                found.append((path, line, place))
    return found


def main(arguments: list[str]) -> int:
    sample = int(arguments[0]) if arguments and arguments[0].isdigit() else None
    chosen = asked(arguments[sample is not None :])
    of = len(chosen)
    if sample is not None:
        chosen = random.Random(str(arguments)).sample(chosen, min(sample, of))
    figures, told = Figures(), Counter()
    for path, line, place in chosen:
        survives = figures.survives(path, mutated(path.read_text(encoding="utf-8"), place))
        told[survives] += 1
        if survives:
            name = path.relative_to(formulas.SQL)
            print(f"{name}:{place.line}: {place.text} as {place.other} in: {line}", flush=True)
    share = 100 * told[False] / max(told[False] + told[True], 1)
    print(
        f"{len(chosen)} of {of} places: {told[None]} do not run, {told[True]} are held by no figure, {share:.0f} % of the others are killed"
    )
    return 1 if told[True] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
