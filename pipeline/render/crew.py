"""Model pages, which are most of a site, written by several processes at a time.

Only plain values cross over: the small tables at the beginning, then what a portion of the models needs. So each process is started
afresh, and none is forked, which the threads of polars and duckdb would not live through; and the large tables are read once. Totals lie in
a file, of which each process reads what it needs: portions that wait would hold them twice. A page depends on nothing but the tables: who
writes it changes no byte.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain
from multiprocessing.connection import wait
from pathlib import Path

from pipeline.base.collector import SELDOM
from pipeline.render.kept_pages import KeptPages, keep, page_of, write
from pipeline.render.pages.models import ModelPages
from pipeline.render.shell import Shell

FEW = 300  # models: one process has written them before a second has begun
MOST = 8  # processes: more would wait for the one that hands out what they need
PORTION = 100  # models that a process is given at a time
TOTALS = "totals"  # a file with the rows of the book's array, one after the other


def hands(models: int) -> int:
    """How many processes write the pages of so many models; 0 where the one that asks is as fast."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 0 if models < FEW or cores < 2 else min(cores, MOST)


class CrewError(RuntimeError):
    """A process that writes pages was ended by somebody else; the message is for people."""


ENDED = "a process that writes pages was ended, as a system does that runs out of memory"


class Crew:
    """Processes that read what pages share, or none of them: then the pages are written by whoever asks for them."""

    def __init__(self, pages: ModelPages, processes: int) -> None:
        self.pages, self.processes = pages, processes
        self.pool: ProcessPoolExecutor | None = None
        self.scratch: tempfile.TemporaryDirectory | None = None

    def _begin(self) -> None:
        # in a file: one that ends before it has read all of a pipe leaves its caller waiting for ever
        self.scratch = tempfile.TemporaryDirectory()
        told = Path(self.scratch.name, "book")
        told.write_bytes(pickle.dumps((self.pages.book.light(), self.pages.site_url)))
        told.with_name(TOTALS).write_bytes(self.pages.book.array)
        start = multiprocessing.get_context("spawn")
        self.pool = ProcessPoolExecutor(self.processes, start, _begin, (told,))

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_) -> None:
        if self.pool:
            self.pool.shutdown(cancel_futures=True)
        if self.scratch:
            self.scratch.cleanup()

    def write(
        self, shell: Shell, site_dir: Path, beside: Callable[[], None], kept: KeptPages | None = None
    ) -> Iterator[int]:
        """Has every model's page written, and calls `beside` meanwhile. When that is done, gives the places of models whose pages are
        there, as they get ready; raises what went wrong with any. What is `kept` of them is not rendered again."""
        there = kept.there if kept else set()
        places = [n for n in range(len(self.pages.book.models)) if n not in there]
        left = list(_runs(places))
        if self.processes and (len(places) > FEW or not there):
            self._begin()
        asked: dict[Future, range] = {}
        for part in left if self.pool else ():
            how = (kept.packs, kept.keys[part.start : part.stop]) if kept else (None, [])
            with _told():
                # packed here: the pool's thread does it later, when what a portion shares with this process may be changing
                told = pickle.dumps((shell, site_dir, *self.pages.part(part), *how))
                asked[self.pool.submit(_write, told)] = part
        beside()
        return chain(
            self._taken(shell, site_dir, kept) if kept else (),
            _ready(asked) if self.pool else self._written(shell, site_dir, places, kept),
        )

    def _taken(self, shell: Shell, site_dir: Path, kept: KeptPages) -> Iterator[int]:
        written = set()
        for number, page in kept.taken():
            write(self.pages, shell, site_dir, number, page)
            written.add(number)
            yield number
        yield from self._written(shell, site_dir, sorted(kept.there - written), kept)  # damaged

    def _written(self, shell: Shell, site_dir: Path, places: Sequence[int], kept: KeptPages | None) -> Iterator[int]:
        for start in range(0, len(places), PORTION):
            part = places[start : start + PORTION]
            self.pages.ask([self.pages.book.models[number]["model_id"] for number in part])
            made = [page_of(self.pages, number) for number in part]
            for number, page in zip(part, made, strict=True):
                write(self.pages, shell, site_dir, number, page)
                yield number
            if kept and kept.packs:
                keep(kept.packs, [kept.keys[number] for number in part], made)


def _runs(places: Sequence[int]) -> Iterator[range]:
    """Places that follow one another, as many as a process is given at a time."""
    start = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] != places[end - 1] + 1 or end - start == PORTION:
            yield range(places[start], places[end - 1] + 1)
            start = end


def _ready(asked: dict[Future, range]) -> Iterator[int]:
    for future in as_completed(asked):
        with _told():
            future.result()
        yield from asked[future]


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool:
        raise CrewError(ENDED) from None


# what this process was given
_pages: ModelPages | None = None
_totals: Path | None = None


def _begin(told: Path) -> None:
    global _pages, _totals
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller says when to stop
    threading.Thread(target=_end_with_caller, daemon=True).start()
    gc.set_threshold(*SELDOM)
    _pages, _totals = ModelPages(*pickle.loads(told.read_bytes())), told.with_name(TOTALS)


def _end_with_caller() -> None:
    """A caller that was killed leaves nobody who would tell this process to end."""
    wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _read(rows: Iterable[int]) -> Iterator[bytes]:
    """Rows of the totals, by their places."""
    size = _pages.book.row_bytes
    with _totals.open("rb") as file:
        for row in rows:
            file.seek(row * size)
            yield file.read(size)


def _write(told: bytes) -> None:
    shell, site_dir, numbers, rows, held, packs, keys = pickle.loads(told)
    _pages.take(numbers, b"".join(_read(rows)), held)
    made = []
    for number in numbers:
        page = page_of(_pages, number)
        write(_pages, shell, site_dir, number, page)
        made += [page] if packs else []
    if packs:
        keep(packs, keys, made)
