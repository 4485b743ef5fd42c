"""What Transformers' classes do where no config says it: the default config of each described class, and which of them write their
attention out. The lists are made by tests/oracle/list_class_defaults.py and list_written_out.py.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from pipeline import ROOT

LIBRARY = ROOT / "tables" / "library"
FILE = LIBRARY / "class_default.jsonl"
LIKE = LIBRARY / "class_like.csv"
WRITTEN_OUT = LIBRARY / "written_out.csv"


# What names a class says nothing of its sizes, and how positions are scaled is a matter of the checkpoint.
_NEVER = frozenset({"model_type", "architectures", "_class_name", "rope_parameters", "rope_scaling"})


class Unsaid(dict):
    """What a class takes where a config is silent, and its flags that refuse a null (`strict`)."""

    strict: frozenset[str] = frozenset()


@cache
def _rows() -> dict[str, dict]:
    return {row["model_type"]: row for row in map(json.loads, FILE.read_text(encoding="utf-8").splitlines())}


@cache
def class_defaults() -> dict[str, dict]:
    """Default configs by model_type."""
    return {model_type: row["config"] for model_type, row in _rows().items()}


@cache
def _likes() -> dict[str, str]:
    """Types that the library lacks, whose config class is that of another."""
    with LIKE.open(newline="", encoding="utf-8") as file:
        return {row["model_type"]: row["like"] for row in csv.DictReader(file)}


@cache
def unsaid(model_type: str) -> dict[str, Any] | None:
    """What a config of this type need not say: the class's defaults, but for those that it works out from other fields. None for a
    type that the library has not."""
    row = _rows().get(_likes().get(model_type, model_type))
    return row and _without(row["config"], _NEVER | set(row["derived"]), row.get("nullable", ()))


def _without(config: Mapping[str, Any], places: Collection[str], nullable: Collection[str]) -> Unsaid:
    """A config without these fields; `text_config.head_dim` is one of a nested config. Flags are strict but for those that may be null."""
    kept = Unsaid()
    for name, value in config.items():
        if name not in places:
            is_object = isinstance(value, Mapping)
            kept[name] = _without(value, _below(name, places), _below(name, nullable)) if is_object else value
    kept.strict = frozenset(n for n, v in config.items() if isinstance(v, bool) and n not in nullable)
    return kept


def _below(name: str, places: Collection[str]) -> set[str]:
    return {place.removeprefix(f"{name}.") for place in places if place.startswith(f"{name}.")}


def unsaid_in(nested: object) -> dict[str, Any]:
    """The same of a config that stands in a class's default: of its own class where it names one that the library has."""
    if not isinstance(nested, Mapping):
        return {}
    own = nested.get("model_type")
    found = unsaid(own) if isinstance(own, str) else None
    if found is not None:
        return found
    held = Unsaid((name, value) for name, value in nested.items() if name not in _NEVER)
    held.strict = getattr(nested, "strict", frozenset())
    return held


def of_class(model_type: str | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """These values, or what the class defaults to where it has such a field."""
    own = class_defaults().get(model_type or "", {})
    return {name: own.get(name, value) for name, value in values.items()}


@cache
def written_out() -> frozenset[str]:
    """The model_types whose classes have no fused attention, whatever is asked for."""
    with WRITTEN_OUT.open(newline="", encoding="utf-8") as file:
        return frozenset(row["model_type"] for row in csv.DictReader(file))
