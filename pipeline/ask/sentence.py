"""A question in one breath: `llama 3.3 70b awq vllm 2x4090 32k`. The longest beginning that names a model is the model, and each word behind it says what an
option says: a card, a program, a phase, a format, a context, how many users. Who says so is told the options that it was taken for.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline.base.bounds import in_words, visible

from . import card_names
from .almanac import Almanac
from .arguments import OBJECTIVES, PHASES, phase_of, tokens
from .problems import Problem, Wrong
from .question import dtype_of, named_program

LONGEST = 6  # words that say one thing together: "two rtx pro 6000 blackwell 96gb"
# Words that hold a sentence together and say nothing by themselves.
_BETWEEN = re.compile(
    r"(?i)an?|and|at|can|cards?|do|does|fits?|for|from|gpus?|i|in|into|is|it|my|of|on|one|our|runs?|running|single|the|to|train|training|using|will|with"
)
_PASTED = re.compile(r"(?i)(ollama run \S+)(?: (.+))?")  # a tag follows, and nothing else is of the name
_CONTEXT = re.compile(
    r"(?i)(?:(?:context|ctx)(?: of)? )?(\d[\d,_]*|\d+(?:\.\d+)?[km])(?: (?:context|ctx|tokens)){0,2}(?: (?:length|window))?"
)
_CONTEXT_SAID = re.compile(r"(?i)context|ctx|tokens|\d[km]\b")
_USERS = re.compile(r"(?i)(\d{1,7}) (?:users?|people|requests|sequences)|batch(?: size)?(?: of)? (\d{1,7})")
_VERSION = re.compile(r"(?i)v?\d+(\.\d+)+\w*|b\d+")
_CACHE = re.compile(r"(?i)kv(?: cache)? (\S+)|(\S+) kv(?: cache)?")


@dataclass(frozen=True)
class _Said:
    """What a word or several say: the option, its value, and the words of the command for it."""

    option: str
    value: Any
    flag: str


def heard(almanac: Almanac, asked: argparse.Namespace) -> tuple[argparse.Namespace, str]:
    """What was asked with the words behind the model's name as options, and a sentence that says them; as it is, where they are all its name.

    Raises Wrong for a word that says nothing, and for what is said twice.
    """
    words = asked.model.split()
    if pasted := _PASTED.fullmatch(" ".join(words)):
        name, behind = pasted[1], (pasted[2] or "").split()
    elif len(words) < 2:
        return asked, ""
    elif _is_model(almanac, asked.model):
        count = _needed(almanac, words)
        name, behind = " ".join(words[:count]), words[count:]
        if not all(_BETWEEN.fullmatch(word) or _said(almanac, word) for word in behind):
            return asked, ""  # (a word of its name that changes nothing: instruct)
    else:
        first = next(
            (at for at, word in enumerate(words) if not _BETWEEN.fullmatch(word) and not _named_phase(word)), 0
        )
        counts = (
            count
            for count in range(len(words), first, -1)
            if not _USERS.fullmatch(" ".join(words[count - 1 : count + 1]))  # (gemma3 12 users)
            and _is_model(almanac, " ".join(words[first:count]))
        )
        count = next(counts, None)
        if count is None:
            return asked, ""
        name, behind = " ".join(words[first:count]), [*words[:first], *words[count:]]
    told = argparse.Namespace(**vars(asked))
    told.model, flags = name, []
    for said in _behind(almanac, behind, asked.model, name):
        held = getattr(told, said.option, None)
        is_list = said.option == "gpu" and asked.command == "plan"
        if held is not None or said.flag in flags:
            is_unlike = said.option == "gpu" and not is_list and held != said.value
            more = f" (cards of two kinds together: {visible(held)} + {visible(said.value)})" if is_unlike else ""
            raise Wrong(
                f"{in_words(asked.model)} says {said.flag.split()[0]} twice: {visible(str(held))} and {visible(str(said.value))}{more}"
            )
        setattr(told, said.option, [said.value] if is_list else said.value)
        flags.append(said.flag)
    return told, f"{visible(asked.model)} is asked as {visible(name)} {visible(' '.join(flags))}." if flags else ""


def _needed(almanac: Almanac, words: list[str]) -> int:
    """How many of the words of a name are taken for what all of them are: what stands behind a file or a tag may be passed over there. (A word that the
    model itself is called by is its own: the 4k of Phi-3-mini-4k.)"""
    asked = [" ".join(words[:count]) for count in range(1, len(words) + 1)]
    query = (
        "SELECT known.name, r.model_id, r.dtype_id, r.dtype_named FROM (SELECT unnest($names) AS name) AS known, "
        "LATERAL (FROM repository_of(known.name)) AS r"
    )
    rows = almanac.rows(query, {"names": asked})
    found = {row["name"]: (row["model_id"], row["dtype_id"], row["dtype_named"]) for row in rows}
    count = next(count for count, name in enumerate(asked, 1) if found[name] == found[asked[-1]])
    own = set(re.split(r"[^\w.]+|_", (found[asked[-1]][0] or "").lower()))
    return max(count, *(at for at, word in enumerate(words, 1) if word.lower() in own), 1)


def _is_model(almanac: Almanac, name: str) -> bool:
    query = "SELECT EXISTS (FROM model WHERE model_id = known_model($name)) OR EXISTS (FROM repository_of($name) WHERE model_id IS NOT NULL)"
    return bool(almanac.value(query, {"name": name}))


def _behind(almanac: Almanac, words: list[str], whole: str, name: str) -> list[_Said]:
    """What the words behind a name say, the longest that say one thing taken together."""
    found, at = [], 0
    while at < len(words):
        for count in range(min(LONGEST, len(words) - at), 0, -1):
            said = _said(almanac, " ".join(words[at : at + count]).strip(",;?!"))
            if said:
                found.append(said)
                at += count
                break
        else:
            word = words[at].strip(",;?!")
            if word and not _BETWEEN.fullmatch(word):
                near = almanac.value("SELECT nearest_models($asked)", {"asked": whole})
                raise Wrong(
                    f"{in_words(whole)} is not in this almanac. Of it {visible(name)} is a model, and {in_words(word)} behind it is no card, "
                    f"program, format, phase, context or number of users. Near it: {near}"
                )
            at += 1
    return found


def _said(almanac: Almanac, text: str) -> _Said | None:
    for reader in _READERS:
        try:
            if said := reader(almanac, text):
                return said
        except (Problem, argparse.ArgumentTypeError):
            continue
    return None


def _phase(_: Almanac, text: str) -> _Said | None:
    phase = _named_phase(text)
    return _Said("phase", phase, f"--phase {phase}") if phase else None


def _named_phase(text: str) -> str | None:
    """The phase that words of a sentence name; "full" and "serve" may be of a name, or of the sentence."""
    if text.lower() in ("full", "serve", "serving", *OBJECTIVES):
        return None
    phase = phase_of(text)
    return phase if phase in PHASES else None


def _objective(_: Almanac, text: str) -> _Said | None:
    return _Said("objective", text.lower(), f"--objective {text.lower()}") if text.lower() in OBJECTIVES else None


def _context(_: Almanac, text: str) -> _Said | None:
    found = _CONTEXT.fullmatch(text)
    if not found or not (_CONTEXT_SAID.search(text) or _is_round(text)):
        return None
    return _Said("context", tokens(found[1]), f"--context {tokens(found[1])}")


def _is_round(text: str) -> bool:
    """Whether a bare number is a length: whole thousands or 1,024s, which no card is called."""
    size = int(re.sub(r"\D", "", text) or 0)
    return size >= 1000 and (size % 1000 == 0 or size % 1024 == 0)


def _users(_: Almanac, text: str) -> _Said | None:
    found = _USERS.fullmatch(text)
    count = int(found[1] or found[2]) if found else 0
    return _Said("users", count, f"--users {count}") if count else None


def _cache(almanac: Almanac, text: str) -> _Said | None:
    from .question import kv_dtype_of

    found = _CACHE.fullmatch(text)
    return _Said("kv", kv := kv_dtype_of(almanac, found[1] or found[2]), f"--kv {kv}") if found else None


def _format(almanac: Almanac, text: str) -> _Said | None:
    return _Said("format", text, f"--format {dtype_of(almanac, text)}")


def _program(almanac: Almanac, text: str) -> _Said | None:
    name, version = named_program(text)
    if version and not _VERSION.fullmatch(re.split(r"[\s=@]+", text)[-1]):
        return None
    known = almanac.value("SELECT name IS NOT NULL FROM program_called($name)", {"name": name})
    return _Said("program", text, f"--program {_quoted(' '.join(filter(None, (name, version))))}") if known else None


def _card(almanac: Almanac, text: str) -> _Said | None:
    name = re.sub(r"(?i)^an? ", "", text)
    for each in card_names.unlike(name):
        card_names.called(almanac, card_names.counted(each)[0])
    return _Said("gpu", name, f"--gpu {_quoted(name)}") if name else None


def _quoted(text: str) -> str:
    return f"'{text}'" if " " in text else text


_READERS: tuple[Callable[[Almanac, str], _Said | None], ...] = (
    _card,
    _phase,
    _objective,
    _context,
    _users,
    _cache,
    _program,
    _format,
)
