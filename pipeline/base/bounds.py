"""What no honest value of the Hub exceeds, and which characters no text of a record may hold."""

from __future__ import annotations

import re

LARGEST_TOTAL = 10**15  # elements or bytes; a thousand times the largest model
LARGEST_SIZE = 10**8  # of a dimension, in elements or tokens; no model comes near: a larger one is a lie or a typo
# How often anything may be repeated: layers, blocks, prediction layers, entries of a list. The deepest published model has some
# hundreds; a reader may run a loop over such a count or multiply a list by it, and still be done soon and in little memory.
MOST_REPEATS = 10_000
MOST_TENSOR_ROWS = 100_000  # rows of one model or part, where counts are nested
MOST_SHOWN = 60  # characters of what a config says that a reason repeats
_LONGEST_NAME = 200  # characters; ids of the Hub have 193 at most
# control characters, marks that turn the direction of text, halves of characters
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Text from strangers with those characters by their number, so that it rearranges neither a terminal nor a line."""
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def in_words(text: str) -> str:
    """A name that somebody asked for, in a sentence: the same, and no longer than a few lines."""
    return visible(text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…")
