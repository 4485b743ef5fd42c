"""What a person is told when a command fails: one sentence and an exit status for each kind of exception.

What goes wrong outside (a file, a disk, the Hub, a fact, a config) is a sentence. Anything else is a mistake of ours: it keeps its traceback,
so that it is known where it was made. Other people's text never reaches the terminal raw.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol, TextIO

from pipeline.base.bounds import visible

FAILED = 1
WHOLE = "what is published is whole"  # its tables may be new already where its site is not, and that has its own line
ROOM = "a build lies beside the last one until it is whole, so twice its size has to be free"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_SIGNALS = {
    name: getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
}  # besides Ctrl-C, which Python turns into KeyboardInterrupt by itself
_stopped_by: list[int] = []


class Connection(Protocol):
    """What can be told to stop: a DuckDB connection. Commands that need none do not import it."""

    def interrupt(self) -> None: ...


_queries: list[Connection] = []


class Failure(Exception):
    """A failure that was foreseen; the message is for people."""


class OwnModelError(ValueError):
    """Why a config.json that somebody has is not answered: it is none, or one that nobody understands."""


def say(text: str, file: TextIO | None = None) -> None:
    """Prints lines; control and direction characters are shown by their number, whoever wrote them."""
    print("\n".join(map(visible, text.split("\n"))), file=file or sys.stdout, flush=True)


def told(error: BaseException) -> int:
    """Says on standard error what went wrong. Returns the exit status."""
    if is_interruption(error):
        number = _stopped_by[-1] if _stopped_by else signal.SIGINT
        how = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
        say(f"\n{how}: {WHOLE}", sys.stderr)
        return 128 + number
    sentence = sentence_of(error)
    if sentence is None:
        say("".join(traceback.format_exception(error)).rstrip(), sys.stderr)
        sentence = f"a mistake of the almanac itself, {WHOLE}: {type(error).__name__}: {error}"
    say(f"error: {sentence}", sys.stderr)
    return FAILED


def is_interruption(error: BaseException) -> bool:
    """Ctrl-C, a signal to end, and what DuckDB makes of either."""
    return isinstance(error, KeyboardInterrupt) or (
        type(error).__name__ in ("RuntimeError", "InterruptException") and "interrupted" in str(error).lower()
    )


def sentence_of(error: BaseException) -> str | None:
    """What a person is told of an error; None where it is a mistake of ours."""
    if isinstance(error, _foreseen()):
        return str(error.args[0] if isinstance(error, LookupError) else error)
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, MemoryError):
        return f"not enough memory; {WHOLE}"
    duckdb = sys.modules.get("duckdb")
    if duckdb is not None and isinstance(error, duckdb.Error):
        return _of_database(error, duckdb)
    return None


def _foreseen() -> tuple[type[BaseException], ...]:
    """The errors whose message is a sentence already, of the modules that were used: none else can have raised one."""
    names = {
        "pipeline.book.facts": ("FactError",),
        "pipeline.hub.snapshot": ("SnapshotError",),
        "pipeline.hub.errors": ("HubError",),
        "pipeline.hub.journal": ("JournalError",),
        "pipeline.hub.settings": ("SettingsError",),
        "pipeline.press.publish": ("PublishError",),
        "pipeline.cli.own": ("OwnModelError",),
        "pipeline.render.shell": ("MkDocsError",),
        "pipeline.render.crew": ("CrewError",),
        "pipeline.render.pages.redirects": ("RedirectError",),
        "pipeline.press.formulas": ("FormulaError",),
        "pipeline.press.same_bytes": ("WriteError",),
        "pipeline.press.sources": ("UnknownName",),
    }
    found = [getattr(sys.modules[m], n) for m, those in names.items() if m in sys.modules for n in those]
    return (Failure, *found)


def _of_system(error: OSError) -> str:
    about = [str(name) for name in (error.filename, error.filename2) if name]
    what = f"{(error.strerror or str(error)).lower()}{': ' if about else ''}{' and '.join(about)}"
    if error.errno in _FULL:
        return f"{what}; {ROOM} ({WHOLE})"
    return what if error.strerror else str(error)


def is_out_of_room(error: BaseException | None) -> bool:
    """Whether a disk is full, whoever met it: DuckDB, Arrow and processes of ours say it in the system's words, and not all in their first line."""
    words = [os.strerror(number) for number in _FULL]
    while error is not None:
        if (isinstance(error, OSError) and error.errno in _FULL) or any(word in str(error) for word in words):
            return True
        error = error.__cause__ or error.__context__
    return False


def _of_database(error: Exception, duckdb: object) -> str:
    """DuckDB's errors, each in its first line: what follows quotes the statement."""
    first = str(error).strip().partition("\n")[0]
    kind, _, rest = first.partition(": ")
    rest = rest or kind
    if isinstance(error, duckdb.OutOfMemoryException):
        return f"DuckDB has not enough memory ({rest}); {WHOLE}"
    if "Could not set lock" in first or "Conflicting lock" in first:
        return f"another program has the database open: {rest}"
    if isinstance(error, duckdb.IOException):
        return f"DuckDB could not read or write: {rest}"
    return f"DuckDB could not answer: {first}"


@contextmanager
def stoppable() -> Iterator[None]:
    """Ends in order when it is asked to, by SIGTERM or a closed terminal, as by Ctrl-C: what was begun is tidied up."""
    _stopped_by.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS.values()}
    for number, handler in before.items():
        if handler == signal.SIG_DFL:  # not under nohup
            signal.signal(number, _stop)
    heard, written = socket.socketpair()
    written.setblocking(False)
    woken_before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    watch = threading.Thread(target=_interrupt_queries, args=(heard,), daemon=True)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(woken_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        written.close()
        watch.join()
        heard.close()


@contextmanager
def interruptible(connection: Connection) -> Iterator[Connection]:
    """While it is used, a signal ends the query that it runs: Python hears a signal only when DuckDB gives it the word back, which
    it does between tasks of its own thread, and not while another thread of it works at a statement."""
    _queries.append(connection)
    try:
        yield connection
    finally:
        _queries.remove(connection)


def _interrupt_queries(heard: socket.socket) -> None:
    """Ends the queries under way at every signal, until the other end is closed. The signal's own handler runs when they have ended."""
    while heard.recv(64):
        for connection in [*_queries]:
            connection.interrupt()


def _stop(number: int, _frame: FrameType | None) -> None:
    _stopped_by.append(number)
    raise KeyboardInterrupt
