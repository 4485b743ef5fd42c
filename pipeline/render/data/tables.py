"""Reading the published tables into a book: the small ones as rows, the footprints into one dense array."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

from pipeline.book.packs import Packs
from pipeline.render.data.book import BAND_UNIT, KEYS, UNKNOWN_KIB, Book, Scenario
from pipeline.render.data.kept import Kept, contents
from pipeline.render.environment import short_names

# The order that people read formats in: as published, four bits, which most people run, then the larger ones up to whole precision, and
# the smallest last.
DTYPE_ORDER = [
    "stored",
    "gguf-q4_k_m",
    "gguf-mxfp4",
    "awq-int4",
    "gptq-int4",
    "nf4",
    "nvfp4",
    "mxfp4",
    "mlx-4bit",
    "gguf-q5_k_m",
    "gguf-q6_k",
    "mlx-6bit",
    "gguf-q8_0",
    "fp8",
    "int8",
    "mlx-8bit",
    "bf16",
    "fp16",
    "fp32",
    "gguf-q3_k_m",
    "gguf-q2_k",
]
PHASE_ORDER = ["inference", "lora", "qlora", "full-finetune", "pretrain"]
# larger than the others together: pages ask them in their files, where they ask them at all
_NOT_AS_ROWS = ("footprint", "compatibility", "cpu_split", "tensor", "weight", "rule_error", "pipeline_compatibility")
_RUNS_ON = "runs_on"


def _order(names: list[str]):
    return lambda value: (names.index(value) if value in names else len(names), value)


def read(folder: Path, packs: Packs | None = None) -> Book:
    """Read the tables that `folder` holds. Totals that `packs` have of a model's content are not gathered again."""
    small = {}
    for file in sorted(folder.glob("*.parquet")):
        if file.stem == _RUNS_ON:
            small[file.stem] = _running(file)
        elif file.stem not in _NOT_AS_ROWS:
            small[file.stem] = pl.read_parquet(file).to_dicts()
    small["model"].sort(key=lambda m: (-(m["downloads_30d"] or 0), m["model_id"]))
    for gpu, short in zip(small["gpu"], short_names([g["name"] for g in small["gpu"]]), strict=True):
        gpu["short"] = short
    small["dtype"].sort(key=lambda d: _order(DTYPE_ORDER)(d["dtype_id"]))
    small["phase"].sort(key=lambda p: _order(PHASE_ORDER)(p["phase_id"]))
    of_models = contents(folder / "almanac.duckdb")
    everything = pl.scan_parquet(folder / "footprint.parquet")
    rows_of, firsts = _shared(everything, small["model"], of_models)
    lazy = everything.filter(pl.col("model_id").is_in(firsts))
    keys = lazy.select(KEYS).unique().collect()
    phases, dtypes = _order(PHASE_ORDER), _order(DTYPE_ORDER)
    own = {(d["dtype_id"], d["engine_id"]) for d in small["dtype"]}  # a format's own engine stands before others
    scenarios = sorted(
        (Scenario(**row) for row in keys.to_dicts()),
        key=lambda s: (
            *(phases(s.phase_id), dtypes(s.dtype_id), (s.dtype_id, s.engine_id) not in own, s.engine_id),
            *(s.context_tokens, s.sequences, s.optimizer_id or "", s.checkpointing or ""),
        ),
    )
    sharing = pl.DataFrame({"model_id": firsts, "models": [n for _row, n in sorted(Counter(rows_of).items())]})
    pairs = (
        lazy.select("phase_id", "gpu_count", "model_id").unique().join(sharing.lazy(), on="model_id")
        .group_by("phase_id", "gpu_count").agg(pl.col("models").sum()).sort("phase_id", "gpu_count").collect()
    )  # fmt: skip
    asked_of_all = pairs.filter(pl.col("models") == pl.col("models").max().over("phase_id"))
    counts_of = {
        phase: sorted(part["gpu_count"])
        for (phase,), part in asked_of_all.partition_by("phase_id", as_dict=True).items()
    }
    counts = sorted(set(pairs["gpu_count"]))
    reasons = _reasons(lazy)
    known = Kept(
        of_models, [[list(s.__dict__.values()) for s in scenarios], counts, reasons], packs if of_models else None
    )
    totals = _totals(lazy, firsts, scenarios, counts, reasons, known)
    book = Book(folder, small, scenarios, counts, counts_of, totals, reasons, rows_of, of_models)
    book.reasons = [book.plainly(reason) for reason in reasons]  # their places are their numbers
    return book


def _running(file: Path) -> list[dict]:
    """Cards of which the table says the same in one row: row by row, they are hundreds of thousands of objects that every process holds."""
    said = ["engine_id", "running_id", "phase_id", "attention", "runs", "how"]
    rows = pl.scan_parquet(file).group_by(said, maintain_order=True).agg(pl.col("gpu_id").str.join(" ")).collect()
    cards = {names: tuple(names.split(" ")) for names in rows["gpu_id"].unique()}
    return [row | {"gpu_ids": cards[row.pop("gpu_id")]} for row in rows.to_dicts()]


