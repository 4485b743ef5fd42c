"""The command line of `vram-almanac`: what can be asked, and with which status it ends (problems.py)."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.base import failures
from pipeline.base.arguments import Parser

from .problems import FITS, MISTAKE, NO_DATA, Problem, Wrong

if TYPE_CHECKING:
    from .almanac import Almanac
    from .question import Card, Use

PHASES = ("inference", "lora", "qlora", "full-finetune", "pretrain")
STATUSES = (
    "Ends with 0 where it fits, 1 where it does not or only without its margin, 2 where the question is wrong, 3 where nobody knows, "
    "4 where there is no almanac to ask."
)
_MOST_TOKENS, _MOST_USERS, _MOST_SECONDS = 2**27, 2**20, 24 * 3600


def parser(prog: str = "vram-almanac") -> Parser:
    top = Parser(prog=prog, description="Does this open model fit my GPU, and if not, what does?", epilog=STATUSES)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add(commands)
    done = commands.add_parser("completion", help="print what makes a shell complete this command")
    done.add_argument("shell", choices=("bash", "zsh", "fish"))
    return top


class _Words(argparse.Action):
    """A name in several words: qwen3 8b, or ollama run qwen3:8b as it is pasted."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, " ".join(values) or None)


def add(commands: Any) -> None:
    """The questions, as commands of a parser."""
    fits = commands.add_parser(
        "fits", help="say whether a model fits a card, in which formats and how far", epilog=STATUSES
    )
    fits.add_argument(
        "model",
        type=_name,
        metavar="MODEL",
        nargs="*",
        action=_Words,
        help="organisation/name as on the Hugging Face Hub, a tag of Ollama, or a config.json or adapter_config.json",
    )
    _add_card(fits)
    _add_use(fits)
    fits.add_argument(
        "--seconds",
        type=_count("--seconds", _MOST_SECONDS),
        metavar="N",
        help="of sound, for a model that hears or speaks (default: 30, where it is not asked by tokens)",
    )
    fits.add_argument(
        "--program",
        type=_name,
        metavar="P",
        help="what you run it with, and its version if you know it: ollama, 'vllm 0.27', llama-factory; what is not said is its own default",
    )
    fits.add_argument(
        "--draft",
        metavar="MODEL",
        help="a smaller model that drafts tokens for it (speculative decoding), on the same card; mtp: its own prediction layers",
    )
    fits.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="compare with what a start-up log of vLLM, SGLang, llama.cpp or Ollama, or PyTorch's memory summary, says it held",
    )
    fits.add_argument(
        "--all", action="store_true", help="every format, also those that do not run here, each with its reason"
    )
    fits.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="of a config.json: keep the DuckDB file that answered, to ask its macros",
    )
    _add_output(fits)
    what = commands.add_parser(
        "what", help="list what fits a card, the newest and most downloaded first", epilog=STATUSES
    )
    _add_card(what)
    what.add_argument(
        "--for",
        dest="wish",
        default="chat",
        metavar="WISH",
        help="chat, code, vision, embed, qlora, lora or full (default: chat)",
    )
    what.add_argument(
        "--context",
        type=_tokens,
        metavar="TOKENS",
        help="at least so many (default: as the wish has it)",
    )
    what.add_argument(
        "--users", type=_count("--users", _MOST_USERS), default=1, metavar="N", help="at the same time (default: 1)"
    )
    what.add_argument("--format", type=_name, metavar="F", help="in this format alone, for example Q4_K_M")
    what.add_argument("--kv", type=_name, metavar="F", help="format of the cache, for example q8_0")
    what.add_argument(
        "--limit", type=_count("--limit", 10_000), default=15, metavar="N", help="rows to show (default: 15)"
    )
    _add_output(what)
    plan = commands.add_parser(
        "plan", help="say how many cards of a kind a model takes, and how they share", epilog=STATUSES
    )
    plan.add_argument(
        "model", type=_name, metavar="MODEL", help="organisation/name as on the Hugging Face Hub, or a config.json"
    )
    _add_card(plan, is_several=True)
    _add_use(plan)
    plan.add_argument(
        "--train-on",
        type=_data,
        metavar="SIZE",
        help="of a training: how much text, for example 1GB or 2Btokens; says how long it takes and what finishes in time",
    )
    plan.add_argument(
        "--days", type=_positive, default=1.0, metavar="N", help="with --train-on: the time that there is (default: 1)"
    )
    plan.add_argument("--price", type=_positive, metavar="P", help="with --train-on: what an hour of a card costs")
    plan.add_argument("--limit", type=_count("--limit", 100), default=5, metavar="N", help="ways to show (default: 5)")
    _add_output(plan)


