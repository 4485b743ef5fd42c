"""What people call cards: how many of them, unlike ones together, a memory without its unit, cards with more memory than any was sold with."""

from __future__ import annotations

import re
from typing import Any

from pipeline.base.bounds import in_words, visible

from .almanac import Almanac
from .problems import Wrong

# (the x of "7900 xtx" and "9070 xt" counts nothing)
_BEFORE = re.compile(r"(?i)(\d{1,4})\s*[x×*](?!tx?\b)\s*(.+)")
_BEHIND = re.compile(r"(?i)(.+?)\s*(?:[×*]|\sx|(?<=\d)x)\s*(\d{1,4})")
_MOST = 9_999
_TOO_MANY = re.compile(r"(?i)\d{5,}\s*[x×*]\s*\D.*|\d{5,}\s*[x×*]\s*\d{4}\D*|.+[a-z].*\s[x×*]\s*\d{5,}")
_WORDS = {"two": 2, "dual": 2, "pair of": 2, "three": 3, "triple": 3, "four": 4, "quad": 4, "eight": 8}
_IN_WORDS = re.compile(rf"(?i)(?:a )?({'|'.join(_WORDS)})\s+(?=.*\d)(.+)")
# Max+ is a part of a name; (a bare number of at most three digits behind a name may be gigabytes)
_PLUS = re.compile(r"(?i)(?<!max)(?<!max )\+")
# what a computer is sold with is not named by everybody who names its chip: a MacBook Pro M3 with 36 GB has an M3 Pro or Max
_LARGER = ("pro", "max", "ultra")
_SIZED = re.compile(r"(?i)(.+?)[\s-]+([1-9]\d{0,2})(?:\s*gi?b?)?")

_HAS_SIZE = re.compile(r"(?i)\d ?gi?b\b(?=.*\d)")  # and a number behind it, which is no memory then


def unlike(text: str) -> list[str]:
    """The names of `RTX 3090 + RTX 3060`; one where nothing is added."""
    return [name for part in _PLUS.split(text) if (name := part.strip())]


def counted(text: str) -> tuple[str, int | None]:
    """The name and the number of `2x rtx-3090`, `2×rtx-3090`, `rtx-3090 ×2` or `dual 3090`."""
    text = text.strip()
    if said := _IN_WORDS.fullmatch(text):
        return said[2].strip(), _WORDS[said[1].lower()]
    if _TOO_MANY.fullmatch(text):
        raise Wrong(f"{in_words(text)} are too many cards: {_MOST:,} at most are worked out")
    before, behind = _BEFORE.fullmatch(text), _BEHIND.fullmatch(text)
    if before and behind and int(behind[2]) < int(before[1]):
        before = None  # 3090x2: of two bare numbers the card is the larger
    if before:
        return before[2].strip(), int(before[1])
    if behind:
        return behind[1].strip(), int(behind[2])
    return text, None


_OF_SEVERAL = """
    SELECT DISTINCT card.* FROM (SELECT unnest($names) AS name) AS known, LATERAL (FROM gpus_called(known.name)) AS card
    ORDER BY card.gpu_id
"""


def called(almanac: Almanac, name: str) -> list[dict[str, Any]]:
    """The cards that go by a name, as `gpus_called` knows them. Raises Wrong with the nearest ids."""
    sized = None if _HAS_SIZE.search(name) else _SIZED.fullmatch(name)
    # ("A100 80" is one of 80 GB; a chip that no desktop card has is a laptop's)
    tried = [name, f"{sized[1]} {sized[2]}GB" if sized else "", f"{name} laptop"]
    for each in filter(None, tried):
        if found := almanac.rows("FROM gpus_called($name)", {"name": each}):
            return found
    if sized and (found := almanac.rows("FROM gpus_called($name)", {"name": sized[1]})):
        larger = [f"{sized[1]} {word} {sized[2]}GB" for word in _LARGER]
        if meant := almanac.rows(_OF_SEVERAL, {"names": larger}):
            return meant
        raise Wrong(_rebuilt(almanac, found, int(sized[2])))
    near = almanac.value("SELECT nearest_gpus($name)", {"name": name})
    raise Wrong(
        f"{in_words(name)} is no card of this almanac. Near it: {near}. Any other card is asked by its memory: --free 10GiB"
    )


def _rebuilt(almanac: Almanac, found: list[dict[str, Any]], size_gb: int) -> str:
    """Of a card in a size that none was sold with: what of it a process may have, as of the card that is known."""
    ids = [row["gpu_id"] for row in found]
    rows = almanac.rows(
        "SELECT name, memory_gib_nominal AS size, capacity_bytes FROM gpu WHERE list_contains($ids, gpu_id) ORDER BY size",
        {"ids": ids},
    )
    sizes = " or ".join(dict.fromkeys(f"{row['size']:g}" for row in rows))
    share = min(row["capacity_bytes"] / row["size"] for row in rows) / 2**30
    return (
        f"{visible(rows[0]['name'])} has {sizes} GB in this almanac, not {size_gb}. A card with that much is asked by its memory: "
        f"--free {size_gb * share - 0.05:.1f}GiB (of four: 4x{size_gb * share - 0.05:.1f}GiB)"
    )
