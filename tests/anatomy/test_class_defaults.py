"""Where a config is silent the library's class default holds, or there is a reason: every reader, every field.

tables/library/class_default.jsonl has the default config of every described class (tests/oracle/list_class_defaults.py). Each is
read whole and with every field left out in turn. A field left out of a nested config is worth what the nested class defaults to.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.class_defaults import class_defaults
from tests.cases import in_case

EXCEPTIONS = Path(__file__).parents[1] / "oracle" / "exceptions.csv"
DEFAULTS = class_defaults()
# A length that no config states is unknown, whatever the class would take.
LENGTHS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "model_max_length", "rope_parameters", "original_max_position_embeddings",
)  # fmt: skip


def excepted() -> set[tuple[str, str]]:
    with EXCEPTIONS.open(newline="") as file:
        return {(row["model_type"], row["key"]) for row in csv.DictReader(file) if row["table"] == "class_default"}


def places(config: dict, before: tuple[str, ...] = ()):
    for name, value in config.items():
        yield (*before, name)
        if isinstance(value, dict) and "model_type" in value:
            yield from places(value, (*before, name))


def without(config: dict, place: tuple[str, ...]) -> dict:
    """The config without a field, or with what the class of the nested config puts there."""
    name, *rest = place
    if rest:
        return {**config, name: without(config[name], tuple(rest))}
    return {k: v for k, v in config.items() if k != name}


def as_the_class_fills_it(config: dict, place: tuple[str, ...]) -> dict | None:
    """None where the nested class has no such default to put there, or composes a config of its own."""
    name, *rest = place
    if rest:
        inner = as_the_class_fills_it(config[name], tuple(rest))
        return None if inner is None else {**config, name: inner}
    default = DEFAULTS.get(config.get("model_type"), {}).get(name)
    return None if default is None or isinstance(default, dict) else {**config, name: default}


def shape(config: dict):
    return replace(read_config(config), max_context_tokens=None, trained_context_tokens=None)


@pytest.mark.some(40)
@pytest.mark.parametrize("model_type", sorted(DEFAULTS))
def test_what_a_config_does_not_say_is_the_class_default_or_a_reason(model_type):
    config, excused, wrong = DEFAULTS[model_type], excepted(), []
    try:
        shape(config)
    except (UnknownAnatomy, ContradictoryConfig):
        return  # a default that no model has: the library cannot build it either, or a reason says what is missing
    for place in places(config):
        if place[-1] == "model_type" or place[-1] in LENGTHS or (model_type, ".".join(place)) in excused:
            continue
        filled = as_the_class_fills_it(config, place)
        if filled is None:
            continue
        try:
            expected = shape(filled)
            found = shape(without(config, place))
        except UnknownAnatomy:
            continue
        except ContradictoryConfig as reason:
            if len(place) == 1:  # a class default that contradicts the rest contradicts it in the library too
                wrong.append((place, str(reason)))
            continue
        if found != expected:
            wrong.append((place, "differs"))
    assert not wrong


def test_no_length_is_taken_from_a_class_whose_positions_are_rotary():
    for model_type in sorted(t for t, c in DEFAULTS.items() if "rope_parameters" in c and "text_config" not in c):
        with in_case(model_type):
            try:
                found = read_config({k: v for k, v in DEFAULTS[model_type].items() if k not in LENGTHS})
            except (UnknownAnatomy, ContradictoryConfig):
                continue
            assert found.max_context_tokens is None or not any(layer.elements_per_token for layer in found.attention)


def test_the_list_is_rich_enough_to_mean_something():
    assert len(DEFAULTS) > 300
    assert sum(len(list(places(config))) for config in DEFAULTS.values()) > 6000


def test_exceptions_are_still_exceptional():
    for model_type, place in excepted():
        path = tuple(place.split("."))
        filled = as_the_class_fills_it(DEFAULTS[model_type], path)
        assert shape(filled) != shape(without(DEFAULTS[model_type], path)), (model_type, place)
