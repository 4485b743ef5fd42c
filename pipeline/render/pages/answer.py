"""The sentence a model page opens with: the smallest common card for each thing that people do with a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pipeline.book.commands import GGUF_OF
from pipeline.render.data.book import UNKNOWN_KIB, Book, Scenario
from pipeline.render.data.support import Support
from pipeline.render.words import KEPT, judge, tokens

# What the sentence speaks of: a phase, the formats in the order of preference, how it is named.
ASKED = (
    ("inference", ("gguf-q4_k_m", "awq-int4", "nf4"), "in 4-bit"),
    ("inference", ("bf16", "fp16"), "in bf16"),
    ("lora", ("bf16", "fp16"), "LoRA"),
    ("full-finetune", ("bf16", "fp16"), "full fine-tuning"),
)
FOUR_BIT = ASKED[0][1] + ("gptq-int4", "gptq-int4-g64", "gptq-int4-g32", "gptq-int4-g32-sym", "mxfp4", "nvfp4")
WHOLE = ("fp32", "bf16", "fp16")
FULL = ("inference", ("fp32",), "in fp32")  # of what is known in no other format
# The largest card that is counted as one, in nominal GiB; what needs more is told in cards of this size.
SINGLE_GIB = 80


class Hardware(NamedTuple):
    """So many cards of a size, and whether they hold it by less than our error."""

    gpu_count: int
    nominal_gib: int
    is_barely: bool = False

    def __str__(self) -> str:
        cards = (
            f"one {self.nominal_gib} GB card" if self.gpu_count == 1 else f"{self.gpu_count} × {self.nominal_gib} GB"
        )
        return cards + (", barely" if self.is_barely else "")

    @property
    def order(self) -> tuple[bool, int]:
        """The less the better."""
        return self.is_barely, self.gpu_count * self.nominal_gib


def asked(book: Book, model: int, context: int | None) -> tuple:
    """ASKED for a model: what is published in fewer bits runs as it is, and is told first; then what its files are converted to, and trained in."""
    stored = book.models[model]["stored_format"]
    rows = book.rows(["inference"], dtype_id="stored", **book.default("inference", context_tokens=context))
    if stored is None or stored in WHOLE or not any(book.is_known(model, s) for s in rows):
        return ASKED
    return (
        ("inference", (GGUF_OF.get(stored, "stored"), "stored"), f"as published ({stored})"),
        *(("inference", FOUR_BIT[:1], name) for phase, _dtypes, name in ASKED[:1] if stored not in FOUR_BIT),
        *(row for row in ASKED if row[0] != "inference"),
    )


def ladder(book: Book) -> list[tuple[int, int]]:
    """Nominal GiB and the smallest capacity (KiB) among the common cards of that size, smallest first."""
    sizes: dict[int, int] = {}
    for gpu in spoken_of(book):
        nominal = round(gpu["memory_gib_nominal"])
        sizes[nominal] = min(sizes.get(nominal, gpu["capacity_bytes"] // 1024), gpu["capacity_bytes"] // 1024)
    return sorted(sizes.items())


def spoken_of(book: Book) -> list[dict]:
    """The common cards that the sentence speaks of."""
    return [gpu for gpu in book.common if gpu["segment"] != "unified" and gpu["vendor"] == "nvidia"]


def smallest(totals, counts: list[int], cards: list[tuple[int, int]]) -> Hardware | None:
    """The least hardware that a scenario runs on; None where it does not run."""
    for nominal, capacity in cards:
        if nominal <= SINGLE_GIB and judge(totals, counts, capacity)[0] == "fits":
            return Hardware(1, nominal)
    largest = max((c for c in cards if c[0] <= SINGLE_GIB), default=cards[-1])
    barely = None
    for nominal, capacity in [largest, *(c for c in cards if c[0] > SINGLE_GIB and c != largest)]:
        verdict, gpus, _kib = judge(totals, counts, capacity)
        if gpus == 1 or verdict == "multi-gpu":
            return Hardware(gpus, nominal, verdict == "tight")
        if verdict == "tight":
            barely = barely or Hardware(gpus, nominal, True)
    return barely


class Answers:
    """What is said of models, by their places in the book."""

    def __init__(self, book: Book, support: Support) -> None:
        self.book, self.support = book, support
        self.cards = ladder(book)
        self._runs: dict[tuple, bool] = {}

    def least(self, model: int, scenarios: Iterable[Scenario]) -> dict[str, tuple[Scenario, Hardware | None]]:
        """By dtype, in the order of the scenarios, the one that runs on the least hardware, and that: of an engine that runs on cards that the
        sentence speaks of, where one does. Of two that need the same the first, which is the dtype's own."""
        found: dict[str, tuple[Scenario, Hardware | None]] = {}
        known = [s for s in scenarios if self.book.is_known(model, s)]
        for s in sorted(known, key=lambda s: not self._is_run(model, s)):
            where = smallest(self.book.totals(model, self.book.index[s]), self.book.counts, self.cards)
            before = found.get(s.dtype_id)
            if before is None or (
                self._is_run(model, s) and where and (not before[1] or where.order < before[1].order)
            ):
                found[s.dtype_id] = s, where
        order = list(dict.fromkeys(s.dtype_id for s in known))
        return {dtype: found[dtype] for dtype in order}

    def _is_run(self, model: int, s: Scenario) -> bool:
        held = self.support.format(s, model)
        key = (s.phase_id, s.engine_id, held)
        if key not in self._runs:
            self._runs[key] = any(not self.support.refusal(s, held, gpu["gpu_id"]) for gpu in spoken_of(self.book))
        return self._runs[key]

    def _best(
        self, model: int, phase: str, dtypes: tuple[str, ...], **wanted
    ) -> tuple[Scenario, Hardware | None] | None:
        """Of the formats, the most wanted first, the first that is in no doubt."""
        least = self.least(model, self.book.rows([phase], **self.book.default(phase, **wanted)))
        known = [least[d] for d in dtypes if d in least and self._is_run(model, least[d][0])]
        return min(known, key=lambda one: 2 if one[1] is None else int(one[1].is_barely), default=None)

    def badge(self, model: int, context: int | None) -> str | None:
        """`8 GB in 4-bit`: the smallest single card in the smallest usual format that the model is known in."""
        for phase, dtypes, name in (a for a in asked(self.book, model, context) if a[0] == "inference"):
            if found := self._best(model, phase, dtypes, context_tokens=context):
                where = found[1]
                is_one = where and where.gpu_count == 1 and where.nominal_gib <= SINGLE_GIB and not where.is_barely
                return f"{where.nominal_gib} GB {name}" if where and is_one else None
        return None

    def of(self, model: int, context: int | None, length: int | None, given: str = "") -> tuple[str, str]:
        """The answer, and what exactly it is the answer to; both empty where nothing is known. `given`: an input of one size that is no
        number of tokens."""
        book, facts = self.book, []
        for phase, dtypes, name in (*asked(book, model, context), FULL):
            if ((phase, dtypes, name) == FULL and facts) or not self.cards:
                break
            wanted = context if phase == "inference" else length
            if found := self._best(model, phase, dtypes, context_tokens=wanted):
                facts.append((phase, name, found[1], found[0]))
        parts = []
        for phase, name, where, scenario in facts:
            most = f"{_most(book.totals(model, book.index[scenario]), book.counts)} × {self.cards[-1][0]} GB"
            at = f" for {given}" if given else f" at {tokens(scenario.context_tokens)} tokens"
            if not parts and phase == "inference":
                parts.append(f"Runs on {where} {name}{at}" if where else f"Does not run on {most} {name}{at}")
            elif phase == "inference":
                parts.append(f"{name[3:]} needs {where}" if where else f"{name[3:]} does not fit on {most}")
            else:
                parts.append(f"{name} needs {where}" if where else f"{name} needs more than {most}")
        if not parts:
            return "", ""
        told = "; ".join(_exactly(book, name, scenario) for _phase, name, _where, scenario in facts)
        return "; ".join(parts) + ".", told + "."


def _exactly(book: Book, name: str, s: Scenario) -> str:
    """The scenario that a part of the sentence speaks of."""
    what = f"{name.removeprefix('in ')}: {s.dtype_id} on {s.engine_id}, {tokens(s.context_tokens)} tokens"
    if s.phase_id == "inference":
        return f"{what}, {s.sequences} sequence"
    return f"{what}, micro-batch {s.sequences}, {recipe(book, s)}"


def recipe(book: Book, s: Scenario) -> str:
    """How a training is done, in words: its optimizer, and what becomes of the activations."""
    names = {o["optimizer_id"]: o["name"] for o in book["optimizer"]}
    return f"{names.get(s.optimizer_id, s.optimizer_id)}, {KEPT.get(s.checkpointing, s.checkpointing)}"


def _most(totals, counts: list[int]) -> int:
    """The most GPUs that a total is known for."""
    return max(gpus for gpus, kib in zip(counts, totals, strict=False) if kib != UNKNOWN_KIB)
