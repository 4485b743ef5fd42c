"""Models of timm, whose configs name an architecture of the library and no sizes: held to its counts (tests/oracle/list_timm.py)."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.towers.timm import CELL_PIXELS, listed

FILE = Path(__file__).parents[1] / "oracle" / "timm.csv"
ROWS = [row for rows in listed().values() for row in rows]
RESNET = {"architecture": "resnet18", "num_classes": 1000, "pretrained_cfg": {"input_size": [3, 224, 224]}}
VIT = {"architecture": "vit_base_patch16_224", "num_classes": 1000, "pretrained_cfg": {"input_size": [3, 224, 224]}}


def config_of(row: dict, classes: int) -> dict:
    return {
        "architecture": row["architecture"],
        "num_classes": classes,
        "pretrained_cfg": {"input_size": row["input_size"]},
    }


def test_every_row_adds_up_to_the_count_of_the_library():
    assert len(ROWS) >= 60
    for row in ROWS:
        assert read_config(config_of(row, 1000)).parameter_count == row["parameter_count"], row["architecture"]


def test_other_classifiers_and_none_have_the_count_of_the_library():
    with FILE.open(newline="") as file:
        counted = list(csv.DictReader(file))
    assert {row["num_classes"] for row in counted} >= {"0", "7", "21841"} and len(counted) > 60
    for row in counted:
        size = [int(n) for n in row["input_size"].split("x")]
        anatomy = read_config(
            config_of({"architecture": row["architecture"], "input_size": size}, int(row["num_classes"]))
        )
        linear = sum(t.element_count for t in anatomy.tensors if t.operator == "linear")
        assert (anatomy.parameter_count, linear) == (int(row["parameter_count"]), int(row["linear"])), row


def test_a_picture_takes_what_was_counted():
    for row in ROWS:
        (tower,) = read_config(config_of(row, 1000)).towers
        pixels = row["input_size"][1] * row["input_size"][2]
        tokens = row["tokens"] if row["is_fixed"] else pixels / CELL_PIXELS
        held = tokens * (tower.input_elements + tower.stem_elements)
        assert row["peak_elements"] <= held * 1.0001 <= row["peak_elements"] * 1.05 + 1024, row["architecture"]
        assert (tower.grid == "fixed") == row["is_fixed"]
        assert (
            tower.default_pixels in (0, pixels) and tower.hidden_size > 0
        )  # of which a table of towers has at least 1


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (RESNET | {"architecture": "resnet18_of_mine"}, "'resnet18_of_mine' is not described"),
        (RESNET | {"pretrained_cfg": {"input_size": [1, 224, 224]}}, "not described for pictures"),
        (VIT | {"pretrained_cfg": {"input_size": [3, 512, 512]}}, "not described for pictures"),
        (VIT | {"model_args": {"img_size": 512}}, "not described for pictures"),
        (VIT | {"model_args": {"depth": 13}}, "model_args.depth"),
        (VIT | {"global_pool": "map"}, "global_pool 'map'"),
        ({k: v for k, v in RESNET.items() if k != "num_classes"}, "how many classes"),
        ({"model_type": "timm_wrapper", "num_classes": 2}, "names no architecture"),
    ],
)
def test_what_the_list_does_not_have_is_unknown(config, reason):
    with pytest.raises(UnknownAnatomy, match=reason):
        read_config(config)


@pytest.mark.parametrize(
    "broken",
    [
        {"num_classes": -1},
        {"num_classes": "many"},
        {"pretrained_cfg": {"input_size": [3, 224]}},
        {"pretrained_cfg": {"input_size": [3, 0, 224]}},
        {"pretrained_cfg": "resnet18"},
        {"model_args": []},
        {"architecture": 18, "model_type": "timm_wrapper"},
    ],
)
def test_a_broken_config_is_set_aside(broken):
    with pytest.raises((ContradictoryConfig, UnknownAnatomy)):
        read_config(RESNET | broken)


def test_a_network_of_convolutions_takes_any_size_and_other_classes():
    known = read_config(RESNET)
    large = read_config(RESNET | {"pretrained_cfg": {"input_size": [3, 288, 288]}})
    assert large.tensors == known.tensors
    assert read_config(RESNET | {"num_classes": 10}).parameter_count == known.parameter_count - 990 * 513
    assert read_config(json.loads(json.dumps(RESNET)) | {"model_args": None}).tensors == known.tensors
