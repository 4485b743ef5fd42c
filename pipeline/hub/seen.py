"""What a look at the Hub has seen, assumption by assumption, and how a person is told."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field

AS_ASSUMED, DIFFERS, NOT_SEEN, TOLD = "as assumed", "differs", "not seen", "told"


@dataclass(frozen=True)
class Seen:
    """One assumption, and what the Hub answered. `verdict` is one of the four words above."""

    verdict: str
    what: str
    answer: str = ""


@dataclass
class Looked:
    """`seconds` and `request_count` are of all looks together."""

    endpoint: str
    seen: list[Seen] = field(default_factory=list)
    request_count: int = 0
    seconds: float = 0.0
    is_silent: bool = False  # it answers nothing

    @property
    def differs(self) -> bool:
        return any(one.verdict == DIFFERS for one in self.seen)

    def lines(self) -> Iterator[str]:
        now = datetime.datetime.now(datetime.UTC)
        yield f"{self.endpoint} on {now:%Y-%m-%d %H:%M} UTC, {self.request_count} requests in {self.seconds:.0f} s:"
        for one in self.seen:
            yield f"  {one.verdict:<11} {one.what}{f': {one.answer}' if one.answer else ''}"


def seen_to_be(is_so: bool, what: str, answer: str = "") -> Seen:
    """An assumption that holds, or what was answered instead."""
    return Seen(AS_ASSUMED if is_so else DIFFERS, what, "" if is_so else answer)
