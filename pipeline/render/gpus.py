"""One page per card: what it really gives, and what fits."""

from __future__ import annotations

from bisect import bisect_right

from pipeline.render import words
from pipeline.render.book import BAND_UNIT, BANDS, UNKNOWN_KIB, Book, Scenario
from pipeline.render.environment import environment
from pipeline.render.models import ModelPages

LISTED = 200
# Columns of "what fits", in order, where the tables have them.
COLUMNS = (
    ("inference", "bf16"),
    ("inference", "fp8"),
    ("inference", "gguf-q8_0"),
    ("inference", "awq-int4"),
    ("inference", "gguf-q4_k_m"),
    ("lora", "bf16"),
    ("qlora", "nf4"),
    ("full-finetune", "bf16"),
)


class GpuPages:
    def __init__(self, book: Book, pages: ModelPages) -> None:
        self.book, self.pages = book, pages
        self.page = environment(book).get_template("gpu.html")
        self.columns = [s for phase, dtype in COLUMNS if (s := self._scenario(phase, dtype))]
        self.inference = book.rows(["inference"], **book.default("inference"))
        self.listed = [i for i in range(len(book.models)) if self._known(i)][:LISTED]
        self.entries = {i: pages.entry(book.models[i]) for i in range(len(book.models))}
        self.counts = book.published_counts(["inference"])
        self.ranked = {s: self._ranked(s) for s in self.inference}
        self.columns_totals = [(s, book.index[s]) for s in self.columns]

    def _scenario(self, phase: str, dtype: str) -> Scenario | None:
        rows = self.book.rows([phase], dtype_id=dtype, **self.book.default(phase))
        return rows[0] if rows else None

    def _known(self, model: int) -> bool:
        return any(self.book.is_known(model, s) for s in self.columns)

    def _ranked(self, scenario: Scenario) -> list[list[tuple[float, int]]]:
        """For each GPU count (total, model), sorted: how many fit and which is the largest are then one bisection."""
        book, place = self.book, self.book.index[scenario]
        least: list[list[tuple[float, int]]] = []
        totals = [book.totals(i, place) for i in range(len(book.models))]
        for n in range(1, len(self.counts) + 1):
            smallest = [
                (_least(row, n, book.counts), i) for i, row in enumerate(totals) if min(row[:-BANDS]) != UNKNOWN_KIB
            ]
            least.append(sorted(smallest))
        return least

    def render(self, gpu: dict) -> str:
        capacity = gpu["capacity_bytes"] // 1024
        first = self.inference[0] if self.inference else None
        at = f"at {words.tokens(first.context_tokens)} tokens, one sequence" if first else ""
        training = next((s for s in self.columns if s.phase_id != "inference"), None)
        then = f"; training at {words.tokens(training.context_tokens)} tokens, micro-batch 1" if training else ""
        return self.page.render(
            gpu=gpu,
            root="../../",
            steps=_steps(gpu),
            rows=[self._row(i, capacity) for i in self.listed],
            columns=[self._head(s) for s in self.columns],
            caption=f"Inference {at}{then}",
            caption_inference=f"how many fit {at}",
            known=max((len(ranked[0]) for ranked in self.ranked.values()), default=0),
            counts=self.counts,
            formats=[self._format(s, capacity) for s in self.inference],
        )

    def _head(self, scenario: Scenario) -> dict:
        phase = "" if scenario.phase_id == "inference" else f"{self.pages.phases.get(scenario.phase_id)} "
        return {"label": phase + scenario.dtype_id, "engine": scenario.engine_id}

    def _row(self, model: int, capacity: int) -> dict:
        book = self.book
        cells = []
        for scenario, place in self.columns_totals:
            reason = "" if book.is_known(model, scenario) else book.reason(model, scenario)
            cells.append(words.verdict_cell(book.totals(model, place), book.counts, capacity, reason))
        return self.entries[model] | {"cells": cells}

    def _format(self, scenario: Scenario, capacity: int) -> dict:
        ranked = self.ranked[scenario]
        numbers = [bisect_right(row, (capacity, len(self.book.models))) for row in ranked]
        fitting = ranked[0][: numbers[0]]
        size = lambda i: self.book.models[i]["parameter_count"] or 0  # noqa: E731
        largest = max((i for _kib, i in fitting), key=lambda i: (size(i), -i), default=None)
        return {
            "label": self.book.formats[scenario],
            "numbers": numbers,
            "largest": None if largest is None else self.entries[largest],
        }


def _least(row, n: int, counts: list[int]) -> float:
    """The least capacity (KiB) that one of the first `n` counts fits into with its band."""
    bands = [row[-2] if gpus == 1 else row[-1] for gpus in counts[:n]]
    return min(kib * (BAND_UNIT + band) / BAND_UNIT for kib, band in zip(row, bands, strict=False))


def _steps(gpu: dict) -> list[dict]:
    """From the sticker to what a program gets, each with its reason."""
    nominal = gpu["memory_gib_nominal"]
    unified = gpu["segment"] == "unified"
    reported = gpu["memory_mib_reported"] and gpu["memory_mib_reported"] / 1024
    cuda = gpu["memory_mib_cuda"] and gpu["memory_mib_cuda"] / 1024
    why_reported = (
        "What the operating system lets the GPU use of the shared memory"
        if unified
        else "What the driver reports: firmware and error correction keep the rest"
    )
    steps = [
        ("Sticker", nominal, "The data sheet's GB, which is GiB of memory chips"),
        ("Reported", reported, why_reported),
        ("Runtime total", cuda, "What the runtime calls its total, after the driver's own reserve"),
        (
            "One program",
            gpu["capacity_bytes"] / words.GIB,
            "What is left after the process's own context: the capacity",
        ),
    ]
    return [
        {
            "name": name,
            "text": "not read" if value is None else f"{value:,.2f}",
            "share": value and value / max(nominal, 1e-9),
            "why": why,
        }
        for name, value, why in steps
    ]
