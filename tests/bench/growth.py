"""How large a built site would be with more models: `python -m tests.bench.growth build/site 10000`.

What has a file for each model grows with them, at the share of known ones that the site has. What models share (shapes, previews, pages of
organisations with two models and more, rows of the slices) grows slower: how much slower is read off the models themselves, by how many
different ones half of them, drawn at random, have. That curve bends down, so what is drawn on from it is rather too much.
Not a part of the suite.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.press import hosting
from pipeline.render.data.shapes import FILES

DRAWS = 20
SEED = 1
# kinds of site/kinds.csv by what they grow with; any other stays as it is
BY_MODEL = ("files for programs: cards", "files for programs: the rest", "search", "data for pages", "the rest")
BY_SHAPE = ("shapes of models", "slices of the matrix")


def power(items: Sequence, different: Callable[[Sequence], int]) -> float:
    """The power of their number that the number of different ones grows with, from the half of them to all."""
    draw = random.Random(SEED)
    half = sum(different(draw.sample(items, len(items) // 2)) for _ in range(DRAWS)) / DRAWS
    return math.log2(different(items) / half)


def _shared(organisations: Sequence[str]) -> int:
    return sum(n > 1 for n in Counter(organisations).values()) or 1


def estimate(site: Path, models: int) -> dict[str, tuple[float, float]]:
    """Files and bytes by kind with so many models."""
    index = json.loads((site / "api/v1/index.json").read_text(encoding="utf-8"))["models"]
    told = [
        json.loads((site / f"api/v1/models/{m['path']}.json").read_text(encoding="utf-8"))
        for m in index
        if "unknown_reason" not in m
    ]
    times = models / len(index)
    shapes = times ** power([t.get("shape") for t in told], lambda some: len(set(some)))
    answers = times ** power([t["answer"] for t in told], lambda some: len(set(some)))
    makers = times ** power([m["path"].partition("/")[0] for m in index], _shared)
    found = {}
    for kind in hosting.by_kind(site):
        files, size = kind.file_count, kind.site_bytes
        if kind.name in ("model pages", "files for programs: models"):
            grown = (times, times)
        elif kind.name in BY_SHAPE:
            # shapes lie together in so many files at most
            grown = (1 if kind.name.startswith("slices") else min(shapes, FILES / files), shapes)
        elif kind.name == "organisation pages":
            grown = (makers, times)  # their lines are the models'
        elif kind.name == "previews":
            grown = (answers, answers)
        elif kind.name in BY_MODEL:
            grown = (1, times)
        else:
            grown = (1, 1)
        if kind.name != "tables":
            found[kind.name] = (files * grown[0], size * grown[1])
    return found


def main(site: str, models: str) -> None:
    found = estimate(Path(site), int(models))
    for name, (files, size) in found.items():
        print(f"{name:32}{files:8,.0f} files {size:14,.0f} bytes")
    files, size = (sum(row[i] for row in found.values()) for i in (0, 1))
    print(f"{'without tables':32}{files:8,.0f} files {size:14,.0f} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
