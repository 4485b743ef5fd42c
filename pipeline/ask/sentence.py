"""A question in one breath: `llama 3.3 70b awq vllm 2x4090 32k`, `can i qlora qwen3 8b on a 3060 12gb?`. The longest run of words that names a model is the
model, and each other word says what an option says (sentence_words.py). Who says so is told the options that it was taken for.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from functools import cache

from pipeline.base.bounds import in_words, visible

from . import card_names
from .almanac import Almanac
from .formats import is_told_in_others
from .near import meant_by
from .near import unknown as unknown_name
from .problems import NoModel, Wrong
from .programs import named_program, phases_of
from .said import Said, quoted
from .sentence_name import OF_NAME, check_format, format_of, is_name, is_of_name, of_size, place_of, untuned, with_size
from .sentence_words import LENDER, all_said, is_between, spaced

_PASTED = re.compile(r"(?i)(ollama run \S+)(?: (.+))?")  # a tag follows, and nothing else is of the name
# what people want, by the word of the list of wishes
_WISHES = {
    "coding": "code",
    "programming": "code",
    "chatting": "chat",
    "roleplay": "chat",
    "images": "vision",
    "embeddings": "embed",
    "embedding": "embed",
    "coder": "code",
}
_OF_CARD = ("gpu", "free", "context", "users", "format", "kv", "ram", "wish")  # what is asked of all models too
_OF_PLAN = ("phase", "context", "users", "format", "kv")
_LONGEST = 60  # words of a question
_AMOUNT = re.compile(r"(?i)(\d{1,4}) ?gi?b")
_ELSE = "What is none of the cards here is asked by its memory"
_SAYS = "is no card, program, format, phase, context, number of users or other option"
_CARD = re.compile(
    r"(?i)\b(?:geforce |gtx |rtx |rx |radeon |quadro |tesla |arc |instinct |mi(?=\d))+\w+(?: (?:ti|super|xtx?|laptop))*"
)
_EITHER = re.compile(r"(?i)or|vs\.?|versus|oder|ou|или")  # what stands between two models
_SEEN = re.compile(r"(?i)images?|pictures?|photos?|screenshots?|vision")  # without a number it is one
_CARD_ALONE = re.compile(r"(?i)(?:rtx|gtx|rx|[a-z]{1,2})?\d{2,4}[a-z]{0,5}")


def heard(almanac: Almanac, asked: argparse.Namespace) -> tuple[argparse.Namespace, str]:
    """What was asked with the words around the model's name as options, and a sentence that says them; as it is, where they are all its name.

    Raises Wrong for a word that says nothing, and for what is said twice.
    """
    words = (spaced(asked.model).split() or asked.model.split()) if asked.model else []
    if pasted := _PASTED.fullmatch(" ".join(words)):
        words, start, count = [pasted[1], *(pasted[2] or "").split()], 0, 1
    elif not 1 <= len(words) <= _LONGEST or (
        len(words) == 1 and not (_CARD_ALONE.fullmatch(words[0]) and not is_name(almanac, words[0]))
    ):
        return asked, ""  # (one word that no card is called by is a name)
    else:
        start, count = place_of(almanac, words)
        if not count or all(_wish(0, word) for word in words[start : start + count]):
            return _without_options(almanac, asked, words)
    name = " ".join(words[start : start + count])

    def alone(almanac: Almanac, word: str) -> Said | None:
        return None if is_between(word) else format_of(name, almanac, word)

    found, unheard = [], []
    for around in (words[:start], words[start + count :]):
        told, not_told = all_said(almanac, around, alone)
        found += told
        unheard += not_told
    for bits in (said.value for said in found if said.option == OF_NAME):  # of which format, its program says
        name = f"{name} {bits}"
    found = [said for said in found if said.option != OF_NAME]
    name, unheard = untuned(almanac, *with_size(almanac, name, unheard))
    asked, found = _of_its_option(asked, found)
    found, unheard = _of_its_size(almanac, found, unheard)
    found, unheard = _in_full(almanac, found, unheard)
    if unheard and not pasted and is_name(almanac, asked.model):
        return asked, ""  # (a word of its name that changes nothing: instruct)
    found, unheard = _with_image(found, unheard)
    if all(map(_EITHER.fullmatch, unheard)):  # (between two cards, of which it is said that they are two)
        unheard = []
    head, _, last = name.rpartition(" ")
    if head and not is_told_in_others(almanac, last):
        check_format(almanac, head, [last])
    if unheard:
        _check_cpu(asked, name, found, unheard)
        check_format(almanac, name, unheard)
        _check_card(almanac, words, unheard)
        _check_one_model(almanac, asked, name, found, unheard)
    if len(unheard) == 1 and unheard == words[start + count : start + count + 1] and is_of_name(name, unheard[0]):
        raise Wrong(unknown_name(almanac, " ".join([name, *unheard])))
    if unheard:
        near = almanac.value("SELECT nearest_models($asked)", {"asked": asked.model})
        is_near = any(word.lower() in near.lower() for word in unheard)
        more = f"Near it: {near}" if is_near else f"{_ELSE}: vram-almanac fits {visible(name)} --free 10GiB"
        raise Wrong(
            f"{in_words(asked.model)} is not in this almanac. Of it {visible(name)} is a model, and {in_words(unheard[0])} beside it {_SAYS}. {more}"
        )
    if cards := _how_many(asked.model, found):
        flags = " ".join(said.flag for said in _closest(found, asked) if said.option in _OF_PLAN)
        how = f"vram-almanac plan {name} --gpu {cards} {flags}".rstrip()
        found = [*found, Said("", None, note=f"How many of them it takes, and how they share: {how}")]
    told, sentence = _with_options(asked, asked.model, name, _as_its_program_does(almanac, found, asked))
    told.model = name
    return told, sentence


def _how_many(whole: str, found: Sequence[Said]) -> str:
    """The card of which it is asked how many of them are needed; empty where that is not asked."""
    cards = [said.value for said in found if said.option == "gpu"]
    of_cards = re.search(r"(?i)\bhow many (?!tokens|users|people|requests|concurrent|layers|images)", whole)
    return quoted(cards[0]) if of_cards and len(cards) == 1 and card_names.counted(cards[0])[1] is None else ""


def _without_options(
    almanac: Almanac, asked: argparse.Namespace, words: Sequence[str]
) -> tuple[argparse.Namespace, str]:
    """What was asked, with the words alone that say nothing else: of a name that nobody knows; with the options, where it may be a model's all the same."""
    of_all, strange = all_said(almanac, words, _wish)
    if not strange and any(said.option in ("gpu", "free") for said in of_all):
        flags = " ".join(said.flag for said in of_all if said.option in _OF_CARD)
        raise NoModel(
            f"{in_words(asked.model)} names no model. What fits a card is asked by what: vram-almanac what {flags}"
        )
    found, unheard = all_said(almanac, words)
    if not (found and unheard):
        return asked, ""
    name = " ".join(unheard)
    if meant_by(almanac, name):
        told, sentence = _with_options(asked, asked.model, name, found)
    else:
        told, sentence = argparse.Namespace(**vars(asked)), ""
    told.model = name
    return told, sentence


