"""Which numbers and operators inside the formulas nobody holds: each in tables/sql is changed in turn, and the golden figures asked again.

    python -m tests.golden.mutants                          # every file; prints the survivors
    python -m tests.golden.mutants overhead plans           # files whose paths in tables/sql begin so
    python -m tests.golden.mutants 40 state                 # so many places of them, drawn at random
    python -m tests.golden.mutants 150 --seed autumn        # another draw, of all files

A whole number becomes the next one, a comparison loses or gains its end, sums become differences, `least` becomes `greatest`, AND becomes OR.
A mutant is killed by any figure of alone.csv, components.csv, drawn.csv or tests/golden/asked that changes; one that does not run as SQL counts neither way.
Survivors are what no figure feels; tests/golden/equal_mutants.csv lists those that cannot be felt, each with its reason. A draw takes as many
of a hundred places from each file as of the next, and ends with 1 where fewer than 95 % of the mutants that run are killed.

A mutant is made within a transaction, and asked what names it: its macros alone, then, with the tables that are made of it, footprints as they are
written, since that takes no time to make, then the questions, the quickest first. (Of a formula of footprints those alone that ask footprints, or name it
without them: what stands on a footprint that stays, stays.) Takes a minute to begin with and 1 to 5 seconds for each place.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import duckdb

from pipeline.press import formulas
from pipeline.press.flat import flatten
from tests.golden import alone, asked, components
from tests.golden import drawn as drawn_scenarios

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
LEAST = 0.95
FOOTPRINTS = "footprints("
# a mutant that takes so many times as long is killed, as it would be by whoever waits for it
_SLOWER = 10
# asked beside the components, before anything is written anew; each has its figures among those of tests/golden/asked or of other tests
_QUERIES = (
    "SELECT gpu_id, capacity_bytes FROM gpu ORDER BY ALL",
    "SELECT model_id, dtype_id, COLUMNS('_bytes$') FROM weight ORDER BY ALL",
    "FROM layer_weights_in('asked_layers') ORDER BY ALL",
)
_WORD = re.compile(r"\w+\(?")
_NO_SQL = (
    duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.NotImplementedException, formulas.FormulaError,
)  # fmt: skip
_ASKS = re.compile(r"\bfootprints(_in)?\(|\bfootprint_of\(")
# formats whose layers may lie beside the CPU
_ASKED = """
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
    if (word in "*-+" and before in _NO_VALUE) or (word == "AND" and is_between) or before == "CREATE":
        return None
    return _OTHERS.get(word)


def mutated(text: str, place: Place) -> str:
    return text[: place.start] + place.other + text[place.start + len(place.text) :]


class Question(NamedTuple):
    """What is asked, by its name, all that its answer is made of, the answer, and how long that took."""

    name: str
    ask: Callable[[duckdb.DuckDBPyConnection], list | str]
    is_flat: bool  # asks footprints as people do, which are written anew from the formulas
    made_of: frozenset[str]
    truth: list | str
    seconds: float


