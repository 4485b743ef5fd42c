"""Fits the numbers of tensors in tables/facts/tower_training.csv to the counted steps of image_training.csv.

    python -m tests.oracle.fit_tower_training      # prints each, and how far it is off on the rows that were held back

Fitted are the rows that say `fit` in their column `use`: models whose tower has few layers, so that what is kept beside them stands out,
and most with so small a text that the tower makes the peak. The project's own formulas are asked with each number in the place of the one
in the table: what is printed is the least tenth with which no step is short by more than SHORT, one number after the other (FITTED). All other
rows are held back, models as they are published among them. Nothing is written: the table is changed by hand, and a test holds it to these rows.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

import duckdb

from tests.formulas import image_steps

TABLE = Path(__file__).parents[2] / "tables" / "facts" / "tower_training.csv"
SHORT = 0.0002
LINE = (0.0, 256.0, 512.0)  # tensors: none, and two so large that their moment is the largest
# of which rows each is the number: of a large text, under whose logits the tower is kept, or where the tower makes the peak
FITTED = {
    "hooked_tensors": ("hooked", False),
    "step_tensors": ("hooked", True),
    "layer_tensors": ("whole", False),
    "adapted_tensors": ("adapted", False),
    "adapted_step_tensors": ("adapted", True),
}
# what is kept beside layers is part of what the others are counted on
STAGES = (("hooked_tensors", "adapted_tensors"), ("step_tensors", "adapted_step_tensors"), ("layer_tensors",))
Numbers = dict[str, float]  # by row of the table
Row = dict[str, object]


def table() -> dict[str, dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row["model_types"]: row for row in csv.DictReader(file)}


def is_small(row: Mapping[str, str]) -> bool:
    """Whether the tower of a changed model makes the peak."""
    return "vocab_size=1024" in row["changes"]


def of_types(connections: Mapping[bool, duckdb.DuckDBPyConnection]) -> list[Row]:
    """Rows of the models there, each with the row of the table that its model is of."""
    kinds = {kind: name for name in table() for kind in name.split()}
    types = {
        model: kinds.get(kind)
        for connection in connections.values()
        for model, kind in connection.execute("SELECT model_id, model_type FROM shape").fetchall()
    }
    named = [(image_steps.model_of(row), row) for row in image_steps.rows()]
    return [row | {"kinds": types[model]} for model, row in named if model in types]


def felt(steps: list[Row], name: str) -> list[Row]:
    """The rows that a number is fitted to."""
    return [row for row in steps if row["use"] == "fit" and (row["tower"], is_small(row)) == FITTED[name]]


def put(connection: duckdb.DuckDBPyConnection, numbers: Mapping[str, Numbers]) -> None:
    """By name, into the rows of the models, as if the table said so."""
    for name, said in numbers.items():
        for kinds, value in said.items():
            connection.execute(
                f"UPDATE shape SET tower_training = struct_update(tower_training, {name} := $value::DOUBLE)"
                " WHERE list_contains(string_split($kinds, ' '), model_type)",
                {"value": value, "kinds": kinds},
            )


def told(connection: duckdb.DuckDBPyConnection, steps: list[Row]) -> list[float]:
    """Bytes of each."""
    judged = image_steps.judged(connection, steps, as_written=True)
    return [(1 + row["error"]) * int(row["peak_bytes"]) for row in judged]


def fitted(connection: duckdb.DuckDBPyConnection, steps: list[Row]) -> dict[str, Numbers]:
    """What is told is the largest of several moments, and that of a large number grows with it in a line."""
    found: dict[str, Numbers] = {}
    for names in STAGES:
        rows = [(name, row) for name in names for row in felt(steps, name)]
        asked = [row for _, row in rows]
        kinds = {name: {row["kinds"] for of, row in rows if of == name} for name in names}
        bytes_at = {}
        for value in LINE:
            put(connection, {name: dict.fromkeys(of, value) for name, of in kinds.items()})
            bytes_at[value] = told(connection, asked)
        least = {name: dict.fromkeys(of, 0.0) for name, of in kinds.items()}
        for place, (name, row) in enumerate(rows):
            none, some, most = (bytes_at[value][place] for value in LINE)
            each = (most - some) / (LINE[2] - LINE[1])
            needed = int(row["peak_bytes"]) * (1 - SHORT)
            if none < needed:
                value = math.ceil(10 * (LINE[2] - (most - needed) / each) - 1e-6) / 10
                least[name][row["kinds"]] = max(least[name][row["kinds"]], value)
        found |= least
        put(connection, least)
    return found


def main() -> None:
    connections = {True: image_steps.made_up(), False: image_steps.published()}
    steps = of_types(connections)
    found = fitted(connections[True], steps)
    stands = table()
    put(connections[False], found)
    for name, numbers in found.items():
        print(name)
        for kinds, value in sorted(numbers.items()):
            print(
                f"  {kinds}: {value:g}" + f" (the table: {stands[kinds][name]})" * (stands[kinds][name] != f"{value:g}")
            )
    judged = [
        row
        for is_changed, connection in connections.items()
        for row in image_steps.judged(
            connection, [row for row in steps if bool(row["changes"]) == is_changed], as_written=True
        )
    ]
    print("predicted ÷ counted − 1, from the least to the most")
    for use in ("fit", "held-back"):
        for kinds in sorted({str(row["kinds"]) for row in judged}):
            for is_changed in (True, False):
                errors = [
                    (row["error"], row["tower"], row["precision"], row["phase_id"], row["images"])
                    for row in judged
                    if (row["use"], row["kinds"], bool(row["changes"])) == (use, kinds, is_changed)
                ]
                if errors:
                    (least, *low), (most, *high) = min(errors), max(errors)
                    which = "changed" if is_changed else "as published"
                    print(
                        f"  {use}, {kinds}, {which}: {len(errors)} rows, {least:+.2%} ({' '.join(low)}) to {most:+.2%} ({' '.join(high)})"
                    )


if __name__ == "__main__":
    main()