def of_card(almanac: Almanac, asked: argparse.Namespace) -> tuple[argparse.Namespace, str]:
    """What was asked with words in the place of options, where no model is named: `what 3060 12gb for code`.

    Raises Wrong for a word that says nothing, and for what is said twice.
    """
    if not asked.words:
        return asked, ""
    found, unheard = all_said(almanac, spaced(asked.words).split() or asked.words.split(), _wish)
    if name := next((word for word in unheard if is_name(almanac, word)), None):
        raise Wrong(f"{in_words(name)} names a model, which is asked by fits: vram-almanac fits {visible(asked.words)}")
    if unheard:
        _check_card(almanac, asked.words.split(), unheard)
        raise Wrong(
            f"{in_words(unheard[0])} {_SAYS}. What fits a card is asked by the card, and what it is for: vram-almanac what 3060 12gb for "
            f"{', '.join(sorted(_wished()))} (pictures, videos and speech are asked by the model: vram-almanac fits)"
        )
    asked, found = _of_its_option(asked, found)
    found, _ = _of_its_size(almanac, found, [])
    found = [Said("wish", "full", "--for full") if said.value == "full-finetune" else said for said in found]
    found = [_wish(0, said.value) or said if said.option == "phase" else said for said in found]
    return _with_options(asked, asked.words, "what fits", found)


