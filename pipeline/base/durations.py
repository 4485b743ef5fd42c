"""Lengths of time in words, as the command and the pages say them."""

from __future__ import annotations

_UNITS = ((3600, "hour"), (60, "minute"), (1, "second"))


def in_words(seconds: int) -> str:
    """In the largest unit that divides it: 30 seconds, 5 minutes, 1 hour."""
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    count = seconds // size
    return f"{count:,} {unit}{'s' if count > 1 else ''}"
