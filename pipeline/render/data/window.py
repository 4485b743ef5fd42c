"""What the first screen reads: for each wish (site/wishes.csv) the works that serve it, and the totals that limits of any card are read off.

`data/window/<file>.json` holds one card, `data/window/<file>-several.json` 2 cards and more, and what bounds the speed: nobody waits for it.
Both hold the published totals to the byte, so that the browser works limits out by the rule of `limits.py` (site/assets/limits.js) and says what the view `compatibility` says. They are small
because works of one shape share a line, and because formats of one engine differ by their weights alone: then a format is one number more.

    line      [axis, weights, cache …, rest …, band, padding …]: totals at each place of the axis are weights + cache + rest; of cache and
              rest the first and then by how much each is more than the one before, and so of padding, what the cache is set aside
              for and no token reads, which is left out where there is none
    shape     for each column a line, or by how many bytes it is more than the first line, or null where nothing is known
    reads     by shape what of its weights a token reads in each column, or why nothing bounds its speed; `sparse` are shapes that
              read little of their cache. `shared` says of each column how several cards share the work
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import polars as pl

from pipeline.book.commands import GGUF_OF, UNPACKED
from pipeline.book.wishes import Wish, wishes
from pipeline.render import words
from pipeline.render.data import limits, lineage, speeds
from pipeline.render.data.book import Book
from pipeline.render.data.kept import Kept

PADDING = "kv_padding_bytes"
CACHE = ("kv_cache_bytes", PADDING, "state_bytes", "gradients_bytes", "optimizer_bytes", "adapters_bytes")
NEEDED = ("gpu_count", "weights_bytes", *CACHE)
POPULAR = 60  # places of works that count as popular
SIZES_ALIKE = 1.1  # sizes that hardly differ


class Window:
    """Works by wish, and their totals."""

    def __init__(self, book: Book, paths: dict[str, str], kept: Kept | None = None) -> None:
        """Of models of one content the totals of one are read: they are those of all."""
        self.book, self.paths = book, paths
        kept = kept or Kept({})
        first: dict[str, str] = {}
        names = [model["model_id"] for model in book.models]
        self.alike = {name: first.setdefault(kept.contents.get(name) or name, name) for name in names}
        self.wishes = wishes()
        self.by_file: dict[str, list[Wish]] = {}
        for wish in self.wishes:
            self.by_file.setdefault(wish.file, []).append(wish)
        read = sorted(set(self.alike.values()))
        told = kept.by_content("window", read, self._told, dict.fromkeys(read))
        self.lines = {name: {m: _by_count(of[name]) for m, of in told.items() if of[name]} for name in self.by_file}
        self.reading = _reading(book)
        known = {model for lines in self.lines.values() for model in lines}
        self.leaders = book.works.leaders(lambda i: self.alike[names[i]] in known)
        self.members: dict[int, list[int]] = {}
        for i, leader in enumerate(self.leaders):
            self.members.setdefault(leader, []).append(i)
        self.of_file = {name: self._of_file(name) for name in self.by_file}

    def _told(self, models: list[str]) -> dict[str, dict[str, dict]]:
        """By model and file the lines of its columns."""
        columns = {name: _columns(of[0], self.book) for name, of in self.by_file.items()}
        points = self._points(models, list(dict.fromkeys(column for of in columns.values() for column in of)))
        lines = {name: _lines(self._frame(points, of), of) for name, of in columns.items()}
        return {model: {name: of.get(model, {}) for name, of in lines.items()} for model in models}

    def frame(self, name: str) -> pl.DataFrame:
        """What limits of one card are read off, of all works of a file."""
        rows = [
            (model, *column, place, total, band)
            for model, of in self.lines[name].items()
            for column, line in zip(_columns(self.by_file[name][0], self.book), of.get(1, ()), strict=False)
            if line
            for place, total, band in zip(line.at, line.total, line.band, strict=True)
        ]
        who = dict.fromkeys(("model_id", "phase_id", "dtype_id", "engine_id"), pl.String)
        schema = who | {"context_tokens": pl.Int64, "total_bytes": pl.Int64, "error_band": pl.Float64}
        alike = [pl.lit(None, pl.String).alias(n) for n in limits.ALIKE]
        return pl.DataFrame(rows, schema, orient="row").with_columns(*alike, sequences=pl.lit(1, pl.Int64))

    def _points(self, read: list[str], columns: list[tuple[str, str, str]]) -> pl.DataFrame:
        """Every known total of one sequence in these formats, on any number of cards. The file of footprints is read once for all of them."""
        asked = (pl.col("sequences") == 1) & pl.col("dtype_id").is_in(sorted({dtype for _p, dtype, _e in columns}))
        footprints = pl.scan_parquet(self.book.folder / "footprint.parquet").filter(
            asked & pl.col("total_bytes").is_not_null() & pl.col("model_id").is_in(read)
        )
        wanted = _wanted(columns)
        known = (
            footprints.join(wanted.lazy(), on=wanted.columns, how="semi").select(limits.columns_with(NEEDED)).collect()
        )
        phases = list(dict.fromkeys(phase for phase, _d, _e in columns))
        one = limits.points(self.book.folder, phases, NEEDED, read, asked, known).drop("need")
        several = known.filter(pl.col("gpu_count") > 1).select(one.columns)
        return pl.concat([one, several])

    def _frame(self, points: pl.DataFrame, columns: list[tuple[str, str, str]]) -> pl.DataFrame:
        """Those of some columns, as the pages open a phase."""
        keys = [*limits.WHO, *limits.ALIKE, "context_tokens", "gpu_count"]
        wanted, frames = _wanted(columns), []
        found = points.join(wanted, on=wanted.columns, how="semi")
        for phase in dict.fromkeys(phase for phase, _d, _e in columns):
            opening = self.book.openings.get(phase, {})
            of_phase = found.filter(phase_id=phase).unique(keys, keep="first")
            if phase != "inference":
                of_phase = of_phase.filter(
                    optimizer_id=opening.get("optimizer_id"), checkpointing=opening.get("checkpointing")
                )
            frames.append(of_phase)
        return pl.concat(frames)

    def _of_file(self, name: str) -> dict:
        """The works of a file by their total downloads, and their shapes."""
        wishes, models = self.by_file[name], self.book.models
        columns = _columns(wishes[0], self.book)
        tasks = {task for wish in wishes for task in wish.tasks}
        lines = self.lines[name]
        counts = sorted({count for of in lines.values() for count in of} - {1})
        downloads = {i: sum(models[k]["downloads_30d"] or 0 for k in same) for i, same in self.members.items()}
        chosen = [
            i
            for i in sorted(self.members, key=lambda i: (-downloads[i], i))
            if models[i]["pipeline_tag"] in tasks
            and 1 in lines.get(self.alike[models[i]["model_id"]], {})
            and not (all(column[0] != "inference" for column in columns) and i in self._packed_copies)
        ]
        axes: list[list[int]] = []
        shapes: dict[str, int] = {}
        one, several, places, reads, sparse = [], [], [], [], []
        for i in chosen:
            mine = lines[self.alike[models[i]["model_id"]]]
            shape = {n: _shape(mine[n], axes) if n in mine else None for n in (1, *counts)}
            native = GGUF_OF.get(models[i]["stored_format"])
            if native and any(c[1] == native for c in columns):
                # what is published in these few bits is not packed again
                kept = [k for k, c in enumerate(columns) if c[1] == native]
                shape = {n: _only(found, kept) for n, found in shape.items()}
            else:
                kept = range(len(wishes[0].columns))
                shape = {n: _only(found, kept) for n, found in shape.items()}
            read = self._read(models[i]["model_id"], columns, shape[1])
            is_sparse = self.reading.get(models[i]["model_id"], {}).get("is_sparse", False)
            key = _json([shape, read, is_sparse])
            if key not in shapes:
                shapes[key] = len(one)
                if is_sparse:
                    sparse.append(len(one))
                one.append(shape[1])
                several.append([shape[n] for n in counts])
                reads.append(read)
            places.append(shapes[key])
        return {
            "columns": columns,
            "main": len(wishes[0].columns),
            "axes": axes,
            "shapes": one,
            "reads": reads if any(isinstance(read, list) for read in reads) else [],
            "sparse": sparse,
            "several": {"counts": counts, "shapes": several, "shared": self._shared(columns)},
            "works": chosen,
            "places": places,
        }

    @cached_property
    def _packed_copies(self) -> set[int]:
        """Works that are AWQ, GPTQ and the like of something that is not listed: what a training over such a base takes nobody counted, as the
        terminal says too."""
        served = {
            d["dtype_id"]
            for d in self.book["dtype"]
            if d["engine_id"] == "vllm" and (d["bits_per_weight"] or 16) < 16 and d["dtype_id"] not in UNPACKED
        }
        return {
            i
            for i, model in enumerate(self.book.models)
            if model["stored_format"] in served and self.book.works.levels[i] >= lineage.PACKED
        }

    def _read(self, model: str, columns: list[tuple[str, str, str]], shape: list) -> list[int | None] | str:
        """What a token reads of the weights in each column that is known; or why nobody says, in a reader's words."""
        of = self.reading.get(model)
        if of is None or not any(column[0] == "inference" and column[1] in of["read"] for column in columns):
            return ""
        if of["why"]:
            return of["why"]
        found = [of["read"].get(c[1]) if line is not None else None for c, line in zip(columns, shape, strict=True)]
        known = next((n for n in found if n is not None), 0)
        # as lines are: the first, and by how much the others differ
        return [n if n is None or i == found.index(known) else n - known for i, n in enumerate(found)]

    def _shared(self, columns: list[tuple[str, str, str]]) -> list[str | None]:
        """How several cards share the work of each column."""
        wanted = _wanted(columns)
        rows = pl.scan_parquet(self.book.folder / "footprint.parquet").filter(pl.col("gpu_count") == 2)
        found = rows.join(wanted.lazy(), on=wanted.columns, how="semi").select(*wanted.columns, "sharding").unique()
        # (sorted: some trainings of a column are shared by ZeRO-2, others by ZeRO-3, and the same is told each time)
        by_column = {tuple(row[:3]): row[3] for row in found.collect().sort(pl.all()).rows()}
        return [by_column.get(tuple(column)) for column in columns]

    def popular(self, wish: Wish) -> list[int]:
        """The popular works that a wish means, the largest first: the places of their models."""
        models, chosen = self.book.models, self.of_file[wish.file]["works"]
        years = years_before_newest(models[i]["created_at"] for i in chosen)
        meant = [k for k, i in enumerate(chosen[:POPULAR]) if wish.means(models[i])]
        meant.sort(key=lambda k: large_first(_size(models[chosen[k]]), years[k], k))
        return [chosen[k] for k in meant]

    def files(self) -> dict[str, str]:
        """By name below `data/window/`."""
        found = {}
        for name, of in self.of_file.items():
            models = [self.book.models[i] for i in of["works"]]
            task = sorted({m["pipeline_tag"] for m in models})
            found[f"{name}.json"] = _json(
                {
                    "columns": of["columns"],
                    "main": of["main"],
                    "wishes": [
                        {
                            "name": w.name,
                            "label": w.label,
                            "asked": w.asked,
                            "tasks": [task.index(t) for t in w.tasks if t in task],
                            "named": w.named,
                            "not": w.not_named,
                            "context": w.context_tokens,
                        }
                        for w in self.by_file[name]
                    ],
                    "axes": of["axes"],
                    "shapes": of["shapes"],
                    "shape": of["places"],
                    "hasSpeed": bool(of["reads"]),
                    "id": [m["model_id"] for m in models],
                    "paths": {
                        k: self.paths[m["model_id"]]
                        for k, m in enumerate(models)
                        if self.paths[m["model_id"]] != m["model_id"]
                    },
                    "size": [_size(m) for m in models],
                    "made": [(m["created_at"] or "")[:7] for m in models],
                    "more": [len(self.members[i]) - 1 for i in of["works"]],
                    "context": [m["max_context_tokens"] for m in models],
                    "tasks": task,
                    "task": [task.index(m["pipeline_tag"]) for m in models],
                }
            )
            reading = {"reads": of["reads"], "sparse": of["sparse"]}
            found[f"{name}-several.json"] = _json({"axes": of["axes"], **of["several"], **reading})
        return found


