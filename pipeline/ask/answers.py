"""The answers, as plain values: what JSON has, and what words are made of. Every number is what a macro of the almanac says.

`fits` of one model on one card, `what` of all models on it, `plan` of one model on many cards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pipeline.book import commands as pasted
from pipeline.book.wishes import Wish

from .almanac import Almanac, Row
from .problems import DOES_NOT, FITS, UNKNOWN
from .question import INFERENCE, Card, Model, Use, Work

STATUS = {"fits": FITS, "tight": DOES_NOT, "no": DOES_NOT, None: UNKNOWN}
MORE_CARDS = (2, 4, 8)  # that are tried where a model does not fit
# Formats in which more cards, an 8-bit cache and smaller models are tried: the usual one of each engine.
USUAL = ("gguf-q4_k_m", "gguf-mxfp4", "mxfp4", "awq-int4", "bf16")
SMALL_CACHE = "q8_0"
SIBLINGS = 4
CHECKPOINTING = "full"  # of a training, as the pages open it
_ROUND = ("fp32",)  # twice as large as bf16
_SIXTEEN = ("bf16", "fp16")
_WHOLE = ("fp32", *_SIXTEEN)
_BEST = ("fits", "tight", "no")
# what tells of many scenarios which of them fit
_SORTED = "model_id, dtype_id, engine_id, gpu_count, kv_dtype_id, sequences, context_tokens, verdict"


def fits(almanac: Almanac, model: Model, card: Card, use: Use, *, every: bool = False) -> dict[str, Any]:
    """What of a model fits a card, in which formats and how far, and what helps where it does not."""
    if model.row["pipeline_tag"] not in pasted.TALKING and _stages(almanac, model):
        return _pipeline_fits(almanac, model, card, use)
    counts = [card.count] if card.is_count_said else sorted({1, card.count})
    main = _formats(almanac, model, card, use, every=every)
    scenarios = [_scenario(model, use, d, e, n) for d, e in main for n in counts]
    is_open = not use.is_training and use.kv_dtype_id is None
    usual = [(d, e) for d, e in main if d in USUAL and e != "mlx-lm"] or main[:1]
    more = [n for n in MORE_CARDS if n > card.count and card.gpu_id is not None and card.vendor != "apple"]
    smaller = _smaller(almanac, model) if is_open and use.dtype_id is None else []
    if is_open:
        scenarios += [
            _scenario(model, use, d, e, counts[-1]) | {"kv_dtype_id": SMALL_CACHE} for d, e in main if e == "llama.cpp"
        ]
    scenarios += [_scenario(model, use, d, e, n) for d, e in usual for n in more]
    scenarios += [_scenario(replace(model, model_id=other), use, d, e, 1) for other in smaller for d, e in usual]
    rows = _asked(almanac, scenarios, card, use)
    own = [row for row in rows if row["model_id"] == model.model_id]
    kv = use.kv_dtype_id or (own[0]["kv_dtype_id"] if use.is_training else None)
    plain = [row for row in own if (kv is None and row["kv_dtype_id"] != SMALL_CACHE) or row["kv_dtype_id"] == kv]
    by_count = {n: [row for row in plain if row["gpu_count"] == n] for n in counts}
    # on one card where it fits there, else on all that there are
    count = next((n for n in counts if _best(by_count[n])[0] == "fits"), counts[-1])
    told = _ordered(by_count[count], main)
    if use.phase_id == "qlora":
        told.sort(key=lambda row: row["dtype_id"] != "nf4")  # which is what people mean by it
    verdict, best = _best(told)
    answer = {
        "model": model.shown,
        "card": _card(card, count),
        "use": _use(use, told),
        "verdict": verdict,
        "best": best,
        "formats": [_told(row) for row in told],
        "helps": [],
        "commands": [],
        "reason": None,
    }
    if verdict is None:
        answer["reason"] = next((row["unknown_reason"] for row in told if row["unknown_reason"]), None)
    if verdict != "fits":
        answer["helps"] = _helps(almanac, model, card, use, rows, told, count, smaller)
    if verdict == "fits" and not use.is_training:
        answer["commands"] = _commands(almanac, model, card, told, count)
    return answer


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
            scenarios.append(_scenario(Model(row["model_id"], "", row), asked, dtype, engine, card.count))
    found: dict[str, Row] = {}
    rank = {d: k for k, (d, _e) in enumerate(wanted)}
    rows = _asked(almanac, scenarios, card, base, told=_SORTED, with_limits=False) if scenarios else []
    for row in sorted(rows, key=lambda r: rank.get(r["dtype_id"], 0)):
        if row["verdict"] in ("fits", "multi-gpu"):
            found.setdefault(row["model_id"], row)
    newest = this_month or max((row["made"] or "" for row in leads), default="")
    order = sorted(
        found, key=lambda name: (_years(by_id[name]["made"], newest), -(by_id[name]["downloads"] or 0), name)
    )
    shown = order[:limit]
    reach = {}
    if shown:
        again = [
            _scenario(
                Model(name, "", by_id[name]), replace(base, context_tokens=found[name]["context_tokens"]), found[name]["dtype_id"],
                found[name]["engine_id"], card.count,
            )
            for name in shown
        ]  # fmt: skip
        reach = {row["model_id"]: row for row in _asked(almanac, again, card, base)}
    return {
        "card": _card(card, card.count),
        "for": wish.name,
        "label": wish.label,
        "context_tokens": context,
        "sequences": use.sequences,
        "phase_id": phase,
        "of": len(leads),
        "fitting": len(found),
        "models": [
            {
                "model": name,
                "parameter_count": by_id[name]["parameter_count"],
                "created_at": by_id[name]["made"],
                "downloads_30d": by_id[name]["downloads"],
                "versions": by_id[name]["members"] - 1,
                **_told(reach[name]),
            }
            for name in shown
        ],
    }


def plan(
    almanac: Almanac, model: Model, cards: Iterable[Card], use: Use, limit: int, work: Work | None = None
) -> dict[str, Any]:
    """How many cards of each kind a model takes, and how they share; of a training on so much data also how long it takes."""
    almanac.hasten()
    if work is not None:
        told = [_timed(almanac, model, card, use, limit, work) for card in cards]
        return {"model": model.shown, "use": vars(use), "work": vars(work), "cards": told}
    answers = []
    for card in cards:
        rows = _plans(almanac, model, card, use) if use.is_training else _inference_plans(almanac, model, card, use)
        fitting = [row for row in rows if row["verdict"] in ("fits", "multi-gpu")]
        barely = [row for row in rows if row["verdict"] == "tight"]
        reasons = [row["unknown_reason"] for row in rows if row["unknown_reason"]]
        answers.append(
            {
                "card": _card(card, card.count),
                "verdict": "fits"
                if fitting
                else "tight"
                if barely
                else "no"
                if rows and not all(r["verdict"] is None for r in rows)
                else None,
                "plans": (fitting or barely)[:limit],
                "most": max((row["gpu_count"] or 0 for row in rows), default=0),
                "reason": reasons[0] if reasons and not fitting and not barely else None,
                "serving": _serving(almanac, model, card, use, fitting or barely),
            }
        )
    return {"model": model.shown, "use": vars(use), "cards": answers}


def _serving(almanac: Almanac, model: Model, card: Card, use: Use, plans: list[Row]) -> list[Row]:
    """How the cards share so many users, in the format of the first plan; nothing for one user."""
    if use.is_training or (use.sequences or 1) == 1 or not plans:
        return []
    names = ("dtype_id", "engine_id", "kv_dtype_id", "context_tokens")
    given = {name: plans[0][name] for name in names} | {"users": use.sequences}
    return [row for row in _planned(almanac, "plan_for", model, card, given) if row["verdict"] not in ("no", None)]


def _timed(almanac: Almanac, model: Model, card: Card, use: Use, limit: int, work: Work) -> dict[str, Any]:
    """How long a training takes on each number of cards; `fits` where it finishes for sure, `tight` where it likely does."""
    given = {
        "phase_id": use.phase_id,
        "dtype_id": use.dtype_id,
        "context_tokens": use.context_tokens,
        "lora_rank": use.lora_rank,
    }
    given |= {
        # one is what nobody said: the micro-batch is searched then
        "sequences": None if use.sequences == 1 else use.sequences,
        "data_bytes": work.data_bytes,
        "data_tokens": work.data_tokens,
        "days": work.days,
        "price_per_gpu_hour": work.price,
    }
    rows = _planned(almanac, "plan_training_for", model, card, given)
    held = [row for row in rows if row["verdict"] in ("fits", "multi-gpu")] or [
        r for r in rows if r["verdict"] == "tight"
    ]
    in_time = [row for row in held if row["finishes"] != "no"]
    sure = any(row["finishes"] == "yes" and row["verdict"] != "tight" for row in in_time)
    known = any(row["verdict"] is not None for row in rows)
    return {
        "card": _card(card, card.count),
        "verdict": "fits" if sure else "tight" if in_time else "no" if known else None,
        "plans": (in_time or held)[:limit],
        "most": max((row["gpu_count"] or 0 for row in rows), default=0),
        "reason": None if known else next((row["unknown_reason"] for row in rows), None),
        "serving": [],
    }


def _planned(almanac: Almanac, macro: str, model: Model, card: Card, given: dict[str, Any]) -> list[Row]:
    """What a macro of plans answers, the first plan first."""
    said = {name: value for name, value in given.items() if value is not None}
    more = "".join(f", {name} := ${name}" for name in said)
    return almanac.rows(f"FROM {macro}($gpu, $model{more})", {"gpu": card.gpu_id, "model": model.model_id, **said})


def _plans(almanac: Almanac, model: Model, card: Card, use: Use) -> list[Row]:
    named = {"dtype_id": use.dtype_id, "context_tokens": use.context_tokens, "sequences": use.sequences}
    named |= {"lora_rank": use.lora_rank, "lora_targets": use.lora_targets, "adapter": use.adapter}
    given = {name: value for name, value in named.items() if value is not None}
    more = "".join(f", {name} := ${name}" for name in given)
    return almanac.rows(
        f"FROM plans_for($gpu, $model, phase_id := $phase{more}) ORDER BY plan_rank NULLS LAST",
        {"gpu": card.gpu_id, "model": model.model_id, "phase": use.phase_id, **given},
    )


def _inference_plans(almanac: Almanac, model: Model, card: Card, use: Use) -> list[Row]:
    """The fewest cards of each format, of what is worked out: 1 to 8 of a machine, and servers of 8."""
    main = _formats(almanac, model, card, use, every=False)
    scenarios = [_scenario(model, use, d, e, n) for d, e in main for n in (1, 2, 4, 8, 16, 32, 64)]
    rows = _asked(almanac, scenarios, card, use)
    found: dict[tuple, Row] = {}
    good = [row for row in rows if row["verdict"] in ("fits", "multi-gpu")]
    for row in sorted(good or [r for r in rows if r["verdict"] == "tight"], key=lambda r: r["gpu_count"]):
        found.setdefault((row["dtype_id"], row["engine_id"]), row)
    if not found:
        return rows
    place = {d: k for k, (d, _e) in enumerate(main)}
    order = sorted(found.values(), key=lambda r: (r["gpu_count"], place.get(r["dtype_id"], 99)))
    return [_told(row) | {"unknown_reason": None} for row in order]


def _asked(almanac: Almanac, scenarios: list[Row], card: Card, use: Use, **how: Any) -> list[Row]:
    names = dict.fromkeys(name for scenario in scenarios for name in scenario)
    full = [{name: scenario.get(name) for name in names} for scenario in scenarios]
    if not use.is_plain:
        how["is_plain"] = False
    rows = almanac.ask(full, card.gpu_id, card.free_bytes, phase_id=use.phase_id, **how)
    return rows if use.dtype_id else _once(rows)


def _once(rows: list[Row]) -> list[Row]:
    """Without fp16 where bf16 says the same: it is told of cards alone that do not run bf16, and then bf16 is not, if it runs."""
    key = lambda row: tuple(row[name] for name in ("model_id", "engine_id", "gpu_count", "kv_dtype_id", "sequences"))  # noqa: E731
    answered = {dtype: {key(row) for row in rows if row["dtype_id"] == dtype and row["verdict"]} for dtype in _SIXTEEN}
    bf16, fp16 = (answered[dtype] for dtype in _SIXTEEN)
    dropped = {"fp16": lambda at: at in bf16 or at not in fp16, "bf16": lambda at: at in fp16 and at not in bf16}
    return [row for row in rows if not (row["dtype_id"] in dropped and dropped[row["dtype_id"]](key(row)))]


def _scenario(model: Model, use: Use, dtype: str, engine: str | None, count: int) -> Row:
    most = model.row.get("max_context_tokens")
    context = use.context_tokens if use.context_tokens is None or most is None else min(use.context_tokens, most)
    row = {
        "model_id": model.model_id,
        "dtype_id": dtype,
        "engine_id": engine,
        "context_tokens": context,
        "sequences": use.sequences,
        "gpu_count": count,
        "kv_dtype_id": use.kv_dtype_id,
        "checkpointing": CHECKPOINTING if use.is_training and use.program is None else None,
    }
    given = {
        "lora_rank": use.lora_rank,
        "lora_targets": use.lora_targets,
        "adapter": use.adapter,
        "program": use.program,
        "program_version": use.program_version,
    }
    return row | {name: value for name, value in given.items() if value is not None}


def _formats(almanac: Almanac, model: Model, card: Card, use: Use, *, every: bool) -> list[tuple[str, str | None]]:
    """The formats, each with its engine (None in training: its own), that are told of: those that are published for the phase, or the one asked for."""
    sets = almanac.rows(
        "SELECT dtype_ids, engine_ids FROM scenario_set WHERE purpose = 'lookup' AND list_contains(string_split(phase_ids, ' '), $phase)",
        {"phase": use.phase_id},
    )
    own: dict[str, str | None] = {}
    if not use.is_training:  # a training's engine is not that of its format
        own = {row["dtype_id"]: row["engine_id"] for row in almanac.rows("SELECT dtype_id, engine_id FROM dtype")}
    known = {
        (dtype, engine or own.get(dtype)): None
        for row in sets
        for dtype in row["dtype_ids"].split()
        for engine in (row["engine_ids"] or "").split() or [None]
    }
    if use.program is not None and not use.is_training:
        # the engine of an old version has the formats of its successor
        names = (use.engine_id, str(use.engine_id).partition("-0.")[0], str(use.engine_id).partition("-4.")[0])
        known = {(dtype, use.engine_id): None for dtype, engine in known if engine in names}
        own = dict.fromkeys(own, use.engine_id)
    if use.dtype_id is not None:
        asked = [one for one in known if one[0] == use.dtype_id and (every or _is_here(one, card))]
        return asked or [(use.dtype_id, own.get(use.dtype_id))]
    if every:
        return list(known)
    stored = model.row["stored_format"]
    native = {stored, pasted.GGUF_OF.get(stored or "")} & {dtype for dtype, _engine in known} - set(_WHOLE)
    if stored in pasted.GGUF_OF:
        return [one for one in known if one[0] in native]  # what is published in these few bits is not packed again
    left = {"stored", *_ROUND, *pasted.GGUF_OF, *pasted.GGUF_OF.values()}
    return [one for one in known if one[0] not in left and _is_here(one, card)]


def _is_here(one: tuple[str, str | None], card: Card) -> bool:
    """What is for Apple's chips is told of them alone."""
    return card.vendor == "apple" or not (one[0].startswith("mlx-") or one[1] == "mlx-lm")


