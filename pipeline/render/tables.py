"""Reading the published tables into a book: the small ones as rows, the footprints into one dense array."""

from __future__ import annotations

from array import array
from pathlib import Path

import polars as pl

from pipeline.render.book import BAND_UNIT, BANDS, COMPONENTS, KEYS, UNKNOWN_KIB, Book, Scenario

# The order that people read formats in: whole precision first, then by how much smaller they get.
DTYPE_ORDER = [
    "stored",
    "fp32",
    "bf16",
    "fp16",
    "fp8",
    "int8",
    "gguf-q8_0",
    "gguf-q6_k",
    "gguf-q5_k_m",
    "gguf-q4_k_m",
    "nf4",
    "awq-int4",
    "gptq-int4",
    "nvfp4",
    "mxfp4",
    "gguf-mxfp4",
    "gguf-q3_k_m",
    "gguf-q2_k",
]
PHASE_ORDER = ["inference", "lora", "qlora", "full-finetune", "pretrain"]


def _order(names: list[str]):
    return lambda value: (names.index(value) if value in names else len(names), value)


def read(folder: Path) -> Book:
    """Read the tables that `folder` holds."""
    small = {}
    for file in sorted(folder.glob("*.parquet")):
        if file.stem not in ("footprint", "compatibility", "tensor", "weight"):
            small[file.stem] = pl.read_parquet(file).to_dicts()
    small["model"].sort(key=lambda m: (-(m["downloads_30d"] or 0), m["model_id"]))
    small["dtype"].sort(key=lambda d: _order(DTYPE_ORDER)(d["dtype_id"]))
    small["phase"].sort(key=lambda p: _order(PHASE_ORDER)(p["phase_id"]))
    lazy = pl.scan_parquet(folder / "footprint.parquet")
    keys = lazy.select(KEYS).unique().collect()
    rank = {"phase_id": _order(PHASE_ORDER), "dtype_id": _order(DTYPE_ORDER)}
    scenarios = sorted(
        (Scenario(**row) for row in keys.to_dicts()),
        key=lambda s: tuple(rank[k](getattr(s, k)) if k in rank else (getattr(s, k) or "",) for k in KEYS),
    )
    pairs = lazy.select("phase_id", "gpu_count").unique().collect()
    counts_of = {
        phase: sorted(part["gpu_count"]) for (phase,), part in pairs.partition_by("phase_id", as_dict=True).items()
    }
    counts = sorted(set(pairs["gpu_count"]))
    reasons = _reasons(lazy)
    totals = _dense(lazy, small["model"], scenarios, counts, reasons)
    return Book(folder, small, scenarios, counts, counts_of, totals, reasons)


def _dense(
    lazy: pl.LazyFrame, models: list[dict], scenarios: list[Scenario], counts: list[int], reasons: list[str]
) -> array:
    """Totals by model, scenario and GPU count, and after the last count the bands."""
    ids = pl.LazyFrame({"model_id": [m["model_id"] for m in models]}).with_row_index("m")
    keys = pl.DataFrame([s.__dict__ for s in scenarios], schema_overrides={k: pl.String for k in KEYS[5:]})
    coded = pl.LazyFrame({"unknown_reason": reasons}, schema={"unknown_reason": pl.String}).with_row_index(
        "r", offset=1
    )
    width = len(counts) + BANDS
    step = len(scenarios) * width
    position = pl.col("m").cast(pl.Int64) * step + pl.col("s").cast(pl.Int64) * width
    cells = (
        lazy.select(*KEYS, "model_id", "gpu_count", "total_bytes", "error_band", "unknown_reason")
        .join(ids, on="model_id")
        .join(keys.lazy().with_row_index("s"), on=list(KEYS), nulls_equal=True)
        .join(coded, on="unknown_reason", how="left", nulls_equal=True)
        .join(pl.LazyFrame({"gpu_count": counts}).with_row_index("c"), on="gpu_count")
        .select(
            (position + pl.col("c").cast(pl.Int64)).alias("at"),
            (position + len(counts)).alias("band_at"),
            (pl.col("gpu_count") == 1).alias("is_one"),
            (pl.col("total_bytes") / 1024).alias("kib"),
            pl.when(pl.col("total_bytes").is_null() & (pl.col("gpu_count") == 1))
            .then(pl.col("r").fill_null(0).cast(pl.Float64))
            .otherwise((pl.col("error_band") * BAND_UNIT).fill_null(0))
            .alias("band"),
        )
        .collect()
    )
    band_place = pl.col("band_at") + (~pl.col("is_one")).cast(pl.Int64)
    bands = cells.group_by(at=band_place).agg(kib=pl.col("band").max())
    filled = pl.concat([cells.select("at", "kib").drop_nulls(), bands.select("at", "kib")])
    if filled["at"].n_unique() != len(filled):  # a scenario published twice, for another cache format or rank
        filled = filled.unique("at", keep="first", maintain_order=True)
    whole = (
        pl.DataFrame({"at": pl.int_range(len(models) * step, eager=True)})
        .join(filled, on="at", how="left", maintain_order="left")
        .select(pl.col("kib").fill_null(UNKNOWN_KIB).cast(pl.Float32))["kib"]
    )
    return array("f", whole.rechunk().to_arrow().buffers()[1].to_pybytes()[: 4 * len(whole)])


def _reasons(lazy: pl.LazyFrame) -> list[str]:
    """Every reason that a footprint gives for a null, sorted."""
    texts = lazy.filter(pl.col("total_bytes").is_null()).select(pl.col("unknown_reason").drop_nulls().unique())
    return sorted(texts.collect()["unknown_reason"])


def components(folder: Path, scenarios: list[Scenario]) -> dict[str, list[dict]]:
    """Every component on one GPU, for a few scenarios: by model, in the order of `scenarios`."""
    lazy = pl.scan_parquet(folder / "footprint.parquet")
    keys = pl.DataFrame([s.__dict__ for s in scenarios], schema_overrides={k: pl.String for k in KEYS[5:]})
    frame = (
        lazy.filter(pl.col("gpu_count") == 1)
        .join(keys.lazy().with_row_index("s"), on=list(KEYS), nulls_equal=True)
        .select("model_id", "s", *COMPONENTS, "total_bytes", "error_band", "peak_moment", "unknown_reason")
        .unique(["model_id", "s"], keep="any")
        .sort("model_id", "s")
        .collect()
    )
    rows: dict[str, list[dict]] = {}
    for row in frame.iter_rows(named=True):
        rows.setdefault(row["model_id"], []).append(row)
    return rows
