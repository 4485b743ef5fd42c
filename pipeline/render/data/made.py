"""What the first screen reads where the size of a wish is no number of tokens (site/made.csv): pictures by their side in pixels, videos by
frames, speech by seconds of sound; in the form of data/window.py.

    pipeline   a column is a way to place the parts of a diffusion pipeline (`pipeline_of`), the fastest first
    sound      a column is a format in Transformers (data/sounds.py)

What is not known is told with its reason, and with what is known of it: `least` are bytes that a column needs at least, the known
parts or the weights alone. A total grows with every size at least as fast as the line between two of them (with the square of a
side), so that what is read off that line is never too little.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from pipeline import ROOT
from pipeline.base.readonly import reading
from pipeline.render import words
from pipeline.render.data import sounds
from pipeline.render.data.book import Book
from pipeline.render.data.kept import Answers

MADE = ROOT / "site" / "made.csv"
REPACKED = ROOT / "tables" / "library" / "repository_holds.csv"
DTYPE, ENGINE = "bf16", "transformers"  # diffusers runs on the PyTorch that Transformers does
# the formulas do not cover what a picture that goes in takes
GIVEN = "it works on a picture that is given, and what that takes is not worked out"
PLACEMENTS = {
    "resident": "all at once",
    "model": "one part at a time",
    "group": "one module and the next",
    "sequential": "one module at a time",
    "model-tiled": "one part, in tiles",
    "sequential-tiled": "one module, in tiles",
}
TILED = "-tiled"  # after a way to place the parts: the same with `is_tiled`
PACKED = "+"  # after that: the same with the denoiser in the format that follows, and behind another the text encoders
SPEAKS = "speak"  # the wish of those that make speech
BYTES = {"fp16": 2}  # of a parameter, where a format says it by itself

Rows = dict[str, dict]  # by column: weights_bytes, total_bytes, error_band, unknown_reason and, where told, least_bytes


@dataclass(frozen=True)
class Made:
    """What somebody wants to have made: in which unit it is measured, and whom it is asked of."""

    name: str
    label: str
    file: str
    unit: str
    sizes: tuple[int, ...]
    usual: int
    side: tuple[int, int] | None  # of a picture, where the size is something else
    multiple: int
    kind: str
    columns: tuple[str, ...]
    tasks: tuple[str, ...]
    classes: str  # a pattern that the class of a pipeline's denoiser holds; empty: of no other wish
    gives: tuple[str, ...]  # what has to come of a class of sound that was run whole
    of_text: tuple[
        str, ...
    ]  # classes of denoisers that have a pipeline of text alone, or one that takes a picture beside it or none


def wishes() -> list[Made]:
    """The rows of site/made.csv."""
    with MADE.open(encoding="utf-8", newline="") as lines:
        return [
            Made(
                *(row[key] for key in ("wish", "label", "file", "unit")),
                tuple(int(n) for n in row["sizes"].split()),
                int(row["usual"]),
                (int(row["width"]), int(row["height"])) if row["width"] else None,
                int(row["multiple"]),
                row["kind"],
                tuple(row["columns"].split()),
                tuple(row["tasks"].split()),
                row["classes"],
                tuple(row["gives"].split()),
                tuple(row["of_text"].split()),
            )
            for row in csv.DictReader(lines)
        ]


def repacked() -> dict[str, str]:
    """By repository that holds a pipeline's parts for other programs whose they are."""
    with REPACKED.open(encoding="utf-8", newline="") as lines:
        return {row["model_id"]: row["copy_of"] for row in csv.DictReader(lines) if row["copy_of"]}


PICTURE = {"width": 1024, "height": 1024, "frames": 1}


def size_of(makes_videos: bool) -> dict[str, int]:
    """The size that a page speaks of, and the calculator opens with."""
    wish = next((w for w in wishes() if w.unit == "frames" and w.side), None) if makes_videos else None
    return {"width": wish.side[0], "height": wish.side[1], "frames": wish.usual} if wish else PICTURE