def _ordered(rows: list[Row], main: list[tuple[str, str | None]]) -> list[Row]:
    """The largest weights first, which is the best quality; what is not known last."""
    place = {dtype: k for k, (dtype, _engine) in enumerate(main)}
    return sorted(
        rows,
        key=lambda r: (
            r["verdict"] is None,
            -(r["weights_bytes"] or 0),
            place.get(r["dtype_id"], 99),
            r["engine_id"] or "",
        ),
    )


def _best(rows: list[Row]) -> tuple[str | None, Row | None]:
    """The verdict of all formats together, and the first that has it."""
    for verdict in _BEST:
        for row in rows:
            if _verdict(row) == verdict:
                return verdict, _told(row)
    return None, None


def _verdict(row: Row) -> str | None:
    return "fits" if row["verdict"] == "multi-gpu" else row["verdict"]


def _told(row: Row) -> Row:
    names = (
        "dtype_id", "engine_id", "kv_dtype_id", "context_tokens", "sequences", "gpu_count", "sharding", "total_bytes", "error_band",
        "capacity_bytes", "headroom_bytes", "max_context_tokens", "model_context_tokens", "engine_setting", "holds_for", "unknown_reason",
    )  # fmt: skip
    return {"verdict": _verdict(row), **{name: row[name] for name in names}}


