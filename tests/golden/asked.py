"""What the formulas say beside footprints: each question of tests/golden/asked, with its answers as they are now.

    python -m tests.golden.asked            # after a change of a formula: writes the answers anew
    python -m tests.golden.asked speech     # those of one question

As in components.csv the rows are no truth of their own: they hold every number and every branch that a tolerance elsewhere would let slip,
and the diff of a file shows what a change of a formula does. A question is a file of SQL, whose answers are the rows of all that it asks; it names
the models that it is about, and is answered alike whatever other models there are. {footprint} and {ladder} are the columns of these tables,
{weighed} is what fills layer_weight; {models}, {cards}, {pipelines} and the other lists of asked_of.csv are what several questions are about.
Many are asked in one statement, since planning takes most of the time, and without DuckDB's optimizer, but for questions that go through whole
tables and say so.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import duckdb

from pipeline.book.schema import PUBLISHED
from pipeline.press.held import LADDER
from pipeline.press.layers import WEIGHED

FOLDER = Path(__file__).with_name("asked")
LISTS = Path(__file__).with_name("asked_of.csv")
_MODEL = re.compile(r"[\w.-]+/[\w.-]+")
_WORDS = {
    "footprint": ", ".join(PUBLISHED["footprint"].column_names),
    "ladder": ", ".join(LADDER),
    "weighed": WEIGHED.strip(),
}

Answer = list[list[str]]


def questions() -> dict[str, str]:
    lists = _lists()
    return {path.stem: _put(path.read_text(encoding="utf-8"), lists) for path in sorted(FOLDER.glob("*.sql"))}


def _lists() -> dict[str, str]:
    """Each list that several questions are about, as rows of VALUES."""
    found: dict[str, list[str]] = {}
    with LISTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["list"], []).append(f"('{row['id']}')")
    return {name: ", ".join(rows) for name, rows in found.items()}


def _put(text: str, words: Mapping[str, str]) -> str:
    """The text with what its words in braces stand for."""
    for word, stands_for in words.items():
        text = text.replace(f"{{{word}}}", stands_for)
    return text


def named() -> list[str]:
    """All that may be ids of models in the questions."""
    return sorted({word for text in questions().values() for word in _MODEL.findall(text)})


def begin(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes what questions read besides the book: `golden_models`, so that a name is looked up among their own."""
    connection.execute("CREATE OR REPLACE TEMP TABLE golden_models AS SELECT unnest($1) AS model_id", [named()])


def ask(connection: duckdb.DuckDBPyConnection, text: str) -> Answer:
    """Columns and rows, as text. What the question makes is gone afterwards, unless it is asked within a transaction."""
    text = _put(text, _WORDS)
    answer: Answer = []
    connection.execute("PRAGMA disable_optimizer")
    for statement in connection.extract_statements(text):
        result = connection.execute(statement)
        if statement.type == duckdb.StatementType.SELECT:
            columns = [column[0] for column in result.description]
            assert answer[:1] in ([], [columns]), f"answers of other columns: {columns}"
            answer = (answer or [columns]) + [[_cell(value) for value in row] for row in result.fetchall()]
    connection.execute("PRAGMA enable_optimizer")
    return answer


def alone(connection: duckdb.DuckDBPyConnection, text: str) -> Answer:
    """The same, and nothing of it stays in the database."""
    connection.execute("BEGIN")
    try:
        return ask(connection, text)
    finally:
        connection.execute("ROLLBACK")


def read(name: str) -> Answer:
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def write(name: str, answer: Answer) -> None:
    with (FOLDER / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(answer)


def differences(expected: Answer, said: Answer) -> list[str]:
    """Rows that one of them has more often: a join that finds a row twice is felt too."""
    if expected[:1] != said[:1]:
        return [f"columns {expected[:1]} -> {said[:1]}"]
    old, new = (Counter(map(tuple, rows)) for rows in (expected, said))
    return [f"- {','.join(row)}" for row in (old - new).elements()] + [
        f"+ {','.join(row)}" for row in (new - old).elements()
    ]


def _cell(value: object) -> str:
    # the last places of a fraction depend on the machine
    return "" if value is None else f"{value:.9g}" if isinstance(value, float) else str(value)


def main(names: list[str]) -> int:
    from tests.golden.components import flat_book_of

    with flat_book_of() as connection:
        begin(connection)
        for name, text in questions().items():
            if names and name not in names:
                continue

            answer = alone(connection, text)
            if (FOLDER / f"{name}.csv").exists():
                print("\n".join(f"{name}: {line}" for line in differences(read(name), answer)) or f"{name}: as it was")
            write(name, answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
