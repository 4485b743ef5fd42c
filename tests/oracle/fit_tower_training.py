"""Fits hooked_tensors, layer_tensors and step_tensors of tables/facts/tower_training.csv to the counted steps of image_training.csv.

    python -m tests.oracle.fit_tower_training      # prints each, and how far it is off on the rows that were held back

Fitted are the rows that say `fit` in their column `use`: models whose tower has four layers, so that what is kept beside the layers stands out, and whose text is
small, so that the tower makes the peak. The project's own formulas are asked with each number in the place of the one in the table: what is
printed is the least tenth with which no step of the type is short by more than SHORT, one number after the other, since each is the number
of another moment (the text's, the tower's last layer, a tower of which nothing is recomputed). All other rows are held back, models as they are published among them.
Nothing is written: the table is changed by hand.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

import duckdb

from tests.formulas import image_steps

TABLE = Path(__file__).parents[2] / "tables" / "facts" / "tower_training.csv"
SHORT = 0.001
MOST = 64.0  # tensors
# in this order: of which rows each is the number, by their towers and whether the text is small
FITTED = {
    "hooked_tensors": lambda row: row["tower"] == "hooked" and "vocab_size=1024" not in row["changes"],
    "step_tensors": lambda row: row["tower"] == "hooked",
    "layer_tensors": lambda row: row["tower"] == "whole",
}
Numbers = dict[str, dict[str, float]]  # by row of the table, by name


def types() -> dict[str, str]:
    """By model: the row of the table that it is of."""
    with TABLE.open(newline="") as file:
        return {kind: row["model_types"] for row in csv.DictReader(file) for kind in row["model_types"].split()}


def put(connection: duckdb.DuckDBPyConnection, numbers: Numbers) -> None:
    """Into the rows of the models, as if the table said so."""
    for kinds, said in numbers.items():
        fields = ", ".join(f"{name} := {value}" for name, value in said.items())
        connection.execute(
            f"UPDATE shape SET tower_training = struct_update(tower_training, {fields})"
            " WHERE list_contains(string_split($kinds, ' '), model_type)",
            {"kinds": kinds},
        )


def fitted(connection: duckdb.DuckDBPyConnection, steps: list[dict[str, str]]) -> Numbers:
    """By halves of all types at once: no step falls where a number grows."""
    found: Numbers = {kinds: {"layer_tensors": MOST} for kinds in {row["kinds"] for row in steps}}
    for name, is_of in FITTED.items():
        least, most = ({kinds: tenths for kinds in found} for tenths in (0, int(10 * MOST)))
        while any(least[kinds] < most[kinds] for kinds in found):
            middle = {kinds: (least[kinds] + most[kinds]) // 2 for kinds in found}
            put(connection, {kinds: said | {name: middle[kinds] / 10} for kinds, said in found.items()})
            short = defaultdict(list)
            for row in image_steps.judged(connection, [row for row in steps if is_of(row)]):
                short[row["kinds"]].append(row["error"] < -SHORT)
            for kinds in found:
                if any(short[kinds]):
                    least[kinds] = min(middle[kinds] + 1, most[kinds])
                else:
                    most[kinds] = middle[kinds]
        for kinds in found:
            found[kinds][name] = most[kinds] / 10
    return found


def main() -> None:
    connections = {True: image_steps.made_up(), False: image_steps.published()}
    kinds = {}
    for connection in connections.values():
        by_type = types()
        for model, kind in connection.execute("SELECT model_id, model_type FROM shape").fetchall():
            kinds[model] = by_type.get(kind)
    steps = [row | {"kinds": kinds[image_steps.model_of(row)]} for row in image_steps.rows()]
    numbers = fitted(connections[True], [row for row in steps if row["use"] == "fit"])
    for connection in connections.values():
        put(connection, numbers)
    told = [
        row
        for is_changed, connection in connections.items()
        for row in image_steps.judged(connection, [row for row in steps if bool(row["changes"]) == is_changed])
    ]
    for use in ("fit", "held-back"):
        print(f"{use}: rows, and predicted ÷ counted − 1 from the least to the most")
        for named, said in sorted(numbers.items()):
            errors = [row["error"] for row in told if row["use"] == use and row["kinds"] == named]
            values = " ".join(f"{name} {said[name]:g}" for name in FITTED)
            print(f"  {named}: {values}; {len(errors)} rows, {min(errors):+.2%} to {max(errors):+.2%}")
    short = [row for row in told if row["error"] < -0.003]
    for row in short:
        print(
            f"  short: {image_steps.model_of(row)} {row['tower']} {row['precision']} {row['phase_id']} {row['error']:+.2%}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
