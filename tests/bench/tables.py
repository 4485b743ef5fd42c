"""How long readers wait: point look-ups in the published tables, as ratios to the fastest of one run (`make bench`).

Every figure is the median of RUNS; other work on the machine moves all of them alike, so compare the ratios.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import duckdb
import polars as pl

from pipeline.press import build, publish

RUNS = 7
MODEL = "Qwen/Qwen3-8B"


def median_seconds(what) -> float:
    def once() -> float:
        started = time.perf_counter()
        what()
        return time.perf_counter() - started

    once()
    return statistics.median(once() for _ in range(RUNS))


def main(tables: Path = publish.ROOT / "build" / "tables") -> int:
    if not (tables / build.DATABASE).exists():
        print(f"error: {tables} holds no tables; `make publish` builds them", file=sys.stderr)
        return 1
    database = duckdb.connect(str(tables / build.DATABASE), read_only=True)
    parquet = duckdb.connect()
    footprint, compatibility = tables / "footprint.parquet", tables / "compatibility.parquet"

    def ask(connection, query):
        return lambda: connection.execute(query).fetchall()

    readers = {
        "footprints of one model, Parquet, DuckDB": ask(parquet, f"FROM '{footprint}' WHERE model_id = '{MODEL}'"),
        "footprints of one model, Parquet, polars": lambda: (
            pl.scan_parquet(footprint).filter(pl.col("model_id") == MODEL).collect()
        ),
        "footprints of one model, almanac.duckdb": ask(database, f"FROM footprint WHERE model_id = '{MODEL}'"),
        "verdicts of one model and card, Parquet": ask(
            parquet, f"FROM '{compatibility}' WHERE model_id = '{MODEL}' AND gpu_id = 'rtx-4090'"
        ),
        "verdicts of one model and card, view": ask(
            database, f"FROM compatibility WHERE model_id = '{MODEL}' AND gpu_id = 'rtx-4090'"
        ),
        "any scenario, footprint_of": ask(database, f"FROM footprint_of('{MODEL}', context_tokens := 40000)"),
        "what_fits on one card": ask(database, "FROM what_fits('rtx-4090', dtype_id := 'gguf-q4_k_m')"),
    }
    seconds = {name: median_seconds(what) for name, what in readers.items()}
    fastest = min(seconds.values())
    for name, taken in seconds.items():
        print(f"{name:44} {1000 * taken:9.1f} ms {taken / fastest:8.1f} ×")
    return 0


if __name__ == "__main__":
    sys.exit(main())