def _card(card: Card, count: int) -> dict[str, Any]:
    return {
        "gpu_id": card.gpu_id,
        "name": card.name,
        "count": count,
        "available": card.count,
        "capacity_bytes": card.capacity_bytes,
        "free_bytes": card.free_bytes,
        "usable_bytes": card.usable_bytes,
        "notes": list(card.notes),
    }


def _use(use: Use, rows: list[Row]) -> dict[str, Any]:
    told = dict(vars(use))
    if rows:
        told["context_tokens"] = rows[0]["context_tokens"]
        told["sequences"] = rows[0]["sequences"]
    return told


def _helps(
    almanac: Almanac,
    model: Model,
    card: Card,
    use: Use,
    rows: list[Row],
    told: list[Row],
    count: int,
    smaller: list[str],
) -> list[dict[str, Any]]:
    """What makes it fit, each with its numbers: a shorter context, a cache in 8 bits, more cards, the CPU, a smaller model."""
    found: list[dict[str, Any]] = []
    own = [row for row in rows if row["model_id"] == model.model_id]
    longest = max(told, key=lambda row: row["max_context_tokens"] or 0, default=None)
    if longest and longest["max_context_tokens"]:
        found.append({"help": "context", **_told(longest)})
    if use.kv_dtype_id is None and not use.is_training:
        cached = [row for row in own if row["kv_dtype_id"] == SMALL_CACHE and row["verdict"] in ("fits", "multi-gpu")]
        if cached:
            found.append({"help": "cache", **_told(max(cached, key=lambda row: row["weights_bytes"]))})
    many = [row for row in own if row["gpu_count"] > count and row["verdict"] in ("fits", "multi-gpu")]
    if many:
        found.append({"help": "cards", **_told(min(many, key=lambda row: (row["gpu_count"], -row["weights_bytes"])))})
    dtype = use.dtype_id or next(
        (r["dtype_id"] for r in told if r["dtype_id"] in USUAL and r["dtype_id"].startswith("gguf-")), None
    )
    if not use.is_training and count == 1 and dtype is not None and dtype.startswith("gguf-"):
        asked = {"gpu": card.gpu_id, "model": model.model_id, "dtype": dtype, "context": use.context_tokens}
        asked |= {"sequences": use.sequences or 1, "kv": use.kv_dtype_id, "free": card.free_bytes}
        (row,) = almanac.rows(
            "FROM layers_that_fit($gpu, $model, dtype_id := $dtype, context_tokens := $context, sequences := $sequences, kv_dtype_id := $kv, "
            "free_bytes := $free)",
            asked,
        )
        if row["unknown_reason"] is None and row["gpu_layers"]:
            found.append(
                {"help": "layers", **{name: value for name, value in row.items() if name not in ("gpu_id", "model_id")}}
            )
    others = [row for row in rows if row["model_id"] != model.model_id and row["verdict"] == "fits"]
    for name in smaller:
        if mine := [row for row in others if row["model_id"] == name]:
            found.append({"help": "smaller", "model": name, **_told(max(mine, key=lambda row: row["weights_bytes"]))})
            break
    return found


