"""What a model's page says first of each card: the best format, how far it goes, how many at once, and what can be trained.

The page tells it of the common cards; of any other the browser does (site/assets/model_tables.js), from the same limits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from markupsafe import Markup

from pipeline.book.commands import GGUF_OF
from pipeline.render import words
from pipeline.render.data.book import Book, Scenario
from pipeline.render.data.support import Support
from pipeline.render.pages.answer import WHOLE

# The best quality first: what a reader is offered, by format and engine.
QUALITY = (
    ("bf16", "transformers"),
    ("bf16", "mlx-lm"),
    ("gguf-q8_0", "llama.cpp"),
    ("gguf-q6_k", "llama.cpp"),
    ("gguf-q5_k_m", "llama.cpp"),
    ("gguf-q4_k_m", "llama.cpp"),
    ("gguf-q3_k_m", "llama.cpp"),
    ("gguf-q2_k", "llama.cpp"),
)
TRAINED = (("qlora", "nf4"), ("lora", "bf16"))
_GGUF = "llama.cpp"


class ByCard:
    """`held` gives the limits that reach.read found, for the models that are asked about."""

    def __init__(self, book: Book, support: Support, held: Callable[[], dict]) -> None:
        self.book, self.support, self.held = book, support, held

    @cached_property
    def most(self) -> int:
        """The most cards that inference is published for, of every model."""
        return self.book.published_counts(["inference"])[-1]

    def formats(self, number: int) -> list[tuple[str, str]]:
        """The formats that a model is offered in: of one that is published in fewer bits that alone."""
        stored = self.book.models[number]["stored_format"]
        own = "" if stored is None or stored in WHOLE else GGUF_OF.get(stored, "stored")
        known = self._of("longest", number)
        published = [key for key in known if key[0] == own]
        return published or [key for key in QUALITY if key in known]

    def values(self, number: int, scenarios: list[Scenario], context: int, is_packed: bool = False) -> dict | None:
        """The rows of the table, and what the browser needs to make more; None where no limit is known. What `is_packed` is not trained:
        its base is."""
        formats = self.formats(number)
        if not formats:
            return None
        by_key = {(s.dtype_id, s.engine_id): s for s in scenarios}
        rows = [
            Markup('<tr><th scope="row" data-gpu="{}">{}</th>{}</tr>').format(
                gpu["gpu_id"],
                gpu["short"],
                self._cells(number, k, gpu, formats, by_key, context, () if is_packed else TRAINED),
            )
            for k, gpu in enumerate(self.book.common)
        ]
        asked = " ".join(f"{dtype}/{engine}" for dtype, engine in formats)
        return {"rows": rows, "formats": asked, "most": self.most, "trained": not is_packed}

    def _cells(self, number: int, k: int, gpu: dict, formats: list, by_key: dict, context: int, trained) -> Markup:
        """The best format that holds the context, the longest context in it, the most at once; the most cards otherwise."""
        model = self.book.models[number]
        whole = model["max_context_tokens"]
        longest, most = self._of("longest", number), self._of("most", number)
        runs = [key for key in formats if key in by_key and not self.support.of_common(by_key[key], number)[k]]
        best = next((key for key in runs if longest[key][k] >= context), None)
        if best is None:
            best = max(runs, key=lambda key: longest[key][k], default=None)
            best = best if best and longest[best][k] else None
        if best:
            users = most.get(best, (None,) * (k + 1))[k]
            cells = _best(best[0], longest[best][k], users, whole, model["stored_format"])
        else:
            cells = self._cards(number, gpu, [by_key[key] for key in runs])
        return cells + Markup("").join(self._trained(number, k, phase, dtype, whole) for phase, dtype in trained)

    def _cards(self, number: int, gpu: dict, scenarios: list[Scenario]) -> Markup:
        """The fewest cards, and the best format that so many hold."""
        if not scenarios:
            return Markup('<td colspan="3" class="v-unknown">not known to run here</td>')
        ways = []
        for place, scenario in enumerate(scenarios):
            totals = self.book.totals(number, self.book.index[scenario])
            verdict, cards, _kib = words.judge(totals, self.book.counts, gpu["capacity_bytes"] // 1024)
            if verdict == "multi-gpu":
                ways.append((cards, place))
        if ways:
            cards, place = min(ways)
            dtype = scenarios[place].dtype_id
            how = "as published" if dtype == "stored" else f"in {words.format_name(dtype)}"
            return Markup('<td colspan="3" class="v-multi-gpu">{} cards, {}</td>').format(cards, how)
        return Markup('<td colspan="3" class="v-no">no, not on {} cards</td>').format(self.most)

    def _trained(self, number: int, k: int, phase: str, dtype: str, whole: int | None) -> Markup:
        """The longest sequence to train on."""
        found = {key: value for key, value in self._of("lengths", number).items() if key[:2] == (phase, dtype)}
        for (_phase, _dtype, engine), limits in found.items():
            gpu = self.book.common[k]["gpu_id"]
            scenario = next((s for s in self.book.rows([phase], dtype_id=dtype, engine_id=engine)), None)
            if scenario is None or self.support.refusal(scenario, dtype, gpu) is not None:
                continue
            return words.limit_cell(limits[k], None, whole, self._of("looked", number).get(phase))
        return words.limit_cell(None, None, None)

    def _of(self, name: str, number: int) -> dict:
        return self.held()[name].get(self.book.models[number]["model_id"], {})


def _best(dtype: str, longest: int, users: int | None, whole: int | None, stored: str | None) -> Markup:
    text = f"all {words.rounded_tokens(longest)}" if whole and longest >= whole else words.rounded_tokens(longest)
    at_once = "–" if not users else words.count(users) if users > 9999 else str(users)
    return Markup('<td class="v-fits">{}</td><td class="v-fits">{}</td><td class="v-fits">{}</td>').format(
        words.format_name(dtype, stored), text, at_once
    )
