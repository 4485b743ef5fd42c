"""The accuracy page: every comparison of a prediction with a measurement, as points and as a table with its source."""

from __future__ import annotations

import math
import re
from collections import Counter

from markupsafe import Markup

from pipeline.render import words
from pipeline.render.data.book import Book
from pipeline.render.draw import plot

FEWEST = 10  # measurements of which nine of ten can be told
CLIP = 0.5  # points beyond are drawn at the edge; the table has their number
SHAPES = {"transformers": "circle", "vllm": "square", "llama.cpp": "triangle"}


def address_of(locator: str) -> str | None:
    """Where a source can be read: `github.com/owner/name @revision path` and `arXiv:1234.56789` as addresses."""
    if locator.startswith(("https://", "http://")) and " " not in locator:
        return locator
    if found := re.match(r"github\.com/([\w.-]+)/([\w.-]+)(?: ?@([0-9a-f]{7,40}))?(?: ([\w./-]+))?", locator):
        owner, name, revision, path = found.groups()
        repository = f"https://github.com/{owner}/{name}"
        return (
            f"{repository}/blob/{revision}/{path}"
            if revision and path
            else f"{repository}/tree/{revision}"
            if revision
            else repository
        )
    if found := re.match(r"arXiv:(\d{4}\.\d{4,5}(?:v\d+)?)", locator, re.I):
        return f"https://arxiv.org/abs/{found[1]}"
    return None


def compared(book: Book, paths: dict[str, str]) -> list[dict]:
    """Every measurement that has a prediction, worst first."""
    measured = {m["measured_id"]: m for m in book["measured"]}
    rows = []
    for p in book["prediction"]:
        m = measured.get(p["measured_id"])
        if m is None or p["error"] is None:
            continue
        rows.append(
            {
                "id": p["measured_id"],
                "model": p["model_id"],
                "path": paths.get(p["model_id"]),
                "phase": p["phase_id"],
                "engine": p["engine_id"],
                "dtype": p["dtype_id"],
                "metric": m["metric"],
                "scenario": _scenario(p),
                "measured": m["value_bytes"],
                "value": m["value"],
                "unit": m["unit"],
                "predicted": p["predicted_bytes"],
                "error": p["error"],
                "set": m["strict_set"] or "other",
                "source": m["source"],
                "address": address_of(m["source"]),
            }
        )
    return sorted(rows, key=lambda r: (-abs(r["error"]), r["id"]))


def in_words(rows: list[dict], names: dict[str, str], metrics: set[str]) -> list[str]:
    """What the errors mean, by phase: within how much nine of ten predictions lie, of measurements whose every input is known and whose
    metric is one of those that a verdict is made of. Weights or parameters alone, which are counted and not predicted, would flatter."""
    said = []
    for phase in names:
        errors = sorted(
            abs(r["error"]) for r in rows if r["phase"] == phase and r["set"] == "A" and r["metric"] in metrics
        )
        if len(errors) >= FEWEST:
            nine = errors[math.ceil(0.9 * len(errors)) - 1]
            said.append(f"{names[phase]}: nine of ten within {words.percent(nine)} ({len(errors):,} measurements)")
        elif errors:
            said.append(
                f"{names[phase]}: too few to say, {len(errors)}; the farthest off is {words.percent(errors[-1])}"
            )
    return said


def verdicts(rows: list[dict]) -> dict[str, int]:
    """How many verdicts the measurements judge, and how many of them were wrong, by kind; empty where a release does not say."""
    names = (
        "verdict_count", "wrong_fits_count", "whole_verdict_count", "needless_refusal_count", "needless_doubt_count",
    )  # fmt: skip
    summed = {name: sum(int(row.get(name) or 0) for row in rows) for name in names}
    return summed if summed["whole_verdict_count"] else {}


def _scenario(p: dict) -> str:
    parts = []
    if p["context_tokens"]:
        parts.append(f"{words.tokens(p['context_tokens'])} tokens")
    if p["sequences"] and p["sequences"] > 1:
        parts.append(f"× {p['sequences']}")
    if p["gpu_count"] and p["gpu_count"] > 1:
        parts.append(f"on {p['gpu_count']} ({p['sharding']})")
    return " ".join(parts)


def reported(book: Book, paths: dict[str, str], phases: dict[str, str]) -> list[dict]:
    """Runs that people reported, with our verdict on each: what we said wrongly first, then what we do not know."""
    order = {"false fits": 0, "needless refusal": 1, "not known": 2, "right": 3}
    cards = {gpu["gpu_id"]: gpu["short"] for gpu in book["gpu"]}
    rows = [
        {
            "model": o["model_id"],
            "path": paths.get(o["model_id"]),
            "cards": f"{o['gpu_count']} × {cards.get(o['gpu_id'], o['gpu_id'])}",
            "program": " ".join(filter(None, (o["program"] or o["engine_id"], o["program_version"]))),
            "what": ", ".join(
                filter(
                    None,
                    (
                        phases.get(o["phase_id"], o["phase_id"]),
                        o["dtype_id"] and words.format_name(o["dtype_id"]),
                        f"{words.tokens(o['context_tokens'])} tokens" if o["context_tokens"] else "",
                        f"cache in {o['kv_dtype_id']}" if o["kv_dtype_id"] else "",
                    ),
                )
            ),
            "outcome": o["outcome"],
            "note": o["note"],
            "verdict": o["verdict"],
            "setting": o["engine_setting"],
            "total": o["total_bytes"],
            "capacity": o["capacity_bytes"],
            "reason": o["unknown_reason"],
            "judgement": o["judgement"],
            "address": address_of(o["locator"]),
            "id": o["outcome_id"],
        }
        for o in book["outcome"]
    ]
    return sorted(rows, key=lambda r: (order[r["judgement"]], r["id"]))


