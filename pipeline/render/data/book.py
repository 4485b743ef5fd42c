"""The published tables as the pages need them: small tables as rows, the footprints as one dense array.

A page compares thousands of totals with a capacity. So the totals of all models, scenarios and GPU counts are held once,
in KiB (float32: seven figures, and no limit), beside the error bands; the browser reads slices of the same array. Models of the same
content share a row of it: two in three have that of another one.
After the totals of a scenario stand their bands in ten-thousandths, in the same order. Where the total
on one GPU is unknown, the first band's place holds the number of the reason, from 1.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from pathlib import Path

from pipeline.book.components import COMPONENTS
from pipeline.render.data import openings
from pipeline.render.data.works import Works
from pipeline.render.pages import plain

UNKNOWN_KIB = float("inf")
UNPUBLISHED = "no footprint was published"
COMMON = 0.1  # a context is common where it is known for so many of the models that the commonest is known for
BAND_UNIT = 10_000  # the error band is stored in ten-thousandths
KEYS = ("phase_id", "dtype_id", "engine_id", "context_tokens", "sequences", "optimizer_id", "checkpointing")
PARTS = tuple(component.column for component in COMPONENTS)
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
    def but_for_context(self) -> tuple:
        """What it shares with those of other contexts."""
        return tuple(value for name, value in self.__dict__.items() if name != "context_tokens")


@dataclass
class Book:
    """Everything that the pages read. `models` is by downloads, and its order is the order of the array; `rows_of` says which row of it is a
    model's where some share one. `contents` are those of content.py, by model."""

    folder: Path
    tables: dict[str, list[dict]]
    scenarios: list[Scenario]
    counts: list[int]
    counts_of: dict[str, list[int]]
    array: array
    reasons: list[str]
    rows_of: Sequence[int] = ()
    contents: Mapping[str, str] = field(default_factory=dict)
    first: int = 0  # the model that the array begins with
    index: dict[Scenario, int] = field(default_factory=dict)
    _asked: dict = field(default_factory=dict)  # pages ask the same few questions thousands of times

    def __post_init__(self) -> None:
        self.index = {scenario: i for i, scenario in enumerate(self.scenarios)}

    def __getitem__(self, table: str) -> list[dict]:
        return self.tables.get(table, [])

    @property
    def models(self) -> list[dict]:
        return self.tables["model"]

    @property
    def width(self) -> int:
        """Numbers per model and scenario: a total per GPU count, and the band of each."""
        return 2 * len(self.counts)

    @property
    def _step(self) -> int:
        """Numbers of a row of the array."""
        return len(self.scenarios) * self.width

    @property
    def row_bytes(self) -> int:
        return self.array.itemsize * self._step

    @property
    def _bytes(self) -> memoryview:
        return memoryview(self.array).cast("B") if self.array else memoryview(b"")

    def row(self, model: int) -> int:
        """The row of the array that has a model's totals."""
        return self.rows_of[model] if self.rows_of else model - self.first

    def totals(self, model: int, scenario: int) -> array:
        at = self.row(model) * self._step + scenario * self.width
        return self.array[at : at + self.width]

    def totals_on_one(self, model: int) -> array:
        """Every scenario of a model on one GPU."""
        at = self.row(model) * self._step
        return self.array[at : at + self._step : self.width]

    def is_told(self, model: int) -> bool:
        """Whether any scenario of a model has a total on one GPU."""
        return any(map(UNKNOWN_KIB.__ne__, self.totals_on_one(model)))

    def is_known(self, model: int, scenario: Scenario) -> bool:
        """Whether any GPU count of the scenario has a total."""
        return min(self.totals(model, self.index[scenario])[: len(self.counts)]) != UNKNOWN_KIB

    def model_bytes(self, model: int) -> bytes:
        return bytes(next(self.model_rows(range(model, model + 1))))

    def model_rows(self, models: range) -> Iterator[memoryview]:
        """The totals of consecutive models, in bytes, one after the other."""
        step, held = self.row_bytes, self._bytes
        for model in models:
            at = self.row(model) * step
            yield held[at : at + step]

    def scenario_bytes(self, model: int, scenarios: Iterable[int]) -> bytes:
        """Some scenarios of a model by their places, in bytes, one after the other."""
        at, width, held = self.row(model) * self.row_bytes, self.array.itemsize * self.width, self._bytes
        return b"".join([held[at + place * width : at + (place + 1) * width] for place in scenarios])

    def light(self) -> Book:
        """The same without totals and without what other tables hold of models."""
        small = {n: rows for n, rows in self.tables.items() if n == "model" or not rows or "model_id" not in rows[0]}
        kept = (self.scenarios, self.counts, self.counts_of, array("f"), self.reasons)
        return Book(self.folder, small, *kept)

    def column(self, scenario: int, place: int = 0) -> array:
        """One number of a scenario by its place (0: the total on one GPU), of every row of the array."""
        return self.array[scenario * self.width + place :: self._step]

    @cached_property
    def works(self) -> Works:
        """Which models are one work."""
        return Works(self.models)

    @cached_property
    def word_rules(self) -> plain.Rules:
        """How a reason of the tables is said to a reader, here and in the browser."""
        return plain.rules(self.tables)

    @cached_property
    def plainly(self) -> Callable[[str], str]:
        """A reason of the tables in a reader's words."""
        return plain.teller(self.word_rules)

    @cached_property
    def openings(self) -> dict[str, dict]:
        """By phase what is taken where a reader has chosen nothing (scenario_set.csv)."""
        return openings.read(self["scenario_set"])

    @cached_property
    def but_for_context(self) -> dict[tuple, list[Scenario]]:
        """Scenarios that differ by their context alone, together."""
        found: dict[tuple, list[Scenario]] = {}
        for scenario in self.scenarios:
            found.setdefault(scenario.but_for_context, []).append(scenario)
        return found

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

    def reason(self, number: int, scenario: Scenario) -> str:
        """Why a scenario of a model has no total."""
        model, totals = self.models[number], self.totals(number, self.index[scenario])
        code = totals[len(self.counts)] if totals[0] == UNKNOWN_KIB else 0
        if 0 < code < UNKNOWN_KIB:
            return self.reasons[int(code) - 1]
        if model["anatomy_grade"] == "unknown":
            return model["anatomy_note"] or UNPUBLISHED
        if not model["max_context_tokens"]:  # what reads no text is published at one length, whatever was asked
            return self._reason_at_any_length(number, scenario) or UNPUBLISHED
        if model["max_context_tokens"] < scenario.context_tokens:
            return f"the model's own context ends at {model['max_context_tokens']:,} tokens"
        return UNPUBLISHED

    def _reason_at_any_length(self, number: int, scenario: Scenario) -> str | None:
        for other in self.rows([scenario.phase_id], dtype_id=scenario.dtype_id, engine_id=scenario.engine_id):
            totals = self.totals(number, self.index[other])
            code = totals[len(self.counts)]
            if totals[0] == UNKNOWN_KIB and 0 < code < UNKNOWN_KIB:
                return self.reasons[int(code) - 1]
        return None

    def axis(self, phases: set[str], name: str) -> list:
        """The values that a set of phases is published for."""
        return self._once(("axis", frozenset(phases), name), lambda: self._axis(phases, name))

    def _once(self, key: tuple, make):
        if key not in self._asked:
            self._asked[key] = make()
        return self._asked[key]

    def _axis(self, phases: set[str], name: str) -> list:
        values = {getattr(s, name) for s in self.scenarios if s.phase_id in phases}
        return sorted(values - {None})

    def common_contexts(self, phases: set[str]) -> list[int]:
        """Those of the axis that many models are known at: the others are a few models' own, shorter ones."""
        return self._once(("common contexts", frozenset(phases)), lambda: self._common_contexts(phases))

    def _common_contexts(self, phases: set[str]) -> list[int]:
        known: dict[int, int] = {}
        sharing = Counter(map(self.row, range(len(self.models))))
        models = [sharing[row] for row in range(len(sharing))]
        for s in self.rows(sorted(phases)):
            totals = self.column(self.index[s])
            number = sum(compress(models, map(UNKNOWN_KIB.__ne__, totals)))
            known[s.context_tokens] = max(known.get(s.context_tokens, 0), number)
        most = max(known.values(), default=0)
        return sorted(c for c, n in known.items() if n >= COMMON * most)

    def default(self, phase: str, **wanted) -> dict:
        """The scenario that a page shows first: what the book opens a phase with, or the nearest below it that is published."""
        preferred = {
            k: v for k, v in self.openings.get(phase, self.openings["lora"]).items() if k != "dtype_id"
        } | wanted
        chosen = {}
        for name, value in preferred.items():
            values = self.axis({phase}, name)
            below = [v for v in values if isinstance(v, int) and v <= value]
            chosen[name] = value if value in values else below[-1] if below else values[0] if values else None
        return chosen

    def rows(self, phases, **wanted) -> list[Scenario]:
        """The scenarios of the phases that agree with `wanted`, in the order of the phase and dtype tables."""
        key = ("rows", tuple(phases), tuple(sorted(wanted.items())))
        return self._once(key, lambda: self._rows(phases, wanted))

    def _rows(self, phases, wanted: dict) -> list[Scenario]:
        dtype_order = {row["dtype_id"]: i for i, row in enumerate(self["dtype"])}
        rows = [
            s for s in self.scenarios if s.phase_id in phases and all(getattr(s, k) == v for k, v in wanted.items())
        ]
        order = lambda s: (list(phases).index(s.phase_id), dtype_order.get(s.dtype_id, 99))  # noqa: E731
        return sorted(rows, key=lambda s: (*order(s), not self.is_own_engine(s), s.engine_id))

    def is_own_engine(self, scenario: Scenario) -> bool:
        """Whether a format is told of that engine where nobody names one."""
        engines = self._once("own engines", lambda: {row["dtype_id"]: row["engine_id"] for row in self["dtype"]})
        return engines.get(scenario.dtype_id) == scenario.engine_id

    def published_counts(self, phases) -> list[int]:
        """GPU counts that a group of phases is published for, for every model."""
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
