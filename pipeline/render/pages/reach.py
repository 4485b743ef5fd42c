"""How far a card goes with a model: what is published along the context and along the users, the limits read off it, and a plot.

The limits are those of every card, by what it gives. A page tells them of the common cards; the browser tells any other from the same
points (site/assets/limits.js), which stand in the file of its shape (data/shapes.py).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence

import polars as pl
from markupsafe import Markup

from pipeline.render import words
from pipeline.render.data import limits
from pipeline.render.data.book import PARTS, Book
from pipeline.render.data.kept import Kept, hashed
from pipeline.render.draw import plot

# Formats that the plot draws, where they are known: whole, half, a quarter, as most people run them.
DRAWN = ("bf16", "fp8", "gguf-q8_0", "awq-int4", "gguf-q4_k_m", "stored")
AT_ONCE = 600  # models whose points are read together
HELD = ("longest", "most", "lines", "lengths", "looked", "points")
_BY_CARD = ("longest", "most", "lengths")  # a number for each of `capacities`
# What a context changes; the other components are one number for a phase, a format and an engine.
VARYING = ("kv_cache_bytes", "kv_padding_bytes", "state_bytes", "activations_bytes", "overhead_bytes")
FIXED = tuple(c for c in PARTS if c not in VARYING)


def usual(models: list[dict], published: list[int], wanted: int) -> dict[str, int]:
    """By model the context or length that counts are told at."""
    return {
        m["model_id"]: max((c for c in published if c <= min(wanted, m["max_context_tokens"] or wanted)), default=0)
        for m in models
    }


def capacities(book: Book) -> list[int]:
    """What cards give, each number once: many give the same."""
    return sorted({g["capacity_bytes"] for g in book.gpus})


class Read:
    """What the published points say, by model: `points` of every phase and format; of the formats that are `offered` the `longest` context
    and the `most` sequences, and of what is `taught` (phase and format) the `lengths`, each for every number of `capacities`;
    `lines` to draw, and how far was `looked` at all by phase. Of models that nobody asks about nothing is read."""

    def __init__(
        self,
        book: Book,
        kept: Kept,
        contexts: list[int],
        lengths: list[int],
        trained: list[str],
        offered: Iterable[str],
        taught: Iterable[tuple[str, str]],
    ) -> None:
        self.book, self.kept = book, kept
        self.asked = contexts, lengths, trained, list(offered), [list(pair) for pair in taught]
        shared = hashed(*self.asked)
        self.own = {model["model_id"]: [model["max_context_tokens"], shared] for model in book.models}
        self.of_key: dict[str, dict[str, dict]] = {}  # models of one content share what is said of them
        self.of_model: dict[str, dict[str, dict]] = {}
        self.is_worked_out = False

    def held(self) -> dict[str, Told]:
        """The same under their names."""
        return {name: Told(self, name) for name in HELD}

    def ask(self, models: Iterable[str]) -> None:
        """Reads what is said of these, of all of them at once."""
        keys = self._new(models)
        new = {model: key for model, key in keys.items() if key not in self.of_key}
        if new and not self.is_worked_out and self.kept.lacking(new.values()):
            # nobody knows it yet: the same question is asked of all that will be asked about
            self.is_worked_out = True
            others = self._new(self.own)
            lacking = self.kept.lacking(others.values())
            new |= {model: key for model, key in others.items() if key in lacking}
        if new:
            make = lambda some: _read_in_parts(self.book, some, *self.asked)  # noqa: E731
            for key, told in self.kept.by_key("reach", new, make).items():
                self.of_key[key] = {name: _by_key(name, rows) for name, rows in told.items()}
        for model, key in keys.items():
            self.of_model[model] = self.of_key[key]

    def _new(self, models: Iterable[str]) -> dict[str, str]:
        """The keys of those that nobody asked about yet."""
        return {
            model: self.kept.key("reach", model, self.own[model])
            for model in models
            if model in self.own and model not in self.of_model
        }


class Told(MutableMapping[str, dict]):
    """By model what `Read` has under one name. What is asked model by model takes long: whoever means several says so first."""

    def __init__(self, read: Read, name: str) -> None:
        self.read, self.name = read, name
        self.others: dict[str, dict] = {}  # as somebody else says it

    def ask(self, models: Iterable[str]) -> None:
        self.read.ask(models)

    def __getitem__(self, model: str) -> dict:
        if model in self.others:
            return self.others[model]
        self.ask([model])
        return self.read.of_model[model][self.name]

    def __setitem__(self, model: str, rows: dict) -> None:
        self.others[model] = rows

    def __delitem__(self, model: str) -> None:
        raise TypeError("what was read stays")

    def __iter__(self) -> Iterator[str]:
        self.ask(self.read.own)
        return (model for model in self.read.own if model in self)

    def __len__(self) -> int:
        return sum(1 for _model in self)


def _by_key(name: str, rows: list) -> dict:
    take = (lambda numbers: array("q", numbers)) if name in _BY_CARD else lambda value: value
    return {(key[0] if len(key) == 1 else tuple(key)): take(value) for key, value in rows}


def _read_in_parts(book: Book, models: Sequence[str], *asked: list) -> dict[str, dict[str, list]]:
    """The same of some models, as plain values: by name the rows, each with its key. Not of all at once, so that memory stays flat."""
    parts = (models[start : start + AT_ONCE] for start in range(0, len(models), AT_ONCE))
    return {model: told for part in parts for model, told in _read(book, part, *asked).items()}


def _read(
    book: Book,
    models: Sequence[str],
    contexts: list[int],
    lengths: list[int],
    trained: list[str],
    offered: list[str],
    taught: list[list[str]],
) -> dict[str, dict[str, list]]:
    cards = {str(capacity): capacity for capacity in capacities(book)}
    found: dict[str, dict[str, list]] = {model: {} for model in models}
    read_on = [model for model in book.models if model["model_id"] in found]
    own = {(d["dtype_id"], d["engine_id"]) for d in book["dtype"] if d["dtype_id"] in DRAWN}

    def put(name: str, model: str, key: tuple, value: object) -> None:
        found[model].setdefault(name, []).append([key, value])

    phases = ("inference", *(trained if lengths else ()))
    totals = limits.points(book.folder, phases, PARTS, models)
    for phase in phases:
        is_run = phase == "inference"
        opening = book.openings[phase]
        known = totals.filter(phase_id=phase)
        if not is_run:
            known = known.filter(optimizer_id=opening["optimizer_id"], checkpointing=opening["checkpointing"])
        # most users are counted at the context that a page opens with, or at the longest that the model reads
        at = usual(read_on, contexts if is_run else lengths, opening["context_tokens"])
        at = pl.DataFrame(list(at.items()), schema={"model_id": pl.String, "usual": pl.Int64}, orient="row")
        one = known.filter(sequences=1)
        there = known.join(at, on="model_id").filter(pl.col("context_tokens") == pl.col("usual")).drop("usual")
        asked = pl.col("dtype_id").is_in(offered if is_run else [d for p, d in taught if p == phase])
        longest = limits.longest(one.filter(asked), cards, book["constant"]).drop("sequences")
        for model_id, dtype, engine, *values in longest.sort(limits.WHO).rows():
            key = (dtype, engine) if is_run else (phase, dtype, engine)
            put("longest" if is_run else "lengths", model_id, key, values)
        for model_id, tokens in known.group_by("model_id").agg(pl.col("context_tokens").max()).rows():
            put("looked", model_id, (phase,), tokens)
        for model_id, dtype, engine, *points in _points(one, there):
            put("points", model_id, (phase, dtype, engine), points)
        if is_run:
            most = limits.most(there.filter(asked), cards, book["constant"]).drop("context_tokens")
            for model_id, dtype, engine, *values in most.sort(limits.WHO).rows():
                put("most", model_id, (dtype, engine), values)
            drawn = one.filter(pl.col("dtype_id").is_in(DRAWN)).sort("context_tokens")
            lists = drawn.group_by("model_id", "dtype_id", "engine_id").agg(
                "context_tokens", pl.col("total_bytes") / words.GIB
            )
            for model_id, dtype, engine, tokens, total in lists.sort(limits.WHO).rows():
                if (dtype, engine) in own:
                    put("lines", model_id, (dtype,), (tokens, total))
    return found


def _points(one: pl.DataFrame, there: pl.DataFrame) -> list[tuple]:
    """By model and format what is known along the context, and along the sequences at the usual context: contexts, totals, bands, the
    components that are not 0 everywhere; then None, or that context, sequences, totals and bands."""
    along = (
        one.sort("context_tokens")
        .group_by(*limits.WHO)
        .agg("context_tokens", "total_bytes", "error_band", *(pl.col(c).first() for c in FIXED), *VARYING)
    )
    beside = (
        there.sort("sequences")
        .group_by(*limits.WHO)
        .agg(
            usual=pl.col("context_tokens").first(),
            sequences="sequences",
            more_bytes="total_bytes",
            more_band="error_band",
        )
    )
    rows = along.join(beside, on=limits.WHO, how="left").sort(limits.WHO).rows(named=True)
    out = []
    for row in rows:
        parts = {c: row[c] for c in FIXED if row[c]} | {c: row[c] for c in VARYING if any(row[c])}
        more = row["usual"] and (row["usual"], row["sequences"], row["more_bytes"], row["more_band"])
        who = (row[name] for name in limits.WHO)
        out.append((*who, row["context_tokens"], row["total_bytes"], row["error_band"], parts, more or None))
    return out


def parts_at(points: list, context: int) -> tuple[dict[str, int], int, float] | None:
    """Components, total and error band at one of the contexts; None where it is not known there."""
    at, totals, bands, parts, _more = points
    if context not in at:
        return None
    place = at.index(context)
    parts = {c: value[place] if isinstance(value, list) else value for c, value in parts.items()}
    return parts, totals[place], bands[place]


def as_json(points: dict[tuple, list], order: list[tuple]) -> dict:
    """The points of one model for the browser, in the order of its tables: phase, format, engine, then along the context and along the
    sequences the number of the axis, the totals, and the error band (a list where it varies)."""
    axes: list[list[int]] = []

    def line(at: list[int], totals: list[int], bands: list[float]) -> list:
        if at not in axes:
            axes.append(at)
        return [axes.index(at), totals, bands[0] if len(set(bands)) == 1 else bands]

    rows = [
        [*key, line(*points[key][:3]), more and line(*more[1:])]
        for key in order
        if key in points
        for more in (points[key][4],)
    ]
    return {"axes": axes, "rows": rows}


class Reach:
    """`held` gives what `read` found, for the models that are asked about."""

    def __init__(self, book: Book, held: Callable[[], dict]) -> None:
        self.book, self.held = book, held
        self.levels = self._levels()

    def training_end(self, number: int) -> int:
        """The largest micro-batch that anybody looked at."""
        points = self.held()["points"].get(self.book.models[number]["model_id"], {})
        return max((n for key, p in points.items() if key[0] != "inference" and p[4] for n in p[4][1]), default=1)

    def _levels(self) -> list[tuple[str, float]]:
        """One level line for each nominal size of the common cards: the least that a card of that size gives."""
        sizes: dict[float, float] = {}
        for gpu in self.book.common:
            if gpu["segment"] != "unified":
                nominal, gives = gpu["memory_gib_nominal"], gpu["capacity_bytes"] / words.GIB
                sizes[nominal] = min(sizes.get(nominal, gives), gives)
        return [(f"{nominal:g} GB card", gives) for nominal, gives in sorted(sizes.items())]

    def plot(self, number: int) -> Markup:
        """Memory against context. It names no model: those of one shape share it."""
        model = self.book.models[number]
        lines = self.held()["lines"].get(model["model_id"], {})
        drawn = [(d, *lines[d]) for d in DRAWN if d in lines and (d != "stored" or len(lines) == 1)]
        points = self.held()["points"].get(model["model_id"], {})
        formats = {dtype for phase, dtype, _engine in points if phase == "inference"}
        return plot.context_lines(
            drawn, self.levels, "this model", model["max_context_tokens"], words.tokens, len(formats)
        )
