"""Training on preferences on one kind of card: DPO, ORPO, KTO, reward models and GRPO, with what generates its answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from . import training_words
from .almanac import Almanac, Row
from .input_words import TRAINED_ON_TEXT
from .naming import format_name, gib_of
from .page import Page
from .problems import Wrong
from .question import Card, Model, Use
from .scenarios import card_told, sees
from .shared import check_cards

_ARGUMENTS = (
    "phase_id := $phase, dtype_id := $dtype, context_tokens := $context, sequences := $sequences, lora_rank := $rank, lora_targets := $targets, lora_dropout := $dropout, program := $program, "
    "program_version := $version, gpu_count := $count, sharding := $sharding, engine_id := $engine, offload := $offload, "
    "checkpointing := $checkpointing, optimizer_id := $optimizer"
)
_CHOICES = (
    "checkpointing", "precision", "optimizer_id", "lora_rank", "lora_targets", "sequences", "program", "engine_id", "sharding",
    "tensor_parallel", "pipeline_parallel", "context_parallel",
)  # fmt: skip
_SHARED = (("zero2", "deepspeed"), ("zero3", "deepspeed"))  # ways that a plan tries
_MORE_CARDS = (2, 4, 8)  # that are tried where one does not hold it
_SAID = {"fits": "Yes", "tight": "Barely", "no": "No"}
_PHASES = {"lora": "by LoRA", "qlora": "by QLoRA", "full-finetune": "of all weights", "pretrain": "from scratch"}


def objective_of(almanac: Almanac, text: str) -> str:
    """The id of an objective by the name that people use. Raises Wrong for one that the almanac does not have."""
    known = almanac.rows("SELECT DISTINCT objective_id, name FROM objective ORDER BY objective_id")
    asked = text.strip().lower()
    for row in known:
        if asked in (row["objective_id"], row["name"].lower()):
            return row["objective_id"]
    raise Wrong(f"--objective {text}: it is one of {', '.join(row['objective_id'] for row in known)}")


def preferred(
    almanac: Almanac, model: Model, card: Card, use: Use, objective: str, generator: str | None
) -> dict[str, Any]:
    """What a step of it holds on a card, by the defaults of the objective's program where the question says nothing."""
    check_cards(use, card.count)
    asked = _asked(model, card, use, objective, generator)
    row = _fits(almanac, asked)
    (rule,) = almanac.rows("SELECT DISTINCT name, rows_each FROM objective WHERE objective_id = $objective", {"objective": objective})  # fmt: skip
    return {
        "model": model.shown,
        "objective": rule["name"],
        "rows_each": rule["rows_each"],
        "is_text_alone": sees(almanac, model.model_id) is not None,
        "preferred": row,
        "card": card.name,
        "verdict": row["verdict"],
        "choices": _chosen(almanac, asked) if row["verdict"] else None,
        "helps": _helps(almanac, asked) if row["verdict"] in ("no", "tight") else [],
        "commands": [],
        "reason": row["unknown_reason"],
    }


def _asked(model: Model, card: Card, use: Use, objective: str, generator: str | None) -> Row:
    return {
        "card": card.gpu_id,
        "objective": objective,
        "model": model.model_id,
        "phase": use.phase_id,
        "dtype": use.dtype_id,
        "context": use.context_tokens,
        "sequences": use.sequences,
        "rank": use.lora_rank,
        "targets": use.lora_targets,
        "dropout": use.lora_dropout,
        "program": use.program,
        "version": use.program_version,
        "count": card.count,
        # each card its own rows, where nobody says otherwise
        "sharding": use.sharding or ("ddp" if card.count > 1 else None),
        "engine": use.sharding_engine_id,
        "offload": use.offload,
        "checkpointing": use.checkpointing,
        "optimizer": use.optimizer_id,
        "generator": generator,
    }


def planned(almanac: Almanac, model: Model, cards: Iterable[Card], use: Use, objective: str) -> dict[str, Any]:
    """On how many cards of each kind it fits: one, else the fewest of each way to share it (ZeRO-2, ZeRO-3), or of the one that is said."""
    (rule,) = almanac.rows("SELECT DISTINCT name, rows_each FROM objective WHERE objective_id = $id", {"id": objective})
    said = [(use.sharding, use.sharding_engine_id)] if use.sharding else None
    told = []
    for card in cards:
        asked = _asked(model, replace(card, count=1), use, objective, None)
        rows = [_plan(almanac, asked)] if said is None or use.shares_alone else []
        if not any(_holds(row) for row in rows):
            rows += [_fewest(almanac, asked, *way) for way in said or _SHARED]
        held = sorted(filter(_holds, rows), key=lambda row: (row["gpu_count"], row["total_bytes"]))
        is_known = any(row["verdict"] for row in rows)
        told.append(
            {
                "card": card_told(card, card.count),
                "verdict": "fits" if held else "no" if is_known else None,
                "plans": held,
                "most": max(row["gpu_count"] or 0 for row in rows),
                "reason": None if is_known else rows[0]["unknown_reason"],
                "serving": [],
            }
        )
    return {"model": model.shown, "use": vars(use), "objective": rule["name"], "rows": _rows(rule), "cards": told}


def _fewest(almanac: Almanac, asked: Row, sharding: str, engine: str | None) -> Row:
    """The fewest cards that share it so, else the most that were tried."""
    for count in _MORE_CARDS:
        row = _plan(almanac, asked | {"count": count, "sharding": sharding, "engine": engine})
        if _holds(row) or row["verdict"] is None:
            break
    return row


