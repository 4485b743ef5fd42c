"""Configs that name no model_type: which field tells what they are, rows of tables/library/untyped.csv."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from typing import Any

from pipeline import ROOT

FILE = ROOT / "tables" / "library" / "untyped.csv"


@cache
def _rows() -> tuple[tuple[str, tuple[str, ...], str], ...]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return tuple((row["model_type"], tuple(row["place"].split(".")), row["value"]) for row in csv.DictReader(file))


def type_told(config: Mapping[str, Any]) -> str | None:
    """The type of the one model that has such a field, with that value where a row names one."""
    for model_type, place, value in _rows():
        held: Any = config
        for step in place:
            held = held.get(step) if isinstance(held, Mapping) else None
        if held == value if value else isinstance(held, Mapping | str | int):
            return model_type
    return None
