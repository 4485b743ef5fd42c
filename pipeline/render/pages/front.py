"""The first screen as it is read without scripts: what a common card runs, and what leads on from there."""

from __future__ import annotations

import json
from functools import cached_property
from itertools import accumulate
from urllib.parse import urlencode

import polars as pl
from markupsafe import Markup

from pipeline.render import words
from pipeline.render.data import beside, cards, limits
from pipeline.render.data.book import Book
from pipeline.render.data.made import MadeFiles
from pipeline.render.data.rules import in_columns, in_python
from pipeline.render.data.window import POPULAR, Window, cache_read, large_first, totals, years_before_newest
from pipeline.render.draw import plot
from pipeline.render.environment import slug_gpu
from pipeline.render.pages.models import ModelPages

EXAMPLE = "rtx-3060-12gb"  # what the page speaks of before anybody has said which card it is about
ROWS = 25  # as many as the browser draws at first
UNREAD = " “?”: how many tokens it was made to read is not said in its config."
SIZES = (8, 12, 16, 24, 32, 48, 80)  # of the cards that are offered before one is known


class Front:
    def __init__(self, book: Book, pages: ModelPages) -> None:
        self.book, self.pages = book, pages
        self.window = Window(book, pages.paths, pages.kept)
        self.made = MadeFiles(book, pages.paths, self.window.members, pages.answers)
        by_id = {g["gpu_id"]: g for g in book.gpus}
        self.card = by_id.get(EXAMPLE) or book.common[0]

    def files(self) -> dict[str, str]:
        """What the browser reads below `data/window/`."""
        return self.window.files() | beside.files(self.book, self.window) | self.made.texts

    def values(self) -> dict:
        """What the template asks."""
        wish = self.window.wishes[0]
        rows = self._rows()
        return {
            "card": self.card,
            "wish": wish,
            "wishes": json.dumps(
                [
                    *([w.name, w.label, w.file, w.context_tokens] for w in self.window.wishes),
                    *([w.name, w.label, w.file, w.usual, w.unit, w.sizes, w.side] for w in self.made.wishes),
                ],
                ensure_ascii=False,
            ),
            "formats": [words.format_name(dtype) for _phase, dtype, _engine in wish.columns],
            "is_llama": all(engine == "llama.cpp" for _phase, _dtype, engine in wish.columns),
            "rows": rows[:ROWS],
            "said": self._sentence(rows),
            "of": sum(wish.means(self.book.models[i]) for i in self.window.of_file[wish.file]["works"]),
            "sizes": self._sizes(),
            "has_speed": bool(self.window.of_file[wish.file]["reads"]),
            "share": cards.share(self.book),
            "programs": cards.programs_of(self.book, "llama.cpp"),
            "about": self._about(),
            "macs": sorted(
                (g for g in self.book.gpus if g["vendor"] == "apple"), key=lambda g: (g["capacity_bytes"], g["gpu_id"])
            ),
            "slug": slug_gpu,
        }

    def _about(self) -> str:
        """What is known of the card itself, as front.js words it."""
        card = self.card
        speed, price, since = (
            card["memory_bandwidth_gb_s"],
            card.get("msrp_usd"),
            str(card.get("release_date") or "")[:7],
        )
        told = [f"{words.gib(card['capacity_bytes'])} GiB for a program"]
        told += [f"{speed:,g} GB/s"] if speed else []
        if price:
            told.append(f"list price {price:,g} USD{f' at launch, {since}' if since else ''}")
        else:
            told.append(f"since {since}, list price not known" if since else "list price not known")
        return " · ".join(told)

    def _speed(self, of: dict, work: int, column: int, context: int) -> str:
        """How many tokens a second the card writes at most, as window.js has it."""
        shape = of["places"][work]
        reads = of["reads"][shape] if of["reads"] else ""
        if not isinstance(reads, list) or reads[column] is None:
            return "–"
        first = next(c for c, n in enumerate(reads) if n is not None)
        line, _more = _found(of["shapes"][shape], column)
        footprint = {
            "phase_id": of["columns"][column][0],
            "engine_id": None,  # the cache that is read holds the states
            "sequences": 1,
            "tensor_parallel": 1,
            "pipeline_parallel": 1,
            "kv_cache_bytes": _on(of["axes"][line[0]], cache_read(line), context),
            "state_bytes": 0,
        }
        model = {"is_encoder": False, "writes_otherwise": None, "is_sparsely_read": shape in of["sparse"]}
        read = reads[column] + (0 if column == first else reads[first])
        most = in_python().decode_most(model, {"read_bytes": read}, footprint, self.card)
        return "–" if most is None else f"≤ {words.rate(most)}"

    def _sizes(self) -> list[tuple[int, dict]]:
        """A common card of each size, of the maker that most people have."""
        found = {}
        for gpu in self.book.common:
            if gpu["segment"] != "unified" and gpu["memory_gib_nominal"] in SIZES:
                found.setdefault(int(gpu["memory_gib_nominal"]), gpu)
        return sorted(found.items())

    def _rows(self) -> list[dict]:
        """The works that the card runs as the page opens, the newest and most downloaded first: as window.js has them."""
        wish = self.window.wishes[0]
        of = self.window.of_file[wish.file]
        models = [self.book.models[i] for i in of["works"]]
        alike = self.window.alike
        frame = self.window.frame(wish.file).filter(pl.col("model_id").is_in([alike[m["model_id"]] for m in models]))
        frame = frame.with_columns(need=in_columns().needed(pl.col("total_bytes"), pl.col("error_band")))
        name = self.card["gpu_id"]
        found = limits.longest(frame, {name: self.card["capacity_bytes"]}, self.book["constant"])
        told = {(m, d): n for m, d, n in found.select("model_id", "dtype_id", name).rows()}
        formats = found["dtype_id"].unique().to_list()
        longest = {
            (m["model_id"], d): told[alike[m["model_id"]], d]
            for m in models
            for d in formats
            if (alike[m["model_id"]], d) in told
        }
        years = years_before_newest(m["created_at"] for m in models)
        rows = []
        for k, model in enumerate(models):
            shape = of["shapes"][of["places"][k]]
            row = self._row(k, model, wish, of, shape, longest)
            if row and wish.means(model):
                more = len(self.window.members[of["works"][k]]) - 1
                rows.append((years[k], k, row | {"more": more}))
        return [row | {"year": year, "work": k} for year, k, row in sorted(rows, key=lambda r: r[:2])]

    def _sentence(self, rows: list[dict]) -> Markup:
        """The answer in words, as front.js has it."""
        start = Markup("For example on {}: {:,} model{}. ").format(
            self.card["short"], len(rows), "" if len(rows) == 1 else "s"
        )
        if not rows:
            return start
        by_size = lambda row: large_first(row["millions"], row["year"], row["work"])  # noqa: E731
        popular = sorted((r for r in rows if r["work"] < POPULAR), key=by_size) or sorted(rows, key=by_size)
        second = [r for r in popular if (r["millions"] or 0) < 0.95 * (popular[0]["millions"] or 0)][:1]
        large = [popular[0], *second]
        roomy = [] if any(r["is_best"] for r in large) else [r for r in popular if r["is_best"]][:1]
        bold = lambda r: Markup("<b>{}</b> in {} ({})").format(words.shown(r["leaf_name"]), r["format"], r["reach"])  # noqa: E731
        told = Markup("The largest popular {}: {}.").format(
            "ones" if len(large) > 1 else "one", Markup(" and ").join(map(bold, large))
        )
        told += Markup(" In the best quality: {}.").format(bold(roomy[0])) if roomy else ""
        return start + told + (UNREAD if any(str(r["reach"]).endswith("?") for r in [*large, *roomy]) else "")

    def _row(self, work: int, model: dict, wish, of: dict, shape: list, longest: dict) -> dict | None:
        """A work as a line of the table; None where no format holds the context that is asked for."""
        columns, main = of["columns"], of["main"]
        reach = [
            None if line is None or self._is_refused(columns[c]) else longest.get((model["model_id"], columns[c][1]))
            for c, line in enumerate(shape)
        ]
        native = [c for c in range(main, len(columns)) if shape[c] is not None]
        best = next((c for c in native or wish.asked if reach[c] and reach[c] >= wish.context_tokens), None)
        if best is None:
            return None
        lines = [self._line(shape, c, of["axes"]) for c in range(len(columns))]
        cells = [
            self._cell(words.format_name(columns[c][1]), reach[c], lines[c], c == best, model, wish.context_tokens)
            for c in range(main)
        ]
        if native:
            cells = [
                Markup('<td class="cell best wide" role="cell" colspan="{}">as published, {}: {}</td>').format(
                    main, words.format_name(columns[best][1]), _reach(reach[best], model, lines[best][0][-1])
                )
            ]
        bar, need = self._bar(shape, best, of["axes"], wish.context_tokens)
        size = model["parameter_count"] or model["stored_parameter_count"]
        asked = {"model": model["model_id"], "dtype": columns[best][1], "context": wish.context_tokens}
        return self.pages.entry(model) | {
            "which": urlencode(asked),
            "speed": self._speed(of, work, best, wish.context_tokens),
            "size": words.count(size) if size else "",
            "made": (model["created_at"] or "")[:7],
            "format": words.format_name(columns[best][1]),
            "need": words.gib(need),
            "bar": bar,
            "millions": words.millions(size),
            "is_best": best == 0,
            "reach": _reach(reach[best], model, lines[best][0][-1]),
            "cells": Markup("").join(cells),
        }

    def _line(self, shape: list, column: int, axes: list) -> list | None:
        """The places and the totals of a format."""
        line, more = _found(shape, column)
        return line and [axes[line[0]], totals(line, more)]

    def _is_refused(self, column: tuple[str, str, str]) -> bool:
        phase, dtype, engine = column
        scenario = self._scenarios.get((phase, dtype, engine))
        return scenario is not None and self.pages.support.refusal(scenario, dtype, self.card["gpu_id"]) is not None

    @cached_property
    def _scenarios(self) -> dict:
        return {(s.phase_id, s.dtype_id, s.engine_id): s for s in self.book.scenarios}

    def _bar(self, shape: list, column: int, axes: list, context: int) -> tuple[Markup, float]:
        """The parts of a total at a context against what the card gives, and the total."""
        line, more = _found(shape, column)
        at, sums = axes[line[0]], totals(line, more)
        cache = list(accumulate(line[2]))
        weights, held, total = line[1] + more, _on(at, cache, context), _on(at, sums, context)
        parts = [("weights", weights), ("kv_cache", held), ("activations", total - weights - held)]
        drawn = plot.bar(parts, self.card["capacity_bytes"])
        return Markup(str(drawn).replace('class="bar"', 'class="bar need"', 1)), total

    def _cell(self, name: str, found: int | None, line: list | None, is_best: bool, model: dict, wanted: int) -> Markup:
        """How long a context a format leaves, as front.js words it. `line` is [places, totals] of the format."""
        if found is None:
            kind, text = "none", "" if line is None else "won’t run"
        elif not found:
            kind, text = ("tight", "tight") if line[1][0] <= self.card["capacity_bytes"] else ("none", "–")
        else:
            kind = "best" if is_best else "fits" if found >= wanted else "less"
            text = _reach(found, model, line[0][-1])
        return Markup('<td class="cell {}" role="cell" data-format="{}">{}</td>').format(kind, name, text)


def _on(at: list[int], values: list[int], context: int) -> float:
    """What is read off between two places of a line, as window.js does."""
    high = next((i for i, place in enumerate(at) if place >= context), len(at) - 1)
    low, high = max(0, high - 1), max(high, min(1, len(at) - 1))
    part = 0 if low == high else min(1, max(0, (context - at[low]) / (at[high] - at[low])))
    return values[low] + part * (values[high] - values[low])


def _found(shape: list, column: int) -> tuple[list | None, int]:
    """The line of a format, and by how many bytes of weights it is more than that."""
    first = next((line for line in shape if isinstance(line, list)), None)
    line = shape[column]
    return (line, 0) if line is None or isinstance(line, list) else (first, line)


def _reach(found: int, model: dict, last: int | None) -> str:
    return words.reached(found, model["max_context_tokens"], last, words.rounded_tokens(found))
