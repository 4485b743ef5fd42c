"""Fits the numbers of tensors in tables/facts/tower_training.csv to the counted steps of image_training.csv.

    python -m tests.oracle.fit_tower_training      # prints each, and how far it is off on the rows that were held back

Fitted are the rows that say `fit` in their column `use`: models whose tower has four layers, so that what is kept beside the layers stands
out, and most with so small a text that the tower makes the peak. The project's own formulas are asked with each number in the place of the one
in the table: what is printed is the least tenth with which no step is short by more than SHORT, one number after the other (FITTED). All other
rows are held back, models as they are published among them. Nothing is written: the table is changed by hand, and a test holds it to these rows.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import duckdb

from tests.formulas import image_steps

TABLE = Path(__file__).parents[2] / "tables" / "facts" / "tower_training.csv"
SHORT = 0.0002
MOST = 64.0  # tensors
# of which rows each is the number: of a large text, under whose logits the tower is kept, or where the tower makes the peak
FITTED = {
    "hooked_tensors": ("hooked", False),
    "step_tensors": ("hooked", True),
    "layer_tensors": ("whole", True),
    "adapted_tensors": ("adapted", False),
    "adapted_step_tensors": ("adapted", True),
}
Numbers = dict[str, float]  # by row of the table
Row = dict[str, object]


def table() -> dict[str, dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row["model_types"]: row for row in csv.DictReader(file)}


def is_small(row: Mapping[str, str]) -> bool:
    """Whether the tower of a changed model makes the peak."""
    return "vocab_size=1024" in row["changes"]


def of_types(connections: Mapping[bool, duckdb.DuckDBPyConnection]) -> list[Row]:
    """All rows, each with the row of the table that its model is of."""
    kinds = {kind: name for name in table() for kind in name.split()}
    types = {
        model: kinds.get(kind)
        for connection in connections.values()
        for model, kind in connection.execute("SELECT model_id, model_type FROM shape").fetchall()
    }
    return [row | {"kinds": types[image_steps.model_of(row)]} for row in image_steps.rows()]


def felt(steps: list[Row], name: str) -> list[Row]:
    """The rows that a number is fitted to."""
    return [row for row in steps if row["use"] == "fit" and (row["tower"], is_small(row)) == FITTED[name]]


def put(connection: duckdb.DuckDBPyConnection, name: str, numbers: Numbers) -> None:
    """Into the rows of the models, as if the table said so."""
    for kinds, value in numbers.items():
        connection.execute(
            f"UPDATE shape SET tower_training = struct_update(tower_training, {name} := $value::DOUBLE)"
            " WHERE list_contains(string_split($kinds, ' '), model_type)",
            {"value": value, "kinds": kinds},
        )


def are_short(connection: duckdb.DuckDBPyConnection, steps: list[Row]) -> set[str]:
    """Rows of the table by which a step is short."""
    return {row["kinds"] for row in image_steps.judged(connection, steps) if row["error"] < -SHORT}


def fitted(connection: duckdb.DuckDBPyConnection, steps: list[Row]) -> dict[str, Numbers]:
    """By halves, all types at once: nothing that is told falls where a number grows."""
    found = {}
    for name in FITTED:
        rows = felt(steps, name)
        least, most = ({row["kinds"]: tenths for row in rows} for tenths in (0, int(10 * MOST)))
        while any(least[kinds] < most[kinds] for kinds in most):
            middle = {kinds: (least[kinds] + most[kinds]) // 2 for kinds in most}
            put(connection, name, {kinds: tenths / 10 for kinds, tenths in middle.items()})
            short = are_short(connection, rows)
            for kinds, tenths in middle.items():
                if kinds in short:
                    least[kinds] = min(tenths + 1, most[kinds])
                else:
                    most[kinds] = tenths
        found[name] = {kinds: tenths / 10 for kinds, tenths in most.items()}
        put(connection, name, found[name])
    return found


def main() -> None:
    connections = {True: image_steps.made_up(), False: image_steps.published()}
    steps = of_types(connections)
    # (where none of its layers is recomputed it counts from a number, which is not there before it is fitted)
    found = fitted(connections[True], steps)
    stands = table()
    for name, numbers in found.items():
        put(connections[False], name, numbers)
        print(name)
        for kinds, value in sorted(numbers.items()):
            print(
                f"  {kinds}: {value:g}" + f" (the table: {stands[kinds][name]})" * (stands[kinds][name] != f"{value:g}")
            )
    told = [
        row
        for is_changed, connection in connections.items()
        for row in image_steps.judged(connection, [row for row in steps if bool(row["changes"]) == is_changed])
    ]
    print("predicted ÷ counted − 1, from the least to the most")
    for use in ("fit", "held-back"):
        for kinds in sorted({str(row["kinds"]) for row in told}):
            for is_changed in (True, False):
                errors = [
                    (row["error"], row["tower"], row["precision"], row["phase_id"], row["images"])
                    for row in told
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
