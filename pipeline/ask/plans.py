"""How many cards a model takes, how they share it, and how long a training takes on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from . import contexts
from .almanac import Almanac, Row
from .problems import Wrong
from .question import Card, Model, Use, Work
from .scenarios import answered, card_told, formats_of, scenario_of, told_of

COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64)  # of a machine, and of servers of 8
FLAGS = {"tensor_parallel": "--tensor-parallel", "pipeline_parallel": "--pipeline-parallel"}


def plan(
    almanac: Almanac, model: Model, cards: Iterable[Card], use: Use, limit: int, work: Work | None = None
) -> dict[str, Any]:
    """How many cards of each kind a model takes, and how they share; of a training on so much data also how long it takes."""
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
                "card": card_told(card, card.count),
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
        "card": card_told(card, card.count),
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
    named |= {
        "lora_rank": use.lora_rank,
        "lora_targets": use.lora_targets,
        "adapter": use.adapter,
        "lora_dropout": use.lora_dropout,
    }
    named |= {"sharding": use.sharding, "engine_id": use.sharding_engine_id, "offload": use.offload}
    named |= {"program": use.program, "program_version": use.program_version}
    named |= {"checkpointing": use.checkpointing, "optimizer_id": use.optimizer_id, "loss": use.loss}
    given = {name: value for name, value in named.items() if value is not None}
    more = "".join(f", {name} := ${name}" for name in given)
    if use.program and use.sequences is None:  # the macro's own default is one, a program's is what it says
        more += ", sequences := NULL"
    rows = almanac.rows(
        f"FROM plans_for($gpu, $model, phase_id := $phase{more}) ORDER BY plan_rank NULLS LAST",
        {"gpu": card.gpu_id, "model": model.model_id, "phase": use.phase_id, **given},
    )
    said = {"tensor_parallel": use.tensor_parallel, "pipeline_parallel": use.pipeline_parallel}
    asked = {name: number for name, number in said.items() if number}
    found = [row for row in rows if all(row[name] == number for name, number in asked.items())]
    if asked and not found:
        raise Wrong(
            f"No way that is worked out has {' and '.join(f'{FLAGS[name]} {n}' for name, n in asked.items())}: {_degrees(rows)}"
        )
    return found


def _degrees(rows: list[Row]) -> str:
    """What degrees there are."""
    known = {name: sorted({row[name] for row in rows if row[name]}) for name in FLAGS}
    return ", ".join(f"{FLAGS[name]} {', '.join(map(str, numbers))}" for name, numbers in known.items() if numbers)


def _divisions(use: Use) -> dict[int, Use]:
    """How so many cards serve: by tensor parallelism alone where nobody says otherwise, else in stages of so many, or so many stages."""
    if not (use.tensor_parallel or use.pipeline_parallel or use.data_parallel):
        return dict.fromkeys(COUNTS[1:] if use.expert_parallel else COUNTS, use)
    if use.data_parallel:
        groups = (use.tensor_parallel,) if use.tensor_parallel else COUNTS
        counts = (use.data_parallel * n for n in groups)
        return {n: use for n in counts if use.tensor_parallel or n <= COUNTS[-1]}
    both = (use.tensor_parallel or 1) * (use.pipeline_parallel or 1)
    if use.tensor_parallel and use.pipeline_parallel:
        return {both: use}
    return {
        both * n: replace(use, tensor_parallel=use.tensor_parallel or n, pipeline_parallel=use.pipeline_parallel or n)
        for n in COUNTS
        if both * n <= COUNTS[-1]
    }


def _inference_plans(almanac: Almanac, model: Model, card: Card, use: Use) -> list[Row]:
    """The fewest cards of each format, of what is worked out: 1 to 8 of a machine, and servers of 8."""
    main = formats_of(almanac, model, card, use, every=False)
    by_count = {n: contexts.with_own(almanac, model, each, [card], n) for n, each in _divisions(use).items()}
    rows: list[Row] = []
    for context in dict.fromkeys(each.context_tokens for each in by_count.values()):  # rows of one question have one
        with_it = {n: each for n, each in by_count.items() if each.context_tokens == context}
        rows += answered(
            almanac, [scenario_of(model, each, d, e, n) for d, e in main for n, each in with_it.items()], card,
            next(iter(with_it.values())),
        )  # fmt: skip
    found: dict[tuple, Row] = {}
    good = [row for row in rows if row["verdict"] in ("fits", "multi-gpu")]
    for row in sorted(good or [r for r in rows if r["verdict"] == "tight"], key=lambda r: r["gpu_count"]):
        found.setdefault((row["dtype_id"], row["engine_id"]), row)
    if not found:
        return rows
    place = {d: k for k, (d, _e) in enumerate(main)}
    order = sorted(found.values(), key=lambda r: (r["gpu_count"], place.get(r["dtype_id"], 99)))
    return [
        told_of(row)
        | {"unknown_reason": None, "own_context": by_count[row["gpu_count"]].own_context}
        | _started(row, by_count[row["gpu_count"]])
        for row in order
    ]


def _started(row: Row, use: Use) -> dict[str, int]:
    """How the cards of a plan are divided, where somebody said so."""
    if not use.is_divided:
        return {}
    groups, stages = use.data_parallel or 1, use.pipeline_parallel or 1
    tensor = use.tensor_parallel or row["gpu_count"] // (groups * stages)
    spread = {"data_parallel": groups, "expert_parallel": row["gpu_count"] if use.expert_parallel else 1}
    return {"tensor_parallel": tensor, "pipeline_parallel": stages} | (
        spread if use.data_parallel or use.expert_parallel else {}
    )