class Figures:
    """The book over the models that golden figures name, and what it says now."""

    def __init__(self, paths: set[Path]) -> None:
        """With the questions that name anything of these files."""
        rows, texts = components.read(), asked.questions()
        named = {row["model_id"] for row in (*rows, *drawn_scenarios.scenarios())} | set(asked.named())
        snapshot = components.small_snapshot([{"model_id": name} for name in named])
        self.connection = duckdb.connect()
        self.statements = components.fill(self.connection, snapshot)
        self.made_of = self._closures()
        flatten(self.connection)
        self.connection.execute("SET memory_limit = '8GB'")
        self.connection.execute(_ASKED)
        asked.begin(self.connection)
        wanted = {name for name, one in self.statements.items() if one.path in paths}
        asks = [
            ("components.csv", lambda c: _unoptimised(c, rows), FOOTPRINTS),
            ("drawn.csv", lambda c: _unoptimised(c, drawn_scenarios.scenarios()), FOOTPRINTS),
        ]
        asks += [(text, lambda c, text=text: c.execute(text).fetchall(), text) for text in _QUERIES]
        asks += [(name, lambda c, text=text: asked.ask(c, text), text) for name, text in texts.items()]
        found = [self._asked(*one) for one in asks if not self._all_of(one[-1]).isdisjoint(wanted)]
        self.questions = sorted(found, key=lambda one: (one.is_flat, one.seconds))
        macros = alone.Alone(self.connection)
        by_themselves = [(name, macros.query(name), self.made_of[f"{name}("]) for name in macros.names]
        self.alone = sorted(
            (
                self._asked(f"alone.csv: {name}", lambda c, query=query: _alone(c, query), name)._replace(
                    made_of=made_of
                )
                for name, query, made_of in by_themselves
                if not made_of.isdisjoint(wanted)
            ),
            key=lambda one: one.seconds,
        )

    def _closures(self) -> dict[str, frozenset[str]]:
        """All that a statement is made of, itself included."""
        needs, found = formulas.needs_of(self.statements), {}
        for name in self.statements:  # each after those that it needs
            found[name] = frozenset({name}.union(*(found[need] for need in needs[name])))
        return found

    def _asked(self, name: str, ask: Callable, text: str) -> Question:
        self.connection.execute("BEGIN")
        began = time.monotonic()
        truth = ask(self.connection)
        seconds = time.monotonic() - began
        self.connection.execute("ROLLBACK")
        made_of = self._all_of(text)
        asks_footprints = any(_ASKS.search(one) for one in (text, *(self.statements[name].text for name in made_of)))
        return Question(name, ask, asks_footprints and text != FOOTPRINTS, made_of, truth, seconds)

    def _all_of(self, text: str) -> frozenset[str]:
        words = {word for word in _WORD.findall(text) if word in self.statements}
        return frozenset().union(*(self.made_of[word] for word in words))

    def killed_by(self, path: Path, text: str) -> str | None:
        """The question whose answer changes where that file says this text; '' where none does, None where it does not run."""
        connection, changed = self.connection, {}
        connection.execute("BEGIN")
        try:
            changed |= formulas.statements_of(connection, path, text)
            changed = {name: one for name, one in changed.items() if one.text != self.statements[name].text}
            for one in changed.values():
                if one.kind == "MACRO":
                    connection.execute(one.text)
            killer = self._first_that_changes([one for one in self.alone if not one.made_of.isdisjoint(changed)], False)
            if killer:
                return killer
            reached = {name for name, made_of in self.made_of.items() if not made_of.isdisjoint(changed)}
            if FOOTPRINTS in reached:
                connection.execute(self.statements[FOOTPRINTS].text)
            for name, one in self.statements.items():
                if name in changed or (name in reached and one.kind != "MACRO"):
                    connection.execute(changed.get(name, one).text)
            return self._first_that_changes(
                [one for one in self.questions if not one.made_of.isdisjoint(changed)], FOOTPRINTS in reached
            )
        except _NO_SQL:
            return None
        except duckdb.Error as error:
            return f"error: {str(error)[:60]}"
        finally:
            connection.execute("ROLLBACK; PRAGMA enable_optimizer")

    def _first_that_changes(self, questions: list[Question], is_stale: bool) -> str:
        for question in questions:
            if question.is_flat and is_stale:
                flatten(self.connection)
                is_stale = False
            alarm = threading.Timer(60 + _SLOWER * question.seconds, self.connection.interrupt)
            alarm.start()
            try:
                if question.ask(self.connection) != question.truth:
                    return question.name
            except KeyError:  # a row that was asked for is not answered at all
                return question.name
            finally:
                alarm.cancel()
        return ""


def _alone(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    connection.execute("PRAGMA disable_optimizer")
    told = alone.said(connection, query)
    connection.execute("PRAGMA enable_optimizer")
    return told


def _unoptimised(connection: duckdb.DuckDBPyConnection, rows: list) -> list:
    """Planning takes most of the time."""
    connection.execute("PRAGMA disable_optimizer")
    said = components.ask(connection, rows)
    connection.execute("PRAGMA enable_optimizer")
    return said


def equal() -> dict[tuple[str, str, str], str]:
    """(file, its line's text, number) → why no figure can feel it."""
    with EQUAL.open(encoding="utf-8", newline="") as file:
        return {(row["file"], row["line_text"], row["number"]): row["reason"] for row in csv.DictReader(file)}


def chosen(prefixes: list[str]) -> list[tuple[Path, str, Place]]:
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


def drawn(found: list, count: int, draw: random.Random) -> list:
    """As many of a hundred from each file as from the next."""
    by_file: dict[Path, list] = {}
    for one in found:
        by_file.setdefault(one[0], []).append(one)
    mixed = [one for those in by_file.values() for one in draw.sample(those, len(those))]
    step = len(mixed) / min(count, len(mixed))
    begin = draw.random() * step
    taken = [mixed[int(begin + place * step)] for place in range(min(count, len(mixed)))]
    return draw.sample(taken, len(taken))  # whoever stops early has a draw of all files


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("said", nargs="*", help="how many places, and what paths in tables/sql begin with")
    parser.add_argument("--seed", default="")
    parser.add_argument("--told", action="store_true", help="of each mutant what kills it")
    given = parser.parse_args(arguments)
    counts = [int(word) for word in given.said if word.isdigit()]
    asked_for = chosen([word for word in given.said if not word.isdigit()])
    of = len(asked_for)
    if not asked_for:
        parser.error("no place of any file of tables/sql whose path begins so")
    if counts:
        asked_for = drawn(asked_for, counts[0], random.Random(given.seed))
    figures, told = Figures({path for path, _line, _place in asked_for}), Counter()
    for path, line, place in asked_for:
        killer = figures.killed_by(path, mutated(path.read_text(encoding="utf-8"), place))
        told["none" if killer == "" else "no SQL" if killer is None else "killed"] += 1
        if killer == "" or given.told:
            name = path.relative_to(formulas.SQL)
            by = f" [{killer or ('no SQL' if killer is None else 'SURVIVES')}]" if given.told else ""
            print(f"{name}:{place.line}: {place.text} as {place.other} in: {line}{by}", flush=True)
    share = told["killed"] / max(told["killed"] + told["none"], 1)
    print(
        f"{len(asked_for)} of {of} places: {told['no SQL']} do not run, {told['none']} are held by no figure, "
        f"{100 * share:.1f} % of the others are killed"
    )
    return 1 if share < LEAST else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