TOGETHER = ("gguf-q8_0", "gguf-q6_k", "gguf-q5_k_m", "gguf-mxfp4", "gguf-q4_k_m", "gguf-q3_k_m")  # the best first


def together(almanac: Almanac, model: Model, cards: list[Card], use: Use) -> dict[str, Any]:
    """What several unlike cards hold of a model in llama.cpp, which shares it by what they give: the best format that fits, else the smallest."""
    native = pasted.GGUF_OF.get(model.row["stored_format"] or "")
    formats = [use.dtype_id] if use.dtype_id else [native] if native else [f for f in TOGETHER if f != "gguf-mxfp4"]
    asked = {
        "cards": [card.gpu_id for card in cards for _ in range(card.count)],
        "model": model.model_id,
        "context": use.context_tokens,
        "sequences": use.sequences or 1,
        "kv": use.kv_dtype_id,
    }
    verdict, rows = None, []
    for dtype in formats:
        rows = almanac.rows(
            "FROM fits_together($cards, $model, dtype_id := $dtype, context_tokens := $context, sequences := $sequences, kv_dtype_id := $kv)",
            asked | {"dtype": dtype},
        )
        verdict = max((row["verdict"] for row in rows), key=lambda word: _BEST.index(word) if word else 9, default=None)
        if verdict in ("fits", None):
            break
    commands = []
    if verdict == "fits":
        told = [
            rows[0] | {"share_is_free": True, "engine_setting": None, "gpu_count": 1, "kv_dtype_id": use.kv_dtype_id}
        ]
        commands = [
            each | {"command": f"{each['command']} {rows[0]['engine_setting']}"}
            for each in _commands(almanac, model, cards[0], told, 1)
            if each["engine"] == "llama.cpp"
        ]
    return {
        "model": model.shown,
        "together": [row | {"name": _named(cards, row["gpu_id"])} for row in rows],
        "verdict": verdict,
        "helps": [],
        "commands": commands,
        "reason": next((row["unknown_reason"] for row in rows if row["unknown_reason"]), None),
    }


