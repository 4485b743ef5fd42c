"""Training on preferences on one kind of card: DPO, ORPO, KTO, reward models and GRPO, with what generates its answers."""

from __future__ import annotations

from typing import Any

from .almanac import Almanac
from .input_words import TRAINED_ON_TEXT
from .page import Page
from .problems import Wrong
from .question import Card, Model, Use
from .scenarios import sees
from .shared import check_cards
from .words import format_name, gib_of

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
    asked = {
        "card": card.gpu_id,
        "objective": objective,
        "model": model.model_id,
        "phase": use.phase_id,
        "dtype": use.dtype_id,
        "context": use.context_tokens,
        "sequences": use.sequences,
        "rank": use.lora_rank,
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
    check_cards(use, card.count)
    (row,) = almanac.rows(
        "FROM preference_fits_on($card, $objective, $model, phase_id := $phase, dtype_id := $dtype, context_tokens := $context, "
        "sequences := $sequences, lora_rank := $rank, program := $program, program_version := $version, gpu_count := $count, "
        "sharding := $sharding, engine_id := $engine, offload := $offload, checkpointing := $checkpointing, optimizer_id := $optimizer, "
        "generator := $generator)",
        asked,
    )
    (rule,) = almanac.rows("SELECT DISTINCT name, rows_each FROM objective WHERE objective_id = $objective", {"objective": objective})  # fmt: skip
    return {
        "model": model.shown,
        "objective": rule["name"],
        "rows_each": rule["rows_each"],
        "is_text_alone": sees(almanac, model.model_id) is not None,
        "preferred": row,
        "card": card.name,
        "verdict": row["verdict"],
        "helps": [],
        "commands": [],
        "reason": row["unknown_reason"],
    }


def say(answer: dict[str, Any], page: Page) -> None:
    """The verdict, what it is made of, and what makes it fit."""
    row = answer["preferred"]
    if answer["verdict"] is None:
        page.say(f"Unknown: {answer['reason']}.", "bold")
        return
    each = " on each" if row["gpu_count"] > 1 else ""
    alone = ", of text alone" if answer["is_text_alone"] else ""
    many = "pairs" if answer["rows_each"] > 1 else "answers"
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
    if answer["is_text_alone"]:
        page.say(f"- {TRAINED_ON_TEXT}")
    if row["engine_setting"] and answer["verdict"] != "no":
        page.gap()
        page.verbatim(row["engine_setting"])
