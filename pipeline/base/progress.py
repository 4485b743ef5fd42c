"""Progress of a step: called as tqdm is, `progress(rows, desc="anatomy", total=...)`, and gives the rows back one by one.

Every step has a name and moves: what cannot be counted shows its seconds. Time left is told only where it is no guess: after ten
seconds and a twentieth of the rows, from the mean rate.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from tqdm import tqdm

Progress = Callable[..., Iterable[Any]]
_WIDTH = 20  # of a step's name
_DRAWN_EVERY, _LINE_EVERY = 0.5, 10.0  # seconds: on a terminal, and in a log
_SOONEST_SECONDS, _SOONEST_SHARE = 10, 0.05


def quiet(rows: Iterable[Any], **_how: Any) -> Iterable[Any]:
    """Shows nothing."""
    return rows


def bar(
    rows: Iterable[Any],
    *,
    desc: str,
    total: int | None = None,
    to: TextIO | None = None,
    note: Callable[[], str] | None = None,
) -> Iterator[Any]:
    """A bar on standard error, or `to`; where that is no terminal, a plain line every ten seconds and one at the end. `note` says what
    else there is to tell."""
    if total is None and hasattr(rows, "__len__"):
        total = len(rows)
    shown = _Shown(desc, total, to or sys.stderr, note)
    try:
        for row in rows:
            yield row
            shown.count += 1
        shown.end(is_whole=True)
    finally:
        shown.end(is_whole=False)


@contextmanager
def step(progress: Progress, desc: str) -> Iterator[None]:
    """A step of one piece."""
    rows = iter(progress([None], desc=desc, total=1))
    next(rows, None)
    try:
        yield
        next(rows, None)
    finally:
        if hasattr(rows, "close"):
            rows.close()


def seconds(count: float) -> str:
    """A time for people: `8 s`, `2 min 5 s`, `1 h 3 min`."""
    whole = round(count)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


class _Shown:
    """A step that somebody watches: a thread tells how far it is, so that it moves where a row takes long."""

    def __init__(self, name: str, total: int | None, to: TextIO, note: Callable[[], str] | None = None) -> None:
        self.note = note
        self.name, self.total, self.to, self.count = name, total, to, 0
        self.started = time.monotonic()
        self.is_terminal = to.isatty()
        self.ended = threading.Event()
        self.teller = threading.Thread(target=self._tell, daemon=True)
        self.teller.start()

    def end(self, is_whole: bool) -> None:
        if self.ended.is_set():
            return
        self.ended.set()
        self.teller.join()
        if self.is_terminal:
            self._draw("\n")
        elif is_whole:
            self.to.write(f"{self._line()}\n")
        self.to.flush()

    def _tell(self) -> None:
        if self.is_terminal:
            self._draw()
        while not self.ended.wait(_DRAWN_EVERY if self.is_terminal else _LINE_EVERY):
            if self.is_terminal:
                self._draw()
            else:
                self.to.write(f"{self._line(is_running=True)}\n")
                self.to.flush()

    def _line(self, is_running: bool = False) -> str:
        counted = self.total != 1 and (f"{self.count:,}" + (f" of {self.total:,}" if self.total is not None else ""))
        told = self.note() if self.note else ""
        parts = [
            counted,
            told,
            seconds(time.monotonic() - self.started),
            is_running and " left" not in told and self._left(),
        ]
        return f"{self.name:<{_WIDTH}} {', '.join(filter(None, parts))}"

    def _left(self) -> str:
        elapsed = time.monotonic() - self.started
        if not self.total or elapsed < _SOONEST_SECONDS or not _SOONEST_SHARE * self.total <= self.count < self.total:
            return ""
        return f"about {seconds(elapsed * (self.total - self.count) / self.count)} left"

    def _draw(self, end: str = "") -> None:
        width = max(shutil.get_terminal_size().columns - 1, 20)
        text = self._line(is_running=not end)
        if self.total and self.total > 1 and width - len(text) > 12:
            part = min(self.count / self.total, 1.0)
            text += " " + tqdm.format_meter(
                self.count,
                self.total,
                0,
                ncols=min(width - len(text) - 1, 40),
                bar_format=f"{100 * part:3.0f} %|{{bar}}|",
            )
        self.to.write(f"\r{text[:width]:<{width}}{end}")
        self.to.flush()