def _wish(_place: object, word: str) -> Said | None:
    """What people want to do with a model, where a word says that."""
    meant = _WISHES.get(word.lower(), word.lower())
    return Said("wish", meant, f"--for {meant}") if meant in _wished() else None


@cache
def _wished() -> frozenset[str]:
    from pipeline.book.wishes import wishes

    return frozenset(wish.name for wish in wishes())


def _with_options(
    asked: argparse.Namespace, whole: str, name: str, found: Sequence[Said]
) -> tuple[argparse.Namespace, str]:
    """The options that words say, set; and the sentence that says so."""
    told = argparse.Namespace(**vars(asked))
    flags: list[str] = []
    notes: list[str] = []
    lenders = [said.value for said in found if said.option == LENDER]
    found = _closest([said for said in found if said.option != LENDER], asked)
    if lenders and not asked.gpu and not any(said.option == "gpu" for said in found):
        raise Wrong(f"{in_words(lenders[0])} has several cards, and which one is not said: t4, a100, h100 …")
    for said in found:
        if said.note:
            continue
        if said.option == "ram" and not hasattr(asked, "ram"):
            notes.append(f"{said.flag} is asked by fits: what fits the card alone is told here.")
            continue
        if not hasattr(asked, said.option):
            raise Wrong(f"{in_words(whole)} says {said.flag}, which {asked.command} is not asked")
        held = getattr(told, said.option)
        if said.option == "phase" and held == said.value:  # (pretrain … from scratch)
            continue
        is_list = said.option == "gpu" and asked.command == "plan"
        if (held is not None and held is not False) or said.flag in flags:
            is_unlike = said.option == "gpu" and not is_list and held != said.value
            more = f" (cards of two kinds together: {visible(held)} + {visible(said.value)})" if is_unlike else ""
            raise Wrong(
                f"{in_words(whole)} says {said.flag.split()[0]} twice: {visible(str(held))} and {visible(str(said.value))}{more}"
            )
        setattr(told, said.option, [said.value] if is_list else said.value)
        flags.append(said.flag)
    notes += [f"{visible(said.note)}." for said in found if said.note]
    asks = [f"{visible(whole)} is asked as {visible(name)} {visible(' '.join(flags))}."] if flags else []
    return told, " ".join([*asks, *notes])


def _of_its_size(almanac: Almanac, found: list[Said], unheard: list[str]) -> tuple[list[Said], list[str]]:
    """A card with the memory that is said apart from it. Raises Wrong for one in a size that none was sold with, with how that is asked."""
    cards = [said for said in found if said.option == "gpu"]
    sizes = [said for said in cards if _AMOUNT.fullmatch(said.value)]
    named = [
        said
        for said in cards
        if said not in sizes and "+" not in said.value and not re.search(r"(?i)\d ?gi?b\b", said.value)
    ]
    size = sizes[0].value if sizes else next(filter(_AMOUNT.fullmatch, unheard), None)
    if len(named) != 1 or len(sizes) > 1 or size is None:
        return found, unheard
    whole = f"{named[0].value} {size}"
    try:
        card_names.called(almanac, card_names.counted(whole)[0])
    except Wrong as wrong:
        raise Wrong(f"{wrong}. The computer's own memory is said with its name: {size} ram") from None
    kept = [said for said in found if said not in cards]
    return [*kept, Said("gpu", whole, f"--gpu {quoted(whole)}")], [word for word in unheard if word != size]


def _with_image(found: list[Said], unheard: list[str]) -> tuple[list[Said], list[str]]:
    """What was said, with one image where images are named and nobody says how many."""
    rest = [word for word in unheard if not _SEEN.fullmatch(word)]
    if len(rest) == len(unheard) or any(said.option == "images" for said in found):
        return found, rest
    return [*found, Said("images", 1, "--images 1")], rest


