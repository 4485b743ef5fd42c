"""How a checkpoint is packed whose own config is not at hand: what the shape was taken from, or a shortened config, is silent about that.

A row of tables/library/packed_like.csv names the repository and the quantisation config that it was published with, or that of a
relative of which sources say that it is packed alike. A config that names a quantiser itself is not touched.
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import cache
from typing import Any

from pipeline import ROOT
from pipeline.confirm.formats import is_quantised
from pipeline.hub.record import Record

FILE = ROOT / "tables" / "library" / "packed_like.csv"
_SILENT = ("sibling", "quoted", "library_defaults")  # a config of its own says by itself whether it is packed


def as_published(record: Record) -> Record:
    packed = _rows().get(record.model_id)
    if packed is None or record.config is None or record.config_kind not in _SILENT or is_quantised(record.config):
        return record
    return replace(record, config={**record.config, "quantization_config": packed})


def is_packed(model_id: str) -> bool:
    """Whether a source says how the checkpoint is packed."""
    return model_id in _rows()


@cache
def _rows() -> dict[str, Any]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return {row["model_id"]: json.loads(row["quantization_json"]) for row in csv.DictReader(file)}
