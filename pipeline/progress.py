"""Progress of a step: called as tqdm is, `progress(rows, desc="anatomy", total=...)`, and gives the rows back one by one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tqdm import tqdm

Progress = Callable[..., Iterable[Any]]


def quiet(rows: Iterable[Any], **_how: Any) -> Iterable[Any]:
    """Shows nothing."""
    return rows


def bar(rows: Iterable[Any], *, desc: str, total: int | None = None) -> Iterator[Any]:
    """A bar with rate and time left; where the output is no terminal, a line every ten seconds."""
    interval = 0.2 if sys.stderr.isatty() else 10
    return iter(tqdm(rows, desc=f"{desc:<12}", total=total, mininterval=interval, maxinterval=interval))
