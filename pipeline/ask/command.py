"""The command `vram-almanac`: what was asked (arguments.py) is answered, and ends with a status (problems.py)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.base import failures

from .arguments import IMAGE_SIZE, parser
from .problems import FITS, MISTAKE, NO_DATA, UNKNOWN, Problem, Wrong

if TYPE_CHECKING:
    from .almanac import Almanac
    from .question import Card, Use


def main(arguments: Sequence[str] | None = None, prog: str = "vram-almanac") -> int:
    """Runs the command. Returns its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal may not have every character that we print
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["complete"]:  # asked by the shell, at every Tab
        from . import completion

        return completion.complete(given[1:])
    asked = parser(prog).parse_args(given)
    try:
        with failures.stoppable():
            return run(asked)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # who reads has read enough
        return FITS
    except (Exception, KeyboardInterrupt) as error:
        status = failures.told(error)
        if status != failures.FAILED:
            return status
        return MISTAKE if failures.sentence_of(error) is None else NO_DATA


def run(asked: argparse.Namespace) -> int:
    """Answers what was asked, on standard output; a problem on standard error. Returns the exit status."""
    from .page import say_problem

    if asked.command == "completion":
        from . import completion

        print(completion.script(asked.shell))
        return FITS
    try:
        answer, status, page = _answer(asked)
    except Problem as problem:
        if asked.json:
            told = {"problem": str(problem), "status": problem.status}
            if problem.status == UNKNOWN:  # (as an answer says it)
                told |= {"verdict": None, "reason": str(problem).removeprefix("Not known: ")}
            print(json.dumps(told, ensure_ascii=False))
        say_problem(str(problem))
        return problem.status
    try:
        print(json.dumps(answer, ensure_ascii=False, indent=1) if asked.json else page.text(), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # who reads has read enough
    return status


def _answer(asked: argparse.Namespace) -> tuple[dict[str, Any], int, Any]:
    from . import (
        answers,
        card_names,
        containers,
        contexts,
        drafts,
        own,
        plan_words,
        plans,
        preferences,
        question,
        sentence,
        several,
        sound_words,
        sounds,
        words,
    )
    from .almanac import opened
    from .page import Page

    page = Page(sys.stdout)
    if asked.command == "fits" and asked.log:
        return _receipt(asked, page)
    if asked.command != "what" and asked.model is None:
        raise Wrong("Name a model: vram-almanac fits Qwen/Qwen3-8B; or a log that names one: --log FILE")
    path = own.path_of(asked.model) if asked.command != "what" else None
    if getattr(asked, "keep", None) and path is None:
        raise Wrong("--keep is for a config.json: the almanac itself is a DuckDB file already")
    adapter = own.adapter_of(path) if path else None
    is_config = path is not None and adapter is None
    opening = (
        own.opened(path, asked.keep if asked.command == "fits" else None)
        if is_config
        else opened(asked.data, is_fresh=asked.fresh)
    )
    with opening as almanac:
        heard = ""
        if asked.command != "what" and path is None:
            asked, heard = sentence.heard(almanac, asked)
        is_unlike = asked.command == "fits" and len(card_names.unlike(asked.gpu or "")) > 1
        name = own.MODEL_ID if is_config else adapter.base if adapter else getattr(asked, "model", None)
        model = None if name is None else question.model_of(almanac, question.in_words_of(name, asked))
        if is_config:
            model = own.shown_as(model, asked.model)
        use = _use(almanac, asked, adapter, model)
        if model is not None:
            model, use = question.in_its_format(almanac, model, use)
            if not is_config and not adapter:
                model = containers.in_its_files(almanac, name, model, use)
                use = containers.in_its_program(almanac, model, use)
            question.check_use(model, use)
            if asked.command == "plan" or getattr(asked, "draft", None) or is_unlike:
                question.check_file(model, use)
        if asked.command == "plan":
            cards = [question.card_of(almanac, text) for text in asked.gpu or ()] or [
                question.machine_card(almanac, is_empty=True)
            ]
            if any(card.gpu_id is None for card in cards):
                raise Wrong("A plan is made of cards that the almanac holds: --gpu h100-sxm")
            if asked.train_on and not use.is_training:
                raise Wrong("--train-on is of a training: --phase lora, qlora, full-finetune or pretrain")
            if asked.train_on and (use.program or use.sharding or use.offload):
                raise Wrong("--train-on takes the quickest way of all: without --program, --sharding and --offload")
            if asked.train_on and (asked.objective or use.tensor_parallel or use.pipeline_parallel):
                raise Wrong("--train-on takes the quickest way of all: without --objective and --tensor-parallel")
            work = question.Work(*asked.train_on, asked.days, asked.price) if asked.train_on else None
            if asked.objective:
                if is_config or adapter:
                    raise Wrong("--objective is asked of models of the almanac")
                objective = preferences.objective_of(almanac, asked.objective)
                answer = preferences.planned(almanac, model, cards, use, objective)
            else:
                answer = plans.plan(almanac, model, cards, use, asked.limit, work)
            status = min((answers.STATUS[each["verdict"]] for each in answer["cards"]), default=FITS)
            plan_words.plan(answer, page)
        elif asked.command == "what":
            card = _card(almanac, asked)
            answer = answers.what(almanac, card, _wish(asked.wish), use, asked.limit)
            status = answers.STATUS["fits" if answer["models"] else "no"]
            words.what(answer, page)
        elif getattr(asked, "draft", None):
            if is_config or adapter or use.is_training or asked.free or is_unlike:
                raise Wrong(
                    "--draft is asked of models of the almanac on cards of one kind: without --phase and --free"
                )
            card = _card(almanac, asked)
            if card.gpu_id is None:
                raise Wrong("--draft is asked of a card that the almanac holds: --gpu rtx-4090")
            use = contexts.with_own(almanac, model, use, [card])
            answer = several.drafted(almanac, model, drafts.draft_of(almanac, asked.draft), card, use)
            status = answers.STATUS[answer["verdict"]]
            words.drafted(answer, page)
        elif getattr(asked, "objective", None):
            if is_config or adapter or asked.free or is_unlike:
                raise Wrong("--objective is asked of models of the almanac on cards of one kind: without --free")
            card = _card(almanac, asked)
            if card.gpu_id is None:
                raise Wrong("--objective is asked of a card that the almanac holds: --gpu rtx-4090")
            objective = preferences.objective_of(almanac, asked.objective)
            answer = preferences.preferred(almanac, model, card, use, objective, asked.generator)
            status = answers.STATUS[answer["verdict"]]
            preferences.say(answer, page)
        elif is_unlike:
            cards = _cards(almanac, asked, use)
            answer = several.together(almanac, model, cards, contexts.with_own(almanac, model, use, cards))
            status = answers.STATUS[answer["verdict"]]
            words.together(answer, page)
        else:
            card = _divided(_card(almanac, asked), use)
            told = None
            if adapter:
                card, told = own.with_adapter(almanac, model, card, use, adapter)
            seconds = sounds.seconds_of(almanac, model, use, asked.seconds)
            if seconds is not None:
                answer = sounds.fits(almanac, model, card, use, seconds)
            else:
                use = contexts.with_own(almanac, model, use, [card])
                answer = answers.fits(almanac, model, card, use, every=asked.all)
            if is_config:
                answer["about"] = own.about(model)
            elif model.note:
                answer["taken"] = " ".join(filter(None, (answer.get("taken"), model.note)))
            if asked.seconds and seconds is None:
                answer["taken"] = " ".join(filter(None, (answer.get("taken"), sounds.IN_WINDOWS)))
            if told:
                answer["adapter"] = told
            status = answers.STATUS[answer["verdict"]]
            if question.is_left(model, use):  # a Yes is of other files than the one that was named
                answer["not_in"], status = model.dtype_id, answers.STATUS[None]
            elif model is not None and model.is_above and answer["verdict"] is not None:
                answer["not_in"], answer["told_in"], status = model.dtype_named, use.dtype_id, answers.STATUS[None]
            if seconds is not None:
                sound_words.fits(answer, page)
            else:
                words.fits(answer, page, most_commands=len(answer["commands"]) if asked.all else words.COMMANDS)
        version = almanac.manifest.get("data_version")
        answer["data"] = {"place": almanac.place, "data_version": version, "note": almanac.note or None}
        answer["status"] = status
        if heard:
            answer["heard"] = heard
            page.say(heard)
        words.footer(version, almanac.place, almanac.note, page, answer)
        if getattr(asked, "keep", None):
            page.say(f"Kept in {asked.keep}: FROM footprint_of('{own.MODEL_ID}')")
    return answer, status, page


def _receipt(asked: argparse.Namespace, page: Any) -> tuple[dict[str, Any], int, Any]:
    """What a log says was held, beside what the almanac says."""
    from . import question, receipt, words
    from .almanac import opened

    found = receipt.read(asked.log)
    name = asked.model or found.words.get("model")
    if name is None:
        raise Wrong(f"{asked.log} does not name its model: vram-almanac fits MODEL --log {asked.log}")
    with opened(asked.data, is_fresh=asked.fresh) as almanac:
        if asked.model is None and name.startswith(("/", ".")):  # a folder of the machine: its name is what there is
            name = name.rstrip("/").rpartition("/")[2]
        model = question.model_of(almanac, name.replace(" ", "-"))
        use = _use(almanac, asked, None, model)
        count = question.card_of(almanac, asked.gpu).count if asked.gpu else 1
        answer = receipt.compared(almanac, model, use, found, count)
        columns = [row["column_name"] for row in almanac.rows("SELECT column_name FROM (DESCRIBE measured)")]
        answer["csv"] = receipt.as_csv(answer["measured"], columns)
        version = almanac.manifest.get("data_version")
        answer["data"] = {"place": almanac.place, "data_version": version, "note": almanac.note or None}
        answer["status"] = FITS
        words.receipt(answer, page)
        words.footer(version, almanac.place, almanac.note, page, answer)
    return answer, FITS, page


def _card(almanac: Almanac, asked: argparse.Namespace) -> Card:
    from . import card_names, question

    card = question.card_of(almanac, asked.gpu) if asked.gpu else None
    if asked.free:
        said, count = card_names.counted(asked.free)
        if card and count:
            raise Wrong("How many cards there are is said by one of --gpu 4xrtx-4090 and --free 4x10GiB")
        return question.free_card(card, question.amount(said), said, count)
    return card or question.machine_card(almanac, is_empty=asked.empty)


def _divided(card: Card, use: Use) -> Card:
    """The cards as they are divided, and the share of each that may be taken."""
    from dataclasses import replace

    from . import shared

    if use.tensor_parallel or use.pipeline_parallel:
        if card.gpu_id is None:
            raise Wrong("cards that are divided are named: --gpu 2xrtx-4090")
        said = use.tensor_parallel, use.pipeline_parallel
        count = shared.degrees(*said, card.count, is_count_said=card.is_count_said)
        card = replace(card, count=count, is_count_said=True)
    if use.share:
        if not card.capacity_bytes:
            raise Wrong("--share is of a whole card that the almanac holds: --gpu rtx-4090")
        free, note = int(use.share * card.capacity_bytes), f"vLLM may take {use.share:g} of the card (--share)."
        card = replace(card, free_bytes=min(free, card.usable_bytes), notes=(*card.notes, note))
    return card


def _cards(almanac: Almanac, asked: argparse.Namespace, use: Use) -> list[Card]:
    """Unlike cards together: 'RTX 3090 + RTX 3060'."""
    from . import card_names, question

    if use.is_training or asked.free or (use.engine_id or "llama.cpp") != "llama.cpp":
        raise Wrong(
            "Unlike cards together are asked of llama.cpp, which shares a model by what each gives: without --phase, --free or another --program"
        )
    return [question.card_of(almanac, text) for text in card_names.unlike(asked.gpu)]


def _use(almanac: Almanac, asked: argparse.Namespace, adapter: Any, model: Any) -> Use:
    from . import pictures, question, shared

    objective = getattr(asked, "objective", None)
    phase = getattr(asked, "phase", None) or ("lora" if objective else question.INFERENCE)
    if objective and (phase == question.INFERENCE or getattr(asked, "draft", None)):
        raise Wrong("--objective is of a training: --phase lora, qlora or full-finetune, without --draft")
    if getattr(asked, "generator", None) and not objective:
        raise Wrong("--generator is of a training on rewards: --objective grpo")
    is_training = phase != question.INFERENCE
    rank = getattr(asked, "rank", None)
    if rank and phase not in ("lora", "qlora"):
        raise Wrong("--rank is of a LoRA: --phase lora or qlora")
    if asked.kv and is_training:
        raise Wrong("--kv is of inference: a training holds no cache")
    if rank and adapter:
        raise Wrong(f"--rank is said by the adapter: {adapter.rank}")
    is_made = model is not None and pictures.is_made_by(almanac, model)
    named = getattr(asked, "program", None)
    if is_made and named:
        pictures.check_program(almanac, named)
        named = None  # which is what is told
    program = question.program_of(almanac, named, phase, bool(objective)) if named else None
    sharding, offload = getattr(asked, "sharding", None), getattr(asked, "offload", None)
    if (sharding or offload) and is_made:
        raise Wrong(
            f"{'--sharding' if sharding else '--offload'} is of models that write text: of what makes pictures each card holds a copy"
        )
    shares = shared.used(sharding, offload, program, is_training=is_training)
    use = question.Use(
        program=program and program.program_id,
        program_version=program and program.version,
        engine_id=program and program.engine_id,
        is_in_own_format=bool(program and is_training and program.dtype_id and not asked.format),
        phase_id=phase,
        context_tokens=asked.context,
        sequences=asked.users or (None if program or objective else 1),
        dtype_id=question.dtype_of(almanac, asked.format) if asked.format else None,
        kv_dtype_id=question.kv_dtype_of(almanac, asked.kv) if asked.kv else None,
        lora_rank=rank,
        **shares,
        **_said_of_training(almanac, asked, is_made, is_training=is_training),
        **_said_of_server(almanac, asked, program, phase, is_made),
        **(_made(asked) if is_made else _seen(asked, is_training)),
    )
    if is_made:
        pictures.check_use(model, use)
    return adapter.used(use) if adapter else use


def _said_of_training(
    almanac: Almanac, asked: argparse.Namespace, is_made: bool, *, is_training: bool
) -> dict[str, Any]:
    from . import training_words

    checkpointing, optimizer = getattr(asked, "checkpointing", None), getattr(asked, "optimizer", None)
    for flag, value in (("--checkpointing", checkpointing), ("--optimizer", optimizer)):
        if value and not is_training:
            raise Wrong(f"{flag} is of a training: --phase lora, qlora, full-finetune or pretrain")
        if value and is_made:
            raise Wrong(f"{flag} is of models that write text: a pipeline is counted as its own script trains it")
        if value and getattr(asked, "train_on", None):
            raise Wrong(f"--train-on takes the quickest way of all: without {flag}")
    return {
        "checkpointing": checkpointing,
        "optimizer_id": training_words.optimizer_of(almanac, optimizer) if optimizer else None,
    }


def _said_of_server(
    almanac: Almanac, asked: argparse.Namespace, program: Any, phase: str, is_made: bool
) -> dict[str, Any]:
    from . import shared
    from .settings import CARDS, counted_of

    tensor, pipeline = getattr(asked, "tensor_parallel", None), getattr(asked, "pipeline_parallel", None)
    share, most = getattr(asked, "share", None), getattr(asked, "max_num_seqs", None)
    is_plan = getattr(asked, "command", None) == "plan"
    is_alone = any(getattr(asked, name, None) for name in ("draft", "objective", "log"))
    flag = "--tensor-parallel" if tensor else "--pipeline-parallel"
    if (tensor or pipeline) and (is_made or is_alone or any("+" in name for name in _named_cards(asked))):
        raise Wrong(
            f"{flag} is of a model that writes text on cards of one kind: without --draft, --objective and --log"
        )
    if (tensor or pipeline) and is_plan and phase != "inference":
        return {"tensor_parallel": tensor, "pipeline_parallel": pipeline}
    if (tensor or pipeline) and phase != "inference":
        raise Wrong(
            f"{flag} is of a server; how cards share a training is --sharding: {', '.join(shared.KNOWN)} (tp: every layer divided among all cards)"
        )
    if (tensor or pipeline) and (program is None or program.engine_id.partition("-")[0] not in CARDS):
        raise Wrong(f"{flag} is of vLLM and SGLang: --program vllm")
    is_vllm = phase == "inference" and program is not None and program.engine_id.startswith("vllm")
    for flag, value in (("--share", share), ("--max-num-seqs", most)):
        if value and (not is_vllm or is_made or is_alone):
            name = " (its --gpu-memory-utilization)" if value is share else ""
            raise Wrong(f"{flag} is of vLLM{name}: --program vllm, without --draft, --objective and --log")
    counted = (counted_of(almanac, "vllm") or {}).get("sequences") if most else None
    if counted and most > max(counted, asked.users or 1):
        raise Wrong(
            f"--max-num-seqs {most:,}: figures count {counted} requests at once, or --users where these are more, and the logits of more "
            f"are not counted; how many whole sequences fit is --users {most}"
        )
    if most and most < (asked.users or 1):
        raise Wrong(f"--users {asked.users} are more than --max-num-seqs {most}: so many run at once")
    return {"tensor_parallel": tensor, "pipeline_parallel": pipeline, "share": share, "max_num_seqs": most}


def _named_cards(asked: argparse.Namespace) -> list[str]:
    """--gpu, which a plan may have several times."""
    named = getattr(asked, "gpu", None) or []
    return [named] if isinstance(named, str) else named


def _made(asked: argparse.Namespace) -> dict[str, Any]:
    """The pictures or the video that are made, as a use has them."""
    if getattr(asked, "seconds", None):
        raise Wrong("--seconds is of sound: a video is asked by --frames")
    width, height = getattr(asked, "image_size", None) or (None, None)
    return {
        "images": getattr(asked, "images", None),
        "image_width": width,
        "image_height": height,
        "frames": getattr(asked, "frames", None),
    }


def _seen(asked: argparse.Namespace, is_training: bool) -> dict[str, int]:
    """The images of a prompt, as a use has them."""
    from . import pictures

    images, size = getattr(asked, "images", None), getattr(asked, "image_size", None)
    if getattr(asked, "frames", None):
        raise Wrong("--frames is of what makes videos")
    if images is None and size is None:
        return {}
    pictures.check_seen("--images" if images else "--image-size", asked, is_training=is_training)
    if getattr(asked, "seconds", None):
        raise Wrong("--images or --seconds: a model is asked about what it sees, or about what it hears")
    width, height = size or IMAGE_SIZE
    return {"images": images or 1, "image_width": width, "image_height": height}


def _wish(name: str) -> Any:
    from pipeline.book.wishes import wishes

    known = {wish.name: wish for wish in wishes()}
    if name not in known:
        raise Wrong(f"--for {name}: it is one of {', '.join(known)}")
    return known[name]
