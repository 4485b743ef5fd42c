"""The answers, as plain values: what JSON has, and what words are made of. Every number is what a macro of the almanac says.

`fits` of one model on one card, `what` of all models on it; plans are in plans.py, several cards and drafts in several.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from pipeline.base.bounds import visible
from pipeline.book import commands as pasted
from pipeline.book.passes import FORMATS
from pipeline.book.wishes import Wish

from .almanac import Almanac, Row
from .helps import commands_of, has_stages, helps_of, smaller_of
from .problems import DOES_NOT, FITS, UNKNOWN, Wrong
from .question import INFERENCE, Card, Model, Use
from .repositories import by_file, known_parts
from .scenarios import (
    SMALL_CACHE,
    USUAL,
    VERDICTS,
    answered,
    best_of,
    beyond_of,
    card_told,
    counted_pass,
    formats_of,
    in_order,
    scenario_of,
    sees,
    told_of,
    use_told,
)
from .words import format_name

STATUS = {"fits": FITS, "tight": DOES_NOT, "no": DOES_NOT, None: UNKNOWN}
VIDEO = {
    "width": 832,
    "height": 480,
    "frames": 81,
}  # that is asked of pipelines that make videos, as site/made.csv does
WEIGHTS_ALONE = "SELECT weights_bytes FROM weight WHERE model_id = $id AND dtype_id = 'bf16'"
MORE_CARDS = (2, 4, 8)  # that are tried where a model does not fit
# what tells of many scenarios which of them fit
_SORTED = "model_id, dtype_id, engine_id, gpu_count, kv_dtype_id, sequences, context_tokens, verdict"


def fits(almanac: Almanac, model: Model, card: Card, use: Use, *, every: bool = False) -> dict[str, Any]:
    """What of a model fits a card, in which formats and how far, and what helps where it does not."""
    if model.row["pipeline_tag"] not in pasted.TALKING and has_stages(almanac, model):
        return _pipeline_fits(almanac, model, card, use)
    counts = [card.count] if card.is_count_said else sorted({1, card.count})
    seeing = sees(almanac, model.model_id)
    if use.images and seeing is None:
        base = model.row["base_model_id"]
        original = f"; it is made of {visible(base)}" if base else ""
        raise Wrong(
            f"{model.shown} is not asked about images: nothing says that its files hold what sees them{original}"
        )
    main = formats_of(almanac, model, card, use, every=every)
    passed = counted_pass(almanac, model)
    if passed and use.dtype_id is None and use.program is None and use.phase_id == INFERENCE:
        main = [(FORMATS[size], "transformers") for size in passed["element_bytes"]]
    scenarios = [scenario_of(model, use, d, e, n) for d, e in main for n in counts]
    is_open = not use.is_training and use.kv_dtype_id is None
    usual = [(d, e) for d, e in main if d in USUAL and e != "mlx-lm"] or main[:1]
    more = [n for n in MORE_CARDS if n > card.count and card.gpu_id is not None and card.vendor != "apple"]
    smaller = smaller_of(almanac, model) if is_open and use.dtype_id is None else []
    if is_open:
        scenarios += [
            scenario_of(model, use, d, e, counts[-1]) | {"kv_dtype_id": SMALL_CACHE}
            for d, e in main
            if e == "llama.cpp"
        ]
    scenarios += [scenario_of(model, use, d, e, n) for d, e in usual for n in more]
    scenarios += [scenario_of(replace(model, model_id=other), use, d, e, 1) for other in smaller for d, e in usual]
    rows = answered(almanac, scenarios, card, use, **beyond_of(model, use))
    own = [row for row in rows if row["model_id"] == model.model_id]
    kv = use.kv_dtype_id or (own[0]["kv_dtype_id"] if use.is_training else None)
    plain = [row for row in own if (kv is None and row["kv_dtype_id"] != SMALL_CACHE) or row["kv_dtype_id"] == kv]
    by_count = {n: [row for row in plain if row["gpu_count"] == n] for n in counts}
    # on one card where it fits there, else on all that there are
    count = next((n for n in counts if best_of(by_count[n])[0] == "fits"), counts[-1])
    told = in_order(by_count[count], main)
    if use.phase_id == "qlora":
        told.sort(key=lambda row: row["dtype_id"] != "nf4")  # which is what people mean by it
    verdict, best = best_of(told)
    answer = {
        "model": model.shown,
        "card": card_told(card, count),
        "use": use_told(use, told),
        "verdict": verdict,
        "best": best,
        "formats": [told_of(row) for row in told],
        "helps": [],
        "commands": [],
        "reason": None,
    }
    if use.phase_id == INFERENCE and seeing is not None and model.row["pipeline_tag"] in pasted.TALKING:
        answer["sees"] = True
    if passed and use.phase_id == INFERENCE:
        answer["input"] = {name: passed[name] for name in ("input", "is_one_size", "program", "note")}
    if verdict is None:
        # (the reason of most formats: that one engine cannot load it says nothing of the others)
        reasons = Counter(row["unknown_reason"] for row in told if row["unknown_reason"]).most_common(1)
        answer["reason"] = reasons[0][0] if reasons else None
        if not any(row["total_bytes"] for row in told):
            answer["weights_bytes"] = almanac.value(WEIGHTS_ALONE, {"id": model.model_id})
    if use.program is not None and use.context_tokens is None and not use.is_training:
        answer["has_own_context"] = bool(
            almanac.value(
                "SELECT coalesce(bool_or(context_tokens IS NOT NULL OR reads_whole_context), false) FROM program "
                "WHERE program_id = $program AND list_contains(string_split(phase_ids, ' '), 'inference')",
                {"program": use.program},
            )
        )
    if verdict != "fits":
        answer["helps"] = helps_of(almanac, model, card, use, rows, told, count, smaller)
    if verdict == "fits" and not use.is_training:
        answer["commands"] = commands_of(almanac, model, card, told, count, with_images=bool(use.images))
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
            scenarios.append(scenario_of(Model(row["model_id"], "", row), asked, dtype, engine, card.count))
    found: dict[str, Row] = {}
    rank = {d: k for k, (d, _e) in enumerate(wanted)}
    rows = answered(almanac, scenarios, card, base, told=_SORTED, with_limits=False) if scenarios else []
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
            scenario_of(
                Model(name, "", by_id[name]), replace(base, context_tokens=found[name]["context_tokens"]), found[name]["dtype_id"],
                found[name]["engine_id"], card.count,
            )
            for name in shown
        ]  # fmt: skip
        reach = {row["model_id"]: row for row in answered(almanac, again, card, base)}
    return {
        "card": card_told(card, card.count),
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
                **told_of(reach[name]),
            }
            for name in shown
        ],
    }


def _pipeline_fits(almanac: Almanac, model: Model, card: Card, use: Use) -> dict[str, Any]:
    """A diffusion pipeline: all parts on the card, one part at a time (its denoiser packed, too), one module at a time."""
    is_video = _makes_videos(almanac, model)
    if card.gpu_id is None:
        reason = "a pipeline of several parts is held against cards of the almanac alone (--gpu)"
        rows: list[Row] = []
    elif card.free_bytes is not None:
        reason, rows = "a pipeline of several parts is held against whole cards alone (--gpu, or --empty)", []
    elif use.is_training:
        rows = _trained(almanac, {"gpu": card.gpu_id, "model": model.model_id} | (VIDEO if is_video else {}), use)
        reason = next((row["unknown_reason"] for row in rows if row["unknown_reason"]), LORA_ALONE)
    else:
        asked = {"gpu": card.gpu_id, "model": model.model_id} | (VIDEO if is_video else {})
        size = "".join(f", {name} := ${name}" for name in VIDEO) if is_video else ""
        rows = _placed(almanac, asked, size, use.dtype_id)
        reason = next((row["unknown_reason"] for row in rows if row["unknown_reason"]), None)
        if reason and use.dtype_id in (None, *WHOLE):
            reason += known_parts(almanac, model.model_id) + by_file(almanac, model.model_id)
        elif reason:
            reason += _known_formats(almanac, asked, size)
    verdict = next((v for v in VERDICTS if any(row["verdict"] == v for row in rows)), None)
    return {
        "model": model.shown,
        "card": card_told(card, 1),
        "use": use_told(use, []),
        "verdict": verdict,
        # (of what does not fit the least is told)
        "best": _first(sorted(rows, key=_bytes) if verdict == "no" else rows, verdict),
        "placements": rows,
        "made": _made(rows, use, is_video),
        "formats": [],
        "helps": [],
        "commands": [],
        "reason": None if verdict else reason,
    }


WHOLE = ("bf16", "fp16", "fp32")  # formats of a whole pipeline; any other is one of its denoiser
PACKED = ("fp8", "gguf-q8_0", "gguf-q4_k_s", "nf4")  # those that are told unasked, the most bits first
TEXT_PACKED = ("fp8", "nf4")  # of these, what text encoders can be held in, too


def _placed(almanac: Almanac, asked: Row, size: str, dtype: str | None) -> list[Row]:
    """The ways to place the parts, the quickest first."""
    if dtype is not None:
        name = "dtype_id" if dtype in WHOLE else "denoiser_dtype_id"
        rows = almanac.rows(f"FROM pipeline_fits_on($gpu, $model{size}, {name} := $dtype)", asked | {"dtype": dtype})
        return [row | {name: dtype} for row in rows]
    rows = almanac.rows(f"FROM pipeline_fits_on($gpu, $model{size})", asked)
    if any(row["verdict"] == "fits" for row in rows if row["placement"] == "resident"):
        return rows
    packed = []
    for one in PACKED:  # one by one: DuckDB loses its way where a table of formats is joined to the macro
        query = f"FROM pipeline_fits_on($gpu, $model{size}, denoiser_dtype_id := $dtype) WHERE placement = 'model'"
        told = almanac.rows(query, asked | {"dtype": one})
        packed += [row | {"denoiser_dtype_id": one} for row in told if row["total_bytes"] is not None]
    packed += _all_packed(almanac, asked, size, packed)
    at = next((i + 1 for i, row in enumerate(rows) if row["placement"] == "model"), len(rows))
    return [*rows[:at], *packed, *rows[at:]]


def _known_formats(almanac: Almanac, asked: Row, size: str) -> str:
    """Those of the denoiser that are told instead of one that is not known."""
    query = f"FROM pipeline_fits_on($gpu, $model{size}, denoiser_dtype_id := $dtype) WHERE total_bytes IS NOT NULL"
    known = [format_name(one) for one in PACKED if almanac.rows(query, asked | {"dtype": one})]
    return f". Known of its denoiser: {', '.join(known)} (--format)" if known else ""


def _all_packed(almanac: Almanac, asked: Row, size: str, before: list[Row]) -> list[Row]:
    """Denoiser and text encoders in 8 bits and in 4, where that takes less: a large text encoder may be what needs most."""
    found: list[Row] = []
    for one in TEXT_PACKED:
        names = {"denoiser_dtype_id": one, "text_dtype_id": one}
        given = "".join(f", {name} := ${name}" for name in names)
        query = f"FROM pipeline_fits_on($gpu, $model{size}{given}) WHERE placement = 'model'"
        told = almanac.rows(query, asked | names)
        least = min((row["total_bytes"] for row in (*before, *found)), default=0)
        found += [row | names for row in told if row["total_bytes"] is not None and row["total_bytes"] < least]
    return found


def _first(rows: list[Row], verdict: str | None) -> Row | None:
    return next((row for row in rows if row["verdict"] == verdict), None) if verdict else None


def _bytes(row: Row) -> int:
    return row["total_bytes"] or 0


LORA_ALONE = "of pipelines the training of LoRA adapters alone is counted (--phase lora or qlora)"


def _trained(almanac: Almanac, asked: Row, use: Use) -> list[Row]:
    """LoRA of the denoiser over a base in 16 bits and in 4, the text and the latents made before or not."""
    if use.phase_id not in ("lora", "qlora"):
        return []
    size = "".join(f", {name} := ${name}" for name in VIDEO if name in asked)
    base = {"lora": ("bf16", "nf4"), "qlora": ("nf4",)}[use.phase_id] if use.dtype_id is None else (use.dtype_id,)
    asked = asked | {"rank": use.lora_rank, "images": use.sequences}
    rows = []
    for dtype in base:
        name = "dtype_id" if dtype in WHOLE else "denoiser_dtype_id"
        told = almanac.rows(
            f"FROM pipeline_training_fits_on($gpu, $model, lora_rank := $rank, images := $images, {name} := $dtype, "
            f"checkpointing := 'full'{size})",
            asked | {"dtype": dtype},
        )
        rows += [row | {name: dtype} for row in told if row["total_bytes"] is not None or len(base) == 1 or not rows]
    return rows


def _made(rows: list[Row], use: Use, is_video: bool) -> str | None:
    """What the rows are told of, where that is no single picture."""
    if not rows or not (is_video or use.is_training):
        return None
    frames = f"{VIDEO['frames']} frames of {VIDEO['width']} × {VIDEO['height']} pixels"
    if use.is_training:
        return f"{f'videos of {frames}' if is_video else 'pictures of 1024 × 1024 pixels'}, all layers recomputed"
    return frames


def _makes_videos(almanac: Almanac, model: Model) -> bool:
    """Whether its autoencoder makes videos; of all others one picture is asked."""
    query = """
        SELECT count(*) > 0 FROM component JOIN pipeline_stage USING (class_name)
        WHERE model_id = $id AND stage = 'decode' AND frames_at_once <> 1
    """
    return almanac.value(query, {"id": model.model_id})


def _years(made: str | None, newest: str) -> int:
    """Whole years before the newest month; what nobody dated is oldest."""
    if not made or not newest:
        return 10**6
    months = [12 * int(text[:4]) + int(text[5:7]) for text in (newest, made)]
    return (months[0] - months[1]) // 12