# Formats that are tried with a draft, the best first, and that of the draft where nobody names it.
DRAFTING = {
    "llama.cpp": (tuple(name for name in TOGETHER if name != "gguf-mxfp4"), "gguf-q8_0"),
    "mlx-lm": (("mlx-8bit", "mlx-6bit", "mlx-4bit"), "mlx-8bit"),
}
_SERVED = (("bf16", "fp8", "awq-int4"), None)


def drafted(almanac: Almanac, model: Model, draft: Model, card: Card, use: Use) -> dict[str, Any]:
    """What a model and one that drafts for it hold on a card: the best format that fits, else the smallest."""
    engine = use.engine_id or "llama.cpp"
    formats, of_draft = DRAFTING.get(engine, _SERVED)
    asked = {
        "card": card.gpu_id, "model": model.model_id, "draft": draft.model_id, "of_draft": draft.dtype_id or of_draft, "engine": engine,
        "context": use.context_tokens, "sequences": use.sequences or 1, "kv": use.kv_dtype_id, "count": card.count,
    }  # fmt: skip
    said = (
        "($model, $draft, dtype_id := $dtype, draft_dtype_id := $of_draft, engine_id := $engine, context_tokens := $context, "
        "sequences := $sequences, kv_dtype_id := $kv, gpu_count := $count)"
    )
    row: Row = {}
    for dtype in [use.dtype_id] if use.dtype_id else formats:
        (row,) = almanac.rows(f"FROM speculative_fits_on{said.replace('(', '($card, ', 1)}", asked | {"dtype": dtype})
        if row["verdict"] in ("fits", "multi-gpu", None):
            break
    (parts,) = almanac.rows(
        f"FROM speculative_of{said}",
        {name: value for name, value in asked.items() if name != "card"} | {"dtype": row["dtype_id"]},
    )
    return {
        "model": model.shown,
        "draft": draft.shown,
        "drafted": parts | row,
        "card": card.name,
        "verdict": "fits" if row["verdict"] == "multi-gpu" else row["verdict"],
        "helps": [],
        "commands": [],
        "reason": row["unknown_reason"],
    }


