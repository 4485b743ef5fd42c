"""What users and scripts may rely on, and what a change of it costs in versions.

Stable are the published tables and their columns (names, types, units, keys, what may be null, the values that a column may take, what
it means) and the macros of tables/schema/macro.csv with their arguments, defaults and the columns of their answers. `describe` puts all
of that into one description; `broken` compares two. A thing removed, renamed or given another meaning is a major version of the schema,
a thing added a minor one. tables/schema/promise.json is the description as it was last promised.

A meaning that is said in other words and is the same is a row of tables/schema/reworded.csv.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pipeline.base.failures import Failure
from pipeline.book.facts import TABLES
from pipeline.book.scenario import written_out
from pipeline.book.schema import ENUMS, PUBLISHED, Table

SCHEMA_VERSION = "1.0.0"
PROMISED = TABLES / "schema" / "promise.json"
MACROS = TABLES / "schema" / "macro.csv"
REWORDED = TABLES / "schema" / "reworded.csv"
_SQL = TABLES / "sql"
_HEAD = re.compile(r"^CREATE OR REPLACE MACRO (\w+)\(([^()]*)\)\s+AS\b( TABLE\b)?", re.M)
_FUNCTIONS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('macro', 'table_macro')"
_COMMENT = re.compile(r"--[^\n]*")

# a relation has to be one: this has the columns of a scenario and no row
_NOTHING = {"relation": "'no_scenario'"}

Description = Mapping[str, Any]


class Answers(Protocol):
    """What can be asked for the columns of an answer: a DuckDB connection."""

    def execute(self, query: str) -> Any: ...


@dataclass(frozen=True)
class Change:
    """One difference between two descriptions; `least` is the part of the version that it has to raise: major or minor."""

    least: str
    what: str


@dataclass(frozen=True)
class Macro:
    """A macro that is stable. `arguments` are (name, default as it is written, None where there is none); what answers with one value and
    not with rows is no table."""

    name: str
    meaning: str
    arguments: tuple[tuple[str, str | None], ...]
    is_table: bool = True

    @property
    def signature(self) -> str:
        return ", ".join(name if default is None else f"{name} := {default}" for name, default in self.arguments)

    @property
    def bare_question(self) -> str:
        """What asks it with nothing said, which has the columns of every answer."""
        said = [_NOTHING.get(name, "NULL") for name, default in self.arguments if default is None]
        call = f"{self.name}({', '.join(said)})"
        return f"FROM {call}" if self.is_table else f"SELECT {call} AS answer"


def macros(rows: Path = MACROS, sql: Path = _SQL) -> list[Macro]:
    """The stable macros, with the arguments that tables/sql gives them. Raises Failure for one that is not there."""
    texts = "\n".join(
        _COMMENT.sub("", written_out(file.read_text(encoding="utf-8"))) for file in sorted(sql.rglob("*.sql"))
    )
    found = {name: (tuple(_arguments(text)), bool(rows)) for name, text, rows in _HEAD.findall(texts)}
    listed = _rows(rows)
    if gone := [row["macro"] for row in listed if row["macro"] not in found]:
        raise Failure(f"{rows.name} promises macros that tables/sql does not make: {', '.join(gone)}")
    return [Macro(row["macro"], row["meaning"], *found[row["macro"]]) for row in listed]


def _arguments(text: str) -> Iterator[tuple[str, str | None]]:
    for part in text.split(","):
        name, is_given, default = part.partition(":=")
        yield name.strip(), default.strip() if is_given else None


def describe(answers: Answers | None = None) -> dict[str, Any]:
    """What is promised now. With a database of ours at hand, also the columns of what its macros answer."""
    known = {name for (name,) in answers.execute(_FUNCTIONS).fetchall()} if answers else set()
    return {
        "schema_version": SCHEMA_VERSION,
        "tables": {name: _table(table) for name, table in PUBLISHED.items()},
        "values": {name: list(values) for name, values in ENUMS.items()},
        "macros": {
            macro.name: {
                "arguments": [list(argument) for argument in macro.arguments],
                **({"answers": _answers(answers, macro)} if answers and macro.name in known else {}),
            }
            for macro in macros()
        },
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "key": list(table.key),
        "columns": {
            column.name: {
                "type": column.type,
                "unit": column.unit,
                "may_be_null": column.name in table.nullable,
                "meaning": _short(column.meaning),
            }
            for column in table.columns
        },
    }


def _answers(database: Answers, macro: Macro) -> dict[str, str]:
    rows = database.execute(f"DESCRIBE {macro.bare_question}").fetchall()
    return {name: kind for name, kind, *_ in rows}


def _short(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def reworded(file: Path = REWORDED) -> frozenset[tuple[str, str, str]]:
    """Meanings that were only said otherwise: table, column, and the words as they are now, shortened."""
    return frozenset((row["table"], row["column"], _short(row["meaning"])) for row in _rows(file))


def changes(
    old: Description, new: Description, same_meaning: frozenset[tuple[str, str, str]] = frozenset()
) -> list[Change]:
    """Every difference that somebody who relies on the old description could feel."""
    return [
        *_named("table ", old["tables"], new["tables"]),
        *(
            change
            for name in old["tables"].keys() & new["tables"].keys()
            for change in _of_table(name, old["tables"][name], new["tables"][name], same_meaning)
        ),
        *_values(old["values"], new["values"]),
        *_named("macro ", old["macros"], new["macros"]),
        *(
            change
            for name in old["macros"].keys() & new["macros"].keys()
            for change in _of_macro(name, old["macros"][name], new["macros"][name])
        ),
    ]


def _named(prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    yield from (Change("major", f"{prefix}{name} is gone") for name in sorted(old.keys() - new.keys()))
    yield from (Change("minor", f"{prefix}{name} is new") for name in sorted(new.keys() - old.keys()))


def _of_table(name: str, old: Description, new: Description, same: frozenset[tuple[str, str, str]]) -> Iterator[Change]:
    if old["key"] != new["key"]:
        yield Change("major", f"the key of {name} was {', '.join(old['key'])} and is {', '.join(new['key'])}")
    yield from _named(f"column {name}.", old["columns"], new["columns"])
    for column in sorted(old["columns"].keys() & new["columns"].keys()):
        was, becomes = old["columns"][column], new["columns"][column]
        for field in ("type", "unit"):
            if was[field] != becomes[field]:
                yield Change("major", f"the {field} of {name}.{column} was {was[field]} and is {becomes[field]}")
        if was["may_be_null"] != becomes["may_be_null"]:
            least, how = (
                ("major", "may be null, and was never") if becomes["may_be_null"] else ("minor", "is never null")
            )
            yield Change(least, f"{name}.{column} {how}")
        if was["meaning"] != becomes["meaning"] and (name, column, becomes["meaning"]) not in same:
            yield Change(
                "major", f"{name}.{column} means something else (or is said in other words: tables/schema/reworded.csv)"
            )


def _values(old: Mapping[str, list[str]], new: Mapping[str, list[str]]) -> Iterator[Change]:
    for column in sorted(old.keys() & new.keys()):
        yield from (
            Change("major", f"{column} is never {value} now") for value in old[column] if value not in new[column]
        )
        yield from (
            Change("minor", f"{column} may be {value} now") for value in new[column] if value not in old[column]
        )


def _of_macro(name: str, old: Description, new: Description) -> Iterator[Change]:
    were, are = dict(old["arguments"]), dict(new["arguments"])
    yield from (Change("major", f"argument {argument} of {name} is gone") for argument in were if argument not in are)
    for argument, default in are.items():
        if argument not in were:
            least = "major" if default is None else "minor"
            yield Change(
                least, f"argument {argument} of {name} is new{' and has to be given' if default is None else ''}"
            )
        elif were[argument] != default:
            yield Change(
                "major", f"argument {argument} of {name} is {default} where it was {were[argument]}, if nothing is said"
            )
    bare = [[argument for argument, default in side["arguments"] if default is None] for side in (old, new)]
    if bare[0] != bare[1] and set(bare[0]) == set(bare[1]):
        yield Change("major", f"arguments of {name} have another order: {', '.join(bare[1])}")
    if "answers" in old and "answers" in new:
        yield from _named(f"column of {name}: ", old["answers"], new["answers"])
        for column in sorted(old["answers"].keys() & new["answers"].keys()):
            if old["answers"][column] != new["answers"][column]:
                yield Change(
                    "major", f"{column} of {name} is {new['answers'][column]}, and was {old['answers'][column]}"
                )


def broken(
    old: Description, new: Description, same_meaning: frozenset[tuple[str, str, str]] | None = None
) -> list[str]:
    """The changes that the version of the new description does not say: empty where it keeps the promise."""
    found = changes(old, new, reworded() if same_meaning is None else same_meaning)
    raised = _raised(old["schema_version"], new["schema_version"])
    weight = {"patch": 0, "minor": 1, "major": 2}
    return sorted(f"{c.what}: a {c.least} version" for c in found if weight[c.least] > weight[raised])


def _raised(old: str, new: str) -> str:
    """The first part of a version that is higher: major, minor, or patch where neither is. Raises Failure where it is lower."""
    was, becomes = (tuple(map(int, text.split("."))) for text in (old, new))
    if becomes < was:
        raise Failure(f"the schema's version is {new}, and {old} was released before")
    return "major" if becomes[0] > was[0] else "minor" if becomes[1] > was[1] else "patch"


def promised(file: Path = PROMISED) -> dict[str, Any]:
    """The description as it was last promised."""
    return json.loads(file.read_text(encoding="utf-8"))


def promise(now: Description, file: Path = PROMISED, is_release: bool = False) -> list[str]:
    """Writes the description of now as promised. Returns what breaks the last one, and then writes nothing; before its first
    release (`is_release` makes it one) there is nobody whom a change could break."""
    before = promised(file) if file.exists() else None
    if before and before["is_released"] and (wrong := broken(before, now)):
        return wrong
    is_released = is_release or bool(before and before["is_released"])
    text = json.dumps({"is_released": is_released, **now}, indent=1, ensure_ascii=False)
    # a column in one line: a diff shows it as one
    text = re.sub(r"\{\s*(\"type\"[^{}]*?)\s*\}", lambda found: "{" + re.sub(r"\s*\n\s*", " ", found[1]) + "}", text)
    text = re.sub(r"\[\s*([^\[\]{}]*?)\s*\]", lambda found: "[" + re.sub(r"\s*\n\s*", " ", found[1]) + "]", text)
    file.write_text(text + "\n", encoding="utf-8")
    return []