def reasons(book: Book) -> list[tuple[str, int]]:
    """Why measurements are not compared, the commonest first."""
    tally: dict[str, int] = {}
    for p in book["prediction"]:
        if p["error"] is None:
            tally[p["reason"] or "no reason given"] = tally.get(p["reason"] or "no reason given", 0) + 1
    return sorted(tally.items(), key=lambda item: (-item[1], item[0]))


def scatters(rows: list[dict]) -> list[tuple[str, Markup, str]]:
    """One plot for each phase: the error against the measured size; a shape and a colour for each engine. The third says which
    rows a plot leaves out and why; nothing where it holds them all."""
    out = []
    for phase in sorted({r["phase"] for r in rows}):
        whole = [r for r in rows if r["phase"] == phase]
        drawn = [r for r in whole if r["measured"]]
        why = _left_out(whole)
        if drawn:
            out.append((phase, _scatter(phase, drawn), why))
    return out


def _left_out(rows: list[dict]) -> str:
    """How many of the rows have no place on an axis of sizes, and why, in a sentence."""
    tally = Counter(
        f"measured in {r['unit']} and not in bytes" if r["measured"] is None else "measured as nothing, 0 bytes"
        for r in rows
        if not r["measured"]
    )
    why = ", ".join(f"{n} are {what}" for what, n in sorted(tally.items()))
    return f"{sum(tally.values())} of {len(rows)} are left out: {why}. The table below has them." if tally else ""


def _scatter(phase: str, rows: list[dict]) -> Markup:
    left, right, top, bottom, width, height = 66, 12, 44, 40, 600, 320
    sizes = [r["measured"] / words.GIB for r in rows]
    x = plot.Axis(min(sizes) / 1.2, max(sizes) * 1.2, left, width - right)
    y = plot.Axis(-CLIP, CLIP, height - bottom, top, log=False)
    parts = [f'<path class="axis" d="M{left} {top}V{height - bottom}H{width - right}"/>']
    for error in (-0.5, -0.25, -0.1, 0, 0.1, 0.25, 0.5):
        kind = "axis" if error == 0 else "card"
        parts.append(f'<path class="{kind}" d="M{left} {y(error):g}H{width - right}"/>')
        parts.append(
            plot.text(left - 6, y(error) + 4, f"{100 * error:+.0f} %".replace("-", "−").replace("+0 ", "0 "), "", "end")
        )
    for gib in (m * 10.0**e for e in range(-2, 4) for m in (1, 3)):
        if x.low <= gib <= x.high:
            parts.append(plot.text(x(gib), height - bottom + 16, f"{gib:g}", "", "middle"))
    parts.append(plot.text((left + width - right) / 2, height - 6, "measured, GiB", "soft", "middle"))
    engines = sorted({r["engine"] for r in rows})
    place, line = left, 8
    for engine in engines:
        if place + 9 * len(engine) + 20 > width:
            place, line = left, 26
        parts += [_point(engine, engines, place + 6, line, ""), plot.text(place + 14, line + 4, engine, "soft")]
        place += 30 + 9 * len(engine)
    for r in rows:
        told = f"{words.shown(r['model'])}, {r['metric']}: {100 * r['error']:+.1f} %"
        point = _point(r["engine"], engines, x(r["measured"] / words.GIB), y(r["error"]), told)
        link = Markup(
            '<a href="{}" tabindex="-1" rel="noopener nofollow">{}</a>'
        )  # the table below is for the keyboard
        parts.append(link.format(r["address"], Markup(point)) if r["address"] else point)
    title = f"Error of {len(rows)} predictions against the measured size: {phase}"
    return plot.svg(
        f"errors-{phase}",
        title,
        "Level lines are errors; points beyond 50 per cent lie at the edge.",
        parts,
        height,
        width,
        "group",
    )


def _point(engine: str, engines: list[str], x: float, y: float, told: str) -> str:
    kind = f"point p{engines.index(engine)}"
    title = Markup("<title>{}</title>").format(told) if told else ""
    shape = next((s for name, s in SHAPES.items() if engine.startswith(name)), "diamond")
    d = {
        "circle": f"M{x - 3.2:g} {y:g}a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
        "square": f"M{x - 2.8:g} {y - 2.8:g}h5.6v5.6h-5.6z",
        "triangle": f"M{x:g} {y - 3.6:g}l3.4 6h-6.8z",
        "diamond": f"M{x:g} {y - 4:g}l4 4l-4 4l-4-4z",
    }[shape]
    return f'<path class="{kind}" d="{d}">{title}</path>'
