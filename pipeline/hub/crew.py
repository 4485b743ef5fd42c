"""A few threads that ask while one waits, and that nobody has to wait for when it is told to stop.

The pool of the standard library waits for what is under way, at its own end and at the program's, and a wait without a limit is begun
anew where a library has set a handler of its own for Ctrl-C (polars does). Here the one who waits looks up several times a second.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item, Result = TypeVar("Item"), TypeVar("Result")
_LOOKS_UP = 0.2  # seconds
_GRACE, _HASTE = (
    5.0,
    0.3,
)  # seconds that are given to what is under way: when the work is broken off, and when a person does


def each(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, stop: Callable[[], None]
) -> Iterator[tuple[Item, Result]]:
    """Each item with what `work` makes of it, as it is done. What `work` raises is raised here.

    Where it is not read to its end, `stop` is called, which has to wake what waits inside `work`.
    """
    rest, lock = iter(items), threading.Lock()
    done: queue.SimpleQueue = queue.SimpleQueue()
    ended = threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            with lock:
                item = next(rest, _END)
            if item is _END:
                break
            try:
                done.put((item, work(item), None))
            except BaseException as error:
                done.put((item, None, error))
        done.put(None)

    crew = [threading.Thread(target=go_on, daemon=True) for _ in range(threads)]
    for one in crew:
        one.start()
    at_work, patience = threads, _GRACE
    try:
        while at_work:
            try:
                found = done.get(timeout=_LOOKS_UP)
            except queue.Empty:
                continue
            if found is None:
                at_work -= 1
                continue
            item, result, error = found
            if error is not None:
                raise error
            yield item, result
    except KeyboardInterrupt:
        patience = _HASTE
        raise
    finally:
        ended.set()
        if at_work:
            stop()
            until = time.monotonic() + patience
            for one in crew:
                one.join(max(0.0, until - time.monotonic()))


_END = object()
