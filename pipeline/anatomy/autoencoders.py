"""Autoencoders of video that were published in one shape: counted by the library and listed, not described.

tables/library/autoencoder.jsonl (tests/oracle/list_autoencoders.py) says by class which fields may shape a tensor, what the class takes where a
config is silent, and what the published shapes weigh. A config that says anything else is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pipeline import ROOT
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import UnknownAnatomy

FILE = ROOT / "tables" / "library" / "autoencoder.jsonl"


@cache
def listed() -> Mapping[str, Mapping[str, Any]]:
    """The lines by class."""
    rows = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    return {row["class_name"]: row for row in rows}


def shape_of(fields: Fields) -> dict[str, int] | None:
    """`parameter_count`, `leaf_element_count` and `hidden_size`; None of a class that is not listed."""
    row = listed().get(fields.text("_class_name") or "")
    if row is None or any(_differs(fields.raw(name), value) for name, value in row.get("only", {}).items()):
        return None
    defaults, config = row["defaults"], fields.config
    unlike: list[str] = []
    for shape in row["shapes"]:
        published = defaults | shape["said"]
        unlike = sorted(n for n, taken in defaults.items() if _differs(config.get(n, taken), published[n]))
        if not unlike:
            return {name: shape[name] for name in ("parameter_count", "leaf_element_count", "hidden_size")}
    raise UnknownAnatomy(
        f"an autoencoder '{row['class_name']}' is described as published, and not with this {unlike[0]}"
    )


def _differs(one: Any, other: Any) -> bool:
    """As JSON says it: 1 is not true."""
    return json.dumps(one, sort_keys=True, default=str) != json.dumps(other, sort_keys=True, default=str)
