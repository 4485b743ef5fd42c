"""Hundreds of cases of a moment each are one test: as tests of their own they cost more to list, to hand out and to report than to run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def in_case(name: object) -> Iterator[None]:
    """What goes wrong meanwhile says in which case it did."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {name}")
        raise
