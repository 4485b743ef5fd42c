"""The default config of every described class of transformers, as records that may lend their shape.

Many classes default to the first model that they were written for. The list is made by tests/oracle/list_class_defaults.py.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from pipeline.hub.record import Record

FILE = Path(__file__).resolve().parents[2] / "tables" / "library" / "class_default.jsonl"


@cache
def class_defaults() -> dict[str, dict]:
    """Default configs by model_type."""
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    return {row["model_type"]: row["config"] for row in rows}


def default_records() -> list[Record]:
    return [
        Record(
            model_id=f"transformers/{model_type}",
            config=config,
            config_kind="library_defaults",
            config_source=f"transformers-5.23.0: defaults of class {model_type}",
            config_sources=("transformers-5.23.0",),
        )
        for model_type, config in class_defaults().items()
    ]
