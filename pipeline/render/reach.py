"""How far a card goes with a model: the longest context and the most users per format, as a table, as rows, and as a plot."""

from __future__ import annotations

from collections import defaultdict

import polars as pl
from markupsafe import Markup

from pipeline.render import limits, plot, words
from pipeline.render.book import Book, Scenario
from pipeline.render.support import Support

# Formats that the plot draws, where they are known: whole, half, a quarter, as most people run them.
DRAWN = ("bf16", "fp8", "gguf-q8_0", "awq-int4", "gguf-q4_k_m", "stored")
USUAL = 8192  # most users are counted at this context, or at the model's own where it is shorter
USUAL_LENGTH = 2048  # and micro-batches at this one
RECIPE = {"optimizer_id": "adamw", "checkpointing": "full"}


class Reach:
    def __init__(
        self, book: Book, contexts: list[int], support: Support, lengths: list[int] = (), trained: list[str] = ()
    ) -> None:
        self.book, self.support = book, support
        self.cards = {g["gpu_id"]: g["capacity_bytes"] for g in book.common}
        known = limits.points(book.folder)
        limit = self._usual(contexts, USUAL)
        one = known.filter(sequences=1)
        usual = known.join(limit, on="model_id").filter(pl.col("context_tokens") == pl.col("usual")).drop("usual")
        self.longest = _by_format(limits.longest(one, self.cards, book["constant"]).drop("sequences"))
        self.most = _by_format(limits.most(usual, self.cards, book["constant"]).drop("context_tokens"))
        self.usual = dict(limit.rows())
        self.lines = self._lines(one)
        self.levels = self._levels()
        self.training, self.batches, self.usual_length = {}, {}, {}
        self.trained_to = max(lengths, default=0)
        if lengths:
            self._train(self._usual(lengths, USUAL_LENGTH), trained)

    def _usual(self, contexts: list[int], wanted: int) -> pl.DataFrame:
        """By model the context that counts are told at."""
        models = self.book.models
        usual = [
            max((c for c in contexts if c <= min(wanted, m["max_context_tokens"] or wanted)), default=0) for m in models
        ]
        schema = {"model_id": pl.String, "usual": pl.Int64}
        return pl.DataFrame({"model_id": [m["model_id"] for m in models], "usual": usual}, schema=schema)

    def _train(self, limit: pl.DataFrame, trained: list[str]) -> None:
        """The same for training: the longest sequence at micro-batch 1, and the largest micro-batch of a usual length."""
        constants = self.book["constant"]
        for phase in trained:
            known = limits.points(self.book.folder, phase).filter(**RECIPE)
            self.trained_to = max(self.trained_to, known["context_tokens"].max() or 0)
            usual = known.join(limit, on="model_id").filter(pl.col("context_tokens") == pl.col("usual")).drop("usual")
            longest = limits.longest(known.filter(sequences=1), self.cards, constants).drop("sequences")
            self.training[phase] = _by_format(longest)
            self.batches[phase] = _by_format(limits.most(usual, self.cards, constants).drop("context_tokens"))
        self.usual_length = dict(limit.rows())

    def training_rows(self, number: int, scenarios: list[Scenario], names: dict[str, str]) -> dict | None:
        """A table: phase and format by card. A length that is only the longest published one is marked so."""
        model = self.book.models[number]
        whole, rows = model["max_context_tokens"], []
        for s in scenarios:
            key = (s.dtype_id, s.engine_id)
            found = self._where_it_runs(
                s, number, self.training.get(s.phase_id, {}).get(model["model_id"], {}).get(key)
            )
            if found and any(found):
                batches = self.batches[s.phase_id].get(model["model_id"], {}).get(key, [None] * len(found))
                cells = [words.limit_cell(c, b, whole, self.trained_to) for c, b in zip(found, batches, strict=True)]
                rows.append(
                    {"label": names.get(s.phase_id, s.phase_id), "dtype": s.dtype_id, "cells": Markup("").join(cells)}
                )
        return {"rows": rows, "usual": self.usual_length[model["model_id"]]} if rows else None

    def _lines(self, one: pl.DataFrame) -> dict[str, dict[str, tuple]]:
        own = pl.DataFrame(
            [(d["dtype_id"], d["engine_id"]) for d in self.book["dtype"] if d["dtype_id"] in DRAWN],
            schema={"dtype_id": pl.String, "engine_id": pl.String},
            orient="row",
        )
        drawn = one.join(own, on=["dtype_id", "engine_id"]).sort("context_tokens")
        lists = drawn.group_by("model_id", "dtype_id", maintain_order=True).agg(
            "context_tokens", pl.col("total_bytes") / words.GIB
        )
        lines: dict[str, dict[str, tuple]] = defaultdict(dict)
        for model_id, dtype, at, total in lists.rows():
            lines[model_id][dtype] = (at, total)
        return lines

    def _levels(self) -> list[tuple[str, float]]:
        """One level line for each nominal size of the common cards: the least that a card of that size gives."""
        sizes: dict[float, float] = {}
        for gpu in self.book.common:
            if gpu["segment"] != "unified":
                nominal, gives = gpu["memory_gib_nominal"], gpu["capacity_bytes"] / words.GIB
                sizes[nominal] = min(sizes.get(nominal, gives), gives)
        return [(f"{nominal:g} GB card", gives) for nominal, gives in sorted(sizes.items())]

    def rows(self, number: int, scenarios: list[Scenario]) -> dict | None:
        """A table: format by card, and what its caption says."""
        model = self.book.models[number]
        longest, most = self.longest.get(model["model_id"], {}), self.most.get(model["model_id"], {})
        whole = model["max_context_tokens"]
        rows = []
        for s in scenarios:
            found = self._where_it_runs(s, number, longest.get((s.dtype_id, s.engine_id)))
            if found and any(found):
                users = most.get((s.dtype_id, s.engine_id), [None] * len(found))
                cells = [words.limit_cell(c, u, whole) for c, u in zip(found, users, strict=True)]
                rows.append({"label": s.dtype_id, "engine": s.engine_id, "cells": Markup("").join(cells)})
        return {"rows": rows, "usual": self.usual[model["model_id"]]} if rows else None

    def _where_it_runs(self, scenario: Scenario, model: int, limits: tuple | None) -> tuple:
        """The limits by card, None for a card that does not run the scenario."""
        if not limits:
            return ()
        refusals = self.support.of_common(scenario, model)
        return tuple(None if no else limit for no, limit in zip(refusals, limits, strict=True))

    def as_rows(self, number: int, scenarios: list[Scenario]) -> list[dict]:
        """The same for machines: exact tokens and sequences."""
        model = self.book.models[number]["model_id"]
        longest, most = self.longest.get(model, {}), self.most.get(model, {})
        return [
            {
                "dtype_id": s.dtype_id,
                "engine_id": s.engine_id,
                "max_context_tokens": dict(zip(self.cards, self._where_it_runs(s, number, longest[key]), strict=True)),
                "max_sequences": dict(zip(self.cards, self._where_it_runs(s, number, most[key]), strict=True))
                if key in most
                else {},
                "max_sequences_context_tokens": self.usual[model],
            }
            for s in scenarios
            if any(self._where_it_runs(s, number, longest.get(key := (s.dtype_id, s.engine_id), ())))
        ]

    def plot(self, number: int) -> Markup:
        model = self.book.models[number]
        lines = self.lines.get(model["model_id"], {})
        drawn = [(d, *lines[d]) for d in DRAWN if d in lines and (d != "stored" or len(lines) == 1)]
        return plot.context_lines(
            drawn, self.levels, words.shown(model["model_id"]), model["max_context_tokens"], words.tokens
        )


def _by_format(frame: pl.DataFrame) -> dict[str, dict[tuple[str, str], tuple[int, ...]]]:
    found: dict[str, dict[tuple[str, str], tuple[int, ...]]] = defaultdict(dict)
    for model_id, dtype, engine, *values in frame.rows():
        found[model_id][dtype, engine] = tuple(values)
    return found
