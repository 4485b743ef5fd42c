"""Fits what the allocator keeps unused in training (constants of tables/sql/overhead/unused.sql) to the counted steps in reserved.csv.

    python -m tests.oracle.fit_unused                              # every fit
    python -m tests.oracle.fit_unused unused_layer_kept_share      # those of one constant

The project's own formulas are asked with each value of a grid in the place of the constant. Chosen is the value with which half of the steps lie nearest to what was
counted (the least median of what is told ÷ reserved − 1, without its sign); one that stands in constant.csv stays where its median is within NEAR of that. Nothing is written:
constant.csv is changed by hand, with its reason.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.press.flat import AS_WRITTEN
from tests.formulas import step_account

NEAR = 0.002
ENCODERS = ("FacebookAI/roberta-base",)
SHARES = tuple(i / 20 for i in range(1, 21))
TENTHS = tuple(i / 10 for i in range(4, 11))


@dataclass(frozen=True)
class Fit:
    """`constants`: with the values of each; `rows`: which steps they are fitted to; `column`: what was reserved."""

    said: str
    constants: dict[str, tuple[float, ...]]
    rows: Callable[[dict], bool]
    column: str = "reserved_bytes"


def _is_plain_adapter(row: dict) -> bool:
    """What has_known_blocks (tables/sql/error-bands/error_band.sql) says of these rows."""
    return bool(row["lora_rank"]) and row["loss"] == "full" and row["checkpointing"] != "selective"


def _keeps_states(row: dict) -> bool:
    return (
        not row["lora_rank"] and row["optimizer_id"] in ("adamw", "sgd-momentum") and row["model"] not in ENCODERS
    )  # fmt: skip


FITS = (
    Fit(
        "adapters, layers recomputed (set by measured steps: what follows is a check)",
        {"unused_layer_share": SHARES},
        lambda row: _is_plain_adapter(row) and row["checkpointing"] == "full",
    ),
    Fit(
        "adapters, all kept",
        {"unused_layer_kept_share": SHARES},
        lambda row: _is_plain_adapter(row) and row["checkpointing"] == "none",
    ),
    Fit(
        "adapters, expandable segments",
        {"unused_layer_expandable_share": SHARES},
        _is_plain_adapter,
        "expandable_bytes",
    ),
    Fit(
        "all weights, optimizers with states",
        {"reused_gradients_share": TENTHS, "reused_kept_share": TENTHS},
        _keeps_states,
    ),
    Fit(
        "all weights otherwise (set by measured steps: what follows is a check)",
        {"unused_blocks_training": SHARES},
        lambda row: not row["lora_rank"] and not _keeps_states(row),
    ),
)


def main(wanted: list[str]) -> None:
    steps = [row for row in step_account.read("reserved.csv") if row["peak_bytes"]]
    connection = step_account.book()
    (usual,) = connection.execute("SELECT constants FROM constants_row").fetchall()[0]
    for fit in FITS:
        if wanted and not set(wanted) & set(fit.constants):
            continue
        rows = [row for row in steps if fit.rows(row)]
        also = {"expandable_segments": fit.column == "expandable_bytes"}
        print(f"{fit.said}: {len(rows)} steps of {len({row['model'] for row in rows})} models, {fit.column}")
        found = {}
        for values in itertools.product(*fit.constants.values()):
            changed = dict(zip(fit.constants, values, strict=True))
            _set(connection, changed)
            judged = step_account.reserved(
                step_account.answered(connection, [dict(row) for row in rows], also, AS_WRITTEN), fit.column
            )
            off = [row["off"] for row in judged]
            found[values] = (statistics.median(map(abs, off)), min(off), max(off))
        _set(connection, {name: usual[name] for name in fit.constants})
        best = min(found, key=lambda values: found[values])
        stands = tuple(usual[name] for name in fit.constants)
        chosen = stands if stands in found and found[stands][0] <= found[best][0] + NEAR else best
        for values, (middle, low, high) in found.items():
            named = " ".join(f"{name} {value:g}" for name, value in zip(fit.constants, values, strict=True))
            marks = " best" * (values == best) + " as it stands" * (values == stands) + " chosen" * (values == chosen)
            print(f"  {named}: median {100 * middle:.2f} %, {100 * low:+.1f} to {100 * high:+.1f} %{marks}")


def _set(connection, constants: dict[str, float]) -> None:
    named = ", ".join(f"{name} = {value}" for name, value in constants.items())
    connection.execute(f"UPDATE constants SET {named}")


if __name__ == "__main__":
    main(sys.argv[1:])
