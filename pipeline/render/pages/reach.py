"""How far a card goes with a model: the longest context and the most users per format, as a table, as rows, and as a plot.

The page tells it of the common cards; for any other the browser works it out (site/assets/limits.js) from the same points, which lie in
`data/limits/`, a file for each different set of points.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable

import polars as pl
from markupsafe import Markup

from pipeline.render import words
from pipeline.render.data import limits
from pipeline.render.data.book import Book, Scenario
from pipeline.render.data.support import Support
from pipeline.render.draw import plot

# Formats that the plot draws, where they are known: whole, half, a quarter, as most people run them.
DRAWN = ("bf16", "fp8", "gguf-q8_0", "awq-int4", "gguf-q4_k_m", "stored")
HELD = ("longest", "most", "lines", "lengths", "batches", "looked", "points")


def usual(models: list[dict], published: list[int], wanted: int) -> dict[str, int]:
    """By model the context or length that counts are told at."""
    return {
        m["model_id"]: max((c for c in published if c <= min(wanted, m["max_context_tokens"] or wanted)), default=0)
        for m in models
    }


def read(book: Book, contexts: list[int], lengths: list[int], trained: list[str]) -> dict[str, dict]:
    """What the published points say, by model: `longest` and `most` by format, `lines` to draw, and in training `lengths` and
    `batches` by phase and format and how far was `looked` at all by phase. The limits are those of the common cards, in their order."""
    cards = {g["gpu_id"]: g["capacity_bytes"] for g in book.common}
    largest = max((g["capacity_bytes"] for g in book.gpus), default=0)
    found: dict[str, dict] = {name: defaultdict(dict) for name in HELD}
    own = {(d["dtype_id"], d["engine_id"]) for d in book["dtype"] if d["dtype_id"] in DRAWN}
    for phase in ("inference", *(trained if lengths else ())):
        is_run = phase == "inference"
        opening = book.openings[phase]
        known = limits.points(book.folder, phase)
        if not is_run:
            known = known.filter(optimizer_id=opening["optimizer_id"], checkpointing=opening["checkpointing"])
        # most users are counted at the context that a page opens with, or at the longest that the model reads
        at = usual(book.models, contexts if is_run else lengths, opening["context_tokens"])
        at = pl.DataFrame(list(at.items()), schema={"model_id": pl.String, "usual": pl.Int64}, orient="row")
        one = known.filter(sequences=1)
        there = known.join(at, on="model_id").filter(pl.col("context_tokens") == pl.col("usual")).drop("usual")
        longest = limits.longest(one, cards, book["constant"]).drop("sequences")
        most = limits.most(there, cards, book["constant"], is_run).drop("context_tokens")
        for name, frame in zip(("longest", "most") if is_run else ("lengths", "batches"), (longest, most), strict=True):
            for model_id, dtype, engine, *values in frame.rows():
                found[name][model_id][(dtype, engine) if is_run else (phase, dtype, engine)] = tuple(values)
        for model_id, tokens in known.group_by("model_id").agg(pl.col("context_tokens").max()).rows():
            found["looked"][model_id][phase] = tokens
        for model_id, dtype, engine, *points in _points(one, there, largest):
            found["points"][model_id][phase, dtype, engine] = points
        if is_run:
            drawn = one.filter(pl.col("dtype_id").is_in(DRAWN)).sort("context_tokens")
            lists = drawn.group_by("model_id", "dtype_id", "engine_id").agg(
                "context_tokens", pl.col("total_bytes") / words.GIB
            )
            for model_id, dtype, engine, tokens, total in lists.rows():
                if (dtype, engine) in own:
                    found["lines"][model_id][dtype] = (tokens, total)
    return found


def _points(one: pl.DataFrame, there: pl.DataFrame, largest: int) -> list[tuple]:
    """By model and format the points along the context and along the sequences: places, and as far as any card could hold them their totals
    in bytes and error bands."""

    def lists(frame: pl.DataFrame, axis: str, name: str) -> pl.DataFrame:
        whole = (
            frame.sort(axis)
            .group_by(*limits.WHO)
            .agg(at=pl.col(axis), total=pl.col("total_bytes"), band=pl.col("error_band"), need=pl.col("need"))
        )
        # beyond the first point that no card holds, none is asked
        kept = pl.col("need").list.eval(pl.element() <= largest).list.eval(pl.element().arg_true()).list.max() + 2
        whole = whole.with_columns(kept=kept.fill_null(1).cast(pl.Int64))
        cut = [pl.col(c).list.head(pl.col("kept")) for c in ("total", "band")]
        return whole.select(*limits.WHO, pl.struct("at", *cut).alias(name))

    both = lists(one, "context_tokens", "along").join(lists(there, "sequences", "beside"), on=limits.WHO, how="left")
    return [
        (
            *row[:3],
            [row[3][c] for c in ("at", "total", "band")],
            row[4] and [row[4][c] for c in ("at", "total", "band")],
        )
        for row in both.sort(limits.WHO).rows()
    ]


def as_file(points: dict[tuple, list], scenarios: list[Scenario]) -> str | None:
    """The points of one model for the browser, in the order of its tables: phase, format, engine, then along the context and along the
    sequences the number of the axis, the totals, and the error band (a list where it varies)."""
    axes: list[list[int]] = []

    def line(points: list | None):
        if not points:
            return None
        at, totals, bands = points
        if at not in axes:
            axes.append(at)
        return [axes.index(at), totals, bands[0] if len(set(bands)) == 1 else bands]

    keys = [key for s in scenarios if (key := (s.phase_id, s.dtype_id, s.engine_id)) in points]
    rows = [[*key, *map(line, points[key])] for key in keys]
    return json.dumps({"axes": axes, "rows": rows}, separators=(",", ":")) if rows else None


def name_of(text: str) -> str:
    """A file's name by what it holds: models of one shape share it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Reach:
    """`held` gives what `read` found, for the models that are asked about."""

    def __init__(
        self, book: Book, support: Support, contexts: list[int], lengths: list[int], held: Callable[[], dict]
    ) -> None:
        self.book, self.support, self.held = book, support, held
        self.cards = [g["gpu_id"] for g in book.common]
        self.usual = usual(book.models, contexts, book.openings["inference"]["context_tokens"])
        self.usual_length = usual(book.models, lengths, book.openings["lora"]["context_tokens"])
        self.levels = self._levels()

    def training_rows(self, number: int, scenarios: list[Scenario], names: dict[str, str]) -> dict | None:
        """A table: phase and format by card. A length that is only the longest published one is marked so."""
        model = self.book.models[number]
        lengths, most, looked = (self._held(name, model) for name in ("lengths", "batches", "looked"))
        whole, rows = model["max_context_tokens"], []
        for s in scenarios:
            key = (s.phase_id, s.dtype_id, s.engine_id)
            found = self._where_it_runs(s, number, lengths.get(key))
            if found and any(found):
                batches = most.get(key, [None] * len(found))
                cells = [words.limit_cell(c, b, whole, looked[s.phase_id]) for c, b in zip(found, batches, strict=True)]
                rows.append(
                    {"label": names.get(s.phase_id, s.phase_id), "dtype": s.dtype_id, "cells": Markup("".join(cells))}
                )
        tried = max((n for row in self._held("points", model).values() if row[1] for n in row[1][0]), default=1)
        return {"rows": rows, "usual": self.usual_length[model["model_id"]], "most": tried} if rows or lengths else None

    def _held(self, name: str, model: dict) -> dict:
        return self.held()[name].get(model["model_id"], {})

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
        longest, most = self._held("longest", model), self._held("most", model)
        whole = model["max_context_tokens"]
        rows = []
        for s in scenarios:
            found = self._where_it_runs(s, number, longest.get((s.dtype_id, s.engine_id)))
            if found and any(found):
                users = most.get((s.dtype_id, s.engine_id), [None] * len(found))
                cells = [words.limit_cell(c, u, whole) for c, u in zip(found, users, strict=True)]
                rows.append({"label": s.dtype_id, "engine": s.engine_id, "cells": Markup("".join(cells))})
        return {"rows": rows, "usual": self.usual[model["model_id"]]} if rows or longest else None

    def _where_it_runs(self, scenario: Scenario, model: int, limits: tuple | None) -> tuple:
        """The limits by card, None for a card that does not run the scenario."""
        if not limits:
            return ()
        refusals = self.support.of_common(scenario, model)
        return tuple(None if no else limit for no, limit in zip(refusals, limits, strict=True))

    def as_rows(self, number: int, scenarios: list[Scenario]) -> list[dict]:
        """The same for machines: exact tokens and sequences."""
        model = self.book.models[number]
        longest, most = self._held("longest", model), self._held("most", model)
        return [
            {
                "dtype_id": s.dtype_id,
                "engine_id": s.engine_id,
                "max_context_tokens": dict(zip(self.cards, self._where_it_runs(s, number, longest[key]), strict=True)),
                "max_sequences": dict(zip(self.cards, self._where_it_runs(s, number, most[key]), strict=True))
                if key in most
                else {},
                "max_sequences_context_tokens": self.usual[model["model_id"]],
            }
            for s in scenarios
            if any(self._where_it_runs(s, number, longest.get(key := (s.dtype_id, s.engine_id), ())))
        ]

    def plot(self, number: int) -> Markup:
        model = self.book.models[number]
        lines = self._held("lines", model)
        drawn = [(d, *lines[d]) for d in DRAWN if d in lines and (d != "stored" or len(lines) == 1)]
        formats = {dtype for dtype, _engine in self._held("longest", model)}
        return plot.context_lines(
            drawn, self.levels, words.shown(model["model_id"]), model["max_context_tokens"], words.tokens, len(formats)
        )