def _shared(footprints: pl.LazyFrame, models: list[dict], contents: Mapping[str, str]) -> tuple[list[int], list[str]]:
    """By model its row of the array, and of each row the first model that has it: models of one content have the same footprints, and those
    without any are alike."""
    known = set(footprints.select(pl.col("model_id").unique()).collect()["model_id"])
    rows: dict[str, int] = {}
    firsts, rows_of = [], []
    for model in models:
        name = model["model_id"]
        content = contents.get(name, name) if name in known else ""
        if content not in rows:
            rows[content] = len(firsts)
            firsts.append(name)
        rows_of.append(rows[content])
    return rows_of, firsts


def _totals(
    lazy: pl.LazyFrame,
    models: Sequence[str],
    scenarios: list[Scenario],
    counts: list[int],
    reasons: list[str],
    kept: Kept,
) -> array:
    """The rows of these models, one after the other. (Each is packed by itself: together they are larger than all else that is kept.)"""

    def make(some: list[str]) -> dict[str, bytes]:
        whole = memoryview(_dense(lazy.filter(pl.col("model_id").is_in(some)), some, scenarios, counts, reasons)).cast(
            "B"
        )
        return {
            name: pa.compress(whole[i * size : (i + 1) * size], "zstd", asbytes=True) for i, name in enumerate(some)
        }

    size = 4 * len(scenarios) * 2 * len(counts)
    keys = {name: kept.key("totals", name, None) for name in models}
    packed, found = kept.values("totals", keys, make), array("f")
    for name in models:
        found.frombytes(pa.decompress(packed[keys[name]], size, "zstd"))
    return found


def _dense(
    lazy: pl.LazyFrame, models: Sequence[str], scenarios: list[Scenario], counts: list[int], reasons: list[str]
) -> array:
    """Totals by model, scenario and GPU count, and after the last count the band of each."""
    step = len(scenarios) * 2 * len(counts)
    # Millions of rows: every key becomes a small number, and the keys of a scenario one number together.
    values = {k: sorted({getattr(s, k) for s in scenarios} - {None}) for k in KEYS}
    coded = {k: _coded(pl.col(k), values[k]) for k in KEYS}
    place, size = pl.lit(0, dtype=pl.Int64), 1
    for k in KEYS:
        place, size = place + coded[k] * size, size * (len(values[k]) + 1)
    known = pl.DataFrame([s.__dict__ for s in scenarios], schema_overrides={k: pl.String for k in KEYS[5:]})
    scenario = known.select(place=place).with_row_index("s")
    cells = (
        lazy.select(
            _coded(pl.col("model_id"), list(models)).alias("m"),
            place.alias("place"),
            _coded(pl.col("gpu_count"), counts).alias("c"),
            (pl.col("total_bytes") / 1024).cast(pl.Float32).alias("kib"),
            (pl.col("error_band") * BAND_UNIT).fill_null(0).cast(pl.Float32).alias("band"),
            _coded(pl.col("unknown_reason"), reasons).alias("r"),
        )
        .join(scenario.lazy(), on="place")
        .select(
            "c", "kib", "band", "r", at=(pl.col("m") - 1) * step + pl.col("s").cast(pl.Int64) * (step // len(scenarios))
        )
        .collect()
    )
    whole = pl.repeat(UNKNOWN_KIB, len(models) * step, dtype=pl.Float32, eager=True)
    for number in range(1, len(counts) + 1):
        # a scenario published twice, for another cache format or rank: the first is kept, so it is written last
        part = cells.filter(pl.col("c") == number).reverse()
        total = part.filter(pl.col("kib").is_not_null())
        whole.scatter(total["at"] + (number - 1), total["kib"])
        if number == 1:
            band = part.select(pl.when(pl.col("kib").is_null()).then(pl.col("r").cast(pl.Float32)).otherwise("band"))
            whole.scatter(part["at"] + len(counts), band.to_series())
        else:
            whole.scatter(total["at"] + (len(counts) + number - 1), total["band"])
    return array("f", whole.rechunk().to_arrow().buffers()[1].to_pybytes()[: 4 * len(whole)])


def _coded(column: pl.Expr, values: list) -> pl.Expr:
    """The place of a value in the list, from 1; 0 for none."""
    if values and isinstance(values[0], str):
        return column.cast(pl.Enum(values)).to_physical().cast(pl.Int64).fill_null(-1) + 1
    return (
        column.replace_strict(values, range(1, len(values) + 1), default=0, return_dtype=pl.Int64)
        if values
        else pl.lit(0)
    )


def _reasons(lazy: pl.LazyFrame) -> list[str]:
    """Every reason that a footprint gives for a null, sorted."""
    texts = lazy.filter(pl.col("total_bytes").is_null()).select(pl.col("unknown_reason").drop_nulls().unique())
    return sorted(texts.collect()["unknown_reason"])
