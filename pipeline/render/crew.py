"""Model pages, which are most of a site, written by several processes at a time.

Only plain values cross over: the small tables at the beginning, then what a portion of the models needs. So each process is started
afresh, and none is forked, which the threads of polars and duckdb would not live through; and the large tables are read once. A page
depends on nothing but the tables: who writes it changes no byte.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing.connection import wait
from pathlib import Path

from pipeline.render import words
from pipeline.render.data.book import Book
from pipeline.render.pages.models import ModelPages
from pipeline.render.shell import Shell

FEW = 300  # models: one process has written them before a second has begun
MOST = 8  # processes: more would wait for the one that hands out what they need
PORTION = 100  # models that a process is given at a time


def hands(models: int) -> int:
    """How many processes write the pages of so many models; 0 where the one that asks is as fast."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 0 if models < FEW or cores < 2 else min(cores, MOST)


def write_page(folder: Path, html: str, files: dict[str, str] | None = None) -> None:
    """A page, and files beside it by name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"index.html": html, **(files or {})}.items():
        (folder / name).write_bytes(content.encode())


def write_model(pages: ModelPages, shell: Shell, site_dir: Path, number: int) -> None:
    """A model's page, and what else the site holds of it."""
    name = pages.book.models[number]["model_id"]
    path = f"models/{pages.paths[name]}"
    body, files = pages.render(number), pages.files(number)
    address = f"{pages.site_url}{path}/"
    picture = f"{pages.site_url}{pages.picture(number)}" if files else None
    write_page(
        site_dir / path, shell.stamp(words.shown(name), words.shown(pages.description(number)), body, address, picture)
    )
    for file, content in files.items():
        write_once(site_dir / file, content.encode() if isinstance(content, str) else content)


def write_once(file: Path, content: bytes) -> None:
    """A file of one model, or named by what it holds: whoever comes first writes it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("xb") as new:
            new.write(content)
    except FileExistsError:
        pass


class Crew:
    """Processes that have begun to read, or none of them: then the pages are written by whoever asks for them."""

    def __init__(self, pages: ModelPages, processes: int) -> None:
        self.pages, self.pool = pages, None
        if processes:
            start = multiprocessing.get_context("spawn")
            self.pool = ProcessPoolExecutor(processes, start, _begin, (pages.book.light(), pages.site_url))
            for _ in range(processes):
                self.pool.submit(_nothing)  # a process is started for each task that waits

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_) -> None:
        if self.pool:
            self.pool.shutdown(cancel_futures=True)

    def write(self, shell: Shell, site_dir: Path, beside: Callable[[], None]) -> Iterator[int]:
        """Has every model's page written, and calls `beside` meanwhile. When that is done, gives the places of models whose pages are
        there, as they get ready; raises what went wrong with any."""
        places = range(len(self.pages.book.models))
        asked: dict[Future, range] = {}
        if self.pool:
            for start in range(0, len(places), PORTION):
                part = places[start : start + PORTION]
                asked[self.pool.submit(_write, shell, site_dir, *self.pages.part(part))] = part
        beside()
        return _ready(asked) if self.pool else self._written(shell, site_dir, places)

    def _written(self, shell: Shell, site_dir: Path, places: range) -> Iterator[int]:
        for number in places:
            write_model(self.pages, shell, site_dir, number)
            yield number


def _ready(asked: dict[Future, range]) -> Iterator[int]:
    for future in as_completed(asked):
        future.result()
        yield from asked[future]


_pages: ModelPages | None = None  # what this process was given


def _begin(book: Book, site_url: str) -> None:
    global _pages
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller says when to stop
    threading.Thread(target=_end_with_caller, daemon=True).start()
    _pages = ModelPages(book, site_url)


def _end_with_caller() -> None:
    """A caller that was killed leaves nobody who would tell this process to end."""
    wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _nothing() -> None:
    pass


def _write(shell: Shell, site_dir: Path, numbers: range, totals: bytes, held: dict[str, dict]) -> None:
    _pages.take(numbers, totals, held)
    for number in numbers:
        write_model(_pages, shell, site_dir, number)
