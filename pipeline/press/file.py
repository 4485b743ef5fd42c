"""almanac.duckdb as people get it: what the data dictionary lists and the macros that people call, and all else in `internal`.

The build works in a file of its own where everything has one place. From that this writes the published one: each table sorted by its
key, `footprint` as a view of the rows that were worked out (two models in three share theirs), every name that a text means with its
schema. DuckDB looks for a name where it is asked and not where the macro lives, so that a text without schemas would not find `internal`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from pipeline.book.packs import Packs, fingerprint
from pipeline.book.schema import DUCKDB_TYPES, MACROS, PUBLISHED, Table
from pipeline.press import held
from pipeline.press.flat import grid

DATABASE = "almanac.duckdb"
# Files that any DuckDB since 1.2 opens; newer storage would shut out everybody else.
STORAGE_VERSION = "v1.2.0"
# A fourth of the usual: who reads over a network reads whole blocks, and most of our tables are small
BLOCK_BYTES = 65_536
_STORED = f"(STORAGE_VERSION '{STORAGE_VERSION}', BLOCK_SIZE {BLOCK_BYTES})"
EMPTY = "empty.duckdb"  # among packs
INTERNAL = "internal"
# facts as they were read: the published tables of the same things hold them; and what the build alone asks
_NOT_KEPT = frozenset(["gpu_fact", "training_run_fact", "serving_run_fact", "outcome_fact", grid.TABLE, grid.GRID])
_HEADER = re.compile(r"CREATE (?:OR REPLACE )?MACRO \w+\s*\(")
_VIEW = re.compile(r"CREATE (?:OR REPLACE )?VIEW \S+ AS ", re.IGNORECASE)
# a text that is put together when it is asked: it begins with the relation
_ASKED = re.compile(r"FROM (?P<name>\w+)")


def write(
    connection: duckdb.DuckDBPyConnection, path: Path, arguments: Mapping[str, str], packs: Packs | None = None
) -> None:
    """Writes the file from what the connection's current database holds. `arguments` are the arguments of macros that may be left out, with
    their defaults: DuckDB tells the names alone. `packs` keep the file without rows, which is the same whatever models there are: DuckDB
    copies macros in a tenth of the time that it takes to read them."""
    source = connection.execute("SELECT current_database()").fetchall()[0][0]
    texts = Texts(connection, source)
    empty = path.with_name(f"{path.name}.empty")
    try:
        _bring_empty(texts, empty, arguments, packs)
        connection.execute(f"ATTACH '{quoted(empty)}' AS empty (READ_ONLY)")
        connection.execute(f"ATTACH '{quoted(path)}' AS published {_STORED}")
        connection.execute("COPY FROM DATABASE empty TO published (SCHEMA); DETACH empty")
    finally:
        empty.unlink(missing_ok=True)
    for name in texts.tables:
        _copy(connection, source, name)
    connection.execute("DETACH published")


def _bring_empty(texts: Texts, path: Path, arguments: Mapping[str, str], packs: Packs | None) -> None:
    """The file without rows: as `packs` hold it, or made."""
    if packs is None:
        _make_empty(texts, path, arguments)
        return
    made_of = json.dumps(
        [fingerprint(), texts.columns, texts.tables, texts.views, texts.macros, dict(arguments)], sort_keys=True
    )
    key = hashlib.sha256(f"{EMPTY} {made_of}".encode()).hexdigest()
    known = packs.places([key])
    content = packs.content(known[key], EMPTY) if known else None
    if content is not None:
        path.write_bytes(content)
        return
    _make_empty(texts, path, arguments)
    packs.put_files([key], {EMPTY: path.read_bytes()})


def _make_empty(texts: Texts, path: Path, arguments: Mapping[str, str]) -> None:
    connection, source = texts.connection, texts.source
    connection.execute(f"ATTACH '{quoted(path)}' AS published {_STORED}")
    # in one transaction: else each statement goes through DuckDB's log by itself
    connection.execute(f"BEGIN; CREATE SCHEMA published.{INTERNAL}")
    for name in texts.tables:
        table, target = PUBLISHED.get(name), f'published.{home(name)}."{name}"'
        columns = f"({declared_columns(table)})" if table else f"AS {_rows_of(source, name)} LIMIT 0"
        connection.execute(f"CREATE TABLE {target} {columns}")
    connection.execute("USE published")
    for statement in texts.statements(arguments):
        connection.execute(statement)
    for statement in _comments(connection):
        connection.execute(statement)
    connection.execute(f"COMMIT; USE {source}; DETACH published")


def home(name: str) -> str:
    """The schema of a relation or a macro in the published file."""
    return "main" if name in PUBLISHED or name in MACROS else INTERNAL


def _copy(connection: duckdb.DuckDBPyConnection, source: str, name: str) -> None:
    connection.execute(f'INSERT INTO published.{home(name)}."{name}" BY NAME {_rows_of(source, name)}')


def _rows_of(source: str, name: str) -> str:
    """The rows of a table in the order of the published file, as a query."""
    if table := PUBLISHED.get(name):
        order = ", ".join(f'"{column}"' for column in table.key)
        return f'FROM {source}.main."{name}" ORDER BY {order}'
    # an order of its own: rows come as threads and packs give them
    return held.published(f"{source}.main", name) or f'FROM {source}.main."{name}" ORDER BY ALL'


def declared_columns(table: Table, names: Collection[str] | None = None) -> str:
    """The columns of a table, or some of them, as CREATE TABLE takes them."""
    return ", ".join(
        f'"{column.name}" {DUCKDB_TYPES[column.type]}{"" if column.name in table.nullable else " NOT NULL"}'
        for column in table.columns
        if names is None or column.name in names
    )


def arguments_in(statement: str) -> str:
    """The arguments of a statement that makes a macro, as they are written there."""
    begins = _HEADER.search(statement)
    if begins is None:
        raise ValueError(f"makes no macro: {statement[:60]}")
    depth, place = 1, begins.end()
    while depth:
        depth += {"(": 1, ")": -1}.get(statement[place], 0)
        place += 1
    return statement[begins.end() : place - 1].strip()


class Texts:
    """The macros and views of a database, whose names are given their schemas."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, source: str) -> None:
        self.connection, self.source = connection, source
        self.tables = [
            name
            for (name,) in connection.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = ? AND NOT temporary ORDER BY 1", [source]
            ).fetchall()
            if name not in _NOT_KEPT
        ]
        self.columns = connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE database_name = ? AND NOT internal ORDER BY table_name, column_index",
            [source],
        ).fetchall()
        self.views = dict(
            connection.execute(
                "SELECT view_name, sql FROM duckdb_views() WHERE database_name = ? AND NOT internal ORDER BY 1",
                [source],
            ).fetchall()
        )
        self.macros = {
            name: (text, kind == "table_macro", ", ".join(parameters))
            for name, text, kind, parameters in connection.execute(
                "SELECT function_name, macro_definition, function_type, parameters FROM duckdb_functions() "
                "WHERE database_name = ? AND NOT internal AND function_type IN ('macro', 'table_macro') ORDER BY 1",
                [source],
            ).fetchall()
        }
        self.apart = {name for name in (*self.tables, *self.views, *self.macros) if home(name) == INTERNAL}

    def statements(self, arguments: Mapping[str, str]) -> Iterator[str]:
        """What makes them, each after those that it names."""
        waiting = {
            **{name: self._view(name, text) for name, text in self.views.items()},
            **{f"{name}(": self._macro(name, arguments.get(name)) for name in self.macros},
        }
        while waiting:
            for key in [
                key
                for key, (_statement, named) in waiting.items()
                if not any(name in waiting for name in named - {key})
            ] or list(waiting):
                yield waiting.pop(key)[0]

    def _view(self, name: str, text: str) -> tuple[str, set[str]]:
        text, named = self._with_schemas(_VIEW.sub("", text, count=1).strip().rstrip(";"))
        return f"CREATE VIEW {home(name)}.{name} AS {text}", named

    def _macro(self, name: str, arguments: str | None) -> tuple[str, set[str]]:
        text, is_relation, names = self.macros[name]
        arguments = names if arguments is None else arguments
        text, named = self._with_schemas(text if is_relation else f"SELECT {text}")
        text = text if is_relation else f"({text.removeprefix('SELECT ')})"
        return f"CREATE MACRO {home(name)}.{name}({arguments}) AS {'TABLE ' if is_relation else ''}{text}", named

    def _with_schemas(self, text: str) -> tuple[str, set[str]]:
        """The text with schemas before names of `internal`, and what of the database it names: a macro with its bracket."""
        told = self.connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()[0][0]
        tree, named = json.loads(told), Named(self)
        if tree["error"]:
            raise ValueError(f"{tree.get('error_message')}: {text[:80]}")
        named.read(tree)
        written = text.encode()
        for place, name in sorted(named.places, reverse=True):
            if not written[place:].startswith(name.encode()):
                raise ValueError(f"{name} is not where the parser has it: {text[:80]}")
            written = written[:place] + f"{INTERNAL}.".encode() + written[place:]
        return written.decode(), named.names


