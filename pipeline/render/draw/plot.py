"""Plots as SVG, drawn when the page is rendered: lines, bars and points over labelled axes.

Colours are classes of the style sheet, so that a plot follows light and dark; a line differs from its neighbours by its dashes
and its label as well. Every plot has a title and a description, and stands beside a table of the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 600, 360
LEFT, RIGHT, TOP, BOTTOM = 44, 106, 16, 40
LABEL_GAP = 14


@dataclass(frozen=True)
class Axis:
    """A scale from numbers to places; logarithmic where `log`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = True

    def __call__(self, value: float) -> float:
        f = math.log if self.log else float
        value = min(max(value, self.low), self.high)
        span = f(self.high) - f(self.low) or 1
        return round(self.start + (f(value) - f(self.low)) / span * (self.end - self.start), 1)


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The places of labels, moved as little as keeps them `gap` apart, in the order given by the places."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    out = list(places)
    for before, i in zip([None, *order], order, strict=False):
        out[i] = max(out[i], low if before is None else out[before] + gap)
    limit = high
    for i in reversed(order):
        out[i] = min(out[i], limit)
        limit = out[i] - gap
    return out


def svg(
    identifier: str,
    title: str,
    description: str,
    parts: Sequence[str],
    height: int = HEIGHT,
    width: int = WIDTH,
    role: str = "img",
) -> Markup:
    """A drawing with its name and description. One that holds links is a group: what is in a picture cannot be followed."""
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="{}" aria-labelledby="{}-t {}-d">'
        '<title id="{}-t">{}</title><desc id="{}-d">{}</desc>{}</svg>'
    ).format(width, height, role, *[identifier] * 3, title, identifier, description, Markup("".join(parts)))


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}"{anchored}{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(words)}</text>'


def context_lines(
    lines: Sequence[tuple[str, Sequence[int], Sequence[float]]],
    cards: Sequence[tuple[str, float]],
    name: str,
    limit: int | None,
    tokens,
    of: int = 0,
) -> Markup:
    """Memory (GiB) against context (tokens), one line a format, and what common cards give as level lines. `of` is how many formats
    there are: where fewer are drawn, the drawing says so."""
    shown = [(label, at, need) for label, at, need in lines if len(at) > 1]
    if not shown:
        return Markup("")
    of = max(of, len(lines))
    left_out = "" if of == len(shown) else f"{len(shown)} of {of} formats are drawn"
    lowest = min(need[0] for _l, _a, need in shown)
    highest = max(need[-1] for _l, _a, need in shown)
    inside = [c for c in cards if lowest * 0.75 <= c[1] <= highest * 1.4]
    floor, ceiling = min([lowest, *(c[1] for c in inside)]) / 1.12, max([highest, *(c[1] for c in inside)]) * 1.12
    x = Axis(min(a[0] for _l, a, _n in shown), max(a[-1] for _l, a, _n in shown), LEFT, WIDTH - RIGHT)
    y = Axis(floor, ceiling, HEIGHT - BOTTOM, TOP)
    parts = [_context_axis(x, tokens), _gib_axis(y, floor, ceiling)]
    level = spread([y(c[1]) for c in inside], LABEL_GAP - 2, TOP + 4, HEIGHT - BOTTOM)
    for (label, gib), place in zip(inside, level, strict=True):
        parts.append(
            f'<path class="card" d="M{LEFT} {y(gib):g}H{WIDTH - RIGHT}"/>' + text(LEFT + 4, place - 3, label, "card")
        )
    ends = spread([y(need[-1]) for _l, _a, need in shown], LABEL_GAP, TOP + 6, HEIGHT - BOTTOM)
    for i, ((label, at, need), end) in enumerate(zip(shown, ends, strict=True)):
        d = " ".join(f"{x(a):g},{y(n):g}" for a, n in zip(at, need, strict=True))
        parts.append(f'<polyline class="line l{i}" points="{d}"/>' + text(WIDTH - RIGHT + 6, end + 4, label, f"t{i}"))
    if limit and limit <= x.high:
        parts.append(text(x(limit), TOP + 4, "the model’s limit", "soft", "end"))
    if left_out:
        parts.append(text(4, HEIGHT - 6, left_out, "soft"))
    description = (
        f"{', '.join(s[0] for s in shown)}: memory grows with the context. The table below holds the numbers."
        f"{f' {left_out}: those that most people run, where two lengths are known.' if left_out else ''}"
    )
    return svg("plot", f"Memory of {name} against context, one sequence", description, parts)


def _context_axis(x: Axis, tokens) -> str:
    ticks, value = [], 256
    while value <= x.high:
        if value >= x.low:
            ticks.append(value)
        value *= 4 if x.high / x.low > 256 else 2
    parts = [
        f'<path class="axis" d="M{x(t):g} {HEIGHT - BOTTOM}v4"/>'
        + text(x(t), HEIGHT - BOTTOM + 16, tokens(t), "", "middle")
        for t in ticks
    ]
    return "".join(parts) + text((x.start + x.end) / 2, HEIGHT - 6, "context, tokens", "soft", "middle")


def _gib_axis(y: Axis, floor: float, ceiling: float) -> str:
    steps = [m * 10.0**e for e in range(-3, 5) for m in (1, 2, 5)]
    ticks = [t for t in steps if floor <= t <= ceiling]
    if len(ticks) < 3:
        ticks = [
            t for t in (m * 10.0**e for e in range(-3, 5) for m in (1, 1.5, 2, 3, 4, 5, 6, 8)) if floor <= t <= ceiling
        ]
    parts = [
        f'<path class="axis" d="M{LEFT} {y(t):g}h-4"/>' + text(LEFT - 7, y(t) + 4, f"{t:g}", "", "end") for t in ticks
    ]
    frame = f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
    return frame + "".join(parts) + text(4, TOP + 2, "GiB", "soft")


def histogram(
    identifier: str, title: str, description: str, bins: Sequence[tuple[str, int]], marked: int | None = None
) -> Markup:
    """Counts as upright bars with a label below each; the bar at `marked` is what the rule promises."""
    width, height, bottom = 560, 170, 34
    most = max((n for _l, n in bins), default=0) or 1
    step = width / max(len(bins), 1)
    parts = []
    for i, (label, n) in enumerate(bins):
        tall = round((height - bottom - 16) * n / most, 1)
        kind = "bin here" if i == marked else "bin"
        parts.append(
            f'<rect class="{kind}" x="{i * step + 1:.1f}" y="{height - bottom - tall:g}" width="{step - 2:.1f}" height="{tall:g}"/>'
        )
        parts.append(text(round((i + 0.5) * step, 1), height - bottom + 13, label, "", "middle"))
        if n:
            parts.append(text(round((i + 0.5) * step, 1), height - bottom - tall - 3, f"{n:,}", "soft", "middle"))
    parts.append(f'<path class="axis" d="M0 {height - bottom}H{width}"/>')
    return svg(identifier, title, description, parts, height, width)


def bar(parts: Sequence[tuple[str, int | None]], scale: float, over: str = "") -> Markup:
    """Components side by side on a common scale; the table beside it holds the numbers. What is drawn `over` them
    comes last."""
    pieces, sum_ = [], 0
    for name, size in parts:
        if size:
            x, end = round(1000 * sum_ / scale), round(1000 * (sum_ + size) / scale)
            pieces.append(f'<path class="c-{name}" d="M{x} 0H{end}V10H{x}z"/>')
            sum_ += size
    head = '<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">'
    return Markup(f"{head}{''.join(pieces)}{over}</svg>")
