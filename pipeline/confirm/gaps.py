"""What single checkpoints hold where the source of their config is silent, as rows of tables/facts/checkpoint_gap.csv.

A filling is words and changes of a config. It is worth nothing by itself: only a published total that then comes out to the element
confirms it. One applies where every field says what the row asks for: nothing, any value, this very value; a field whose word is
kept changes only where the config is silent.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline import ROOT

FILE = ROOT / "tables" / "facts" / "checkpoint_gap.csv"
_REFERENCE = re.compile(r"@([\w.]+?)(?:\+(\d+))?")
_ANY, _KEPT = "any", "kept"
Config = dict[str, Any]


@dataclass(frozen=True)
class Field:
    place: tuple[str, ...]
    stated: str
    value: str


@dataclass(frozen=True)
class Filling:
    words: str
    model_types: frozenset[str]
    config_kinds: frozenset[str]
    fields: tuple[Field, ...]

    def changed(self, config: Mapping[str, Any]) -> tuple[str, Config] | None:
        """Words and the whole config with this filled in; None where the config says something else than it is for."""
        found, values = dict(config), []
        for field in self.fields:
            stated, value = _at(config, field.place), _value(config, field.value)
            if value is None or not _asks_for(field.stated, stated):
                return None
            values.append(value)
            if not (field.stated == _KEPT and stated is not None):
                found = _with(found, field.place, value)
        return self.words.format(values[0]), found


@cache
def _all() -> tuple[Filling, ...]:
    rows: dict[tuple[str, str, str], list[Field]] = {}
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["filling"], row["model_types"], row["config_kinds"]
            place = tuple(row["field"].split("."))
            rows.setdefault(key, []).append(Field(place, row["stated"], row["value_json"]))
    return tuple(
        Filling(words, frozenset(types.split()), frozenset(kinds.split()), tuple(fields))
        for (words, types, kinds), fields in rows.items()
    )


def fillings_of(model_type: str | None, config_kind: str | None) -> Iterator[Filling]:
    """Those for a config of this type and kind."""
    for filling in _all():
        is_of_type = not filling.model_types or model_type in filling.model_types
        if is_of_type and (not filling.config_kinds or config_kind in filling.config_kinds):
            yield filling


def _asks_for(stated: str, said: Any) -> bool:
    if stated == _KEPT:
        return True
    return said is None if not stated else said is not None and (stated == _ANY or said == json.loads(stated))


def _value(config: Mapping[str, Any], text: str) -> Any:
    """What the row names; of another field, the value there, and None where there is none or nothing to add to."""
    reference = _REFERENCE.fullmatch(text)
    if reference is None:
        return json.loads(text)
    found = _at(config, tuple(reference[1].split(".")))
    if not reference[2]:
        return found
    return found + int(reference[2]) if type(found) is int else None


def _at(config: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        config = config.get(name) if isinstance(config, Mapping) else None
    return config


def _with(config: Mapping[str, Any], place: tuple[str, ...], value: Any) -> Config:
    name, *rest = place
    inner = config.get(name)
    return {**config, name: _with(inner if isinstance(inner, Mapping) else {}, tuple(rest), value) if rest else value}
