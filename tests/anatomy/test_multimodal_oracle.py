"""Readers of everything but plain text decoders, held to the library's own counts (tests/oracle/count_multimodal.py)."""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from pipeline.anatomy import read_config

FILE = Path(__file__).parents[1] / "oracle" / "parameters_multimodal.csv"


def _rows() -> dict[str, list[dict[str, str]]]:
    csv.field_size_limit(sys.maxsize)
    rows = defaultdict(list)
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            rows[row["model_type"]].append(row)
    return rows


ROWS = _rows()


@pytest.mark.some(100)
@pytest.mark.parametrize("model_type", sorted(ROWS))
def test_count_is_the_librarys(model_type: str) -> None:
    for row in ROWS[model_type]:
        config = {**json.loads(row["config_json"]), "model_type": model_type, "architectures": [row["architecture"]]}
        anatomy = read_config(config)
        assert anatomy.parameter_count == int(row["parameter_count"]), row


@pytest.mark.some(60)
@pytest.mark.parametrize("model_type", sorted(ROWS))
def test_what_a_quantiser_would_replace_is_the_librarys(model_type: str) -> None:
    """Weights of modules whose type is exactly nn.Linear; a head tied to the embedding is Linear in the library only."""
    for row in ROWS[model_type]:
        config = {**json.loads(row["config_json"]), "model_type": model_type, "architectures": [row["architecture"]]}
        anatomy = read_config(config)
        linear = sum(t.element_count for t in anatomy.tensors if t.operator == "linear")
        shared = max((t.element_count for t in anatomy.tensors if t.role == "embedding"), default=0)
        assert int(row["linear"]) in (linear, linear + shared * anatomy.is_head_tied), row["architecture"]
        subclass = sum(t.element_count for t in anatomy.tensors if t.operator == "linear-subclass")
        assert subclass == int(row["linear_subclass"]), row["architecture"]


def test_the_oracle_is_rich_enough_to_mean_something() -> None:
    assert len(ROWS) > 150
    assert sum(len(rows) for rows in ROWS.values()) > 1000
