"""The one big product, scenario × GPU, as a Parquet file: the rows of the view `compatibility`, streamed.

polars writes it about ten times faster than COPY and in flat memory; a test holds file and view equal. The file leaves out what
is different on every row and can be had from the view or from `longest`: it would be nine tenths of the bytes.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl

from pipeline.schema import PUBLISHED

ROW_GROUP_ROWS = 1_000_000
_SCENARIO = [
    name
    for name in PUBLISHED["compatibility"].column_names
    if name not in ("gpu_id", "total_bytes", "gpu_count_needed", "sharding", "verdict", "unknown_reason")
]


def write_compatibility(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Writes the file, sorted by scenario and then by GPU. Returns its rows."""
    scenarios = connection.sql(f"SELECT {', '.join(_SCENARIO)}, totals, unknown_reason FROM scenario_totals").pl()
    gpus = connection.sql("SELECT gpu_id, capacity_bytes FROM gpu ORDER BY gpu_id").pl()
    scenarios = scenarios.sort([c for c in PUBLISHED["compatibility"].key if c in scenarios.columns], nulls_last=True)
    slots = scenarios["totals"].list.len().max() or 0
    wide = scenarios.lazy().with_columns(
        *(
            pl.col("totals").list.get(slot, null_on_oob=True).struct.field(field).alias(f"{field}_{slot}")
            for slot in range(slots)
            for field in ("gpu_count", "sharding", "total", "band")
        )
    )
    rows = wide.drop("totals").join(gpus.lazy(), how="cross", maintain_order="left_right")
    rows.select(_verdict_columns(slots)).sink_parquet(path, compression="zstd", row_group_size=ROW_GROUP_ROWS)
    return scenarios.height * gpus.height


def _verdict_columns(slots: int) -> list[pl.Expr]:
    """The columns of the view, in its order and by its rules (tables/sql/90_compatibility.sql)."""
    capacity = pl.col("capacity_bytes")

    def fits(slot: int) -> pl.Expr:
        return pl.col(f"total_{slot}") * (1 + pl.col(f"band_{slot}")) <= capacity

    def first_fitting(field: str) -> pl.Expr:
        return pl.coalesce(*(pl.when(fits(slot)).then(pl.col(f"{field}_{slot}")) for slot in range(slots)))

    is_known = pl.col("total_0").is_not_null()
    count = first_fitting("gpu_count")
    is_tight = (pl.col("gpu_count_0") == 1) & (pl.col("total_0") <= capacity)
    verdict = (
        pl.when(~is_known)
        .then(None)
        .when(count == 1)
        .then(pl.lit("fits"))
        .when(is_tight)
        .then(pl.lit("tight"))
        .when(count.is_not_null())
        .then(pl.lit("multi-gpu"))
        .otherwise(pl.lit("no"))
    )

    def chosen(field: str) -> pl.Expr:
        return pl.when(verdict == "tight").then(pl.col(f"{field}_0")).otherwise(first_fitting(field))

    made = {
        "total_bytes": pl.coalesce(chosen("total"), "total_0"),
        "gpu_count_needed": chosen("gpu_count"),
        "sharding": pl.coalesce(chosen("sharding"), "sharding_0"),
        "verdict": verdict,
        "unknown_reason": pl.when(~is_known).then(pl.col("unknown_reason")),
    }
    names = PUBLISHED["compatibility"].column_names
    return [made[name].alias(name) if name in made else pl.col(name) for name in names]