def _named(cards: list[Card], gpu_id: str) -> str:
    return next(card.name for card in cards if card.gpu_id == gpu_id)


def _smaller(almanac: Almanac, model: Model) -> list[str]:
    """Smaller works of the same maker and family for the same task, the largest first."""
    return [
        row["model_id"]
        for row in almanac.rows(
            """
            SELECT model.model_id FROM model JOIN work ON work.model_id = model.model_id AND work.lead_model_id = model.model_id
            JOIN model AS own ON own.model_id = $id
            JOIN work AS own_work ON own_work.model_id = own.model_id
            WHERE split_part(model.model_id, '/', 1) = split_part(own_work.lead_model_id, '/', 1) AND model.family = own.family
                AND model.pipeline_tag = own.pipeline_tag AND model.parameter_count < 0.9 * own.parameter_count
                AND model.anatomy_grade <> 'unknown'
            QUALIFY row_number() OVER (PARTITION BY round(10 * ln(model.parameter_count)) ORDER BY model.downloads_30d DESC) = 1
            ORDER BY model.parameter_count DESC LIMIT $limit
            """,
            {"id": model.model_id, "limit": SIBLINGS},
        )
    ]


def _commands(almanac: Almanac, model: Model, card: Card, told: list[Row], count: int) -> list[dict[str, str]]:
    """Of each engine the command for its best format that fits; none for a model that no command runs."""
    if model.row["pipeline_tag"] not in pasted.TALKING or not pasted.SAFE.fullmatch(model.model_id):
        return []
    same = almanac.rows(
        """
        SELECT other.model_id, model.stored_format FROM work AS own JOIN work AS other ON other.plain_name = own.plain_name
        JOIN model ON model.model_id = other.model_id JOIN model AS self ON self.model_id = own.model_id
        WHERE own.model_id = $id AND (self.family IS NULL OR model.family IS NULL OR model.family = self.family)
        ORDER BY other.model_id <> $id, model.downloads_30d DESC NULLS LAST, other.model_id
        """,
        {"id": model.model_id},
    ) or [{"model_id": model.model_id, "stored_format": model.row["stored_format"]}]
    held_by = pasted.repositories((row["model_id"], row["stored_format"]) for row in same)
    found: dict[str, dict[str, str]] = {}
    for line in pasted.lines():
        engine = pasted.ENGINES.get(line["engine"], line["engine"])
        formats = pasted.formats_of(line, held_by, model.row["stored_format"])
        row = next(
            (r for r in told if _verdict(r) == "fits" and r["engine_id"] == engine and r["dtype_id"] in formats), None
        )
        # a server takes its share of the whole card, which something else holds a part of; and flags beyond the share are vLLM's own
        if line["engine"] in found or row is None or not row["share_is_free"] or row["sequences"] > 1:
            continue
        held = {name: held_by[name] for name in line["held"].split() if name in held_by}
        share, flags = _settings(row["engine_setting"])
        asked = {"model": model.model_id, "context": str(row["context_tokens"]), "share": share}
        if count > 1:
            asked |= {
                "tensor_parallel_size": f" --tensor-parallel-size {count}",
                "tp": f" --tp {count}",
                "devices": "'auto'",
            }
        if row["kv_dtype_id"] == SMALL_CACHE and engine == "llama.cpp":
            if line["engine"] != engine:
                continue  # Ollama is told by its environment, in words of its own
            flags = f"{flags} -ctk {SMALL_CACHE} -ctv {SMALL_CACHE}"
        command = pasted.fill(line["command"], row["dtype_id"], held, asked)
        found[line["engine"]] = {
            "engine": line["name"],
            "dtype_id": row["dtype_id"],
            "command": command + (flags if line["engine"] == engine else ""),
            "note": pasted.fill(line["note"], row["dtype_id"], held, asked),
        }
    return list(found.values())


