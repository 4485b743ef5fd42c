"""The questions that there are, each with the macros that answer it and the words that say it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .almanac import Almanac
from .page import Page
from .problems import FITS, Wrong
from .question import INFERENCE, Card, Model, Use
from .said import quoted

Answer = tuple[dict[str, Any], int]
ANOTHER = "A repository that it names is one of this almanac, not the one that was asked."


@dataclass(frozen=True)
class Said:
    """What was asked: the options, the model where one is named (of a config.json, or with an adapter), how it is used, and where the answer is said."""

    asked: argparse.Namespace
    model: Model
    use: Use
    page: Page
    is_config: bool = False
    adapter: Any = None
    is_unlike: bool = False  # cards of two kinds


def asked_for(asked: argparse.Namespace, *, is_unlike: bool) -> Callable[[Almanac, Said], Answer]:
    """The question that options ask."""
    if asked.command in ("plan", "what"):
        return plan if asked.command == "plan" else what
    if getattr(asked, "draft", None):
        return drafted
    if getattr(asked, "objective", None):
        return preferred
    return together if is_unlike else fits


def plan(almanac: Almanac, said: Said) -> Answer:
    from . import answers, plan_words, plans, preferences, question
    from .cards import card_of, machine_card

    asked, use = said.asked, said.use
    cards = [card_of(almanac, text) for text in asked.gpu or ()] or [machine_card(almanac, is_empty=True)]
    if any(card.gpu_id is None for card in cards):
        raise Wrong("A plan is made of cards that the almanac holds: --gpu h100-sxm")
    if asked.train_on and not use.is_training:
        raise Wrong("--train-on is of a training: --phase lora, qlora, full-finetune or pretrain")
    if asked.train_on and (use.program or use.sharding or use.offload):
        raise Wrong("--train-on takes the quickest way of all: without --program, --sharding and --offload")
    if asked.train_on and (asked.objective or use.is_divided):
        raise Wrong("--train-on takes the quickest way of all: without --objective and --tensor-parallel")
    work = question.Work(*asked.train_on, asked.days, asked.price) if asked.train_on else None
    if asked.objective:
        if said.is_config or said.adapter:
            raise Wrong("--objective is asked of models of the almanac")
        objective = preferences.objective_of(almanac, asked.objective)
        answer = preferences.planned(almanac, said.model, cards, use, objective)
    else:
        answer = plans.plan(almanac, said.model, cards, use, asked.limit, work)
    plan_words.plan(answer, said.page)
    return answer, min((answers.STATUS[each["verdict"]] for each in answer["cards"]), default=FITS)


def what(almanac: Almanac, said: Said) -> Answer:
    from . import answers, list_words, listing

    asked, use = said.asked, replace(said.use, ram_bytes=said.asked.ram)
    answer = listing.what(almanac, _asked_card(almanac, asked), _wish(asked.wish or "chat"), use, asked.limit)
    first = next(iter(answer.get("beside", {}).get("models") or answer["models"]), None)
    again = f"{first['model']} {_again(almanac, asked, answer, first)}" if first else ""
    list_words.what(answer, said.page, again.rstrip())
    has_any = answer["models"] or answer.get("beside", {}).get("models")
    return answer, answers.STATUS["fits" if has_any else None if answer["reason"] else "no"]


def _again(almanac: Almanac, asked: argparse.Namespace, answer: dict[str, Any], first: dict[str, Any]) -> str:
    """How the first model of a list is asked for as the list was: the options of `what` that `fits` has too, and the format where `fits` tells
    others by itself (of what is published in few bits, and of what is no file of llama.cpp)."""
    from .scenarios import packed_in

    card, phase = answer["card"], answer["phase_id"]
    gpu = asked.gpu and card["gpu_id"] and (f"{card['count']}x" if card["count"] > 1 else "") + card["gpu_id"]
    (row,) = almanac.rows("FROM model WHERE model_id = $id", {"id": first["model"]})
    is_packed = packed_in(Model(first["model"], "", row), Use(phase_id=phase))
    is_other = phase == INFERENCE and (is_packed or not first["dtype_id"].startswith("gguf-"))
    told = (
        ("--gpu", gpu),
        ("--free", asked.free),
        ("--phase", None if phase == INFERENCE else phase),
        ("--context", asked.context or (asked.wish and answer["context_tokens"])),
        ("--users", asked.users),
        ("--format", asked.format or (first["dtype_id"] if is_other else None)),
        ("--kv", asked.kv),
        ("--ram", asked.ram and f"{asked.ram / 2**30:g}GB"),
    )
    flags = " ".join(name for name, is_set in (("--empty", asked.empty), ("--no-mmproj", asked.text_only)) if is_set)
    return " ".join(filter(None, (*(f"{name} {quoted(str(value))}" for name, value in told if value), flags)))


def drafted(almanac: Almanac, said: Said) -> Answer:
    from . import answers, contexts, drafts, formats, several, words

    if said.is_config or said.adapter or said.use.is_training or said.asked.free or said.is_unlike:
        raise Wrong("--draft is asked of models of the almanac on cards of one kind: without --phase and --free")
    card = _listed(almanac, said, "--draft")
    use = contexts.with_own(almanac, said.model, said.use, [card])
    draft = drafts.draft_of(almanac, said.asked.draft)
    if draft is not None and not drafts.is_head(draft):
        formats.check_draft(draft)
    answer = several.drafted(almanac, said.model, draft, card, use)
    words.drafted(answer, said.page)
    return answer, answers.STATUS[answer["verdict"]]


def preferred(almanac: Almanac, said: Said) -> Answer:
    from . import answers, preferences

    if said.is_config or said.adapter or said.asked.free or said.is_unlike:
        raise Wrong("--objective is asked of models of the almanac on cards of one kind: without --free")
    card = _listed(almanac, said, "--objective")
    objective = preferences.objective_of(almanac, said.asked.objective)
    answer = preferences.preferred(almanac, said.model, card, said.use, objective, said.asked.generator)
    preferences.say(answer, said.page)
    return answer, answers.STATUS[answer["verdict"]]


def together(almanac: Almanac, said: Said) -> Answer:
    """Unlike cards: 'RTX 3090 + RTX 3060'."""
    from . import answers, card_names, contexts, several, words
    from .cards import card_of

    use = said.use
    if use.is_training or said.asked.free or (use.engine_id or "llama.cpp") != "llama.cpp":
        raise Wrong(
            "Unlike cards together are asked of llama.cpp, which shares a model by what each gives: without --phase, --free or another --program"
        )
    cards = [card_of(almanac, text) for text in card_names.unlike(said.asked.gpu)]
    answer = several.together(almanac, said.model, cards, contexts.with_own(almanac, said.model, use, cards))
    words.together(answer, said.page)
    return answer, answers.STATUS[answer["verdict"]]


def fits(almanac: Almanac, said: Said) -> Answer:
    from . import answers, contexts, formats, own, sound_words, sounds, words

    asked, model, use = said.asked, said.model, said.use
    card = _divided(almanac, _asked_card(almanac, asked), use)
    told = None
    if said.adapter:
        card, told = own.with_adapter(almanac, model, card, use, said.adapter)
    seconds, of_images = sounds.seconds_of(almanac, model, use, asked.seconds), ""
    if seconds is not None:
        answer = sounds.fits(almanac, model, card, use, seconds)
    else:
        use, of_images = contexts.with_images(almanac, model, contexts.with_own(almanac, model, use, [card]))
        answer = answers.fits(almanac, model, card, replace(use, ram_bytes=asked.ram), every=asked.all)
    if said.is_config:
        answer["about"] = own.about(model)
    notes = [
        answer.get("taken"),
        None if said.is_config else model.note,
        model.more_note if formats.is_unread(model, use) else None,
        None if said.is_config else sounds.in_windows(almanac, model, use) if seconds is None else None,
        of_images,
    ]
    if any(notes):
        answer["taken"] = " ".join(filter(None, notes))
    if formats.is_unread(model, use):
        for each in answer["commands"]:
            each["note"] = " ".join(filter(None, (each["note"], ANOTHER)))
    if told:
        answer["adapter"] = told
    status = answers.STATUS[answer["verdict"]]
    if formats.is_left(model, use):  # a Yes is of other files than the one that was named
        answer["not_in"], status = model.dtype_id, answers.STATUS[None]
        answer["not_in_reason"] = model.left_reason
        answer["commands"] = []  # (they load other files)
    elif model.is_above and answer["verdict"] is not None:
        answer["not_in"], answer["told_in"], status = model.dtype_named, use.dtype_id, answers.STATUS[None]
    if seconds is not None:
        sound_words.fits(answer, said.page)
    else:
        words.fits(answer, said.page, most_commands=len(answer["commands"]) if asked.all else words.COMMANDS)
    return answer, status


def _listed(almanac: Almanac, said: Said, flag: str) -> Card:
    card = _asked_card(almanac, said.asked)
    if card.gpu_id is None:
        raise Wrong(f"{flag} is asked of a card that the almanac holds: --gpu rtx-4090")
    return card


def _asked_card(almanac: Almanac, asked: argparse.Namespace) -> Card:
    from . import card_names, question
    from .cards import card_of, free_card, machine_card

    card = card_of(almanac, asked.gpu) if asked.gpu else None
    if asked.free:
        said, count = card_names.counted(asked.free)
        if card and count:
            raise Wrong("How many cards there are is said by one of --gpu 4xrtx-4090 and --free 4x10GiB")
        return free_card(card, question.amount(said), said, count)
    return card or machine_card(almanac, is_empty=asked.empty)


def _divided(almanac: Almanac, card: Card, use: Use) -> Card:
    """The cards as they are divided, and the share of each that may be taken."""
    from . import shared
    from .settings import most_share

    if use.is_divided:
        if card.gpu_id is None:
            raise Wrong("cards that are divided are named: --gpu 2xrtx-4090")
        said = {"tensor": use.tensor_parallel, "pipeline": use.pipeline_parallel, "data": use.data_parallel}
        count = shared.degrees(said, card.count, is_count_said=card.is_count_said)
        if use.expert_parallel and count == 1:
            raise Wrong("--expert-parallel is of several cards: --gpu 4xh100-sxm")
        card = replace(card, count=count, is_count_said=True)
    if use.share:
        if not card.capacity_bytes:
            raise Wrong("--share is of a whole card that the almanac holds: --gpu rtx-4090")
        whole = card.whole_bytes or card.capacity_bytes
        most = most_share(almanac, card)
        if use.share > most:
            raise Wrong(
                f"--share {use.share:g} is {use.share * whole / 2**30:.1f} GiB, and vLLM does not start where so much is not free: of "
                f"{whole / 2**30:.1f} GiB a program gets {card.usable_bytes / 2**30:.1f} here, which leave a share of {most:.2f} at most"
            )
        note = f"vLLM may take {use.share:g} of the card's {whole / 2**30:.1f} GiB (--share)."
        card = replace(card, free_bytes=int(use.share * whole), notes=(*card.notes, note))
    return card


def _wish(name: str) -> Any:
    from pipeline.book.wishes import wishes

    known = {wish.name: wish for wish in wishes()}
    if name not in known:
        raise Wrong(f"--for {name}: it is one of {', '.join(known)}")
    return known[name]