class Named:
    """What a parsed text names: `names` of the database, and the `places` (bytes) where one of `internal` stands."""

    def __init__(self, texts: Texts) -> None:
        self.apart, self.macros = texts.apart, texts.macros
        self.asked = tuple(name for name in texts.macros if name in texts.apart)
        self.names: set[str] = set()
        self.places: set[tuple[int, str]] = set()

    def read(self, tree: Any) -> None:
        waiting: list[tuple[Any, frozenset[str]]] = [(tree, frozenset())]
        while waiting:
            node, hidden = waiting.pop()
            parts = node
            if node.__class__ is dict:
                parts, hidden = self._read(node, hidden)
            waiting += [(part, hidden) for part in parts if part.__class__ in (dict, list)]

    def _read(self, node: dict[str, Any], hidden: frozenset[str]) -> tuple[Collection[Any], frozenset[str]]:
        """The parts that are left to read, and the steps (WITH) that stand before relations of their name."""
        steps = node.get("cte_map")
        if steps and steps["map"]:
            hidden |= {entry["key"] for entry in steps["map"]}
        kind = node.get("type")
        if kind == "BASE_TABLE" and not node["schema_name"] and node["table_name"] not in hidden:
            self._found(node["table_name"], "", node["query_location"])
        elif kind == "TABLE_FUNCTION":
            function = node["function"]
            if function["function_name"] in self.macros:
                self._found(function["function_name"], "(", node["query_location"])
            return function["arguments"], hidden
        elif kind == "FUNCTION" and not node["schema"] and node["function_name"] in self.macros:
            self._found(node["function_name"], "(", node["query_location"])
        elif kind == "VALUE_CONSTANT" and node["literal"]["kind"] == "STRING":
            begins = _ASKED.match(node["literal"]["text"])
            if begins and any(name.startswith(begins["name"]) for name in self.asked):
                # behind the quotation mark
                self.places.add((node["query_location"] + 1 + begins.start("name"), begins["name"]))
        return node.values(), hidden

    def _found(self, name: str, bracket: str, place: int) -> None:
        self.names.add(name + bracket)
        if name in self.apart:
            self.places.add((place, name))


def _comments(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Meanings travel with the file: comments on tables and columns."""
    views = {row[0] for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()}
    for table in PUBLISHED.values():
        kind = "VIEW" if table.name in views else "TABLE"
        yield f"COMMENT ON {kind} {table.name} IS '{quoted(table.meaning)}'"
        for column in () if kind == "VIEW" else table.columns:
            unit = f" ({column.unit})" if column.unit else ""
            yield f"COMMENT ON COLUMN {table.name}.\"{column.name}\" IS '{quoted(column.meaning + unit)}'"


def quoted(text: object) -> str:
    return str(text).replace("'", "''")
