"""What Transformers' classes do where no config says it: the default config of each described class, and which of them write their
attention out. The lists are made by tests/oracle/list_class_defaults.py and list_written_out.py.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pipeline import ROOT

LIBRARY = ROOT / "tables" / "library"
FILE = LIBRARY / "class_default.jsonl"
WRITTEN_OUT = LIBRARY / "written_out.csv"


@cache
def class_defaults() -> dict[str, dict]:
    """Default configs by model_type."""
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    return {row["model_type"]: row["config"] for row in rows}


def of_class(model_type: str | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """These values, or what the class defaults to where it has such a field."""
    own = class_defaults().get(model_type or "", {})
    return {name: own.get(name, value) for name, value in values.items()}


@cache
def written_out() -> frozenset[str]:
    """The model_types whose classes have no fused attention, whatever is asked for."""
    with WRITTEN_OUT.open(newline="", encoding="utf-8") as file:
        return frozenset(row["model_type"] for row in csv.DictReader(file))
