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

from . import host, pictures, shared
from .almanac import Almanac, Row
from .cards import of_larger
from .helps import commands_of, held_otherwise, helps_of, smaller_of
from .problems import DOES_NOT, FITS, UNKNOWN, Wrong
from .question import INFERENCE, Card, Model, Use
from .scenarios import (
    SMALL_CACHE,
    USUAL,
    answered,
    best_of,
    beyond_of,
    card_told,
    counted_pass,
    formats_of,
    in_order,
    packed_in,
    packings_of,
    scenario_of,
    sees,
    told_of,
    unpacks,
    use_told,
)
from .serving_helps import served_otherwise
from .settings import CARDS, counted_of, is_startable, kept_free_by, read_by_itself, said_setting, settings_of

STATUS = {"fits": FITS, "tight": DOES_NOT, "no": DOES_NOT, None: UNKNOWN}
WEIGHTS_ALONE = "SELECT weights_bytes FROM weight WHERE model_id = $id AND dtype_id = 'bf16'"
BESIDE = "sglang"  # whose command stands beside that of vLLM
MORE_CARDS = (2, 3, 4, 8)  # that are tried where a model does not fit
_TWICE = {8: [16], 16: [32]}  # of servers of 8


def fits(almanac: Almanac, model: Model, card: Card, use: Use, *, every: bool = False) -> dict[str, Any]:
    """What of a model fits a card, in which formats and how far, and what helps where it does not."""
    if pictures.is_made_by(almanac, model):
        return pictures.fits(almanac, model, card, use)
    shared.check_cards(use, card.count)
    is_divided = use.is_divided
    counts = [card.count] if card.is_count_said or use.sharding or is_divided else sorted({1, card.count})
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
    is_bought = card.gpu_id is not None and card.vendor != "apple"
    more = ([n for n in MORE_CARDS if n > card.count] or _TWICE.get(card.count, [])) if is_bought else []
    more = [] if is_divided or use.share else more  # (these are of the cards that are said)
    smaller = smaller_of(almanac, model) if is_open and use.dtype_id is None and not is_divided else []
    if is_open:
        scenarios += [
            scenario_of(model, use, d, e, counts[-1]) | {"kv_dtype_id": SMALL_CACHE}
            for d, e in main
            if e == "llama.cpp"
        ]
    scenarios += [scenario_of(model, use, d, e, n) for d, e in usual for n in more]
    scenarios += [scenario_of(replace(model, model_id=other), use, d, e, 1) for other in smaller for d, e in usual]
    # what vLLM serves SGLang does, with memory of its own: asked along, for the command beside vLLM's
    is_shared = bool(use.program or use.is_training or is_divided or passed)
    beside = [] if is_shared else [(d, BESIDE) for d, e in main if e == "vllm"]
    scenarios += [scenario_of(model, use, d, e, n) for d, e in beside for n in counts]
    rows = answered(almanac, scenarios, card, use, **beyond_of(model, use))
    served = [row for row in rows if beside and row["engine_id"] == BESIDE]
    rows = [row for row in rows if not (beside and row["engine_id"] == BESIDE)]
    own = [row for row in rows if row["model_id"] == model.model_id]
    kv = use.kv_dtype_id or (own[0]["kv_dtype_id"] if use.is_training else None)
    plain = [row for row in own if (kv is None and row["kv_dtype_id"] != SMALL_CACHE) or row["kv_dtype_id"] == kv]
    by_count = {n: [row for row in plain if row["gpu_count"] == n] for n in counts}
    published = packed_in(model, use)
    # on one card where it fits there, else on all that there are
    count = next((n for n in counts if best_of(by_count[n])[0] == "fits"), counts[-1])
    told = [
        row | {"engine_setting": said_setting(row, card, use), "share_is_free": is_startable(row, card)}
        for row in in_order(by_count[count], main, published)
    ]
    if use.phase_id == "qlora":
        told.sort(key=lambda row: row["dtype_id"] != "nf4")  # which is what people mean by it
    if card.is_any:
        told = _with_smallest(almanac, told)
    verdict, best = best_of(told)
    if verdict is None and not is_divided and (stages := shared.in_stages(told, count, use)):
        return _in_stages(almanac, model, card, use, stages, every=every)
    answer: dict[str, Any] = {
        "model": model.shown,
        "card": card_told(card, count),
        "use": use_told(use, told),
        "verdict": verdict,
        "best": best,
        "formats": [told_of(row) for row in told],
        "settings": settings_of(told, card, verdict, use),
        "helps": [],
        "commands": [],
        "reason": None,
    }
    if seeing is not None and model.row["pipeline_tag"] in pasted.TALKING:
        answer |= {"sees": True, "is_text_alone": not use.images}
        if not use.is_training and (told or best):
            query = "SELECT any_value(image_reason) FROM engine_memory WHERE engine_id = $id"
            answer["image_reason"] = almanac.value(query, {"id": (best or told[0])["engine_id"]})
    if passed and use.phase_id == INFERENCE:
        answer["input"] = {name: passed[name] for name in ("input", "is_one_size", "program", "note")}
    if whole := _experts_in_16_bits(almanac, model, told):
        answer["whole_experts"] = whole
    if packed := packings_of(almanac, model.model_id, [row for row in told if row["total_bytes"]]):
        answer["packed"] = packed
    if verdict is None:
        # (the reason of most formats: that one engine cannot load it says nothing of the others)
        reasons = Counter(row["unknown_reason"] for row in told if row["unknown_reason"]).most_common(1)
        answer["reason"] = reasons[0][0] if reasons else None
        if not any(row["total_bytes"] for row in told):
            answer |= {
                "weights_bytes": almanac.value(WEIGHTS_ALONE, {"id": model.model_id}),
                "weights_dtype_id": "bf16",
            }
    if use.program is not None and use.context_tokens is None:
        answer["has_own_context"] = bool(
            almanac.value(
                "SELECT coalesce(bool_or(context_tokens IS NOT NULL OR reads_whole_context), false) FROM program "
                "WHERE program_id = $program AND list_contains(string_split(phase_ids, ' '), $phase)",
                {"program": use.program, "phase": use.phase_id},
            )
        )
    if kept := kept_free_by(almanac, use.program, use.program_version):
        answer |= {"kept_free_bytes": kept}
    if use.is_training and best:
        query = "SELECT any_value(name) FROM optimizer WHERE optimizer_id = $id"
        answer["optimizer"] = almanac.value(query, {"id": best["optimizer_id"]})
        if unpacks(stored := model.row["stored_format"], use) and best["dtype_id"] != stored:
            answer["unpacked_from"] = stored
    if not use.is_training and (counted := counted_of(almanac, use.engine_id)):
        own = None if use.batched_tokens else read_by_itself(almanac, card)
        counted |= {"batched_tokens": use.batched_tokens} if use.batched_tokens else {}
        counted |= {"sequences": use.max_num_seqs} if use.max_num_seqs else {}
        answer["counted"] = counted | ({"own_batched_tokens": own} if own and own < counted["batched_tokens"] else {})
    is_served = verdict in ("fits", "tight") and not use.is_training
    if is_served and best and (otherwise := held_otherwise(almanac, model, best["dtype_id"])):
        answer["held_otherwise"] = otherwise
    if verdict != "fits":
        answer["helps"] = helps_of(almanac, model, card, use, rows, told, count, smaller)
        asked = [scenario_of(model, use, d, e, count) for d, e in main]
        answer["helps"] = [
            *_of_its_name(almanac, model, card, use, asked),
            *_raised(almanac, model, card, use, asked),
            *served_otherwise(almanac, model, card, use, main, count, verdict, sees=bool(seeing)),
            *answer["helps"],
        ]
    # (commands share cards by tensor parallelism alone, and say no share: the settings do)
    if (
        verdict == "fits"
        and not use.is_training
        and not (is_divided or use.share or use.max_num_seqs or use.enforce_eager)
    ):
        served = [row | {"share_is_free": is_startable(row, card)} for row in served if row["gpu_count"] == count]
        served = in_order(served, main, published)
        whole = [
            row for row in told if row["engine_id"] not in CARDS or (row.get("pipeline_parallel") or 1) == 1
        ] + served
        answer["commands"] = commands_of(
            almanac, model, whole, count, with_images=bool(use.images), program=use.program,
            is_eager=use.attention == "eager",
        )  # fmt: skip
    return _shared(almanac, model, card, use, answer, told)


