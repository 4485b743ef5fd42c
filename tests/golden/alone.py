"""What each formula that makes one value says by itself, of made-up inputs: tests/golden/alone.csv, a digest for each macro.

    python -m tests.golden.alone                 # after a change of a formula: names the macros that changed and writes the file anew
    python -m tests.golden.alone --of logit_width    # what is asked of that macro, and what it says: to compare with another revision

components.csv and drawn.csv ask whole footprints, where much of what a formula says is lost: a smaller moment hides behind the peak, a reason behind
the one before it. Here every macro of tables/sql that makes one value is called alone. What it reads of its arguments is read off the formulas; a
field has the type of the column of that name, and is drawn by its name from words that formulas compare it with and from small numbers, which
often meet (alone_reads.py reads, alone_types.csv has the types that names do not tell). The rows are no truth of their own: they hold every branch as it is.
"""

from __future__ import annotations

import csv
import hashlib
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb

from pipeline.book.schema import FACTS, PUBLISHED
from pipeline.press import formulas
from tests.golden.alone_reads import CALL, STRING, TYPES, Macro, Node, arguments, macros

PATH = Path(__file__).with_name("alone.csv")
ROWS = 960
# of these rows the first take what the macro itself compares with, the last may have nothing in a field
_HOT, _NULL = 640, 840
_GROUP = 12  # rows of a sum
_PRIME = 2_147_483_647
_COMPARED = re.compile(r"(?:\w+\.)*(\w+)\)? (?:=|!=|<>|NOT IN|IN|IS (?:NOT )?DISTINCT FROM) (\(*'[^']*'(?:, '[^']*')*)")
_LIMITS = re.compile(r"(?:\w+\.)*(\w+)\)? (?:=|!=|<>|<=|>=|<|>|%) (\d+(?:e\d+)?)\b")
_SUM = re.compile(r"(?<!\w)(?:sum|max|min|count|bool_or|bool_and|any_value|string_agg)\(")
_NONE = re.compile(r"(\w+) IS (?:NOT )?NULL")
_FIELD = re.compile(r'(?:"([^"]+)"|(\w+)) ')
# what names tell of a field that no table has
_BOOLEAN = re.compile(
    r"^(is|are|has|keeps|takes|runs|trains|steps|with|sees|sleeps|experts_off|known|starts_)(_|$)|^on_gpu$"
)
_TEXT = re.compile(
    r"(_reason|_id|_asked|_form|_name|_for|_rule|_class|_note|^kernel|^name|^reason|^text|^version|^verdict|^words?)$"
)
_WHOLE = re.compile(r"(_count|_tokens|_layers|_parallel|_bytes_each|_shards)$")
_VERSIONS = ("1", "0.9", "0.9.2", "1.10", "1.2.3", "2.0", "v3.4.5")
_CARDS = ("NVIDIA GeForce RTX 4090 24GB", "rtx-3060 12 GB", "A100 SXM 80G", "M4 Max 128GB", "Radeon (TM) RX 7900")
_SAID = (
    {"asked_flag.value": ("True", "false", "1", "0", "no")}
    | dict.fromkeys(("version", "program_version", "min_version", "max_version", "is_from.least"), _VERSIONS)
    | {
        "gap_words.gap_reasons": ("vllm load why", "vllm memory another", "llama.cpp load how"),
        "gap_words.engine_id": ("vllm", "llama.cpp"),
        "gap_words.kind": (" load ", " memory "),
        "said_by_program.settings": ("vllm: --one; ollama: TWO=1", "ollama: THREE=1", "four"),
        "said_by_program.program": ("vllm", "ollama"),
    }
    | dict.fromkeys(("name", "text", "printed_name", "asked"), _CARDS)
)
# macros that look their arguments up in tables, or end with an error for what is not there: tests/golden/asked asks them
PASSED_OVER = frozenset(
    ["name_reason", "scenario_reason", "known_dtype", "known_engine", "known_gpu", "known_phase", "known_model", "gpu_named", "second_file_bytes", "published",
     "nearest_of", "nearest_models", "nearest_gpus", "nearest_ids", "with_nearest", "with_nearest_once", "with_nearest_program", "unknown_gpu_reason", "together_reason", "chosen_of", "summed_constants",
     "model_by_words", "models_near", "program_card_reason"]
)  # fmt: skip
_NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 60, 64, 100, 128, 255, 256, 257, 500)
_FRACTIONS = (0.0, 0.05, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 8.0, 40.0, 100.0)