def _check_one_model(
    almanac: Almanac, asked: argparse.Namespace, name: str, found: Sequence[Said], unheard: Sequence[str]
) -> None:
    """Raises Wrong for two models, with how each is asked: qwen3 8b or 14b on a 3060, mistral small 24b vs gemma 27b."""
    rest = " ".join(word for word in unheard if not _EITHER.fullmatch(word))
    is_either = len(rest.split()) < len(unheard)  # (then what is left is another name, whether it is known or not)
    other = next((one for one in (of_size(name, rest), rest) if one and (is_either or is_name(almanac, one))), None)
    if other:
        flags = " ".join(said.flag for said in found if said.flag)
        ways = "; ".join(
            f"vram-almanac {asked.command} {visible(one)} {visible(flags)}".rstrip() for one in (name, other)
        )
        raise Wrong(f"{in_words(asked.model)} names two models, and each is asked by itself: {ways}")


def _in_full(almanac: Almanac, found: list[Said], unheard: list[str]) -> tuple[list[Said], list[str]]:
    """What was said, with "full" as a fine-tuning where a trainer is named or something else that trainings alone have: ms-swift full, zero3 full."""
    rest = [word for word in unheard if word.lower() != "full"]
    is_said = any(said.option in ("phase", "objective") for said in found)
    is_trained = any(said.option in ("sharding", "optimizer", "checkpointing", "liger") for said in found)
    programs = [named_program(said.value) for said in found if said.option == "program"]
    if len(rest) == len(unheard) or is_said or not (is_trained or any(phases_of(almanac, *one) for one in programs)):
        return found, unheard
    return [*found, Said("phase", "full-finetune", "--phase full-finetune")], rest


def _of_its_option(asked: argparse.Namespace, found: list[Said]) -> tuple[argparse.Namespace, list[Said]]:
    """What was asked and said, with a card that an option names among what words say, where these say its memory alone (--gpu 3060 12gb)."""
    cards = [said for said in found if said.option == "gpu"]
    if not (isinstance(asked.gpu, str) and len(cards) == 1 and _AMOUNT.fullmatch(cards[0].value)):
        return asked, found
    told = argparse.Namespace(**{**vars(asked), "gpu": None})
    return told, [Said("gpu", asked.gpu, f"--gpu {quoted(asked.gpu)}"), *found]


def _closest(found: Sequence[Said], asked: argparse.Namespace) -> list[Said]:
    """What was said, without what another word or an option says more closely: of `finetune … qlora` the QLoRA."""
    is_said = any(said.option in ("phase", "objective") and not said.is_loose for said in found)
    is_said = is_said or bool(getattr(asked, "phase", None) or getattr(asked, "objective", None))
    loose = [said for said in found if said.is_loose]
    return [said for said in found if not said.is_loose or not (is_said or said is not loose[0])]


def _as_its_program_does(almanac: Almanac, found: Sequence[Said], asked: argparse.Namespace) -> list[Said]:
    """What was said, with a fine-tuning that nobody says more of as its program is known to do it: `finetune … unsloth` is a QLoRA, as Unsloth loads in
    4 bits by itself. Of one that trains all weights too, those are meant."""
    closest = _closest(found, asked)
    named = asked.program or next((said.value for said in closest if said.option == "program"), None)
    if not (named and any(said.is_loose for said in closest)):
        return closest
    name, version = named_program(named)
    known = phases_of(almanac, name, version)
    phase = next((phase for phase in ("qlora", "lora") if phase in known and "full-finetune" not in known), None)
    return [Said("phase", phase, f"--phase {phase}") if said.is_loose and phase else said for said in closest]


def _check_cpu(asked: argparse.Namespace, name: str, found: Sequence[Said], unheard: Sequence[str]) -> None:
    """Raises Wrong where the computer alone is what it is to run on: no card is named beside it."""
    named = getattr(asked, "gpu", None) or getattr(asked, "free", None)  # (not every command has both)
    has_card = named or any(said.option in ("gpu", "free") for said in found)
    if not has_card and "cpu" in map(str.lower, unheard):
        raise Wrong(
            "What a program takes without a card is not counted here. In llama.cpp weights and caches are as large in the computer's memory as on "
            f"a card: vram-almanac fits {visible(name)} --free 16GiB --program llama.cpp"
        )


def _check_card(almanac: Almanac, words: Sequence[str], unheard: Sequence[str]) -> None:
    """Raises Wrong for a card that the almanac does not hold, with those near it."""
    found = _CARD.search(" ".join(words))
    if found and set(found[0].split()) & set(unheard):
        card_names.called(almanac, found[0])
