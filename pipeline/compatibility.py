"""The one big product, scenario × GPU, as a Parquet file: the rows of the view `compatibility`, streamed.

polars writes it several times faster than COPY and in flat memory; a test holds file and view equal.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl

from pipeline.schema import PUBLISHED

ROW_GROUP_ROWS = 1_000_000
# different on every row: they would be nine tenths of the bytes
DERIVED = ("max_context_tokens", "max_sequences")
_COLUMNS = [name for name in PUBLISHED["compatibility"].column_names if name not in DERIVED]
_MADE = ("gpu_id", "total_bytes", "gpu_count_needed", "sharding", "verdict", "unknown_reason")
_SCENARIO = [name for name in _COLUMNS if name not in _MADE]
# the few values of these repeat on every row; as categories they cost an integer each until they are written
_REPEATED = (
    "dtype_id",
    "phase_id",
    "engine_id",
    "kv_dtype_id",
    "optimizer_id",
    "precision",
    "checkpointing",
    "unknown_reason",
)


def write_compatibility(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Writes the file, sorted by scenario and then by GPU. Returns its rows."""
    scenarios = _scenarios(connection)
    gpus = connection.sql("SELECT gpu_id, capacity_bytes FROM gpu ORDER BY gpu_id").pl()
    slots = sum(name.startswith("needed_") for name in scenarios.columns)
    rows = scenarios.lazy().join(
        gpus.lazy().with_columns(pl.col("gpu_id").cast(pl.Categorical)), how="cross", maintain_order="left_right"
    )
    rows.select(_verdict_columns(slots)).sink_parquet(path, compression="zstd", row_group_size=ROW_GROUP_ROWS)
    return scenarios.height * gpus.height


def _scenarios(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """One row per scenario; for the n-th GPU count that has a total: gpu_count_n, sharding_n, total_n, and needed_n with its band."""
    columns = ", ".join([*_SCENARIO, "gpu_count", "sharding", "total_bytes", "error_band", "unknown_reason"])
    footprints = connection.sql(f"SELECT {columns} FROM footprint").pl()
    known = pl.col("total_bytes").is_not_null()
    grouped = (
        footprints.sort([*_SCENARIO, "gpu_count"], nulls_last=True)
        .with_columns(needed=(pl.col("total_bytes") * (1 + pl.col("error_band"))).ceil().cast(pl.Int64))
        .group_by(_SCENARIO, maintain_order=True)
        .agg(
            pl.col("gpu_count", "sharding", "needed").filter(known),
            pl.col("total_bytes").filter(known).alias("total"),
            pl.col("unknown_reason").drop_nulls().first(),
        )
    )
    slots = grouped["total"].list.len().max() or 0
    return grouped.select(
        *_SCENARIO,
        "unknown_reason",
        *(
            pl.col(name).list.get(slot, null_on_oob=True).alias(f"{name}_{slot}")
            for slot in range(slots)
            for name in ("gpu_count", "sharding", "total", "needed")
        ),
    ).with_columns(pl.col(name).cast(pl.Categorical) for name in _REPEATED)


def _verdict_columns(slots: int) -> list[pl.Expr]:
    """The columns of the view, in its order and by its rules (tables/sql/90_compatibility.sql)."""
    capacity = pl.col("capacity_bytes")
    is_known = pl.col("total_0").is_not_null()
    is_tight = (pl.col("gpu_count_0") == 1) & (pl.col("total_0") <= capacity) & (pl.col("needed_0") > capacity)

    def chosen(name: str) -> pl.Expr:
        """Of the fewest GPUs that take total and band; where one GPU takes the total alone, of that."""
        expression = pl.when(is_tight).then(pl.col(f"{name}_0"))
        for slot in range(slots):
            expression = expression.when(pl.col(f"needed_{slot}") <= capacity).then(pl.col(f"{name}_{slot}"))
        return expression.otherwise(None)

    count = chosen("gpu_count")
    made = {
        "total_bytes": pl.coalesce(chosen("total"), "total_0"),
        "gpu_count_needed": count,
        "sharding": pl.coalesce(chosen("sharding"), "sharding_0"),
        "verdict": pl.when(~is_known)
        .then(None)
        .when(is_tight)
        .then(pl.lit("tight"))
        .when(count == 1)
        .then(pl.lit("fits"))
        .when(count.is_not_null())
        .then(pl.lit("multi-gpu"))
        .otherwise(pl.lit("no")),
        "unknown_reason": pl.when(~is_known).then(pl.col("unknown_reason")),
    }
    return [made[name].alias(name) if name in made else pl.col(name) for name in _COLUMNS]