def large_first(millions: float | None, years: int, work: int) -> tuple[int, int, int]:
    """The order by size, as front.js has it: of sizes that hardly differ the newer comes first."""
    return -round(math.log(millions or 1e-3) / math.log(SIZES_ALIKE)), years, work


def years_before_newest(made: Iterable[str | None]) -> list[int]:
    """By how many years each is older than the newest of them; what has no date comes after all others."""
    months = [created and 12 * int(created[:4]) + int(created[5:7]) for created in made]
    newest = max((m for m in months if m), default=0)
    return [(newest - m) // 12 if m else 10**6 for m in months]


def _size(model: Mapping) -> float | int | None:
    """In millions of parameters, as the browser is told."""
    return words.millions(model["parameter_count"] or model["stored_parameter_count"])


def _columns(wish: Wish, book: Book) -> list[tuple[str, str, str]]:
    """The wish's columns, and after them the formats that some models are published in."""
    engines = {column[2] for column in wish.columns if column[0] == "inference"}
    own = {d["dtype_id"]: d["engine_id"] for d in book["dtype"]}
    native = [("inference", d, own[d]) for d in sorted(set(GGUF_OF.values())) if own.get(d) in engines]
    return [*wish.columns, *native]


def _wanted(columns: list[tuple[str, str, str]]) -> pl.DataFrame:
    return pl.DataFrame(columns, schema=["phase_id", "dtype_id", "engine_id"], orient="row")


class _Line(NamedTuple):
    """What is known of a column, at each place of its axis."""

    at: list[int]  # contexts
    weights: list[int]
    cache: list[int]
    total: list[int]
    band: list[float]
    padding: list[int]


def _lines(frame: pl.DataFrame, columns: list[tuple[str, str, str]]) -> dict[str, dict[int, list[_Line | None]]]:
    """By model and number of cards a line for each column; None where nothing is known."""
    place = {column: k for k, column in enumerate(columns)}
    cache = pl.sum_horizontal(pl.col(c).fill_null(0) for c in CACHE)
    told = (
        "context_tokens",
        "weights_bytes",
        cache.alias("cache"),
        "total_bytes",
        "error_band",
        pl.col(PADDING).fill_null(0),
    )
    rows = frame.sort("context_tokens").group_by("model_id", "gpu_count", "phase_id", "dtype_id", "engine_id").agg(told)
    found: dict[str, dict[int, list]] = {}
    for model, count, phase, dtype, engine, *line in rows.rows():
        of = found.setdefault(model, {}).setdefault(count, [None] * len(columns))
        of[place[phase, dtype, engine]] = _Line(*line)
    return found


def _by_count(told: Mapping) -> dict[int, list[_Line | None]]:
    """The lines of a model as they are kept."""
    return {int(count): [line and _Line(*line) for line in lines] for count, lines in told.items()}


def _shape(lines: list[_Line | None], axes: list[list[int]]) -> list:
    """Each column as a line, or as what it has more than the first line."""
    first, out = None, []
    for line in lines:
        if line is None:
            out.append(None)
        elif first is not None and (more := _more(line, first)) is not None:
            out.append(more)
        else:
            first = first or line
            out.append(_told(line, axes))
    return out


def _more(line: _Line, first: _Line) -> int | None:
    """By how much the weights and totals of a line are more than another's, at every place of it alike; None where they differ otherwise."""
    if any(
        a != b
        for a, b in (
            (line.at, first.at),
            (line.cache, first.cache),
            (line.band, first.band),
            (line.padding, first.padding),
        )
    ):
        return None
    pairs = (*zip(line.weights, first.weights, strict=True), *zip(line.total, first.total, strict=True))
    ways = {a - b for a, b in pairs}
    return ways.pop() if len(ways) == 1 else None


def _told(line: _Line, axes: list[list[int]]) -> list:
    if line.at not in axes:
        axes.append(line.at)
    weights = line.weights[0]
    rest = [total - weights - held for total, held in zip(line.total, line.cache, strict=True)]
    band = line.band[0] if len(set(line.band)) == 1 else line.band
    padding = [_steps(line.padding)] if any(line.padding) else []
    return [axes.index(line.at), weights, _steps(line.cache), _steps(rest), band, *padding]


def _steps(values: list[int]) -> list[int]:
    return [values[0], *(b - a for a, b in pairwise(values))]


def _only(shape: list | None, kept) -> list | None:
    """A shape of these columns alone: the others are null, and the first that is left is a line of its own."""
    if shape is None:
        return None
    first = next((line for line in shape if isinstance(line, list)), None)
    out: list = [None] * len(shape)
    begun = None
    for k in kept:
        line = shape[k]
        if isinstance(line, list):
            begun = 0 if begun is None else begun
            out[k] = line
        elif line is not None and begun is None:
            begun = line
            out[k] = [first[0], first[1] + line, *first[2:]]
        elif line is not None:
            out[k] = line - begun
    return out


def totals(line: list, more: int = 0) -> list[int]:
    """The totals of a line, with so many bytes of weights more: how the browser reads it."""
    return [line[1] + more + c + r for c, r in zip(accumulate(line[2]), accumulate(line[3]), strict=True)]


def cache_read(line: list) -> list[int]:
    """What is cached and read at each place of a line."""
    held = list(accumulate(line[2]))
    padding = accumulate(line[5]) if len(line) > 5 else [0] * len(held)
    return [total - aside for total, aside in zip(held, padding, strict=True)]


def _reading(book: Book) -> dict[str, dict]:
    """By model what a token reads in each format, whether it reads little of its cache, and why nothing bounds its speed where so."""
    found = {}
    for model, of in speeds.reads(book, "gguf-").items():
        read = {dtype: one.read_bytes for dtype, one in of.items()}
        is_known = any(n is not None for n in read.values())  # it is known in the formats that the model has
        why = "" if is_known else [one.why for one in of.values()][-1]
        found[model] = {"read": read, "is_sparse": any(one.is_sparsely_read for one in of.values()), "why": why}
    return found


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
