"""The published tables as the pages need them: small tables as rows, the footprints as one dense array.

A page compares thousands of totals with a capacity. So the totals of all models, scenarios and GPU counts are held once,
in KiB (float32: seven figures, and no limit), beside the error bands; the browser reads slices of the same array.
After the totals of a scenario stand its bands in ten-thousandths: that of one GPU, then that of several.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

UNKNOWN_KIB = float("inf")
BANDS = 2
BAND_UNIT = 10_000  # the error band is stored in ten-thousandths
KEYS = ("phase_id", "dtype_id", "engine_id", "context_tokens", "sequences", "optimizer_id", "checkpointing")
COMPONENTS = (
    "weights_bytes",
    "kv_cache_bytes",
    "kv_padding_bytes",
    "state_bytes",
    "activations_bytes",
    "gradients_bytes",
    "optimizer_bytes",
    "adapters_bytes",
    "overhead_bytes",
)
# Cards that a page shows before anybody asks: one of each size that many people own or rent.
COMMON_GPUS = tuple(
    [
        "rtx-4060",
        "rtx-3060-12gb",
        "rtx-4060-ti-16gb",
        "rtx-4090",
        "rtx-5090",
        "l40s",
        "a100-sxm-80gb",
        "h100-sxm",
        "rtx-pro-6000",
        "h200-sxm",
        "b200",
        "mi300x",
        "m4-max-128gb",
    ]
)


@dataclass(frozen=True)
class Scenario:
    """One row of the default lookup, whatever the model and the number of GPUs."""

    phase_id: str
    dtype_id: str
    engine_id: str
    context_tokens: int
    sequences: int
    optimizer_id: str | None
    checkpointing: str | None

    @property
    def slug(self) -> str:
        """Name of the scenario's slice."""
        return "_".join(str(part) for part in self.__dict__.values() if part is not None)


