"""Reading a config that may be missing, mistyped, hostile or simply wrong: every access says what it expected.

`Fields(config).count("hidden_size")` returns a positive integer or raises: `UnknownAnatomy` where the field is missing,
`ContradictoryConfig` where its value is impossible. Later names are synonyms, tried in turn: `count("n_embd", "hidden_size")`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sized
from typing import Any

from pipeline.anatomy.class_defaults import unsaid, unsaid_in
from pipeline.anatomy.rows import ContradictoryConfig, UnknownAnatomy
from pipeline.base.bounds import LARGEST_SIZE, MOST_REPEATS, MOST_SHOWN, MOST_TENSOR_ROWS

_MISSING = object()
# What a model of its own has to say of its width and depth, whatever its class takes: without them a config is of no model.
WIDTH_AND_DEPTH = (
    "hidden_size", "dim", "n_embd", "d_model", "emb_dim", "num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers",
    "decoder_layers",
)  # fmt: skip


class Fields:
    """One config, or one nested in another, and what its class in the library takes where it is silent."""

    def __init__(
        self,
        config: Mapping[str, Any],
        where: str = "config",
        of_class: Mapping[str, Any] | None = None,
        *,
        may_be_unsaid: bool = False,
        but: Collection[str] = (),
        is_pinned: bool = False,
    ):
        """`of_class`: what the class of a nested config takes where it is silent and names no class itself. `may_be_unsaid`, `but`: of
        `filled`. `is_pinned`: of `read_as`."""
        if not isinstance(config, Mapping):
            raise ContradictoryConfig(f"{where} is a {type(config).__name__}, not an object")
        self.config = config
        self.where = where
        self._of_class = of_class or {}
        self.may_be_unsaid = may_be_unsaid
        self._but = but
        self._is_pinned = is_pinned

    def but(self, changes: Mapping[str, Any]) -> Fields:
        """The same config with these fields changed."""
        kept = {"may_be_unsaid": self.may_be_unsaid, "but": self._but, "is_pinned": self._is_pinned}
        return Fields({**self.config, **changes}, self.where, self._of_class, **kept)

    def read_as(self, model_type: str) -> Fields:
        """The same config under the rules of another type; what it does not say is still what its own class takes."""
        return Fields({**self.config, "model_type": model_type}, self.where, self.unsaid, is_pinned=True)

    def filled(self, but: Collection[str] = ()) -> Fields:
        """The same config, any size of which may be left to its class: of parts, and of families whose sizes need not be said. `but`
        for those that have to be."""
        kept = {"is_pinned": self._is_pinned}
        return Fields(self.config, self.where, self._of_class, may_be_unsaid=True, but=but, **kept)

    @property
    def unsaid(self) -> Mapping[str, Any]:
        """What the class of this config takes where it is silent (tables/library/class_default.jsonl)."""
        if self._is_pinned:
            return self._of_class
        own = dict.get(self.config, "model_type") if isinstance(self.config, dict) else self.config.get("model_type")
        held = unsaid(own) if isinstance(own, str) else None
        return self._of_class if held is None else held

    def by_class(self, *names: str) -> Any:
        """The first of these fields that the class has a value for; None where it has none."""
        held = self.unsaid
        return next((held[name] for name in names if name in held), None)

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
            if default is _MISSING and self.may_be_unsaid and not any(name in self._but for name in names):
                default = self._or_missing(*names)
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

    def known(self, *names: str) -> int | None:
        """A count, or None where neither the config nor, if it may leave it unsaid, its class has one."""
        return self.count(*names, default=self.by_class(*names) if self.may_be_unsaid else None)

    def repeats(self, *names: str, default: Any = _MISSING, least: int = 0) -> Any:
        """A count that a loop runs over or that multiplies a list: layers, blocks. As `count`, and no more than MOST_REPEATS."""
        value = self.count(*names, default=default, least=least)
        if value is not None and value > MOST_REPEATS:
            raise ContradictoryConfig(f"{self.where}.{names[0]} is {value}, more than any model repeats")
        return value

    def size(self, *names: str, least: int = 1, otherwise: int | None = None) -> int:
        """As `count`, and where the config is silent what its class takes: for all sizes but those that shape the whole (width, layers,
        vocabulary, feed-forward), without which a config is of no model. `otherwise`: for types whose class has no such field."""
        held = self._or_missing(*names)
        return self.count(
            *names, least=least, default=otherwise if held is _MISSING and otherwise is not None else held
        )

    def times(self, *names: str, least: int = 0) -> int:
        """As `repeats`, and where the config is silent what its class takes."""
        return self.repeats(*names, least=least, default=self._or_missing(*names))

    def _or_missing(self, *names: str) -> Any:
        held = self.by_class(*names)
        return held if isinstance(held, int | float) and not isinstance(held, bool) else _MISSING

    def flag(self, *names: str, default: bool | None = None) -> bool:
        """True or false; where the field is missing `default`, or what the class takes, which is false where it has no such field.
        A null that is written down is false to the class, whatever its default, or refused by it: then nothing loads this config."""
        value = self.raw(*names)
        if value is None and self.is_null(*names):
            refused = next((n for n in names if n in self.config and n in getattr(self.unsaid, "strict", ())), None)
            if refused:
                raise UnknownAnatomy(f"{self.where}.{refused} is null, which its class refuses")
            return False
        if value is None:
            return self.by_class(*names) is True if default is None else default
        if not isinstance(value, bool):
            raise ContradictoryConfig(f"{self.where}.{names[0]} is {_shown(value)}, not true or false")
        return value

    def number(self, *names: str, default: float | None = None) -> float | None:
        """A finite number, at least 0; where the field is missing `default`, or what the class takes."""
        value = self.raw(*names)
        if value is None:
            held = self.by_class(*names) if default is None else default
            return held if isinstance(held, int | float) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ContradictoryConfig(f"{self.where}.{names[0]} is {_shown(value)}, not a number")
        return value

    def text(self, *names: str, default: str | None = None) -> str | None:
        """A word; where the field is missing `default`, or what the class takes."""
        value = self.raw(*names)
        if value is None:
            held = self.by_class(*names) if default is None else default
            return held if isinstance(held, str) else None
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
        return Fields(value, f"{self.where}.{name}", unsaid_in(self.unsaid.get(names[0])))

    def silent(self, name: str) -> Fields:
        """A nested config that says nothing: its class says all."""
        return Fields({}, f"{self.where}.{name}", unsaid_in(self.unsaid.get(name)))

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
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
