"""An autoencoder or a ControlNet by itself, held to the library's counts (tests/oracle/count_parts.py)."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config

FILE = Path(__file__).parents[1] / "oracle" / "parts.csv"
with FILE.open(newline="", encoding="utf-8") as file:
    ROWS = [
        ({"_class_name": row["class_name"], **json.loads(row["config_json"])}, int(row["parameter_count"]))
        for row in csv.DictReader(file)
    ]


def test_counts_are_the_librarys():
    assert {config["_class_name"] for config, _ in ROWS} == {"AutoencoderKL", "ControlNetModel"}
    assert [read_config(config).parameter_count for config, _ in ROWS] == [count for _, count in ROWS]


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (0, {"mid_block_type": "another"}),
        (0, {"down_block_types": ["AttnDownEncoderBlock2D"] * 4}),
        (0, {"out_channels": 7}),
        (4, {"class_embed_type": "timestep"}),
        (4, {"mid_block_type": "UNetMidBlock2D"}),
        (4, {"addition_embed_type": "image"}),
        (4, {"of_my_own": 3}),
    ],
)
def test_what_nobody_described_is_unknown(at, said):
    with pytest.raises(UnknownAnatomy, match=next(iter(said))):
        read_config(ROWS[at][0] | said)


def test_broken_fields_are_set_aside():
    """Neither a size below nothing nor one beyond any model comes to a number."""
    for config in (ROWS[0][0], ROWS[4][0], ROWS[7][0]):
        for name in config:
            for broken in (-1, [], [0], 10**30, {"a": 1}):
                if name == "_class_name" or (broken == [] and isinstance(config[name], bool)):
                    continue
                try:
                    count = read_config(config | {name: broken}).parameter_count
                except (UnknownAnatomy, ContradictoryConfig):
                    continue
                assert 0 < count < 10**15, (name, broken)
