"""What fits a card, of all models: one of each work, the newest and most downloaded first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline.book import commands as pasted
from pipeline.book.wishes import Wish

from . import host
from .almanac import Almanac, Row
from .question import INFERENCE, Card, Model, Use
from .scenarios import (
    answered,
    card_told,
    scenario_of,
    told_of,
)

# what tells of many scenarios which of them fit
_SORTED = "model_id, dtype_id, engine_id, gpu_count, kv_dtype_id, sequences, context_tokens, verdict"


def what(almanac: Almanac, card: Card, wish: Wish, use: Use, limit: int, this_month: str = "") -> dict[str, Any]:
    """The models that a card runs for a wish, one of each work, the newest and most downloaded first."""
    columns = [wish.columns[place] for place in wish.asked]
    phase = columns[0][0]
    context = use.context_tokens or wish.context_tokens
    leads = [
        row
        for row in almanac.rows(
            """
            SELECT model.model_id, model.pipeline_tag, left(model.created_at, 7) AS made, model.parameter_count,
                model.max_context_tokens, model.stored_format, sum(member.downloads_30d)::BIGINT AS downloads, count(*) AS members
            FROM model JOIN work ON work.lead_model_id = model.model_id JOIN model AS member ON member.model_id = work.model_id
            WHERE list_contains($tasks, model.pipeline_tag) AND model.anatomy_grade <> 'unknown'
            GROUP BY ALL
            """,
            {"tasks": list(wish.tasks)},
        )
        if wish.means(row)
    ]
    by_id = {row["model_id"]: row for row in leads}
    wanted = [(d, e) for _p, d, e in columns if use.dtype_id in (None, d)] or [(use.dtype_id, None)]
    engines = {e for _p, _d, e in columns}
    base = replace(use, phase_id=phase, dtype_id=None)
    scenarios = []
    for row in leads:
        # what is published in few bits for these engines is not packed again
        native = pasted.GGUF_OF.get(row["stored_format"] or "")
        own = [(native, None)] if native and "llama.cpp" in engines and phase == INFERENCE else wanted
        asked = replace(base, context_tokens=min(context, row["max_context_tokens"] or context))
        for dtype, engine in own:
            scenarios.append(scenario_of(Model(row["model_id"], "", row), asked, dtype, engine, card.count))
    found: dict[str, Row] = {}
    rank = {d: k for k, (d, _e) in enumerate(wanted)}
    told = _SORTED if use.ram_bytes is None else f"{_SORTED}, total_bytes, error_band, capacity_bytes"
    rows = answered(almanac, scenarios, card, base, told=told, with_limits=False) if scenarios else []
    for row in sorted(rows, key=lambda r: rank.get(r["dtype_id"], 0)):
        if row["verdict"] in ("fits", "multi-gpu"):
            found.setdefault(row["model_id"], row)
    # (nothing is said of a card that no engine is known to run on: that no model fits it would be)
    reason = None
    if not found and rows and all(row["verdict"] is None for row in rows):
        (asked,) = answered(almanac, scenarios[:1], card, base, with_limits=False)
        reason = asked["unknown_reason"]
    newest = this_month or max((row["made"] or "" for row in leads), default="")
    place = lambda name: (_years(by_id[name]["made"], newest), -(by_id[name]["downloads"] or 0), name)  # noqa: E731
    shown = sorted(found, key=place)[:limit]
    reach = {}
    if shown:
        again = [
            scenario_of(
                Model(name, "", by_id[name]), replace(base, context_tokens=found[name]["context_tokens"]), found[name]["dtype_id"],
                found[name]["engine_id"], card.count,
            )
            for name in shown
        ]  # fmt: skip
        reach = {row["model_id"]: row for row in answered(almanac, again, card, base)}
    described = lambda name: {  # noqa: E731
        "model": name,
        "parameter_count": by_id[name]["parameter_count"],
        "created_at": by_id[name]["made"],
        "downloads_30d": by_id[name]["downloads"],
        "versions": by_id[name]["members"] - 1,
    }
    beside = {}
    if use.ram_bytes is not None and reason is None:
        left = [row for row in rows if row["model_id"] not in found]
        ways = host.all_beside(
            almanac, card, replace(base, context_tokens=context), sorted(left, key=lambda r: rank.get(r["dtype_id"], 0))
        )
        ordered = sorted(ways["models"], key=lambda name: (not host.is_mixture(ways["models"][name]), place(name)))
        beside["beside"] = ways | {
            "fitting": len(ordered),
            "mixtures": sum(map(host.is_mixture, ways["models"].values())),
            "models": [described(name) | ways["models"][name] for name in ordered[: (limit + 1) // 2]],
        }
    return {
        "card": card_told(card, card.count),
        "for": wish.name,
        "label": wish.label,
        "context_tokens": context,
        "sequences": use.sequences,
        "phase_id": phase,
        "of": len(leads),
        "fitting": len(found),
        "reason": reason,
        "models": [described(name) | told_of(reach[name]) for name in shown],
        **beside,
    }


def _years(made: str | None, newest: str) -> int:
    """Whole years before the newest month; what nobody dated is oldest."""
    if not made or not newest:
        return 10**6
    months = [12 * int(text[:4]) + int(text[5:7]) for text in (newest, made)]
    return (months[0] - months[1]) // 12
