"""How quantisers name the modules that they take or leave: names, wildcards, `re:` patterns, beginnings and ends, each as a test of a name.

A pattern that could run for ever on a name, or is longer than any name, leaves the whole undecided.
"""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Callable, Iterator

LINEAR = ("linear", "torch.nn.linear", "nn.linear", "torch.nn.modules.linear.linear")


_BOUNDARY = r"(?:(?<=\.)|(?=\.|$))"  # of a module's name


PLAIN = re.compile(r"[\w-]+(\.[\w-]+)*")  # a name without marks of a pattern


BEGINNING = re.compile(r"[\w-]+(\.[\w-]+)*\.?\*")


_ENDLESS = re.compile(r"[*+}]\)+[*+{]|[*+]\??\.[*+]|[*+]\|[^()]*\)[*+{]|\([^()]*[*+][^()]*\)[*+{]")


_REPEATED = re.compile(r"[*+{]")


_MOST_REPEATED = 8  # in one pattern


LONGEST = 400  # of a pattern: longer ones are no names


class Undecided(ValueError):
    """How the config's quantiser holds the modules is not known; the message is a reason for people. `dtype_id`: of those that it takes.
    `larger`: the parts at the larger, where that is not much more."""

    def __init__(self, reason: str, dtype_id: str | None = None, larger: tuple = ()):
        super().__init__(reason)
        self.dtype_id, self.larger = dtype_id, larger


Test = Callable[[str], bool]


def _leads(name: str) -> Iterator[str]:
    """The name, and all that it lies below."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _any_at_or_below(names: frozenset[str]) -> Test:
    return lambda name: any(lead in names for lead in _leads(name))


def _any_inside(names: frozenset[str]) -> Test:
    lengths: dict[str, set[int]] = defaultdict(set)  # by the first part, in parts: few places of a name begin one
    for text in names:
        first, *others = text.split(".")
        lengths[first].add(1 + len(others))

    def test(name: str) -> bool:
        parts = name.split(".")
        return any(
            ".".join(parts[place : place + length]) in names
            for place, part in enumerate(parts)
            for length in lengths.get(part, ())
        )

    return test


def _any_skip(names: frozenset[str]) -> Test:
    ends, inside = tuple(names), _any_inside(names)
    return lambda name: name.endswith(ends) or inside(name)


def begins_with(beginnings: frozenset[str]) -> Test:
    lengths = sorted({len(text) for text in beginnings})
    return lambda name: any(name[:length] in beginnings for length in lengths if length <= len(name))


def _compiled(text: str, pattern: str) -> re.Pattern[str]:
    """Raises Undecided for what is no pattern, and for one that could search for ever: repetitions of repetitions."""
    try:
        found = re.compile(text)
    except (re.error, RecursionError, OverflowError):
        raise Undecided(f"it names modules by {pattern[:60]!r}, which is no pattern") from None
    if _ENDLESS.search(pattern) or len(_REPEATED.findall(pattern)) > _MOST_REPEATED:
        raise Undecided(f"it names modules by {pattern[:60]!r}, which is not searched for")
    return found


def _expression(text: str, pattern: str) -> Test:
    found = _compiled(text, pattern)
    return lambda name: found.match(name) is not None


def by_place(pattern: str) -> Test:
    return lambda name: name == pattern or name.startswith(f"{pattern}.")


def by_target(pattern: str) -> Test:
    """compressed-tensors: a name, or a pattern after `re:`. A name of what holds modules is read as all of them."""
    return _expression(pattern[3:], pattern) if pattern.startswith("re:") else by_place(pattern)


def by_wildcard(pattern: str) -> Test:
    """Model Optimizer: a wildcard over the whole name, or a name anywhere in it, from one dot to another."""
    if any(mark in pattern for mark in "*?["):
        wildcard = re.compile(fnmatch.translate(pattern))  # its stars never go back
        return lambda name: wildcard.match(name) is not None
    if pattern.startswith("re:"):
        return by_target(pattern)
    return lambda name: f".{pattern}." in f".{name}."


def by_skip(pattern: str) -> Test:
    """Transformers: a pattern that the name begins with, up to the end of a module's name, or what the name ends with.

    Before 5.0, and in vLLM for bitsandbytes, a name within the name leaves out all below it: that is read so too.
    """
    plain = pattern.replace("re:", "", 1) if pattern.startswith("re:") else pattern
    text = plain if not plain.startswith("*") else plain.replace("*", ".*")
    begins = _expression(f"(?:{text}){_BOUNDARY}", pattern)
    return lambda name: name.endswith(plain) or begins(name) or f".{plain}." in f".{name}."


def by_part(pattern: str) -> Test:
    return lambda name: pattern in name


OF_MANY = {by_target: _any_at_or_below, by_wildcard: _any_inside, by_skip: _any_skip}


def by_rule_of_gptq(pattern: str) -> Test:
    return _expression(pattern.removeprefix("-:").removeprefix("+:"), pattern)


def by_either(pattern: str) -> Test:
    """AutoRound: a name, or a pattern that is found in it."""
    below = by_place(pattern)
    try:
        found = _compiled(pattern, pattern)
    except Undecided:
        if not PLAIN.fullmatch(pattern):
            raise
        return below
    return lambda name: below(name) or found.search(name) is not None


def by_quark(pattern: str) -> Test:
    return by_wildcard(pattern) if "*" in pattern else by_target(pattern)
