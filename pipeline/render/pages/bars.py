"""The bars of a model's page: what each format needs, by parts, against what cards give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.render import words
from pipeline.render.data.book import PARTS, Scenario
from pipeline.render.draw import plot
from pipeline.render.pages import reach
from pipeline.render.pages.answer import WHOLE

# thousandths of the width of the bars, on a phone too: what a figure takes, and what is between two sizes
FIGURE, APART = 50, 25


def _named(sizes: Sequence[str], lines: Sequence[int]) -> list[tuple[str, float]]:
    """The sizes of cards that have room above their lines, and where they stand, in per cent."""
    found, end = [], 0.0
    for size, x in zip(sizes, lines, strict=True):
        half = (FIGURE * len(size) + APART) / 2
        if x < 1000 and (not found or x - half >= end):
            found.append((size, x / 10))
            end = x + half
    return found


def bars(
    points: Mapping[tuple, list],
    scenarios: Sequence[Scenario],
    engines: Mapping[Scenario, str],
    stored: str | None,
    own: Sequence[str],
    levels: Sequence[tuple],
) -> list[dict]:
    """Formats against what cards give: a bar for each, from the points of a model, named with an engine where that is no format's own (`engines`,
    those that are to be named). Of a repository that holds one format alone, whose `own` names are given, it is that one."""
    # whole numbers of 32 bits would dwarf all that people run, and what is published whole stands there by its own name
    unwanted = {"fp32"} | ({"stored"} if stored in WHOLE else set())
    rows = []
    for s in scenarios:
        found = points.get((s.phase_id, s.dtype_id, s.engine_id))
        found = found and reach.parts_at(found, s.context_tokens)
        if found and s.dtype_id not in unwanted:
            rows.append((s, *found))
    if alone := next((d for d in own if any(row[0].dtype_id == d for row in rows)), None):
        rows = [row for row in rows if row[0].dtype_id == alone]
    scale = max((total for _s, _parts, total, _band in rows), default=1)
    lines = [round(1000 * gib * words.GIB / scale) for _label, gib in levels]
    named = _named([label.partition(" ")[0] for label, _gib in levels], lines)
    path = "".join(f"M{x}-2v14" for x in lines if x < 1000)
    bars = []
    for s, found, total, _band in rows:
        parts = [(c.removesuffix("_bytes"), found[c]) for c in PARTS if found.get(c)]
        label = words.format_name(s.dtype_id, stored)
        bars.append(
            {
                "format": s.dtype_id,
                "label": label,
                "engine": engines.get(s),
                "total": total,
                "lines": path,
                "sizes": named,
            }
            | {"bar": plot.bar(parts, scale, '<use href="#levels"/>'), "used": {c for c, _size in parts}}
        )
    return bars
