"""The command `vram-almanac`: what was asked (arguments.py) is answered, and ends with a status (problems.py)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.base import failures

from .arguments import of_card_alone, parser
from .problems import FITS, MISTAKE, NO_DATA, UNKNOWN, NoCard, NoModel, Problem, Wrong

if TYPE_CHECKING:
    from .almanac import Almanac


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
    from .question import ANY

    if asked.command == "completion":
        from . import completion

        print(completion.script(asked.shell))
        return FITS
    try:
        try:
            answer, status, page = _answer(asked)
        except NoCard as reason:
            if asked.json or not reason.is_of_any:
                raise
            # how much does it need: of whatever card. (No yes and no no: a script is told that none was named)
            answer, _, page = _answer(argparse.Namespace(**{**vars(asked), "free": ANY}))
            status = reason.status
            if answer["verdict"] is None:  # (of pictures it is told of cards alone)
                raise
            say_problem(str(reason))
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
    from . import card_names, containers, contexts, formats, models, own, question, sentence
    from .almanac import opened
    from .kinds import Said, asked_for
    from .page import Page
    from .uses import use_of

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
    given = asked
    with opening as almanac:
        heard = ""
        if asked.command == "what":
            asked, heard = sentence.of_card(almanac, asked)
        elif path is None:
            try:
                asked, heard = sentence.heard(almanac, asked)
            except NoModel:
                asked = of_card_alone(asked)
                if asked is None:
                    raise
                asked, heard = sentence.of_card(almanac, asked)
        is_unlike = asked.command == "fits" and len(card_names.unlike(asked.gpu or "")) > 1
        name = own.MODEL_ID if is_config else adapter.base if adapter else getattr(asked, "model", None)
        phase = getattr(asked, "phase", None) or question.INFERENCE
        is_run = phase == question.INFERENCE and not getattr(asked, "objective", None)
        model = None if name is None else models.model_of(almanac, models.in_words_of(name, asked), is_run=is_run)
        if is_config:
            model = own.shown_as(model, asked.model)
        use = use_of(almanac, asked, adapter, model)
        if model is not None:
            model, use = formats.in_its_format(almanac, model, use)
            if not is_config and not adapter:
                model = containers.in_its_files(almanac, name, model, use)
                use = containers.in_its_program(almanac, model, use)
            use = contexts.as_meant(model, use)
            contexts.check(almanac, model, use)
            if asked.command == "plan" or getattr(asked, "draft", None) or is_unlike:
                formats.check_file(model, use)
        said = Said(asked, model, use, page, is_config, adapter, is_unlike)
        try:
            answer, status = asked_for(asked, is_unlike=is_unlike)(almanac, said)
        except NoCard as reason:
            reason.is_of_any = _is_of_any(given, use)
            raise
        if model is not None and not is_config and model.note and "taken" not in answer:
            trained = (
                f"What is trained is {model.shown}, not its packed files." if use.is_training and model.dtype_id else ""
            )
            answer["taken"] = " ".join(filter(None, (model.note, trained)))
            page.say(answer["taken"])
        if heard:
            answer["heard"] = heard
            page.say(heard)
        _end(answer, status, almanac, page)
        if getattr(asked, "keep", None):
            page.say(f"Kept in {asked.keep}: FROM footprint_of('{own.MODEL_ID}')")
    return answer, status, page


def _is_of_any(asked: argparse.Namespace, use: Any) -> bool:
    """Whether what it needs can be told of whatever card."""
    return asked.command == "fits" and not (asked.draft or asked.objective or use.is_divided or asked.ram)


def _end(answer: dict[str, Any], status: int, almanac: Almanac, page: Any) -> None:
    """Which figures these are, the last of every answer."""
    from . import words

    version = almanac.manifest.get("data_version")
    answer["data"] = {"place": almanac.place, "data_version": version, "note": almanac.note or None}
    answer["status"] = status
    words.footer(version, almanac.place, almanac.note, page, answer)


def _receipt(asked: argparse.Namespace, page: Any) -> tuple[dict[str, Any], int, Any]:
    """What a log says was held, beside what the almanac says."""
    from . import models, receipt, receipt_lines, receipt_words
    from .almanac import opened
    from .cards import card_of
    from .uses import use_of

    found = receipt_lines.read(asked.log)
    name = asked.model or found.words.get("model")
    if name is None:
        raise Wrong(f"{asked.log} does not name its model: vram-almanac fits MODEL --log {asked.log}")
    with opened(asked.data, is_fresh=asked.fresh) as almanac:
        if asked.model is None and name.startswith(("/", ".")):  # a folder of the machine: its name is what there is
            name = name.rstrip("/").rpartition("/")[2]
        model = models.model_of(almanac, name.replace(" ", "-"))
        use = use_of(almanac, asked, None, model)
        count = card_of(almanac, asked.gpu).count if asked.gpu else 1
        answer = receipt.compared(almanac, model, use, found, count)
        # (of a repository that nobody here has read the log says what it holds, and the figures are those of its base)
        unread = f"Compared are figures of {model.shown}, packed as most are." if model.more_note else ""
        answer["taken"] = " ".join(filter(None, (model.note, unread))) or None
        columns = [row["column_name"] for row in almanac.rows("SELECT column_name FROM (DESCRIBE measured)")]
        answer["csv"] = receipt.as_csv(answer["measured"], columns)
        receipt_words.receipt(answer, page)
        if answer["taken"]:
            page.say(answer["taken"])
        _end(answer, FITS, almanac, page)
    return answer, FITS, page
