"""The longest context and the most sequences on one card, and the lines of memory against context.

The rule is tables/sql/capacity/limits.sql, as the view `compatibility` asks it, for all models at once. The points are the lookup on one
GPU and, where the database holds one, the ladder between and beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import duckdb
import polars as pl

from pipeline.base.readonly import reading
from pipeline.render.data import rules

WHO = ("model_id", "dtype_id", "engine_id")
ALIKE = ("kv_dtype_id", "optimizer_id", "precision", "checkpointing")
# whose limits are read off points
ENGINES = ("vllm", "vllm-0.8", "sglang", "llama.cpp", "mlx-lm")


def columns_with(more: Sequence[str] = ()) -> list[str]:
    """The columns of footprints that points are made of, and more of them."""
    return [*WHO, "phase_id", *ALIKE, "context_tokens", "sequences", "total_bytes", "error_band", *more]


def points(
    folder: Path,
    phases: Sequence[str] = ("inference",),
    more: tuple[str, ...] = (),
    models: Sequence[str] | None = None,
    only: pl.Expr | None = None,
    footprints: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Every known total of some phases on one GPU, of all models or of some: `context_tokens`, `sequences`, the total, and what it needs with
    its band; and `more` columns of the footprints. `only` is what is asked of what tells two rows apart. Who asks more of the `footprints` reads
    them before, once."""
    columns = columns_with(more)
    known = (pl.col("gpu_count") == 1) & pl.col("phase_id").is_in(list(phases)) & pl.col("total_bytes").is_not_null()
    if models is not None:
        known &= pl.col("model_id").is_in(list(models))
    only = pl.lit(True) if only is None else only
    rows = pl.scan_parquet(folder / "footprint.parquet") if footprints is None else footprints.lazy()
    frames = [rows.filter(known & only).select(columns).collect()]
    frames += [frame.filter(only) for frame in _ladder(folder / "almanac.duckdb", columns, phases, models)]
    return (
        pl.concat(frames)
        .with_columns(need=rules.in_columns().needed(pl.col("total_bytes"), pl.col("error_band")))
        .unique([*WHO, "phase_id", *ALIKE, "context_tokens", "sequences"], keep="first")
    )


def _ladder(
    database: Path, columns: list[str], phases: Sequence[str], models: Sequence[str] | None
) -> list[pl.DataFrame]:
    with reading(database) as connection:
        if not connection.execute("SELECT 1 FROM information_schema.tables WHERE table_name = 'ladder'").fetchall():
            return []
        query = (
            f"SELECT {', '.join(columns)} FROM ladder WHERE gpu_count = 1 AND list_contains($phases, phase_id) AND total_bytes IS NOT NULL "
            "AND ($models IS NULL OR model_id IN (SELECT unnest($models::VARCHAR[])))"
        )
        some = None if models is None else list(models)
        return [connection.sql(query, params={"phases": list(phases), "models": some}).pl()]


def of_engines(constants: list[dict]) -> dict[str, dict[str, float]]:
    """For the browser: by engine the `multiple` that contexts are allocated in, where it is not one, and the `most` sequences."""
    asked, value = rules.in_python(), {c["constant_id"]: c["value"] for c in constants}
    multiple = {engine: asked.context_multiple(engine, value) for engine in ENGINES}
    most = {engine: asked.line_end(engine, value) for engine in ENGINES}
    return {
        "multiple": {engine: n for engine, n in multiple.items() if n != 1},
        "most": {engine: n for engine, n in most.items() if n is not None},
    }


def longest(known: pl.DataFrame, capacities: dict[str, int], constants: list[dict]) -> pl.DataFrame:
    """Longest context by format, sequences and card (a column each): 0 where nothing fits."""
    limit = "largest_between(points, capacity, context_multiple(engine_id, constants))"
    return _limits(known, capacities, constants, "context_tokens", "sequences", limit)


def most(known: pl.DataFrame, capacities: dict[str, int], constants: list[dict], goes_on: bool = True) -> pl.DataFrame:
    """Most sequences by format, context and card. In inference the line `goes_on` beyond the last point, up to the engine's own limit;
    micro-batches of training are told up to the last point."""
    between, beyond = (
        "largest_between(points, capacity, 1)",
        "largest_beyond(points, capacity, line_end(engine_id, constants))",
    )
    return _limits(known, capacities, constants, "sequences", "context_tokens", beyond if goes_on else between)


@cache
def _rules() -> duckdb.DuckDBPyConnection:
    """A database that knows them: reading them anew takes as long as most questions."""
    connection = duckdb.connect()
    rules.define(connection)
    return connection


def _limits(
    known: pl.DataFrame, capacities: dict[str, int], constants: list[dict], axis: str, other: str, limit: str
) -> pl.DataFrame:
    if known.is_empty():  # planning takes as long as thousands of answers
        names = dict.fromkeys(WHO, pl.String) | {other: pl.Int64} | dict.fromkeys(capacities, pl.Int64)
        return pl.DataFrame(schema=names)
    # (a column for each card would be planned for each: that took seven times as long, of few models)
    query = f"""
        SELECT {", ".join((*WHO, other))}, list_transform($capacities, lambda capacity: {limit}::BIGINT) AS found
        FROM (
            SELECT {", ".join((*WHO, *ALIKE, other))}, list({{'at': {axis}, 'need': need}} ORDER BY {axis}) AS points
            FROM known GROUP BY ALL
        ) CROSS JOIN (SELECT $constants AS constants)
    """
    held = {c["constant_id"]: c["value"] for c in constants}
    with _rules().cursor() as connection:
        connection.register("known", known.to_arrow())
        asked = {"constants": held, "capacities": list(capacities.values())}
        found = connection.sql(query, params=asked).pl()
    return found.with_columns(pl.col("found").list.to_struct(fields=list(capacities))).unnest("found")
