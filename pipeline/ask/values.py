"""What people type behind an option, as a value. Each raises ArgumentTypeError with what is wrong, in words."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

MOST_LAYERS = 9999  # more than any model has: all of them
CHECKPOINTINGS = ("full", "selective", "none")
PHASES = ("inference", "lora", "qlora", "full-finetune", "pretrain")
LORA_TARGETS = ("all-linear", "attention", "query-value", "linear-layers", "attention-experts", "experts")
# the matrices that peft names, and the word of the macros for them (constant names of Llama's kin)
_ATTENTION = frozenset({"q_proj", "k_proj", "v_proj", "o_proj"})
MODULES = {
    _ATTENTION: "attention",
    _ATTENTION | {"gate_proj", "up_proj", "down_proj"}: "all-linear",
    frozenset({"q_proj", "v_proj"}): "query-value",
}
OBJECTIVES = ("dpo", "orpo", "kto", "reward", "grpo")
# phases as people say them
SAID_PHASES = {
    "full-finetune": re.compile(r"full|sft|(?:full[ _-]?)?fine[ _-]?tun(?:ed?|ing)"),
    "pretrain": re.compile(r"pre-?training|(?:train(?:ed|ing)? )?from scratch"),
    "inference": re.compile(r"serv(?:e|ing)"),
}
MOST_TOKENS = 2**27
ALL_TOKENS = 0  # of a context: all that the model reads
_ALL_OF_IT = ("max", "maximum", "full", "all")
IMAGE_SIZE = (1024, 1024)  # of which images are where nobody says it
_MOST_SIDE = 65_536


def name(text: str) -> str:
    """A name; a variable of a shell that nobody has set is none."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def tokens(text: str) -> int:
    """A length as people say it: 32k are 32,768 tokens, 1M are 1,048,576, 1e6 are a million, and max is all that the model reads."""
    text = text.strip()
    if text.lower() in _ALL_OF_IT:
        return ALL_TOKENS
    said = text
    if found := re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)([kKmM])", text):
        said = str(int(float(found[1]) * 1024 ** (1 if found[2] in "kK" else 2)))
    elif found := re.fullmatch(r"(\d(?:\.\d{1,6})?)[eE]\+?(\d)", text):
        said = str(int(float(text)))
    return count("--context", MOST_TOKENS)(said)


def count(name: str, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        plain = text.replace(",", "").replace("_", "")
        if not (plain.isascii() and plain.isdigit()):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number")
        number = int(plain[:12])
        if not 1 <= number <= most:
            raise argparse.ArgumentTypeError(f"it starts at 1 and ends at {most:,}")
        return number

    return read


def phase_of(text: str) -> str:
    """The phase that people mean; what is none of ours stays."""
    said = text.strip().lower()
    if said in OBJECTIVES:
        raise argparse.ArgumentTypeError(f"{said} is what is trained for: --objective {said}")
    return next((phase for phase, words in SAID_PHASES.items() if words.fullmatch(said)), said)


def share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no share of a card, above 0 and up to 1: 0.85")
    return share


def checkpointing(text: str) -> str:
    """As trainers are told it (gradient_checkpointing: true), or how much of a layer is recomputed."""
    said = {"true": "full", "on": "full", "yes": "full", "false": "none", "off": "none", "no": "none"}
    word = said.get(text.strip().lower(), text.strip().lower())
    if word not in CHECKPOINTINGS:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is none of {', '.join(CHECKPOINTINGS)} (true, false)")
    return word


def image_size(text: str) -> tuple[int, int]:
    """Width and height of an image, in pixels."""
    found = re.fullmatch(r"(\d{1,6})\s*[xX×]\s*(\d{1,6})", text.strip())
    width, height = (int(found[1]), int(found[2])) if found else (0, 0)
    if not (0 < width <= _MOST_SIDE and 0 < height <= _MOST_SIDE):
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no size of an image: 1024x768, a side of {_MOST_SIDE:,} pixels at most"
        )
    return width, height


def text_size(text: str) -> tuple[int | None, int | None]:
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


def targets(text: str) -> str:
    """What is adapted, by the word of the macros; names of modules that make up one of these are that one."""
    names = [
        name for name in re.split(r"[\s,;]+", text.strip().strip("[]()").replace("'", "").replace('"', "")) if name
    ]
    word = names[0].lower().replace("_", "-") if len(names) == 1 else MODULES.get(frozenset(names))
    word = {"all": "all-linear", "qv": "query-value"}.get(str(word), word)
    if word not in LORA_TARGETS:
        known = " or ".join(",".join(sorted(modules)) for modules in MODULES)
        raise argparse.ArgumentTypeError(
            f"{text[:60]!r} was not counted: it is {', '.join(LORA_TARGETS)}, or {known}; all-linear is the most of any of these modules"
        )
    return word


def dropout(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number from 0 to below 1")
    return number


def positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number above 0")
    return number


def ram(text: str) -> int:
    """Bytes of the computer's memory: 64, 64GB and 64GiB are the same, as it is sold."""
    from .question import amount

    said = re.fullmatch(r"(?i)\s*(\d+(?:\.\d+)?)\s*(?:gi?b?)?\s*", text)
    try:
        return amount(f"{said[1]}GiB" if said else text)
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None


def layers(text: str) -> int:
    """A number of layers; -1 and `all` are all of them."""
    if text in ("-1", "all"):
        return MOST_LAYERS
    if not re.fullmatch(r"\d{1,4}", text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number of layers")
    return int(text)


def amount(text: str) -> str:
    from .card_names import counted
    from .question import amount

    said, count = counted(text)
    try:
        if count == 0:
            raise ValueError("0 cards hold nothing")
        amount(said)
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None
    return text