def _add_card(command: argparse.ArgumentParser, *, is_several: bool = False) -> None:
    group = command.add_argument_group("the card (by default that of this machine, and what is free of it)")
    more = {"action": "append"} if is_several else {}
    group.add_argument(
        "--gpu",
        type=_name,
        metavar="CARD",
        help="id or name, several of them as 2xrtx-3090" + ("; may be said again" if is_several else ""),
        **more,
    )
    if not is_several:
        group.add_argument(
            "--free",
            type=_amount,
            metavar="SIZE",
            help="so much memory, for example 10GiB: of --gpu, or of a card that nobody names",
        )
    group.add_argument(
        "--empty", action="store_true", help="this machine's card as if no other program held a part of it"
    )


def _add_use(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--context",
        type=_tokens,
        metavar="TOKENS",
        help="of one sequence (default: 8192; in training 2048)",
    )
    command.add_argument(
        "--users",
        "--batch",
        dest="users",
        type=_count("--users", _MOST_USERS),
        default=None,
        metavar="N",
        help="at the same time; in training the micro-batch (default: 1, or the program's)",
    )
    command.add_argument("--format", type=_name, metavar="F", help="one format, for example Q4_K_M, bf16 or awq-int4")
    command.add_argument(
        "--kv", type=_name, metavar="F", help="format of the cache, for example q8_0 (default: 16 bits)"
    )
    command.add_argument("--phase", choices=PHASES, default=None, help="what is done with it (default: inference)")
    command.add_argument("--rank", type=_count("--rank", 65_536), metavar="R", help="of a LoRA (default: 16)")


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print the answer as JSON, in bytes and tokens")
    command.add_argument(
        "--data",
        metavar="PLACE",
        help="folder, file or address of the almanac (default: VRAM_ALMANAC, else this machine's build, else the last copy)",
    )
    command.add_argument(
        "--fresh",
        action="store_true",
        help="ask the address whether there is a newer almanac, though it was asked today",
    )


