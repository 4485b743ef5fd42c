"""Reading a config that may be missing, mistyped, hostile or simply wrong: every access says what it expected.

`Fields(config).count("hidden_size")` returns a positive integer or raises: `UnknownAnatomy` where the field is missing,
`ContradictoryConfig` where its value is impossible. Later names are synonyms, tried in turn: `count("n_embd", "hidden_size")`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

from pipeline.anatomy.rows import ContradictoryConfig, UnknownAnatomy
from pipeline.base.bounds import LARGEST_SIZE, MOST_REPEATS, MOST_TENSOR_ROWS

_MISSING = object()


class Fields:
    def __init__(self, config: Mapping[str, Any], where: str = "config"):
        if not isinstance(config, Mapping):
            raise ContradictoryConfig(f"{where} is a {type(config).__name__}, not an object")
        self.config = config
        self.where = where

    def raw(self, *names: str, default: Any = None) -> Any:
        """The first of these fields that is present and not null, whatever its type."""
        for name in names:
            value = self.config.get(name)
            if value is not None:
                return value
        return default

    def is_null(self, *names: str) -> bool:
        """Whether the config has one of these fields and none has a value: a class that is told null does not take its default."""
        return self.raw(*names) is None and any(name in self.config for name in names)

    def count(self, *names: str, default: Any = _MISSING, least: int = 1) -> Any:
        """An integer of at least `least`. Floats with an integer value and decimal strings are taken; booleans are not."""
        value = self.raw(*names)
        if value is None:
            if default is _MISSING:
                raise UnknownAnatomy(f"{self.where} has no {' or '.join(names)}")
            return default
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ContradictoryConfig(f"{self.where}.{names[0]} is {_shown(value)}, not a whole number")
        if not least <= value <= LARGEST_SIZE:
            raise ContradictoryConfig(f"{self.where}.{names[0]} is {_shown(value)}, outside {least} to {LARGEST_SIZE}")
        return value

    def repeats(self, *names: str, default: Any = _MISSING, least: int = 0) -> Any:
        """A count that a loop runs over or that multiplies a list: layers, blocks. As `count`, and no more than MOST_REPEATS."""
        value = self.count(*names, default=default, least=least)
        if value is not None and value > MOST_REPEATS:
            raise ContradictoryConfig(f"{self.where}.{names[0]} is {value}, more than any model repeats")
        return value

    def flag(self, *names: str, default: bool = False) -> bool:
        """True or false; `default` where the field is missing. A null that is written down is false to the class, whatever its default."""
        value = self.raw(*names)
        if value is None:
            return default and not self.is_null(*names)
        if not isinstance(value, bool):
            raise ContradictoryConfig(f"{self.where}.{names[0]} is {_shown(value)}, not true or false")
        return value

    def number(self, *names: str, default: float | None = None) -> float | None:
        """A finite number, at least 0."""
        value = self.raw(*names)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ContradictoryConfig(f"{self.where}.{names[0]} is {_shown(value)}, not a number")
        return value

    def text(self, *names: str, default: str | None = None) -> str | None:
        value = self.raw(*names)
        if value is None:
            return default
        if not isinstance(value, str):
            raise ContradictoryConfig(f"{self.where}.{names[0]} is {_shown(value)}, not text")
        return value

    def items(self, *names: str, length: int | None = None) -> list | None:
        """A list (of the given length, if one is given), or None where the field is missing."""
        value = self.raw(*names)
        if value is None:
            return None
        if not isinstance(value, list):
            raise ContradictoryConfig(f"{self.where}.{names[0]} is {_shown(value)}, not a list")
        if len(value) > MOST_REPEATS:
            raise ContradictoryConfig(f"{self.where}.{names[0]} has {len(value)} entries, more than any model needs")
        if length is not None and len(value) != length:
            raise ContradictoryConfig(f"{self.where}.{names[0]} has {len(value)} entries for {length} layers")
        return value

    def inner(self, *names: str) -> Fields | None:
        """A nested config, or None where it is missing."""
        value = self.raw(*names)
        if value is None:
            return None
        name = next(n for n in names if self.config.get(n) is not None)
        return Fields(value, f"{self.where}.{name}")

    def divide(self, whole: int, by: int, what: str) -> int:
        """whole ÷ by where it divides; heads that do not divide are a contradiction."""
        if by < 1 or whole % by:
            raise ContradictoryConfig(f"{self.where}: {what} {whole} does not divide by {by}")
        return whole // by


def no_more_rows(rows: Sized, what: str) -> None:
    """Before a row is added to these. Raises ContradictoryConfig where counts that are nested have made more than any model has."""
    if len(rows) >= MOST_TENSOR_ROWS:
        raise ContradictoryConfig(f"{what} would be more than {MOST_TENSOR_ROWS:,} rows of tensors")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
