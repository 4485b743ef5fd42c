"""Autoencoders of video, and parts that stand beside them, which were published in one or two shapes: counted by the library and listed, not
described.

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


def shape_of(fields: Fields) -> dict[str, Any] | None:
    """`parameter_count`, `leaf_element_count` and `hidden_size`, and the `plan` where the shapes differ; None of a class that is not listed."""
    row = listed().get(fields.text("_class_name") or "")
    if row is None or any(_differs(fields.raw(name), value) for name, value in row.get("only", {}).items()):
        return None
    defaults, config = row["defaults"], fields.config
    nearest: list[str] = []
    for shape in row["shapes"]:
        published = defaults | shape["said"]
        unlike = sorted(n for n, taken in defaults.items() if _differs(config.get(n, taken), published[n]))
        nearest = min(nearest or unlike, unlike, key=len)
        if not unlike:
            return {name: value for name, value in shape.items() if name != "said"}
    raise UnknownAnatomy(f"a '{row['class_name']}' is described as published, and not with this {nearest[0]}")


def _differs(one: Any, other: Any) -> bool:
    """As JSON says it: 1 is not true."""
    return json.dumps(one, sort_keys=True, default=str) != json.dumps(other, sort_keys=True, default=str)