class Types:
    """Of each field the type of the column of that name, and what formulas compare it with."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, known: Mapping[str, Macro]) -> None:
        said: dict[str, Counter[str]] = defaultdict(Counter)
        columns = """
            SELECT DISTINCT table_name, column_name, data_type FROM duckdb_columns()
            WHERE list_contains($1, table_name) ORDER BY ALL"""
        self._connection, self._tables = connection, defaultdict(set)
        for table, name, kind in connection.execute(columns, [[*FACTS, *PUBLISHED]]).fetchall():
            if kind == "VARCHAR" and table in FACTS and table not in formulas.AS_READ:
                self._tables[name].add(table)
            for field, plain in _plain(name, kind):
                said[field][plain] += 1
        self._types = {name: max(sorted(kinds), key=kinds.get) for name, kinds in said.items()}
        self._words: dict[str, set[str]] = defaultdict(set)
        self._limits: dict[str, set[int]] = defaultdict(set)
        for macro in known.values():
            words, limits = compared(macro.text)
            for name, values in words.items():
                self._words[name] |= values
            for name, numbers in limits.items():
                self._limits[name] |= numbers

    def type_of(self, macro: str, where: str) -> str:
        """Of a field: as it is said of the macro, of that argument, or of its name."""
        name = where.rpartition(".")[2]
        for said in (f"{macro}.{where}", ".".join(where.split(".")[-2:]), name):
            if said in TYPES:
                return TYPES[said]
        if name in self._types:
            return self._types[name]
        if name in self._words:
            return "VARCHAR"
        return (
            "BOOLEAN"
            if _BOOLEAN.search(name)
            else "VARCHAR"
            if _TEXT.search(name)
            else "BIGINT"
            if _WHOLE.search(name)
            else "DOUBLE"
        )

    def _held(self, name: str) -> tuple[str, ...]:
        """Words of the facts that have a column of that name."""
        held: set[str] = set()
        for table in self._tables.get(name.removesuffix("_asked"), ()):
            asked = f'SELECT DISTINCT "{name.removesuffix("_asked")}" AS word FROM {table} WHERE word <> $1 ORDER BY word LIMIT 6'
            held |= {str(word) for (word,) in self._connection.execute(asked, [""]).fetchall()}
        return tuple(sorted(held)[:8])

    def pool(self, name: str, kind: str, own: Mapping[str, set]) -> tuple[list[str], list[str]]:
        """Values that a field may have, as SQL: those that the macro itself compares it with, and all."""
        said = _SAID.get(name, ())
        name = name.rpartition(".")[2]
        if kind == "VARCHAR":
            own = {key: {one for one in values if isinstance(one, str)} for key, values in own.items()}
            hot = sorted(own.get(name, ()))
            said = said or _SAID.get(name) or (() if name in self._words else self._held(name))
            every = [*sorted(self._words.get(name, ())), *said, "other"]
            return [_quoted(word) for word in [*(hot or every) * 3, "other"]], [_quoted(word) for word in every]
        own = {key: {one for one in values if isinstance(one, int)} for key, values in own.items()}
        held = sorted(own.get(name, ()))
        near = [*held * 4, *sorted({number + step for number in held for step in (-1, 1) if number + step >= 0})]
        numbers = sorted({*_NUMBERS, *near, *(number for number in self._limits.get(name, ()) if number <= 4096)})
        if kind in ("DOUBLE", "FLOAT") or kind.startswith("DECIMAL"):
            hot, every = [*near * 2, *_FRACTIONS[2:8]], [*_FRACTIONS, *near]
            return [f"{float(one)}::DOUBLE" for one in hot], [f"{float(one)}::DOUBLE" for one in every]
        return [str(one) for one in [*near * 2, *_NUMBERS[:8]]], [str(one) for one in numbers]


def _plain(name: str, kind: str) -> Iterator[tuple[str, str]]:
    """The field and those within it, with types that are neither lists nor structs."""
    inner = kind
    while inner.endswith("[]"):
        inner = inner[:-2]
    if not inner.startswith("STRUCT("):
        yield name, inner if inner == kind else f"{inner}[]"
        return
    for part in arguments(inner, len("STRUCT(")):
        match = _FIELD.match(part)
        yield from _plain(match[1] or match[2], part[match.end() :])


def compared(text: str) -> tuple[dict[str, set[str]], dict[str, set[int]]]:
    """By field the words and the numbers that a text compares it with."""
    words: dict[str, set[str]] = defaultdict(set)
    limits: dict[str, set[int]] = defaultdict(set)
    for name, said in _COMPARED.findall(text):
        words[name] |= {word[1:-1] for word in STRING.findall(said)}
    for name, number in _LIMITS.findall(text):
        limits[name].add(int(float(number)))
    return words, limits


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


class Alone:
    """Each macro with the SQL that asks it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.macros = macros(connection)
        self.types = Types(connection, self.macros)
        self.names = [name for name in self.macros if name not in PASSED_OVER]

    def query(self, name: str) -> str:
        macro = self.macros[name]
        whole = self._whole(macro)
        words, limits = compared(whole)
        own = {name: words.get(name, set()) | limits.get(name, set()) for name in words.keys() | limits.keys()}
        own |= {name: own.get(name, set()) | {None} for name in _NONE.findall(whole)}
        made = ", ".join(f'{self._value(name, one, macro.reads[one], own, one)} AS "{one}"' for one in macro.parameters)
        given = ", ".join(f'"{one}"' for one in macro.parameters)  # as it names them itself: it may ask tables
        rows = f"SELECT i{', ' * bool(made)}{made} FROM range({ROWS}) AS rows(i)"
        if "(SELECT" in whole:
            return f"SELECT {name}({given}) FROM ({rows}) ORDER BY i"
        if _SUM.search(whole):
            return f"SELECT {name}({given}) FROM ({rows}) GROUP BY i // {_GROUP} ORDER BY i // {_GROUP}"
        return f"SELECT TRY({name}({given})) FROM ({rows}) ORDER BY i"  # what divides by nothing says nothing

    def _whole(self, macro: Macro) -> str:
        """With what it calls."""
        called = [one for one in CALL.findall(STRING.sub("''", macro.text)) if one in self.macros and one != macro.name]
        return " ".join([macro.text, *(self._whole(self.macros[one]) for one in dict.fromkeys(called))])

    def _value(self, macro: str, name: str, node: Node, own: Mapping[str, set], where: str, kind: str = "") -> str:
        kind = kind or self.types.type_of(macro, re.sub(r"\[\d\]", "", where))
        none = _is_none(name, own, where)
        if node.element is not None or (kind.endswith("[]") and not node.fields):
            of = kind[:-2] if kind.endswith("[]") else ""
            each = [
                self._value(macro, name, node.element or Node(), own, f"{where}[{place}]", of) for place in range(3)
            ]
            made = f"[{', '.join(each)}][:{_drawn(where, 4)}]"
            return f"CASE WHEN {none} THEN NULL ELSE {made} END"
        if node.fields:
            inner = ", ".join(
                f'"{field}": {self._value(macro, field, one, own, f"{where}.{field}")}'
                for field, one in node.fields.items()
            )
            # (a group of fields is lacking where formulas ask for that: of an engine without a graph all moments are others)
            return f"CASE WHEN {none} THEN NULL ELSE {{{inner}}} END" if None in own.get(name, ()) else f"{{{inner}}}"
        if kind == "BOOLEAN":
            return f"CASE WHEN {none} THEN NULL ELSE {_drawn(where, 10)} < [2, 5, 8, 5][1 + i % 4] END"
        hot, every = self.types.pool(f"{macro}.{name}", kind, own)
        return (
            f"CASE WHEN {none} THEN NULL WHEN i < {_HOT} THEN [{', '.join(hot)}][1 + {_drawn(where, len(hot))}] "
            f"ELSE [{', '.join(every)}][1 + {_drawn(where, len(every))}] END"
        )


