"""The one big product, scenario × GPU, as a Parquet file: the rows of the view `compatibility`, streamed.

polars writes it several times faster than COPY and in flat memory. The verdicts are by the same text as the view's, translated to columns of
polars; a test holds file and view equal. Cards that give the same, or that do not run it for the same reason, are judged once: a card that is only
another chip with the same memory costs a line and no verdict.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl

from pipeline.book.schema import PUBLISHED
from pipeline.render.data.column_words import chain
from pipeline.render.data.rules import in_columns

ROW_GROUP_ROWS = 1_000_000
# different on every row: they would be nine tenths of the bytes
DERIVED = ("max_context_tokens", "max_sequences")
_COLUMNS = [name for name in PUBLISHED["compatibility"].column_names if name not in DERIVED]
_MADE = ("gpu_id", "total_bytes", "gpu_count_needed", "sharding", "verdict", "unknown_reason")
_SCENARIO = [name for name in _COLUMNS if name not in _MADE]
FIELDS = ("gpu_count", "sharding", "total", "need")  # of a row of `totals`
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
# For every such word the cards that share a verdict: those that give the same, and those that do not run it for one reason.
_CARDS = f"""
WITH asked AS (
    SELECT DISTINCT f.engine_id, running_format(m, f.dtype_id) AS dtype_id, f.phase_id, f.attention, {_RUNNING} AS running
    FROM footprint AS f JOIN model AS m USING (model_id)
),
judged AS (
    SELECT running, gpu.gpu_id, card_reason(r) AS card_reason, iif(card_reason IS NULL, gpu.capacity_bytes, NULL) AS capacity_bytes
    FROM asked JOIN gpu ON true
    LEFT JOIN runs_on AS r
        ON r.engine_id = asked.engine_id AND r.dtype_id = asked.dtype_id AND r.phase_id = asked.phase_id
        AND r.attention = asked.attention AND r.gpu_id = gpu.gpu_id
)
SELECT running, capacity_bytes, card_reason, list(gpu_id ORDER BY gpu_id) AS gpu_id
FROM judged GROUP BY ALL ORDER BY running, capacity_bytes NULLS LAST, card_reason
"""


def write_compatibility(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Writes the file, sorted by scenario and then by what the card gives: rows that say the same stand together. Returns its rows."""
    scenarios = _scenarios(connection)
    cards = (
        connection.sql(_CARDS)
        .pl()
        .with_columns(
            pl.col("running", "card_reason").cast(pl.Categorical), pl.col("gpu_id").cast(pl.List(pl.Categorical))
        )
    )
    slots = sum(name.startswith("total_") for name in scenarios.columns)
    rows = scenarios.lazy().join(cards.lazy(), on="running", how="inner", maintain_order="left_right")
    _verdict_rows(rows, slots).explode("gpu_id").sink_parquet(path, compression="zstd", row_group_size=ROW_GROUP_ROWS)
    return scenarios.height * cards["gpu_id"].explode().n_unique()


def _scenarios(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """One row per scenario; for the n-th GPU count that has a total the fields of that row of `totals`: gpu_count_n, sharding_n, total_n, need_n."""
    # a table: it is asked twice, and gathering it takes longer than all that is made of it
    connection.execute("CREATE OR REPLACE TEMP TABLE gathered AS FROM scenario_totals")
    slots = connection.execute("SELECT coalesce(max(len(totals)), 1) FROM gathered").fetchall()[0][0]
    fields = ", ".join(f"s.totals[{slot + 1}].{field} AS {field}_{slot}" for slot in range(slots) for field in FIELDS)
    order = ", ".join(f"s.{name} NULLS LAST" for name in _SCENARIO)
    query = f"""
        SELECT {", ".join(f"s.{name}" for name in _SCENARIO)}, s.unknown_reason, {_RUNNING} AS running, {fields}
        FROM gathered AS s JOIN model AS m USING (model_id) ORDER BY {order}
    """
    rows = connection.sql(query).pl().with_columns(pl.col(name).cast(pl.Categorical) for name in _REPEATED)
    connection.execute("DROP TABLE gathered")
    return rows


def _verdict_rows(rows: pl.LazyFrame, slots: int) -> pl.LazyFrame:
    """The columns of the view, in its order; what is chosen is found once and then looked up."""
    rules, capacity = in_columns(), pl.col("capacity_bytes")
    is_known, runs = pl.col("total_0").is_not_null(), pl.col("card_reason").is_null()
    totals = [{field: pl.col(f"{field}_{slot}") for field in FIELDS} for slot in range(slots)]
    place = pl.when(runs).then(rules.chosen(totals, capacity).place(totals))

    def of_place(field: str) -> pl.Expr:
        return chain([(pl.col("place") == slot, row[field]) for slot, row in enumerate(totals)])

    chosen = {field: pl.col(field) for field in FIELDS}
    verdict = rules.verdict_of(pl.when(runs).then(pl.col("total_0")), chosen, capacity)
    made = {
        "total_bytes": pl.coalesce("total", "total_0"),
        "gpu_count_needed": pl.col("gpu_count"),
        "sharding": pl.coalesce("sharding", "sharding_0"),
        "verdict": verdict,
        "unknown_reason": pl.when(is_known).then("card_reason").otherwise("unknown_reason"),
    }
    return (
        rows.with_columns(place=place)
        .with_columns(of_place(field).alias(field) for field in FIELDS)
        .select(made[name].alias(name) if name in made else pl.col(name) for name in _COLUMNS)
    )
