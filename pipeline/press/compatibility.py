"""The one big product, scenario × GPU, as a Parquet file: the rows of the view `compatibility`, streamed.

polars writes it several times faster than COPY and in flat memory; a test holds file and view equal.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl

from pipeline.book.schema import PUBLISHED

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
    "running",
)
# What decides whether a card runs a scenario, as one word: engine, format as it runs, phase, kind of attention.
_RUNNING = "concat_ws(' ', engine_id, running_format(m, dtype_id), phase_id, attention)"
# Every card for every such word, with the reason why it does not run there.
_CARDS = f"""
WITH asked AS (
    SELECT DISTINCT f.engine_id, running_format(m, f.dtype_id) AS dtype_id, f.phase_id, f.attention, {_RUNNING} AS running
    FROM footprint AS f JOIN model AS m USING (model_id)
)
SELECT running, gpu.gpu_id, gpu.capacity_bytes, card_reason(r) AS card_reason
FROM asked JOIN gpu ON true
LEFT JOIN runs_on AS r
    ON r.engine_id = asked.engine_id AND r.dtype_id = asked.dtype_id AND r.phase_id = asked.phase_id
    AND r.attention = asked.attention AND r.gpu_id = gpu.gpu_id
ORDER BY running, gpu_id
"""


def write_compatibility(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Writes the file, sorted by scenario and then by GPU. Returns its rows."""
    scenarios = _scenarios(connection)
    cards = connection.sql(_CARDS).pl().with_columns(pl.col("running", "gpu_id", "card_reason").cast(pl.Categorical))
    slots = sum(name.startswith("needed_") for name in scenarios.columns)
    rows = scenarios.lazy().join(cards.lazy(), on="running", how="inner", maintain_order="left_right")
    rows.select(_verdict_columns(slots)).sink_parquet(path, compression="zstd", row_group_size=ROW_GROUP_ROWS)
    return scenarios.height * cards["gpu_id"].n_unique()


def _scenarios(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """One row per scenario; for the n-th GPU count that has a total: gpu_count_n, sharding_n, total_n, and needed_n with its band."""
    columns = ", ".join([*_SCENARIO, "gpu_count", "sharding", "total_bytes", "error_band", "unknown_reason"])
    footprints = connection.sql(
        f"SELECT {columns}, {_RUNNING} AS running FROM footprint AS f JOIN model AS m USING (model_id)"
    ).pl()
    known = pl.col("total_bytes").is_not_null()
    grouped = (
        footprints.sort([*_SCENARIO, "gpu_count"], nulls_last=True)
        .with_columns(needed=(pl.col("total_bytes") * (1 + pl.col("error_band"))).ceil().cast(pl.Int64))
        .group_by(_SCENARIO, maintain_order=True)
        .agg(
            pl.col("gpu_count", "sharding", "needed").filter(known),
            pl.col("total_bytes").filter(known).alias("total"),
            pl.col("unknown_reason").drop_nulls().first(),
            pl.col("running").first(),
        )
    )
    slots = grouped["total"].list.len().max() or 1  # where no total is known the columns are there all the same
    return grouped.select(
        *_SCENARIO,
        "unknown_reason",
        "running",
        *(
            pl.col(name).list.get(slot, null_on_oob=True).alias(f"{name}_{slot}")
            for slot in range(slots)
            for name in ("gpu_count", "sharding", "total", "needed")
        ),
    ).with_columns(pl.col(name).cast(pl.Categorical) for name in _REPEATED)


def _verdict_columns(slots: int) -> list[pl.Expr]:
    """The columns of the view, in its order and by its rules (tables/sql/capacity/compatibility.sql)."""
    capacity = pl.col("capacity_bytes")
    is_known, runs = pl.col("total_0").is_not_null(), pl.col("card_reason").is_null()
    is_tight = (pl.col("gpu_count_0") == 1) & (pl.col("total_0") <= capacity) & (pl.col("needed_0") > capacity)

    def chosen(name: str) -> pl.Expr:
        """Of the fewest GPUs that take total and band, else of the fewest that take the total; where one takes the total, of that."""
        expression = pl.when(~runs).then(None).when(is_tight).then(pl.col(f"{name}_0"))
        for need in ("needed", "total"):
            for slot in range(slots):
                expression = expression.when(pl.col(f"{need}_{slot}") <= capacity).then(pl.col(f"{name}_{slot}"))
        return expression.otherwise(None)

    count = chosen("gpu_count")
    made = {
        "total_bytes": pl.coalesce(chosen("total"), "total_0"),
        "gpu_count_needed": count,
        "sharding": pl.coalesce(chosen("sharding"), "sharding_0"),
        "verdict": pl.when(~is_known | ~runs)
        .then(None)
        .when(is_tight)
        .then(pl.lit("tight"))
        .when(count == 1)
        .then(pl.lit("fits"))
        .when(pl.any_horizontal(pl.col(f"needed_{slot}") <= capacity for slot in range(slots)))
        .then(pl.lit("multi-gpu"))
        .when(count.is_not_null())
        .then(pl.lit("tight"))
        .otherwise(pl.lit("no")),
        "unknown_reason": pl.when(is_known).then("card_reason").otherwise("unknown_reason"),
    }
    return [made[name].alias(name) if name in made else pl.col(name) for name in _COLUMNS]
