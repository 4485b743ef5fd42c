"""What a model's page says first of each card: the best format, how far it goes, how many at once, and what can be trained.

`best` is the answer for any card: the page tells it of the common ones, the files for programs (data/api.py) of all. On the page the browser
tells it of any other (site/assets/model_tables.js), from the same limits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from math import inf
from typing import NamedTuple

from markupsafe import Markup

from pipeline.book.commands import GGUF_OF
from pipeline.render import words
from pipeline.render.data.book import Book, Scenario
from pipeline.render.data.rules import in_python
from pipeline.render.data.support import Support
from pipeline.render.pages.answer import WHOLE
from pipeline.render.pages.reach import capacities

# The best quality first: what a reader is offered, by format and engine. Of two alike the one that the model's answer speaks of comes first.
QUALITY = (
    ("bf16", "transformers"),
    ("bf16", "mlx-lm"),
    ("bf16", "vllm"),
    # (before Ampere, where bf16 does not run)
    ("fp16", "transformers"),
    ("fp16", "vllm"),
    ("mlx-8bit", "mlx-lm"),
    ("gguf-q8_0", "llama.cpp"),
    ("mlx-6bit", "mlx-lm"),
    ("gguf-q6_k", "llama.cpp"),
    ("gguf-q5_k_m", "llama.cpp"),
    ("mlx-4bit", "mlx-lm"),
    ("gguf-q4_k_m", "llama.cpp"),
    ("gguf-q3_k_m", "llama.cpp"),
    ("gguf-q2_k", "llama.cpp"),
)
OFFERED = tuple(dict.fromkeys([*(dtype for dtype, _engine in QUALITY), "stored", *GGUF_OF.values()]))
TRAINED = (("qlora", "nf4"), ("lora", "bf16"))


class Best(NamedTuple):
    """What a card does with a model. `verdict`: `fits` what a page opens with, `shorter` contexts alone, needs several (`multi-gpu`), is `tight`
    on the fewest that hold it without our error, `no`, or it is `unknown` whether it runs there."""

    verdict: str
    dtype_id: str | None = None
    engine_id: str | None = None
    max_context_tokens: int | None = None
    max_sequences: int | None = None
    gpu_count: int | None = None


class ByCard:
    """`held` gives the limits that reach.read found, for the models that are asked about; `engines` by format that which a model's answer speaks
    of (answer.py); `converted` the formats that people make of a model which is published in fewer bits, and that its page tells."""

    def __init__(
        self,
        book: Book,
        support: Support,
        held: Callable[[], dict],
        engines: Callable[[int], Mapping[str, str]],
        converted: Callable[[int], Collection[str]] = lambda _number: (),
    ) -> None:
        self.book, self.support, self.held, self.engines, self.converted = book, support, held, engines, converted
        self._runs: dict[tuple, bool] = {}

    @cached_property
    def names(self) -> dict[str, str]:
        return {engine["engine_id"]: engine["name"] for engine in self.book["engine"]}

    @cached_property
    def most(self) -> int:
        """The most cards that inference is published for, of every model."""
        return self.book.published_counts(["inference"])[-1]

    @cached_property
    def places(self) -> dict[str, int]:
        """By card where its limits stand in those of all."""
        place = {capacity: i for i, capacity in enumerate(capacities(self.book))}
        return {g["gpu_id"]: place[g["capacity_bytes"]] for g in self.book.gpus}

    def formats(self, number: int) -> list[tuple[str, str]]:
        """The formats that a model is offered in: one that is published in fewer bits as it is, then what it is converted to."""
        stored = self.book.models[number]["stored_format"]
        own = "" if stored is None or stored in WHOLE else GGUF_OF.get(stored, "stored")
        known = self._of("longest", number)
        published = [key for key in known if key[0] == own]
        converted = self.converted(number) if published else ()
        offered = [key for key in QUALITY if key in known and (not published or key[0] in converted)]
        place = {dtype: i for i, (dtype, _engine) in reversed(list(enumerate(offered)))}
        spoken_of = self.engines(number)
        return published + sorted(offered, key=lambda key: (place[key[0]], spoken_of.get(key[0]) != key[1]))

    def values(self, number: int, scenarios: list[Scenario], context: int, is_packed: bool = False) -> dict | None:
        """The rows of the table, and what the browser needs to make more; None where no limit is known. What `is_packed` is not trained:
        its base is."""
        formats = self.formats(number)
        if not formats:
            return None
        rows = [
            Markup('<tr><th scope="row" data-gpu="{}">{}</th>{}</tr>').format(
                gpu["gpu_id"],
                gpu["short"],
                self._cells(number, gpu, scenarios, context, () if is_packed else TRAINED),
            )
            for gpu in self.book.common
        ]
        asked = " ".join(f"{dtype}/{engine}" for dtype, engine in formats)
        return {
            "rows": rows,
            "formats": asked,
            "programs": self._programs(number, formats),
            "most": self.most,
            "trained": not is_packed,
            "counts": words.either(self.book.published_counts(["inference"])[1:]),
        }

    def _programs(self, number: int, formats: list[tuple[str, str]]) -> str:
        """Which programs the table counts: of each format its own."""
        own = {d["dtype_id"]: d["engine_id"] for d in self.book["dtype"]}
        stored = self.book.models[number]["stored_format"]
        found: dict[str, list] = {}
        for dtype, engine in formats:
            if own.get(dtype) == engine or all(d != dtype or e == engine for d, e in formats):
                found.setdefault(self.names[engine], []).append(words.format_name(dtype, stored))
        told = [f"{f[0] if len(f) == 1 else f'{f[0]} to {f[-1]}'} in {program}" for program, f in found.items()]
        return (
            f"Counted: {', '.join(told)}{', unless a cell names another' if len(formats) > 1 else ''}." if told else ""
        )

    def best(self, number: int, gpu: dict, scenarios: list[Scenario], context: int) -> Best:
        """The best format that holds the context on a card, else the one that goes farthest, else the fewest cards."""
        return self.all_best(number, [gpu], scenarios, context)[0]

    def all_best(self, number: int, gpus: list[dict], scenarios: list[Scenario], context: int) -> list[Best]:
        """The same for some cards: those that give the same and run the same are asked about once."""
        by_key = {(s.dtype_id, s.engine_id): s for s in scenarios}
        offered = [(key, by_key[key]) for key in self.formats(number) if key in by_key]
        told: dict[tuple, Best] = {}
        out = []
        for gpu in gpus:
            runs = tuple(key for key, scenario in offered if self._does_run(scenario, number, gpu["gpu_id"]))
            alike = gpu["capacity_bytes"], runs
            if alike not in told:
                told[alike] = self._best(number, gpu, by_key, runs, context) if runs else Best("unknown")
            out.append(told[alike])
        return out

    def _best(self, number: int, gpu: dict, by_key: dict[tuple, Scenario], runs: tuple, context: int) -> Best:
        longest, place = self._of("longest", number), self.places[gpu["gpu_id"]]
        best = next((key for key in runs if longest[key][place] >= context), None)
        best = best or max(runs, key=lambda key: longest[key][place])
        if far := longest[best][place]:
            users = self._of("most", number).get(best)
            return Best("fits" if far >= context else "shorter", *best, far, users and users[place], 1)
        ways = []
        for rank, key in enumerate(runs):
            verdict, cards = self._several(number, by_key[key], gpu)
            if cards:
                ways.append((verdict == "tight", cards, rank))
        if not ways:
            return Best("no")
        is_tight, cards, rank = min(ways)
        return Best("tight" if is_tight else "multi-gpu", *runs[rank], gpu_count=cards)

    def _several(self, number: int, scenario: Scenario, gpu: dict) -> tuple[str | None, int | None]:
        """How many of a card hold a scenario that one does not with our error, or else without it; None where none of the published numbers does."""
        totals = self.book.totals(number, self.book.index[scenario])
        return words.several(totals, self.book.counts, gpu["capacity_bytes"] // 1024)[:2]

    def _as_published(self, number: int, gpu: dict, best: Best, scenarios: list[Scenario]) -> str:
        """How many cards hold what is published in fewer bits as it is, where fewer hold what it is converted to."""
        own = next(
            (s for s in scenarios if s.dtype_id == "stored" and (s.dtype_id, s.engine_id) in self.formats(number)), None
        )
        if best.dtype_id == "stored" or own is None or not self._does_run(own, number, gpu["gpu_id"]):
            return ""
        verdict, cards = self._several(number, own, gpu)
        return f"; {cards} as published" if verdict == "multi-gpu" else ""

    @staticmethod
    def _how(best: Best) -> str:
        return "as published" if best.dtype_id == "stored" else f"in {words.format_name(best.dtype_id)}"

    def _beside(self, number: int, gpu_id: str, best: Best, scenarios: list[Scenario]) -> str:
        """The name of the best format's engine where the card runs the format's own too, which is not it; else nothing."""
        own = next((s for s in scenarios if s.dtype_id == best.dtype_id and self.book.is_own_engine(s)), None)
        is_other = own is not None and own.engine_id != best.engine_id and self._does_run(own, number, gpu_id)
        return self.names[best.engine_id] if is_other else ""

    def _does_run(self, scenario: Scenario, number: int, gpu_id: str) -> bool:
        key = (scenario.engine_id, self.support.format(scenario, number), gpu_id)
        if key not in self._runs:
            self._runs[key] = self.support.refusal(scenario, key[1], gpu_id) is None
        return self._runs[key]

    def _cells(self, number: int, gpu: dict, scenarios: list[Scenario], context: int, trained) -> Markup:
        """The best format, the longest context in it, the most at once; the most cards otherwise."""
        best, model = self.best(number, gpu, scenarios, context), self.book.models[number]
        whole = model["max_context_tokens"]
        several = "computers" if in_python().is_computer(gpu) else "cards"
        if best.verdict in ("fits", "shorter"):
            cells = _best(best, whole, model["stored_format"], self._beside(number, gpu["gpu_id"], best, scenarios))
        elif best.verdict == "multi-gpu":
            more = self._as_published(number, gpu, best, scenarios)
            cells = Markup('<td colspan="3" class="v-multi-gpu">{} {}, {}{}</td>').format(
                best.gpu_count, several, self._how(best), more
            )
        elif best.verdict == "tight":
            cells = Markup('<td colspan="3" class="v-tight">barely, on {} {}, {}</td>').format(
                best.gpu_count, several if best.gpu_count > 1 else several.removesuffix("s"), self._how(best)
            )
        elif best.verdict == "no":
            cells = Markup('<td colspan="3" class="v-no">no, not on {} {}</td>').format(self.most, several)
        else:
            cells = Markup('<td colspan="3" class="v-unknown">not known to run here</td>')
        return cells + Markup("").join(self._trained(number, gpu["gpu_id"], *key, whole) for key in trained)

    def _trained(self, number: int, gpu_id: str, phase: str, dtype: str, whole: int | None) -> Markup:
        """The longest sequence to train on."""
        found = {key: value for key, value in self._of("lengths", number).items() if key[:2] == (phase, dtype)}
        for (_phase, _dtype, engine), limits in found.items():
            scenario = next((s for s in self.book.rows([phase], dtype_id=dtype, engine_id=engine)), None)
            if (
                scenario is None
                or self.support.refusal(scenario, self.support.format(scenario, number), gpu_id) is not None
            ):
                continue
            # (what a training reads is not said to be beyond what a model does)
            looked = self._of("looked", number).get(phase)
            return words.limit_cell(limits[self.places[gpu_id]], None, whole or inf, looked)
        return words.limit_cell(None, None, None)

    def _of(self, name: str, number: int) -> dict:
        return self.held()[name].get(self.book.models[number]["model_id"], {})


def _best(best: Best, whole: int | None, stored: str | None, engine: str) -> Markup:
    longest, users = best.max_context_tokens, best.max_sequences
    text = words.reached(longest, whole, None, words.rounded_tokens(longest))
    at_once = "–" if not users else words.count(users) if users > 9999 else str(users)
    is_short = best.verdict == "shorter"
    name = words.format_name(best.dtype_id, stored) + Markup("").join(
        Markup(" <small>{}</small>").format(said) for said in (engine, "falls short" * is_short) if said
    )
    kind = "v-short" if is_short else "v-fits"
    return Markup('<td class="{0}">{1}</td><td class="{0}"{2}>{3}</td><td class="{0}">{4}</td>').format(
        kind, name, "" if whole else words.UNREAD, text, at_once
    )