def _shared(
    almanac: Almanac, model: Model, card: Card, use: Use, answer: dict[str, Any], told: list[Row]
) -> dict[str, Any]:
    """The answer with the computer's memory, where that was said; of so many layers on the card, where those were."""
    if way := host.asked_way(almanac, model, card, use, told):
        return answer | {
            "way": way,
            "verdict": way["verdict"],
            "reason": way["unknown_reason"],
            "commands": [],
            "helps": [],
        }
    if answer["verdict"] not in ("tight", "no"):
        return answer
    if beside := host.beside(almanac, model, card, use, told):
        answer["beside"] = beside
        if beside["is_held"]:
            helps = [each for each in answer["helps"] if each["help"] != "layers"]
            row = next(row for row in told if row["dtype_id"] == beside["dtype_id"] and row["engine_id"] == "llama.cpp")
            fitting = [row | {"verdict": "fits"}]
            own = {"ollama": "ollama", "llama.cpp": "llama.cpp", None: "llama.cpp"}.get(use.program)
            commands = commands_of(
                almanac, model, fitting, 1, program=use.program, is_eager=use.attention == "eager", split=host.flags_of(beside), alone=own,
            )  # fmt: skip
            return answer | {
                "verdict": "fits",
                "best": told_of(row),
                "helps": helps,
                "settings": [],
                "commands": commands,
            }
    return answer


