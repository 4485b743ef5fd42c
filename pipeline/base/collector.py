"""How often Python looks for cycles among its objects: a build holds millions that live to its end, and with the usual thresholds each look
over all of them costs more than it finds (a seventh of the CPU of a site of 3,400 models)."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# objects made since the last look; looks at the youngest for one at the middle; of these for one at all
SELDOM = (100_000, 50, 100)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Looks seldom while the block runs, in this process."""
    usual = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
