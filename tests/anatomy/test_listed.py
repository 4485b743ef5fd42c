"""Classes whose tensors the library lists as terms of the config (tests/oracle/list_modules.py), held to counts that no term was made from."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.families.listed import listed
from pipeline.anatomy.model_classes import described
from tests.cases import in_case

FILE = Path(__file__).parents[1] / "oracle" / "modules.csv"
ROWS = [lines[0] for rows in listed().values() for lines in rows.values()]  # the class's own default


def least(row: dict) -> dict:
    """The shortest config of a class: what it has no default for, and what has to be said."""
    said = {place: 40 for place, value in row["fields"].items() if value is None and place not in row["pinned"]}
    config = {"model_type": row["model_type"], "architectures": [row["class_name"]], **said}
    for place in row["told"]:
        put(config, place, row["fields"][place])
    return config


def put(config: dict, place: str, value) -> None:
    """A value into a nested place: `a.b`, or an entry of a list as `a[0]`, in the order of the entries."""
    *way, last = place.split(".")
    for step in way:
        config = config.setdefault(step, {})
    name, _, entry = last.partition("[")
    if entry:
        config.setdefault(name, []).append(value)
    else:
        config[name] = value


def counted() -> list[dict[str, str]]:
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def test_counts_are_the_librarys():
    rows = counted()
    assert {(row["model_type"], row["architecture"]) for row in rows} == {
        (r["model_type"], r["class_name"]) for r in ROWS
    }
    assert len(rows) > 2 * len(ROWS)
    for row in rows:
        config = {
            "model_type": row["model_type"],
            "architectures": [row["architecture"]],
            **json.loads(row["config_json"]),
        }
        anatomy = read_config(config)
        held = {
            o: sum(t.element_count for t in anatomy.tensors if t.operator == o) for o in ("linear", "linear-subclass")
        }
        assert anatomy.parameter_count == int(row["parameter_count"]), (row["architecture"], row["config_json"])
        assert held["linear-subclass"] == int(row["linear_subclass"])
        assert held["linear"] == int(row["linear"]), (row["architecture"], row["config_json"])


def test_a_field_that_is_described_for_one_value_makes_another_unknown():
    for row in ROWS:
        with in_case(row["class_name"]):
            known = read_config(least(row))
            assert described()[row["model_type"]][row["class_name"]]["held_by"] == "counted"
            for place in row["pinned"]:
                if "." in place or "[" in place:
                    continue
                default = row["fields"][place]
                other = {
                    bool: not default,
                    int: (default if type(default) is int else 0) + 7,
                    float: 7.5,
                    str: "of my own",
                    list: ["of my own"],
                }.get(type(default), 7)
                if other not in [line["fields"].get(place) for line in listed()[row["model_type"]][row["class_name"]]]:
                    with pytest.raises(UnknownAnatomy, match="labels" if place == "num_labels" else place):
                        read_config({**least(row), place: other})
                if place in row["told"]:
                    with pytest.raises(UnknownAnatomy, match=f"has no {place}"):
                        read_config({name: value for name, value in least(row).items() if name != place})
                assert read_config({**least(row), place: default}).tensors == known.tensors


def test_broken_fields_are_set_aside():
    for row in ROWS:
        with in_case(row["class_name"]):
            known = read_config(least(row)).parameter_count
            for place, value in row["fields"].items():
                if (
                    place in row["pinned"]
                    or "." in place
                    or "[" in place
                    or place == "num_labels"
                    or isinstance(value, float)
                ):
                    continue
                for broken in (-1, "x" * 40, [1, 2], 10**30, 1.5, None):
                    with pytest.raises((ContradictoryConfig, UnknownAnatomy)):
                        read_config({**least(row), place: broken})
                assert known > 0


def test_what_they_cache_and_compute_is_unknown_with_a_reason():
    anatomy = read_config(least(ROWS[0]))
    assert (anatomy.layer_count, anatomy.hidden_size, anatomy.attention, anatomy.towers) == (None, None, (), ())


def test_a_backbone_of_another_name_is_another_line_or_unknown():
    config = least(listed()["table-transformer"]["TableTransformerForObjectDetection"][0])
    for said in ({"backbone": "resnet101"}, {"backbone_config": {"model_type": "resnet"}}):
        with pytest.raises(UnknownAnatomy, match="backbone"):
            read_config({**config, **said})
    small, large = (read_config({**config, "backbone": name}).parameter_count for name in ("resnet18", "resnet50"))
    assert small < large == read_config(config).parameter_count
    labels = {"id2label": {"0": "table", "1": "table rotated"}, "num_queries": 15}
    published = read_config({**config, **labels, "backbone": "resnet18", "use_timm_backbone": True})
    assert published.parameter_count == 28_799_431  # of table-transformer-detection, as the library builds it


def test_lists_of_another_length_are_unknown():
    row = next(row for row in ROWS if row["lengths"] and not any("." in place for place in row["lengths"]))
    place, length = next(iter(row["lengths"].items()))
    with pytest.raises(UnknownAnatomy, match=f"{place} has {length + 1} entries, and {length} are described"):
        read_config({**least(row), place: [8] * (length + 1)})


def test_a_config_of_another_package_is_known_by_its_own_fields():
    for model_type in ("kokoro", "xtts", "unidepth"):
        row = next(iter(listed()[model_type].values()))[0]
        config = {name: value for name, value in least(row).items() if name not in ("model_type", "architectures")}
        said = config | ({"model": "xtts"} if model_type == "xtts" else {})
        assert read_config(said).tensors == read_config(least(row)).tensors
        with pytest.raises(UnknownAnatomy):
            read_config({**said, "model": "another"} if model_type != "kokoro" else {**said, "istftnet": None})


@pytest.mark.parametrize("row", [pytest.param(row, id=row["class_name"]) for row in ROWS if row["told"]])
def test_every_field_that_shapes_a_model_of_another_package_is_read(row):
    for place in row["told"]:
        config, steps = json.loads(json.dumps(least(row))), place.replace("[", ".").replace("]", "").split(".")
        inner = config
        for step in steps[:-1]:
            inner = inner[int(step) if isinstance(inner, list) else step]
        last = int(steps[-1]) if isinstance(inner, list) else steps[-1]
        default = row["fields"][place]
        inner[last] = (
            (not default)
            if isinstance(default, bool)
            else "another"
            if isinstance(default, str | list)
            else (default or 0) + 1
        )
        with pytest.raises(UnknownAnatomy):
            read_config(config)