def _of_its_name(almanac: Almanac, model: Model, card: Card, use: Use, asked: list[Row]) -> list[dict[str, Any]]:
    """Of cards that go by one name, the one with least memory that holds the model."""
    for larger in of_larger(almanac, card) if card.free_bytes is None else []:
        verdict, best = best_of(answered(almanac, asked, larger, use, **beyond_of(model, use)))
        if verdict == "fits" and best:
            return [{"help": "larger", "gpu_id": larger.gpu_id, "name": larger.name, **best}]
    return []


def _raised(almanac: Almanac, model: Model, card: Card, use: Use, asked: list[Row]) -> list[dict[str, Any]]:
    """Of a card that a person can let give more: what it takes then, where that is what is missing."""
    if card.free_bytes is not None or not card.raisable_bytes or card.count > 1:
        return []
    raised = replace(card, capacity_bytes=card.raisable_bytes, free_bytes=card.raisable_bytes)
    verdict, best = best_of(answered(almanac, asked, raised, use, **beyond_of(model, use)))
    if verdict != "fits" or not best:
        return []
    return [{"help": "raised", "raised_by": card.raised_by, "raised_bytes": card.raisable_bytes, **best}]


def _experts_in_16_bits(almanac: Almanac, model: Model, told: list[Row]) -> dict[str, Any] | None:
    """The formats in which Transformers packs the linear layers of a mixture alone, and the version that is: who knows an older one expects less."""
    names = [row["dtype_id"] for row in told if row["engine_id"] == "transformers" and row["total_bytes"]]
    if not names:
        return None
    (said,) = almanac.rows(
        """
        SELECT list(held.dtype_id ORDER BY held.dtype_id) AS dtype_ids,
            (SELECT any_value(engine_version) FROM engine WHERE engine_id = 'transformers') AS engine_version
        FROM weight AS held JOIN dtype USING (dtype_id) JOIN weight AS whole USING (model_id)
        WHERE held.model_id = $model AND whole.dtype_id = 'bf16' AND held.expert_bytes > 0
            AND held.expert_bytes = whole.expert_bytes AND dtype.bits_per_weight < 16 AND list_contains($names, held.dtype_id)
        """,
        {"model": model.model_id, "names": names},
    )
    return said if said["dtype_ids"] else None


def _in_stages(
    almanac: Almanac, model: Model, card: Card, use: Use, ways: list[tuple[int, int]], *, every: bool
) -> dict[str, Any]:
    """Of a model whose heads do not divide by the cards: the way with the fewest stages that has an answer."""
    use = replace(use, engine_id=use.engine_id or "vllm")
    for tensor, stages in ways:
        answer = fits(almanac, model, card, replace(use, tensor_parallel=tensor, pipeline_parallel=stages), every=every)
        if answer["verdict"] is not None:
            break
    if answer["verdict"] is not None:
        cards = "one card" if tensor == 1 else f"{tensor} cards"
        heads = shared.STAGED.format(count=card.count, cards=cards, stages=stages)
        answer["taken"] = " ".join(filter(None, (answer.get("taken"), heads)))
    return answer


def _with_smallest(almanac: Almanac, rows: list[Row]) -> list[Row]:
    """Rows with the memory of the smallest NVIDIA card that holds each with its margin, as it is sold; of cards of one size the one that gives least."""
    query = """
        WITH size AS (
            SELECT memory_gib_nominal AS gib, min(capacity_bytes) AS capacity_bytes FROM gpu
            WHERE vendor = 'nvidia' AND segment IN ('consumer', 'workstation', 'datacenter') GROUP BY gib
        ),
        asked AS (SELECT unnest(range(len($totals))) AS place, unnest($totals::BIGINT[]) AS total, unnest($bands::DOUBLE[]) AS band)
        SELECT min(gib) AS gib FROM asked LEFT JOIN size ON internal.takes(total, band, capacity_bytes) GROUP BY place ORDER BY place
    """
    given = {"totals": [row["total_bytes"] for row in rows], "bands": [row["error_band"] for row in rows]}
    return [row | {"smallest_gib": found["gib"]} for row, found in zip(rows, almanac.rows(query, given), strict=True)]
