"""The statements that work out the published scenarios: `footprints` in tiers, for what scenario_set.csv asks and no more.

They lie in `grid_statement`, beside the scenarios that they were written for (`scenario_grid`); no published file has either. Each side has its
own: those that make temporary tables, in their order, and last the query of the answers. What they read is a relation `asked_serving` or
`asked_training`, of the columns that the sets name and those that are handed on; and `grid_derived`, what depends on the model alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import polars as pl

from pipeline.book.facts import read_facts
from pipeline.book.scenario import scenario_grid
from pipeline.book.schema import PUBLISHED
from pipeline.press.flat.reading import ASKED
from pipeline.press.flat.sides import WORTH, Formulas
from pipeline.press.flat.tiers import Tier, Tiers
from pipeline.press.flat.values import Node

TABLE = "grid_statement"
GRID = (
    "scenario_grid"  # what is asked of each model, for which purpose; ways to share the same scenario have one `place`
)
DERIVED = "grid_derived"
PURPOSES = ("lookup", "ladder")  # of the scenario sets that are worked out for every model
SIDES = ("serving", "training")
# what the sets say of a scenario; the rest is what is taken where nothing is said
SAID = (
    *("phase_id", "dtype_id", "engine_id", "context_tokens", "sequences"),
    *("optimizer_id", "checkpointing", "gpu_count", "sharding"),
)
# beside the answers: which scenario it is of its model, whatever the way to share, and for which purpose it was asked
HANDED_ON = ("place", "purpose")
# from few rows to many, as the sets have them; what is not named here is told apart by the last tier alone
_SIZES, _CARDS = ("context_tokens", "sequences"), ("gpu_count", "sharding")
_RUN = ("model_id", "dtype_id", "engine_id")
_RECIPE = ("model_id", "dtype_id", "phase_id", "engine_id")
_TIERS = {
    "serving": (
        ("sizes", ("model_id", *_SIZES)),
        ("run", _RUN),
        ("sized_run", (*_RUN, *_SIZES)),
        ("shared_run", (*_RUN, *_CARDS)),
    ),
    "training": (
        ("recipe", _RECIPE),
        ("sized", (*_RECIPE, *_SIZES)),
        ("shared", (*_RECIPE, *_CARDS)),
        ("stepped", (*_RECIPE, *_CARDS, "optimizer_id")),
        ("sized_shared", (*_RECIPE, *_CARDS, *_SIZES)),
    ),
}


def keep(connection: duckdb.DuckDBPyConnection, formulas: Formulas) -> None:
    """Makes both tables."""
    sets = read_facts()["scenario_set"]
    grid = pl.concat(
        scenario_grid(sets.filter(purpose=purpose)).with_columns(purpose=pl.lit(purpose)) for purpose in PURPOSES
    )
    place = pl.struct(pl.exclude("sharding", "context_tokens")).rank("dense").cast(pl.Int32)
    asked = grid.with_columns(place=place).select(*SAID, *HANDED_ON, "least_parameter_count")
    connection.register("grid_rows", asked.to_arrow())
    connection.execute(f"CREATE OR REPLACE TABLE {GRID} AS FROM grid_rows")
    connection.unregister("grid_rows")
    rows = []
    for side in SIDES:
        is_serving = side == "serving"
        rows_of_side = grid.filter((pl.col("phase_id") == "inference") == is_serving)
        tiers = _tiers(formulas, side, rows_of_side)
        rows += [(side, place, text) for place, text in enumerate(tiers.statements(f"asked_{side}"))]
    # (last: what both sides read of a model is known then)
    rows.append(("models", 0, f"CREATE OR REPLACE TABLE {DERIVED} AS {formulas.derived_table()}"))
    connection.execute(f"CREATE OR REPLACE TABLE {TABLE} (side VARCHAR, place INTEGER, statement VARCHAR)")
    connection.executemany(f"INSERT INTO {TABLE} VALUES (?, ?, ?)", rows)


def statements(connection: duckdb.DuckDBPyConnection, side: str) -> list[str]:
    query = f"SELECT statement FROM {TABLE} WHERE side = ? ORDER BY place"
    return [text for (text,) in connection.execute(query, [side]).fetchall()]


def _tiers(formulas: Formulas, side: str, grid: pl.DataFrame) -> Tiers:
    forest = formulas.forest
    told = dict(_told(formulas, grid))
    named = [name for name in ("model_id", *SAID) if told.get(_column(formulas, name)) is not forest.null]
    lookups, outputs = formulas.side(side == "serving", told, DERIVED)
    outputs = {name: outputs[name] for name in PUBLISHED["footprint"].column_names}
    outputs |= {name: _column(formulas, name) for name in HANDED_ON}
    tiers = [Tier(f"{side}_{name}", tuple(key for key in keys if key in named)) for name, keys in _TIERS[side]]
    made = Tiers(forest, [*tiers, Tier(side, tuple(named))], lookups, outputs, WORTH)
    for steps in made.steps.values():
        formulas.read_of_model(steps.order)
    return made


def _told(formulas: Formulas, grid: pl.DataFrame) -> Iterator[tuple[Node, Node]]:
    """What is known of the columns that the sets ask for."""
    forest = formulas.forest
    # the sets' numbers are counts, and their columns what they are declared as
    yield formulas.argument_reason, forest.null
    for name in formulas.arguments:
        if name != "model_id" and (name not in SAID or grid[name].null_count() == grid.height):
            yield _column(formulas, name), forest.null
    # of one card no way to share is asked
    if grid.filter(pl.col("sharding").is_null() & (pl.col("gpu_count") > 1)).is_empty():
        ways = grid["sharding"].drop_nulls().unique().sort().to_list()
        if ways:
            yield _column(formulas, "sharding"), forest.one_of(_column(formulas, "sharding"), ways)


def _column(formulas: Formulas, name: str) -> Node:
    return formulas.forest.node("column", (ASKED, name))