def _plan(almanac: Almanac, asked: Row) -> Row:
    """How so many cards share it, and what each holds."""
    row, chosen = _fits(almanac, asked), _chosen(almanac, asked)
    names = (
        "gpu_count",
        "context_tokens",
        "sequences",
        "total_bytes",
        "error_band",
        "capacity_bytes",
        "headroom_bytes",
    )
    told = {name: row[name] for name in (*names, "verdict", "holds_for", "unknown_reason")}
    names = ("engine_id", "sharding", "tensor_parallel", "pipeline_parallel", "context_parallel", "checkpointing")
    return told | {"format": row["dtype_id"]} | {name: chosen[name] for name in names}


def _holds(row: Row) -> bool:
    return row["verdict"] in ("fits", "multi-gpu")


def _rows(rule: Row) -> str:
    return "pairs" if rule["rows_each"] > 1 else "answers"


def _fits(almanac: Almanac, asked: Row) -> Row:
    (row,) = almanac.rows(
        f"FROM preference_fits_on($card, $objective, $model, {_ARGUMENTS}, generator := $generator)", asked
    )
    return row


def _chosen(almanac: Almanac, asked: Row) -> Row:
    """What the question does not say, as the objective's program has it."""
    given = {name: value for name, value in asked.items() if name not in ("card", "generator")}
    (row,) = almanac.rows(f"FROM preference_of($objective, $model, {_ARGUMENTS})", given)
    query = "SELECT any_value(name) FROM optimizer WHERE optimizer_id = $id"
    return {name: row[name] for name in _CHOICES} | {"optimizer": almanac.value(query, {"id": row["optimizer_id"]})}


def _helps(almanac: Almanac, asked: Row) -> list[Row]:
    """What makes it fit: one pair at a time, a packed base, both; else more cards that share it."""
    alone, packed = {"sequences": 1}, {"phase": "qlora", "dtype": None}
    ways: list[tuple[str, Row]] = []
    if asked["sequences"] != 1:
        ways.append(("--batch 1", alone))
    if asked["phase"] == "lora" and asked["dtype"] is None:
        ways.append(("--phase qlora", packed))
        ways.append(("--phase qlora --batch 1", packed | alone))
    found: list[Row] = []
    for options, way in ways:
        # (what one word of it does alone is not told of both)
        if options.count("--") == 1 or not found:
            found += _tried(almanac, asked | way, options)
    if found or asked["generator"] is not None or asked["sharding"] not in (None, "ddp"):
        return found
    for count in (n for n in _MORE_CARDS if n > asked["count"]):
        way = {"count": count, "sharding": "zero3", "engine": "deepspeed", "sequences": 1}
        if found := _tried(almanac, asked | way, f"--gpu {count}x{asked['card']} --sharding zero3 --batch 1"):
            break
    return found


def _tried(almanac: Almanac, asked: Row, options: str) -> list[Row]:
    row = _fits(almanac, asked)
    if not _holds(row):
        return []
    told = {name: row[name] for name in ("phase_id", "dtype_id", "sequences", "gpu_count", "total_bytes", "error_band")}
    return [{"help": "options", "options": options, **told}]


def say(answer: dict[str, Any], page: Page) -> None:
    """The verdict, what it is made of, and what makes it fit."""
    row = answer["preferred"]
    if answer["verdict"] is None:
        page.say(f"Unknown: {answer['reason']}.", "bold")
        return
    each = " on each" if row["gpu_count"] > 1 else ""
    alone = ", of text alone" if answer["is_text_alone"] else ""
    many = _rows(answer)
    is_tight = answer["verdict"] == "tight"
    less = f", which leaves less than its error margin of {100 * row['error_band']:.0f} %" if is_tight else ""
    page.say(
        f"{_SAID[answer['verdict']]}: {answer['objective']} of {answer['model']} {_PHASES[row['phase_id']]} in {format_name(row['dtype_id'])} needs "
        f"{gib_of(row['total_bytes'])} of {gib_of(row['capacity_bytes'])} GiB{each} on {answer['card']}, at {row['context_tokens']:,} tokens and "
        f"{row['sequences']} {many} at once{alone}{less}.",
        "bold",
    )
    if row["generator_bytes"]:
        page.say(
            f"- a step {gib_of(row['training_bytes'])} GiB; {row['generator_id']} beside it {gib_of(row['generator_bytes'])} GiB, "
            f"for answers up to {row['generator_context_tokens']:,} tokens"
        )
    if row["verdict_reason"]:
        page.say(f"- {row['verdict_reason']}")
    page.say(f"- holds for {row['holds_for']}")
    if choices := answer.get("choices"):
        named = {"best": choices, "use": {"program": choices["program"], "sequences": choices["sequences"]}}
        page.say(f"- {training_words.chosen(named | {'optimizer': choices['optimizer'], 'many': many})}")
    if answer["is_text_alone"]:
        page.say(f"- {TRAINED_ON_TEXT}")
    if answer["helps"]:
        page.gap()
        page.say("What helps:")
        for help_ in answer["helps"]:
            on_each = " on each" if help_["gpu_count"] > 1 else ""
            page.say(
                f"- {help_['options']}: it fits in {format_name(help_['dtype_id'])}, {gib_of(help_['total_bytes'])} GiB{on_each}.",
                indent="  ",
            )
    if row["engine_setting"] and answer["verdict"] != "no":
        page.gap()
        page.verbatim(row["engine_setting"])
