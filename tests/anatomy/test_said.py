"""What a config writes down otherwise than its class's default: readers make of a null, of a flag that ties and of a size what the class makes of it.

tests/oracle/said.csv has the library's own counts (tests/oracle/count_said.py). A reader that refuses with a reason is no fault; another number is.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from pipeline.anatomy import Anatomy, ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.class_defaults import class_defaults

ORACLE = Path(__file__).parents[1] / "oracle"
sys.path.insert(0, str(ORACLE))

from count_multimodal import shorten  # noqa: E402


def rows() -> dict[str, list[dict[str, str]]]:
    found = defaultdict(list)
    with (ORACLE / "said.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["model_type"]].append(row)
    return found


ROWS = rows()


def put(config: dict, place: list[str], value) -> dict:
    name, *rest = place
    return {**config, name: put(config[name], rest, value) if rest else value}


def bases(row: dict[str, str]) -> list[dict]:
    """The class's default with few layers, or whole where the library cannot build it so."""
    default = class_defaults()[row["model_type"]]
    named = {"architectures": [row["class_name"]]}
    return [shorten(default) | named, default | named]


def base(rows: list[dict[str, str]]) -> dict | None:
    """The one that the rows were counted from: with nothing changed its count is theirs."""
    unchanged = next(row for row in rows if row["said"].startswith("["))
    for config in bases(unchanged):
        found = read(config)
        if found and found.parameter_count == int(unchanged["parameter_count"]):
            return config
    return None


def read(config: dict) -> Anatomy | None:
    try:
        return read_config(config)
    except (UnknownAnatomy, ContradictoryConfig):
        return None


@pytest.mark.parametrize("model_type", sorted(ROWS))
def test_what_is_said_is_what_the_class_makes_of_it(model_type):
    start, wrong = base(ROWS[model_type]), []
    if start is None:
        pytest.skip("a default that the reader refuses with a reason")
    for row in ROWS[model_type]:
        said = json.loads(row["said"])
        for changes in [{name: None} for name in said] if isinstance(said, list) else [said]:
            config = start
            for name, value in changes.items():
                config = put(config, name.split("."), value)
            found = read(config)
            if found is None:
                continue
            if found.parameter_count != int(row["parameter_count"]):
                wrong.append((changes, found.parameter_count, int(row["parameter_count"])))
            if row["is_head_tied"] == "true" and not found.is_head_tied:
                wrong.append((changes, "is tied"))
            if row["becomes"]:
                name = next(iter(changes))
                there = read(put(config, name.split("."), json.loads(row["becomes"])))
                if there and (there.tensors, there.attention) != (found.tensors, found.attention):
                    wrong.append((changes, "is not what it becomes", row["becomes"]))
    assert not wrong


def test_the_list_is_rich_enough_to_mean_something():
    assert len(ROWS) > 250
    answered = [model_type for model_type in ROWS if base(ROWS[model_type])]
    assert len(answered) > 0.9 * len(ROWS)
    nulls = [row for of_type in ROWS.values() for row in of_type if "null" in row["said"]]
    assert len(nulls) > 100
