"""The longest context and the most sequences on one card, and the lines of memory against context.

The rule is that of the view `compatibility` (largest_between and largest_beyond in tables/sql/capacity/limits.sql), computed
for all models at once: between two known points a total is taken as a line, and whole multiples of what an engine allocates
count. The points are the lookup on one GPU and, where the database holds one, the ladder between and beyond it.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from pipeline.base.readonly import reading

WHO = ("model_id", "dtype_id", "engine_id")
ALIKE = ("kv_dtype_id", "optimizer_id", "precision", "checkpointing")
BLOCK_ENGINES = ("vllm", "vllm-0.8", "sglang")
UNBOUNDED = 2**62


def points(folder: Path, phase: str = "inference", more: tuple[str, ...] = ()) -> pl.DataFrame:
    """Every known total of a phase on one GPU: `context_tokens`, `sequences`, the total, and what it needs with its band; and `more`
    columns of the footprints."""
    columns = [*WHO, "phase_id", *ALIKE, "context_tokens", "sequences", "total_bytes", "error_band", *more]
    known = (pl.col("gpu_count") == 1) & (pl.col("phase_id") == phase) & pl.col("total_bytes").is_not_null()
    frames = [pl.scan_parquet(folder / "footprint.parquet").filter(known).select(columns).collect()]
    frames += _ladder(folder / "almanac.duckdb", columns, phase)
    return (
        pl.concat(frames)
        .with_columns(need=pl.col("total_bytes") * (1 + pl.col("error_band")))
        .unique([*WHO, *ALIKE, "context_tokens", "sequences"], keep="first")
    )


def _ladder(database: Path, columns: list[str], phase: str) -> list[pl.DataFrame]:
    with reading(database) as connection:
        if not connection.execute("SELECT 1 FROM information_schema.tables WHERE table_name = 'ladder'").fetchall():
            return []
        query = (
            f"SELECT {', '.join(columns)} FROM ladder WHERE gpu_count = 1 AND phase_id = $1 AND total_bytes IS NOT NULL"
        )
        return [connection.sql(query, params=[phase]).pl()]


def multiples(constants: list[dict]) -> dict[str, float]:
    """What each engine allocates at a time, and the most sequences that vLLM runs by default."""
    value = {c["constant_id"]: c["value"] for c in constants}
    return {
        **{engine: value["vllm_block_tokens"] for engine in BLOCK_ENGINES},
        "llama.cpp": value["llama_cpp_cell_multiple"],
        "mlx-lm": value["mlx_cell_multiple"],
        "most": value["vllm_default_sequences"],
        "looked": value["llama_cpp_looked_sequences"],
    }


def of_engines(constants: list[dict]) -> dict[str, dict[str, float]]:
    """The same for the browser: by engine the `multiple` that contexts are allocated in, and the `most` sequences."""
    value = multiples(constants)
    ends = dict.fromkeys(BLOCK_ENGINES, value["most"]) | {"llama.cpp": value["looked"]}
    most = {engine: end for engine, end in ends.items() if end != UNBOUNDED}
    return {"multiple": {e: n for e, n in value.items() if e not in ("most", "looked") and n != 1}, "most": most}


def longest(known: pl.DataFrame, capacities: dict[str, int], constants: list[dict]) -> pl.DataFrame:
    """Longest context by format, sequences and card (a column each): 0 where nothing fits."""
    by_engine = multiples(constants)
    multiple = pl.col("engine_id").replace_strict(
        {e: by_engine[e] for e in (*BLOCK_ENGINES, "llama.cpp", "mlx-lm")}, default=1.0, return_dtype=pl.Float64
    )
    lists = _lists(known, "context_tokens", "sequences")
    return lists.select(
        *WHO, "sequences", *(_between(capacity, multiple).alias(gpu) for gpu, capacity in capacities.items())
    )


def most(known: pl.DataFrame, capacities: dict[str, int], constants: list[dict], goes_on: bool = True) -> pl.DataFrame:
    """Most sequences by format, context and card. In inference the line `goes_on` beyond the last point, up to the engine's own limit;
    micro-batches of training are told up to the last point."""
    limit = (
        pl.when(pl.col("engine_id").is_in(BLOCK_ENGINES))
        .then(pl.lit(int(multiples(constants)["most"])))
        .when(pl.col("engine_id") == "llama.cpp")
        .then(pl.lit(int(multiples(constants)["looked"])))
        .otherwise(pl.lit(UNBOUNDED))
    )
    lists = _lists(known, "sequences", "context_tokens")
    found = {
        gpu: _beyond(capacity, limit) if goes_on else _between(capacity, 1.0) for gpu, capacity in capacities.items()
    }
    return lists.select(*WHO, "context_tokens", *(value.alias(gpu) for gpu, value in found.items()))


def _lists(known: pl.DataFrame, axis: str, other: str) -> pl.DataFrame:
    return known.sort(axis).group_by(*WHO, *ALIKE, other).agg(pl.col(axis).alias("at"), "need")


def _line(low, high, capacity: int, multiple: pl.Expr | float) -> pl.Expr:
    """on_the_line of the view, with its order of operations, so that both round alike."""
    at, need = (
        (lambda i: pl.col("at").list.get(i, null_on_oob=True)),
        (lambda i: pl.col("need").list.get(i, null_on_oob=True)),
    )
    rise = pl.max_horizontal(need(high) - need(low), pl.lit(1.0))
    place = at(low) + (capacity - need(low)) / rise * (at(high) - at(low))
    # what exceeds an integer is beyond every limit anyway
    whole = ((place / multiple).floor() * multiple).clip(upper_bound=float(UNBOUNDED)).cast(pl.Int64)
    return pl.max_horizontal(at(low), whole)


def _between(capacity: int, multiple: pl.Expr | float) -> pl.Expr:
    fit = pl.col("need").list.eval((pl.element() <= capacity).cast(pl.Int64)).list.sum()
    return (
        pl.when(fit == 0)
        .then(pl.lit(0, dtype=pl.Int64))
        .when(fit == pl.col("at").list.len())
        .then(pl.col("at").list.last())
        .otherwise(_line(fit - 1, fit, capacity, multiple))
    )


def _beyond(capacity: int, limit: pl.Expr) -> pl.Expr:
    all_fit = pl.col("need").list.max() <= capacity
    on = pl.min_horizontal(_line(-2, -1, capacity, 1.0), limit)
    return pl.when(all_fit & (pl.col("at").list.len() > 1)).then(on).otherwise(_between(capacity, 1.0))
