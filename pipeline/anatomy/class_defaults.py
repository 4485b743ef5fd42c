"""The default config of every described class of transformers. The list is made by tests/oracle/list_class_defaults.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[2] / "tables" / "library" / "class_default.jsonl"


@cache
def class_defaults() -> dict[str, dict]:
    """Default configs by model_type."""
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    return {row["model_type"]: row["config"] for row in rows}


def of_class(model_type: str | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """These values, or what the class defaults to where it has such a field."""
    own = class_defaults().get(model_type or "", {})
    return {name: own.get(name, value) for name, value in values.items()}
