"""What the first screen reads where pictures are wanted: diffusion pipelines by how their parts are placed, in the form of data/window.py.

A column is a way to place the parts (`pipeline_of`), the fastest first; a place of its axis is the side of a square picture, in pixels. What is
not known is told with its reason. A total grows with the square of the side, so that what is read off a line between two sides is
never too little.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import ceil

from pipeline.base.readonly import reading
from pipeline.render.data.book import Book

NAME, LABEL = "pictures", "make pictures"
SIDES = (256, 512, 768, 1024, 1280, 1536, 1792, 2048)  # pixels; one that a pipeline refuses is left out
SIDE = 1024  # what is asked for first
STEP = 64  # sides are told in multiples of it, which no pipeline refuses
DTYPE, ENGINE = "bf16", "transformers"  # diffusers runs on the PyTorch that Transformers does
# the formulas do not cover what a picture that goes in takes
GIVEN = "it works on a picture that is given, and what that takes is not worked out"
PLACEMENTS = {"resident": "all at once", "model": "one part at a time", "sequential": "one module at a time"}


def file(book: Book, paths: dict[str, str]) -> str:
    """`data/window/pictures.json`; empty where the release has no pipelines or no formulas of them."""
    found = _totals(book)
    if not found:
        return ""
    by_name = {m["model_id"]: m for m in book.models}
    downloads = lambda name: by_name.get(name, {}).get("downloads_30d") or 0  # noqa: E731
    names = sorted(found, key=lambda name: (-downloads(name), name))
    axes: list[list[int]] = []
    shapes, why = [], []
    for name in names:
        lines, reason = _lines(found[name], axes, book.plainly)
        if (by_name.get(name, {}).get("pipeline_tag") or "").startswith("image-"):
            lines, reason = [None] * len(PLACEMENTS), GIVEN
        shapes.append(lines)
        why.append(reason)
    models = [by_name.get(name, {}) for name in names]
    places = {k: paths[name] for k, name in enumerate(names) if name in paths and paths[name] != name}
    return json.dumps(
        {
            "columns": [("inference", DTYPE, ENGINE, placement) for placement in PLACEMENTS],
            "words": list(PLACEMENTS.values()),
            "main": len(PLACEMENTS),
            "multiple": STEP,
            "wishes": [
                {"name": NAME, "label": LABEL, "asked": list(range(len(PLACEMENTS))), "tasks": [0], "named": "", "not": "", "context": SIDE}
            ],
            "axes": axes,
            "shapes": shapes,
            "why": why,
            "shape": list(range(len(names))),
            "id": names,
            "paths": places,
            "pages": [int(name in by_name) for name in names],
            "size": [None] * len(names),
            "made": [(m.get("created_at") or "")[:7] for m in models],
            "more": [0] * len(names),
            "context": [None] * len(names),
            "tasks": [NAME],
            "task": [0] * len(names),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )  # fmt: skip


def _totals(book: Book) -> dict[str, dict[int, list[dict]]]:
    """By pipeline and side the rows of `pipeline_of`."""
    with reading(book.folder / "almanac.duckdb") as connection:
        known = "SELECT 1 FROM duckdb_functions() WHERE function_name = 'pipeline_of' LIMIT 1"
        if not connection.execute(known).fetchall():
            return {}
        found: dict[str, dict[int, list[dict]]] = {}
        for name in sorted({c["model_id"] for c in book["component"]}):
            for side in sorted(SIDES, key=lambda n: n != SIDE):
                if side != SIDE and all(row["total_bytes"] is None for row in found[name][SIDE]):
                    break  # what is unknown is so for every picture
                query = f"FROM pipeline_of($model, dtype_id := '{DTYPE}', width := {side}, height := {side})"
                result = connection.execute(query, {"model": name})
                columns = [column[0] for column in result.description]
                found.setdefault(name, {})[side] = [dict(zip(columns, row, strict=True)) for row in result.fetchall()]
    return found


def _lines(by_side: dict[int, list[dict]], axes: list[list[int]], plainly: Callable[[str], str]) -> tuple[list, str]:
    """A line for each placement, or None, and then why."""
    lines, reason = [], ""
    for placement in PLACEMENTS:
        rows = [(side, row) for side, of in sorted(by_side.items()) for row in of if row["placement"] == placement]
        known = [(side, row) for side, row in rows if row["total_bytes"] is not None]
        if not known:
            lines.append(None)
            reason = next((plainly(row["unknown_reason"]) for side, row in rows if side == SIDE), "")
            continue
        at = [side for side, _row in known]
        if at not in axes:
            axes.append(at)
        weights = known[0][1]["weights_bytes"]
        rest = [row["total_bytes"] - weights for _side, row in known]
        bands = [ceil(row["error_band"] * 1e4) / 1e4 for _side, row in known]
        steps = [b - a for a, b in zip([0, *rest], rest, strict=False)]
        lines.append([axes.index(at), weights, [0] * len(at), steps, bands])
    return lines, reason