def _name(text: str) -> str:
    """A name; a variable of a shell that nobody has set is none."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def _tokens(text: str) -> int:
    """A length as people say it: 32k are 32,768 tokens, 1M are 1,048,576."""
    found = re.fullmatch(r"(\d{1,9})([kKmM])", text.strip())
    said = str(int(found[1]) * 1024 ** (1 if found[2] in "kK" else 2)) if found else text
    return _count("--context", _MOST_TOKENS)(said)


def _count(name: str, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        plain = text.replace(",", "").replace("_", "")
        if not (plain.isascii() and plain.isdigit()):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number")
        number = int(plain[:12])
        if not 1 <= number <= most:
            raise argparse.ArgumentTypeError(f"it starts at 1 and ends at {most:,}")
        return number

    return read


def _data(text: str) -> tuple[int | None, int | None]:
    """An amount of text: in bytes, or in tokens."""
    if found := re.fullmatch(r"([0-9]+(?:[.][0-9]+)?) ?([kKMGBT]?) ?tokens?", text.strip()):
        count = int(float(found[1]) * 1000 ** {"K": 1, "M": 2, "G": 3, "B": 3, "T": 4}.get(found[2].upper(), 0))
        if 0 < count <= 10**15:
            return None, count
    found = re.fullmatch(r"([0-9]+(?:[.][0-9]+)?) ?([kKMGT]?)B?", text.strip())
    size = int(float(found[1]) * 1000 ** " KMGT".index(found[2].upper() or " ")) if found else 0
    if not 0 < size <= 10**15:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no amount of text: 500MB, 10GB, 2Btokens")
    return size, None


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number above 0")
    return number


def _amount(text: str) -> str:
    from .question import amount

    try:
        amount(text)
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None
    return text


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
    from . import words

    if asked.command == "completion":
        from . import completion

        print(completion.script(asked.shell))
        return FITS
    try:
        answer, status, page = _answer(asked)
    except Problem as problem:
        if asked.json:
            print(json.dumps({"problem": str(problem), "status": problem.status}, ensure_ascii=False))
        words.problem(str(problem))
        return problem.status
    print(json.dumps(answer, ensure_ascii=False, indent=1) if asked.json else page.text(), flush=True)
    return status


def _answer(asked: argparse.Namespace) -> tuple[dict[str, Any], int, Any]:
    from . import answers, card_names, containers, own, plan_words, plans, question, several, sound_words, sounds, words
    from .almanac import opened

    page = words.Page(sys.stdout)
    if asked.command == "fits" and asked.log:
        return _receipt(asked, page)
    if asked.command != "what" and asked.model is None:
        raise Wrong("Name a model: vram-almanac fits Qwen/Qwen3-8B; or a log that names one: --log FILE")
    path = own.path_of(asked.model) if asked.command != "what" else None
    if getattr(asked, "keep", None) and path is None:
        raise Wrong("--keep is for a config.json: the almanac itself is a DuckDB file already")
    adapter = own.adapter_of(path) if path else None
    is_config = path is not None and adapter is None
    is_unlike = asked.command == "fits" and len(card_names.unlike(asked.gpu or "")) > 1
    opening = (
        own.opened(path, asked.keep if asked.command == "fits" else None)
        if is_config
        else opened(asked.data, is_fresh=asked.fresh)
    )
    with opening as almanac:
        name = own.MODEL_ID if is_config else adapter.base if adapter else getattr(asked, "model", None)
        model = None if name is None else question.model_of(almanac, question.in_words_of(name, asked))
        if is_config:
            model = own.shown_as(model, asked.model)
        use = _use(almanac, asked, adapter)
        if model is not None:
            use = question.in_its_format(model, use)
            if not is_config and not adapter:
                model = containers.in_its_files(almanac, name, model, use)
            question.check_use(model, use)
        if asked.command == "plan":
            cards = [question.card_of(almanac, text) for text in asked.gpu or ()] or [
                question.machine_card(almanac, is_empty=True)
            ]
            if any(card.gpu_id is None for card in cards):
                raise Wrong("A plan is made of cards that the almanac holds: --gpu h100-sxm")
            if asked.train_on and not use.is_training:
                raise Wrong("--train-on is of a training: --phase lora, qlora, full-finetune or pretrain")
            work = question.Work(*asked.train_on, asked.days, asked.price) if asked.train_on else None
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
            is_own = asked.draft.strip().lower() in ("mtp", "nextn")
            draft = None if is_own else question.model_of(almanac, asked.draft)
            answer = several.drafted(almanac, model, draft, card, use)
            status = answers.STATUS[answer["verdict"]]
            words.drafted(answer, page)
        elif is_unlike:
            answer = several.together(almanac, model, _cards(almanac, asked, use), use)
            status = answers.STATUS[answer["verdict"]]
            words.together(answer, page)
        else:
            card = _card(almanac, asked)
            told = None
            if adapter:
                card, told = own.with_adapter(almanac, model, card, use, adapter)
            seconds = sounds.seconds_of(almanac, model, use, asked.seconds)
            if seconds is not None:
                answer = sounds.fits(almanac, model, card, use, seconds)
            else:
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
            if seconds is not None:
                sound_words.fits(answer, page)
            else:
                words.fits(answer, page, most_commands=len(answer["commands"]) if asked.all else words.COMMANDS)
        version = almanac.manifest.get("data_version")
        answer["data"] = {"place": almanac.place, "data_version": version, "note": almanac.note or None}
        answer["status"] = status
        words.footer(version, almanac.place, almanac.note, page)
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
        use = _use(almanac, asked, None)
        answer = receipt.compared(almanac, model, use, found)
        columns = [row["column_name"] for row in almanac.rows("SELECT column_name FROM (DESCRIBE measured)")]
        answer["csv"] = receipt.as_csv(answer["measured"], columns)
        version = almanac.manifest.get("data_version")
        answer["data"] = {"place": almanac.place, "data_version": version, "note": almanac.note or None}
        answer["status"] = FITS
        words.receipt(answer, page)
        words.footer(version, almanac.place, almanac.note, page)
    return answer, FITS, page


def _card(almanac: Almanac, asked: argparse.Namespace) -> Card:
    from . import question

    card = question.card_of(almanac, asked.gpu) if asked.gpu else None
    if asked.free:
        return question.free_card(card, question.amount(asked.free), asked.free)
    return card or question.machine_card(almanac, is_empty=asked.empty)


def _cards(almanac: Almanac, asked: argparse.Namespace, use: Use) -> list[Card]:
    """Unlike cards together: 'RTX 3090 + RTX 3060'."""
    from . import card_names, question

    if use.is_training or asked.free or (use.engine_id or "llama.cpp") != "llama.cpp":
        raise Wrong(
            "Unlike cards together are asked of llama.cpp, which shares a model by what each gives: without --phase, --free or another --program"
        )
    return [question.card_of(almanac, text) for text in card_names.unlike(asked.gpu)]


def _use(almanac: Almanac, asked: argparse.Namespace, adapter: Any) -> Use:
    from . import question

    phase = getattr(asked, "phase", None) or question.INFERENCE
    is_training = phase != question.INFERENCE
    rank = getattr(asked, "rank", None)
    if rank and phase not in ("lora", "qlora"):
        raise Wrong("--rank is of a LoRA: --phase lora or qlora")
    if asked.kv and is_training:
        raise Wrong("--kv is of inference: a training holds no cache")
    if rank and adapter:
        raise Wrong(f"--rank is said by the adapter: {adapter.rank}")
    program = question.program_of(almanac, asked.program, phase) if getattr(asked, "program", None) else None
    use = question.Use(
        program=program and program.program_id,
        program_version=program and program.version,
        engine_id=program and program.engine_id,
        phase_id=phase,
        context_tokens=asked.context,
        sequences=asked.users or (None if program else 1),
        dtype_id=question.dtype_of(almanac, asked.format) if asked.format else None,
        kv_dtype_id=question.kv_dtype_of(almanac, asked.kv) if asked.kv else None,
        lora_rank=rank,
    )
    return adapter.used(use) if adapter else use


def _wish(name: str) -> Any:
    from pipeline.book.wishes import wishes

    known = {wish.name: wish for wish in wishes()}
    if name not in known:
        raise Wrong(f"--for {name}: it is one of {', '.join(known)}")
    return known[name]
