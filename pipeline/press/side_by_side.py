"""Questions to DuckDB two at a time, answered in the order in which they were asked.

DuckDB plans a question on one core, hands out its rows in groups of 122,880, and waits while what it found is written: one question
after another leaves half of two cores idle. Each question is asked by a cursor of its own, so that what it puts down as temporary is its
own too; what all of them read must be a table of the file.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TypeVar

import duckdb

from pipeline.base.failures import interruptible

HANDS = 2  # more would ask for more memory, and DuckDB's own threads fill a larger machine

Item = TypeVar("Item")
Found = TypeVar("Found")


def side_by_side(
    connection: duckdb.DuckDBPyConnection,
    work: Callable[[duckdb.DuckDBPyConnection, Item], Found],
    items: Iterable[Item],
) -> Iterator[Found]:
    """`work(cursor, item)` of every item, in their order. No more is worked out ahead than there are hands; an error of one ends all."""
    hands = min(HANDS, os.cpu_count() or 1)
    ((database, schema),) = connection.execute("SELECT current_database(), current_schema()").fetchall()
    idle: SimpleQueue[duckdb.DuckDBPyConnection] = SimpleQueue()

    def asked(item: Item) -> Found:
        cursor = idle.get()
        try:
            return work(cursor, item)
        finally:
            idle.put(cursor)

    with ExitStack() as stack:
        cursors = [stack.enter_context(interruptible(stack.enter_context(connection.cursor()))) for _ in range(hands)]
        for cursor in cursors:
            cursor.execute(f'USE "{database}"."{schema}"')
            idle.put(cursor)
        pool = ThreadPoolExecutor(hands, "side by side")
        waiting: deque[Future[Found]] = deque()
        try:
            for item in items:
                if len(waiting) > hands:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(asked, item))
            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            for cursor in cursors:
                cursor.interrupt()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
