"""The formulas of sharded training against steps that were really run with FSDP2 (tests/oracle/sharded_peaks.csv): real code on fake tensors."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.book.scenario import TYPES
from tests.formulas import step_account

# the rows beyond 2.5 % are of experts that few layers hold, whose gradients come one by one where the formula takes them at once, and
# of tied heads in tiles, which the formula gives as many gradients as one that makes logits
UNDER, OVER = -0.025, 0.06


@pytest.fixture(scope="module")
def judged():
    """Rows of sharded_peaks.csv with `error`, predicted ÷ counted − 1."""
    rows = [row for row in step_account.read("sharded_peaks.csv") if row["peak_bytes"]]
    connection = step_account.book()
    named = [name for name in rows[0] if name in TYPES]
    frame = pl.DataFrame(
        [
            dict.fromkeys(TYPES) | {"model_id": row["model"]} | {name: row[name] or None for name in named}
            for row in rows
        ],
        schema=dict.fromkeys(TYPES, pl.String),
    ).cast({name: kind for name, kind in TYPES.items() if kind != pl.Boolean})
    # some steps are longer than what their config was trained for
    longest = [pl.col("context_tokens").alias("max_context_tokens")]
    nulls = [pl.lit(None, pl.Boolean).alias(name) for name in TYPES if TYPES[name] == pl.Boolean]
    connection.register("asked", frame.with_columns(longest + nulls).to_arrow())
    connection.execute("CREATE TABLE batch AS FROM asked")
    keys = ", ".join(("model_id", *named))
    answers = step_account.unoptimised(
        connection, f"SELECT {keys}, total_bytes - overhead_bytes, peak_moment, unknown_reason FROM footprints('batch')"
    )
    connection.close()
    by_scenario = {answer[:-3]: answer[-3:] for answer in answers}
    # (a frozen base in fp32 is answered as what it is gathered in)
    cast = (
        pl.when(pl.col("dtype_id") == "fp32", pl.col("precision") == "amp").then(pl.lit("bf16")).otherwise("dtype_id")
    )
    asked = frame.with_columns(cast.alias("dtype_id")).select("model_id", *named)
    for row, scenario in zip(rows, asked.rows(), strict=True):
        predicted, row["moment"], row["reason"] = by_scenario[scenario]
        row["error"] = None if predicted is None else predicted / int(row["peak_bytes"]) - 1
    return rows


def test_peaks_are_those_of_real_sharded_steps(judged):
    assert len(judged) > 60
    outside = [
        (*list(row.values())[:11], row["moment"], row["reason"], row["error"])
        for row in judged
        if row["error"] is None or not UNDER <= row["error"] <= OVER
    ]
    assert not outside
