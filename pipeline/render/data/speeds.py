"""What bounds the speed of models: what of its weights and its cache a token reads, from the tables of a release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from pipeline.base.readonly import reading
from pipeline.render.data.book import Book, Scenario
from pipeline.render.data.rules import in_python


class Read(NamedTuple):
    """Of a model in a format: the bytes of weights that a token reads, whether it reads little of its cache; or why nothing bounds its speed."""

    read_bytes: int | None
    is_sparsely_read: bool
    why: str


def reads(book: Book, formats: str) -> dict[str, dict[str, Read]]:
    """By model and format; of formats whose name begins so. Empty where the release has no formulas."""
    with reading(book.folder / "almanac.duckdb") as connection:
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if not {"shape", "weight"} <= tables:
            return {}
        # the macro is asked as of a card with a bandwidth: which card it is comes later
        query = """
            SELECT model_id, dtype_id, read_bytes, coalesce(is_sparsely_read, false), decode_reason(model, weight,
                {'phase_id': 'inference'}, {'memory_bandwidth_gb_s': 1.0})
            FROM shape AS model JOIN weight USING (model_id) WHERE starts_with(dtype_id, ?)
        """
        rows = connection.execute(query, [formats]).fetchall()
    found: dict[str, dict[str, Read]] = {}
    for model, dtype, read, is_sparse, why in rows:
        found.setdefault(model, {})[dtype] = Read(None if why else read, is_sparse, book.plainly(why) if why else "")
    return found


class Speeds:
    """How many tokens a second one sequence of a scenario is written with at most, on one card that holds it."""

    def __init__(self, book: Book, models: Iterable[str], scenario: Scenario) -> None:
        self.reads = {model: of.get(scenario.dtype_id) for model, of in reads(book, scenario.dtype_id).items()}
        asked = {name: getattr(scenario, name) for name in ("phase_id", "dtype_id", "engine_id", "context_tokens")}
        rows = pl.scan_parquet(book.folder / "footprint.parquet").filter(
            pl.col("model_id").is_in(list(models)),
            pl.col("total_bytes").is_not_null(),
            gpu_count=1,
            sequences=1,
            **asked,
        )
        cached = rows.select(
            "model_id", "phase_id", "engine_id", "sequences", "kv_cache_bytes", pl.col("state_bytes").fill_null(0)
        )
        alone = {"tensor_parallel": 1, "pipeline_parallel": 1}
        self.footprints = {row["model_id"]: row | alone for row in cached.collect().to_dicts()}

    def most(self, model: str, gpu: dict) -> float | None:
        """None where nothing is known of the model, its speed has no bound, or the card's bandwidth is not known."""
        read, footprint = self.reads.get(model), self.footprints.get(model)
        if read is None or read.read_bytes is None or footprint is None:
            return None
        of = {"is_encoder": False, "writes_otherwise": None, "is_sparsely_read": read.is_sparsely_read}
        return in_python().decode_most(of, {"read_bytes": read.read_bytes}, footprint, gpu)