@dataclass
class Book:
    """Everything that the pages read. `models` is by downloads, and its order is the order of the array."""

    folder: Path
    tables: dict[str, list[dict]]
    scenarios: list[Scenario]
    counts: list[int]
    counts_of: dict[str, list[int]]
    array: array
    reasons: dict[tuple[str, str, str, str], str]
    index: dict[Scenario, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.index = {scenario: i for i, scenario in enumerate(self.scenarios)}

    def __getitem__(self, table: str) -> list[dict]:
        return self.tables.get(table, [])

    @property
    def models(self) -> list[dict]:
        return self.tables["model"]

    @property
    def width(self) -> int:
        """Numbers per model and scenario: a total per GPU count, and the bands."""
        return len(self.counts) + BANDS

    def totals(self, model: int, scenario: int) -> array:
        at = (model * len(self.scenarios) + scenario) * self.width
        return self.array[at : at + self.width]

    def is_known(self, model: int, scenario: Scenario) -> bool:
        """Whether any GPU count of the scenario has a total."""
        return min(self.totals(model, self.index[scenario])[:-BANDS]) != UNKNOWN_KIB

    def model_bytes(self, model: int) -> bytes:
        step = len(self.scenarios) * self.width
        return self.array[model * step : (model + 1) * step].tobytes()

    def scenario_bytes(self, scenario: int) -> bytes:
        step, width = len(self.scenarios) * self.width, self.width
        out = array("f", bytes(4 * width * len(self.models)))
        for column in range(width):
            out[column::width] = self.array[scenario * width + column :: step]
        return out.tobytes()

    @cached_property
    def gpus(self) -> list[dict]:
        segments = ["consumer", "workstation", "datacenter", "unified", "embedded", "tpu"]
        order = {name: i for i, name in enumerate(segments)}
        return sorted(
            self.tables["gpu"],
            key=lambda g: (order.get(g["segment"], 9), g["vendor"], g["memory_gib_nominal"], g["name"], g["gpu_id"]),
        )

    @cached_property
    def common(self) -> list[dict]:
        """The common cards, smallest first; every card where the table knows too few of them."""
        by_id = {gpu["gpu_id"]: gpu for gpu in self.gpus}
        chosen = [by_id[i] for i in COMMON_GPUS if i in by_id]
        return sorted(chosen if len(chosen) > 3 else self.gpus, key=lambda g: (g["capacity_bytes"], g["gpu_id"]))

    def reason(self, model: dict, scenario: Scenario) -> str:
        found = self.reasons.get((model["model_id"], scenario.phase_id, scenario.dtype_id, scenario.engine_id))
        return found or model["anatomy_note"] or "no footprint was published"

    def axis(self, phases: set[str], name: str) -> list:
        """The values that a set of phases is published for."""
        values = {getattr(s, name) for s in self.scenarios if s.phase_id in phases}
        return sorted(values - {None})

    def default(self, phase: str, **wanted) -> dict:
        """The scenario that a page shows first: a middling context, one sequence, what most people train with."""
        preferred = {
            "context_tokens": 8192 if phase == "inference" else 2048,
            "sequences": 1,
            "optimizer_id": "adamw",
            "checkpointing": "full",
        } | wanted
        chosen = {}
        for name, value in preferred.items():
            values = self.axis({phase}, name)
            below = [v for v in values if isinstance(v, int) and v <= value]
            chosen[name] = value if value in values else below[-1] if below else values[0] if values else None
        return chosen

    def rows(self, phases, **wanted) -> list[Scenario]:
        """The scenarios of the phases that agree with `wanted`, in the order of the phase and dtype tables."""
        dtype_order = {row["dtype_id"]: i for i, row in enumerate(self["dtype"])}
        own_engine = {(row["dtype_id"], row["engine_id"]) for row in self["dtype"]}
        rows = [
            s for s in self.scenarios if s.phase_id in phases and all(getattr(s, k) == v for k, v in wanted.items())
        ]
        order = lambda s: (list(phases).index(s.phase_id), dtype_order.get(s.dtype_id, 99))  # noqa: E731
        return sorted(rows, key=lambda s: (*order(s), (s.dtype_id, s.engine_id) not in own_engine, s.engine_id))

    def published_counts(self, phases) -> list[int]:
        """GPU counts that a group of phases is published for."""
        return sorted({n for phase in phases for n in self.counts_of.get(phase, self.counts)})

    @cached_property
    def formats(self) -> dict[Scenario, str]:
        """A dtype by name, with its engine where the phase has several for it."""
        engines: dict[tuple[str, str], set[str]] = {}
        for s in self.scenarios:
            engines.setdefault((s.phase_id, s.dtype_id), set()).add(s.engine_id)
        names = {e["engine_id"]: e["name"] for e in self["engine"]}
        return {
            s: f"{s.dtype_id} ({names.get(s.engine_id, s.engine_id)})"
            if len(engines[s.phase_id, s.dtype_id]) > 1
            else s.dtype_id
            for s in self.scenarios
        }


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
    totals = _dense(lazy, small["model"], scenarios, counts)
    return Book(folder, small, scenarios, counts, counts_of, totals, _reasons(lazy))


def _dense(lazy: pl.LazyFrame, models: list[dict], scenarios: list[Scenario], counts: list[int]) -> array:
    """Totals by model, scenario and GPU count, and after the last count the bands."""
    ids = pl.LazyFrame({"model_id": [m["model_id"] for m in models]}).with_row_index("m")
    keys = pl.DataFrame([s.__dict__ for s in scenarios], schema_overrides={k: pl.String for k in KEYS[5:]})
    width = len(counts) + BANDS
    step = len(scenarios) * width
    position = pl.col("m").cast(pl.Int64) * step + pl.col("s").cast(pl.Int64) * width
    cells = (
        lazy.select(*KEYS, "model_id", "gpu_count", "total_bytes", "error_band")
        .join(ids, on="model_id")
        .join(keys.lazy().with_row_index("s"), on=list(KEYS), nulls_equal=True)
        .join(pl.LazyFrame({"gpu_count": counts}).with_row_index("c"), on="gpu_count")
        .select(
            (position + pl.col("c").cast(pl.Int64)).alias("at"),
            (position + len(counts)).alias("band_at"),
            (pl.col("gpu_count") == 1).alias("is_one"),
            ((pl.col("total_bytes") + 1023) // 1024).alias("kib"),
            (pl.col("error_band") * BAND_UNIT).round().fill_null(0).cast(pl.Int64).alias("band"),
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


def _reasons(lazy: pl.LazyFrame) -> dict[tuple[str, str, str, str], str]:
    rows = (
        lazy.filter(pl.col("total_bytes").is_null() & pl.col("unknown_reason").is_not_null())
        .group_by("model_id", "phase_id", "dtype_id", "engine_id")
        .agg(pl.col("unknown_reason").min())
        .collect()
    )
    return {row[:4]: row[4] for row in rows.iter_rows()}


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
    return {key[0]: part.to_dicts() for key, part in frame.partition_by("model_id", as_dict=True).items()}