class MadeFiles:
    """The files of all such wishes, below `data/window/`; of a release without the formulas there are none."""

    def __init__(self, book: Book, paths: dict[str, str], members: dict[int, list[int]], answers: Answers) -> None:
        self.book, self.paths, self.members, self.answers = book, paths, members, answers
        self.by_name = {m["model_id"]: m for m in book.models}
        self.repacked = repacked()
        self.leader = {i: leader for leader, same in members.items() for i in same}
        self.place = {m["model_id"]: i for i, m in enumerate(book.models)}
        self.all = wishes()
        with reading(book.folder / "almanac.duckdb") as connection:
            known = "SELECT DISTINCT function_name FROM duckdb_functions()"
            formulas = {name for (name,) in connection.execute(known).fetchall()}
            asked = {
                "pipeline": (self._pipelines, "pipeline_of" in formulas),
                "sound": (self._sound, {"footprints_in", "speech_of"} <= formulas),
            }
            found = {w: asked[w.kind][0](connection, w) if asked[w.kind][1] else {} for w in self.all}
        self.texts = {f"{w.file}.json": self._file(w, of) for w, of in found.items() if of}
        self.wishes = [w for w in self.all if f"{w.file}.json" in self.texts]

    def _downloads(self, name: str) -> int:
        place = self.place.get(name)
        same = self.members.get(place, [place]) if place is not None else []
        return sum(self.book.models[i]["downloads_30d"] or 0 for i in same)

    def _file(self, wish: Made, found: dict[str, dict[int, Rows]]) -> str:
        names = sorted(found, key=lambda name: (-self._downloads(name), name))
        axes: list[list[int]] = []
        shapes, why, least = [], [], []
        for name in names:
            lines, reason = lines_of(found[name], wish, axes, self.book.plainly)
            shapes.append(lines)
            why.append(reason)
            rows = found[name][wish.usual]
            least.append([rows[c].get("least_bytes") for c in wish.columns] if reason else None)
        models = [self.by_name.get(name, {}) for name in names]
        own = self.members.get
        return json.dumps(
            {
                "columns": [
                    ("inference", DTYPE, ENGINE, c) if wish.kind == "pipeline" else ("inference", c, ENGINE)
                    for c in wish.columns
                ],
                "words": [_said(c) for c in wish.columns],
                "main": len(wish.columns),
                "multiple": wish.multiple,
                "wishes": [
                    {
                        "name": wish.name,
                        "label": wish.label,
                        "asked": list(range(len(wish.columns))),
                        "tasks": [0],
                        "named": "",
                        "not": "",
                        "context": wish.usual,
                    }
                ],
                "axes": axes,
                "shapes": shapes,
                "why": why,
                "least": least,
                "shape": list(range(len(names))),
                "id": names,
                "paths": {k: self.paths[n] for k, n in enumerate(names) if n in self.paths and self.paths[n] != n},
                "pages": [int(name in self.by_name) for name in names],
                "size": [None if wish.kind == "pipeline" else words.millions(m["parameter_count"]) for m in models],
                "made": [(m.get("created_at") or "")[:7] for m in models],
                "more": [len(own(self.place.get(name), [0])) - 1 for name in names],
                "context": [None] * len(names),
                "tasks": [wish.name],
                "task": [0] * len(names),
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )

    # ---- diffusion pipelines

    def _pipelines(self, connection, wish: Made) -> dict[str, dict[int, Rows]]:
        classes: dict[str, str] = {}
        for component in self.book["component"]:
            classes.setdefault(component["model_id"], "")
            if component["pipeline_part"] == "denoiser":
                classes[component["model_id"]] = component["class_name"] or ""
        mine = [name for name in sorted(classes) if self._wish_of(name, classes[name]) is wish]
        copies = {name for name in mine if self.original(name) != name and self.original(name) in mine}
        mine = [name for name in mine if name not in copies]
        asked = [wish.side, wish.sizes, wish.columns, wish.usual]
        told = self.answers.of("placed", mine, _PLACED_BY, lambda some: _placed(connection, some, wish), asked)
        found = {name: {int(size): rows for size, rows in of.items()} for name, of in told.items()}
        for name in mine:
            tag = self.by_name.get(name, {}).get("pipeline_tag") or ""
            if not tag.startswith("image-") or classes[name] in wish.of_text:
                continue
            for row in (
                row for rows in found[name].values() for row in rows.values() if row["total_bytes"] is not None
            ):
                row |= {"total_bytes": None, "unknown_reason": GIVEN, "least_bytes": row["weights_bytes"]}
        for model in self.book.models:  # what nobody has taken to parts
            if model["pipeline_tag"] in wish.tasks and model["model_id"] not in classes:
                row = {"total_bytes": None, "unknown_reason": self._own(model["model_id"]) or "its parts are not known"}
                found[model["model_id"]] = {wish.usual: dict.fromkeys(wish.columns, row)}
        return found

    def original(self, name: str) -> str:
        """The pipeline that a repository repacks for other programs, or the work that it is a copy of; else itself."""
        place = self.place.get(name)
        leader = self.leader.get(place)
        return self.repacked.get(name) or (name if leader is None else self.book.models[leader]["model_id"])

    def _wish_of(self, name: str, denoiser: str) -> Made | None:
        of = [wish for wish in self.all if wish.kind == "pipeline"]
        task = self.by_name.get(name, {}).get("pipeline_tag")
        named = next((w for w in of if (w.classes and re.search(w.classes, denoiser)) or task in w.tasks), None)
        return named or next((w for w in of if not w.classes), None)

    # ---- sound

    def _sound(self, connection, wish: Made) -> dict[str, dict[int, Rows]]:
        """By work and seconds what each format needs. Who reads a window of a fixed length needs the same for all: it reads the next one
        after it."""
        models = self.book.models
        mine = [models[i]["model_id"] for i in self.members if models[i]["pipeline_tag"] in wish.tasks]
        speaks = set(sounds.spoken_of(connection))
        if wish.name == SPEAKS:  # some of them the Hub lists without a task
            writers = sounds.writers(connection)
            mine += [
                n for i in self.members if (n := models[i]["model_id"]) in writers and not models[i]["pipeline_tag"]
            ]
        # (the Hub lists who tells speakers apart as speech recognition)
        gives = {name: what for name, (_program, _note, what) in sounds.classes(connection).items()}
        mine = [n for n in mine if gives.get(n) in (None, *wish.gives)]
        if not mine:
            return {}
        found = sounds.kept_heard(self.answers, connection, mine, wish.sizes, wish.columns, ENGINE)
        windows = sounds.windowed(connection) if wish.name != SPEAKS else set()
        for name in mine:
            plain = found[name].pop(None)
            for rows in found[name].values():
                for dtype, row in rows.items():
                    if row["total_bytes"] is None and name in windows:
                        rows[dtype] = plain[dtype]
                    elif row["total_bytes"] is None:
                        row["unknown_reason"] = self._own(name) or row["unknown_reason"]
                        row["least_bytes"] = plain[dtype]["total_bytes"] or self._weights(name, dtype)
        mine = [name for name in mine if name in speaks]
        return found | (sounds.kept_spoken(self.answers, connection, mine, wish.sizes, wish.columns) if mine else {})

    def _own(self, name: str) -> str:
        """What the model itself says of why nothing is known of it; empty where something is."""
        model = self.by_name[name]
        return (model["anatomy_note"] or "") if model["anatomy_grade"] == "unknown" else ""

    def _weights(self, name: str, dtype: str) -> int | None:
        count = self.by_name[name]["parameter_count"]
        return count * BYTES[dtype] if count and dtype in BYTES else None


_PLACED_BY = ("pipeline_of", "pipeline_stages")


def _said(column: str) -> str:
    placement, _, packed = column.partition(PACKED)
    said = PLACEMENTS.get(placement, placement)
    denoiser, _, text = packed.partition(PACKED)
    return f"{said.removesuffix(' at a time')}, {denoiser}{', text too' if text else ''}" if packed else said


def _placed(connection, names: list[str], wish: Made) -> dict[str, dict[int, Rows]]:
    """The rows of `pipeline_of` by pipeline, size and placement; of what is unknown the parts that are known."""
    width, height, frames = (*wish.side, "asked.size") if wish.side else ("asked.size", "asked.size", 1)
    asked = f"asked.model_id, dtype_id := '{DTYPE}', width := {width}, height := {height}, frames := {frames}"
    given = "(SELECT unnest($1::VARCHAR[]) AS model_id) AS model, (SELECT unnest($2::INTEGER[]) AS size) AS sizes"
    # what is asked beside a placement, as a column ends with it: in one question, whose text is planned once
    ends = sorted({c.removeprefix(c.partition(PACKED)[0].removesuffix(TILED)) for c in wish.columns})
    packed = [[text or None for text in end.partition(PACKED)[2].partition(PACKED)[::2]] for end in ends]
    result = connection.execute(
        f"""
        SELECT asked.model_id, asked.size, asked.column_end, told.*
        FROM {given}, (
            SELECT unnest($3::VARCHAR[]) AS column_end, unnest($4::BOOLEAN[]) AS is_tiled,
                unnest($5::VARCHAR[]) AS denoiser, unnest($6::VARCHAR[]) AS text
        ) AS ends, LATERAL (SELECT model.*, sizes.*, ends.*) AS asked, pipeline_of(
            {asked}, is_tiled := asked.is_tiled, denoiser_dtype_id := asked.denoiser, text_dtype_id := asked.text
        ) AS told
        """,
        [names, list(wish.sizes), ends, [end.startswith(TILED) for end in ends], *map(list, zip(*packed, strict=True))],
    )
    columns = [column[0] for column in result.description][3:]
    found: dict[str, dict[int, Rows]] = {}
    for name, size, end, *values in result.fetchall():
        row = dict(zip(columns, values, strict=True))
        found.setdefault(name, {}).setdefault(size, {})[row["placement"] + end] = row
    several = f"FROM {given}, LATERAL (SELECT model.model_id, sizes.size) AS asked"
    least = f"""
        SELECT asked.model_id, {{'resident': sum(part.weights_bytes), 'model': max(part.weights_bytes),
            'sequential': max(part.leaf_bytes)}} {several}, pipeline_stages({asked}) AS part GROUP BY ALL
    """
    for name, parts in connection.execute(least, [names, [wish.usual]]).fetchall():
        for column, row in found[name][wish.usual].items():
            # (what a packed denoiser needs at least is not told by what it weighs in 16 bits)
            if row["total_bytes"] is None and PACKED not in column:
                row["least_bytes"] = parts.get(column.removesuffix(TILED))
    return found


def lines_of(
    by_size: dict[int, Rows], wish: Made, axes: list[list[int]], plainly: Callable[[str], str]
) -> tuple[list, str]:
    """A line for each column, or None, and then why."""
    lines, reason = [], ""
    for column in wish.columns:
        rows = [(size, of[column]) for size, of in sorted(by_size.items())]
        known = [(size, row) for size, row in rows if row["total_bytes"] is not None]
        if not known:
            lines.append(None)
            reason = reason or next((plainly(row["unknown_reason"]) for size, row in rows if size == wish.usual), "")
            continue
        at = [size for size, _row in known]
        if at not in axes:
            axes.append(at)
        weights = known[0][1]["weights_bytes"]
        held = [row.get("kv_cache_bytes") or 0 for _size, row in known]
        rest = [row["total_bytes"] - weights - cache for (_size, row), cache in zip(known, held, strict=True)]
        bands = [ceil(row["error_band"] * 1e4) / 1e4 for _size, row in known]
        lines.append([axes.index(at), weights, _steps(held), _steps(rest), bands])
    return lines, "" if any(lines) else reason


def _steps(values: list[int]) -> list[int]:
    return [b - a for a, b in zip([0, *values], values, strict=False)]