def _settings(told: str | None) -> tuple[str, str]:
    """The share of a card that a server has to be given, and the flags besides."""
    words = (told or "").split(" ")
    share, rest = pasted.SHARE, []
    while words and words[0]:
        word = words.pop(0)
        if word == "--gpu-memory-utilization":
            share = words.pop(0)
        else:
            rest.append(word)
    return share, "".join(f" {word}" for word in rest)


def _stages(almanac: Almanac, model: Model) -> bool:
    return almanac.value("SELECT count(*) > 0 FROM component WHERE model_id = $id", {"id": model.model_id})


def _makes_videos(almanac: Almanac, model: Model) -> bool:
    """Whether its autoencoder makes videos: these are asked by the frames that site/made.csv names, pictures by one of 1024 × 1024."""
    query = """
        SELECT count(*) > 0 FROM component JOIN pipeline_stage USING (class_name)
        WHERE model_id = $id AND stage = 'decode' AND frames_at_once <> 1
    """
    return almanac.value(query, {"id": model.model_id})


def _pipeline_fits(almanac: Almanac, model: Model, card: Card, use: Use) -> dict[str, Any]:
    """A diffusion pipeline: all parts on the card, one part at a time, one module at a time."""
    if card.gpu_id is None:
        reason = "a pipeline of several parts is held against cards of the almanac alone (--gpu)"
        rows: list[Row] = []
        size = ""
    elif card.free_bytes is not None:
        reason, rows, size = "a pipeline of several parts is held against whole cards alone (--gpu, or --empty)", [], ""
    else:
        asked = {"gpu": card.gpu_id, "model": model.model_id}
        size = ", width := 832, height := 480, frames := 81" if _makes_videos(almanac, model) else ""
        rows = almanac.rows(f"FROM pipeline_fits_on($gpu, $model{size})", asked)
        reason = next((row["unknown_reason"] for row in rows if row["unknown_reason"]), None)
    verdict = next((v for v in _BEST if any(row["verdict"] == v for row in rows)), None)
    return {
        "model": model.shown,
        "card": _card(card, 1),
        "use": _use(use, []),
        "verdict": verdict,
        "best": next((row for row in rows if row["verdict"] == verdict), None) if verdict else None,
        "placements": rows,
        "made": "81 frames of 832 × 480 pixels" if rows and size else None,
        "formats": [],
        "helps": [],
        "commands": [],
        "reason": None if verdict else reason,
    }


def _years(made: str | None, newest: str) -> int:
    """Whole years before the newest month; what nobody dated is oldest."""
    if not made or not newest:
        return 10**6
    months = [12 * int(text[:4]) + int(text[5:7]) for text in (newest, made)]
    return (months[0] - months[1]) // 12
