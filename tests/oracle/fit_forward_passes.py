"""Fits tables/facts/forward_pass.csv to what was counted (forward_passes.csv): no fit is below a count, and as little above as can be.

    python tests/oracle/fit_forward_passes.py      # writes the numbers of all rows anew; what else a row says is written by hand

A row is a stage of a class, size and bytes of an element: the rows of forward_passes.csv whose peak one of its `operators` made (empty: any).
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tables" / "facts" / "forward_pass.csv"
COUNTS = Path(__file__).with_name("forward_passes.csv")
NUMBERS = (
    "constant_bytes",
    "bytes_per_position",
    "sequence_bytes",
    "bytes_per_token",
    "bytes_per_square",
    "bytes_per_group",
)
SMALL = 5_000_000  # bytes that do not matter beside the context of a process


def terms(count: dict[str, str], added: int) -> list[float]:
    """What the numbers of a row are multiplied with: pictures have one size, and only what adds tokens looks from series to series."""
    sequences = int(count["sequences"])
    tokens = 0 if count["height"] else int(count["tokens"]) + added
    return [1, tokens, sequences, sequences * tokens, sequences * tokens**2, sequences**2 * tokens if added else 0]


def solved(left, counts, bounds):
    """The numbers within bounds that reach every count with the least beyond them, as shares of what matters; and what is beyond."""
    import numpy
    from scipy.optimize import linprog

    scale, most = numpy.maximum(left.max(axis=0), 1), counts.max()
    shares = left / scale
    cost = (shares * most / (counts + SMALL)[:, None]).sum(axis=0)
    scaled = [
        tuple(None if at is None else at * of / most for at in pair) for pair, of in zip(bounds, scale, strict=True)
    ]
    found = linprog(cost, A_ub=-shares, b_ub=-counts / most, bounds=scaled)
    return (found.x * most / scale, found.fun) if found.success else (None, math.inf)


def fitted(points: list[tuple[list[float], int]]) -> list[int]:
    """Whole numbers: those of squares first, since what they are rounded to matters most."""
    import numpy

    left = numpy.array([row for row, _ in points], float)
    counts = numpy.array([count for _, count in points], float)
    bounds: list[tuple] = [(0, None if column.any() else 0) for column in left.T]
    for place in (4, 5, 3, 2, 1, 0):
        found, _ = solved(left, counts, bounds)
        whole = math.floor(found[place])
        tried = [[*bounds[:place], (number, number), *bounds[place + 1 :]] for number in (whole, whole + 1)]
        bounds = min(tried, key=lambda some: solved(left, counts, some)[1])
    numbers = [int(number) for number, _ in bounds]
    numbers[0] += max(0, *(count - sum(n * int(x) for n, x in zip(numbers, row, strict=True)) for row, count in points))
    return numbers


def main() -> None:
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with COUNTS.open(newline="", encoding="utf-8") as file:
        counts = [row for row in csv.DictReader(file) if row["peak_bytes"]]
    for row in rows:
        key = (row["parameter_count"], row["element_bytes"])
        own = [c for c in counts if (c["parameter_count"], c["element_bytes"]) == key]
        if row["operators"]:
            own = [c for c in own if c["stage"] in row["operators"].split()]
        if not own:
            print(f"{key}: nothing was counted", file=sys.stderr)
            continue
        points = [(terms(c, int(row["added_tokens"])), int(c["peak_bytes"])) for c in own]
        numbers = fitted(points)
        row |= dict(zip(NUMBERS, map(str, numbers), strict=True))
        beyond = max(
            (sum(n * x for n, x in zip(numbers, p, strict=True)) - count) / (count + SMALL) for p, count in points
        )
        print(row["pass_type"], *key, numbers, f"{100 * beyond:.2f} % beyond at most")
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