def _is_none(name: str, own: Mapping[str, set], where: str) -> str:
    """Of fields that formulas ask for it a third in every row, of others a fifth in the last."""
    return f"{_drawn(where + ' none', 15)} < " + ("5" if None in own.get(name, ()) else f"iif(i < {_NULL}, 0, 3)")


def _drawn(where: str, count: int) -> str:
    """A number below that, of each row, by the name of a field."""
    digest = hashlib.sha256(where.encode()).digest()
    step, start = (int.from_bytes(digest[place : place + 4], "big") % _PRIME for place in (0, 4))
    return f"((i * {step} + {start}) % {_PRIME} // 64 % {count})"


def said(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """Eight digits of all that a macro says."""
    rows = connection.execute(query).fetchall()
    return hashlib.sha256("\n".join(_cell(value) for (value,) in rows).encode()).hexdigest()[:8]


def _cell(value: object) -> str:
    # the last places of a fraction depend on the machine
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, dict):
        return repr([(name, _cell(one)) for name, one in value.items()])
    return repr([_cell(one) for one in value]) if isinstance(value, list) else str(value)


def digests(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """By macro. Asked without the optimizer: planning takes most of the time."""
    alone = Alone(connection)
    connection.execute("PRAGMA disable_optimizer")
    try:
        return {name: said(connection, alone.query(name)) for name in alone.names}
    finally:
        connection.execute("PRAGMA enable_optimizer")


def read() -> dict[str, str]:
    with PATH.open(encoding="utf-8", newline="") as file:
        return {row["macro"]: row["digest"] for row in csv.DictReader(file)}


def main(arguments: list[str]) -> int:
    from tests.golden.components import flat_book_of

    with flat_book_of() as connection:
        if arguments[:1] == ["--of"]:
            query = Alone(connection).query(arguments[1])
            print(query, *(_cell(value) for (value,) in connection.execute(query).fetchall()), sep="\n")
            return 0
        now = digests(connection)
    if PATH.exists():
        before = read()
        changed = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
        print("\n".join(changed) or "nothing has changed")
    with PATH.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["macro", "digest"])
        writer.writerows(sorted(now.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
