"""Nested configs mutated at any depth: a reader of towers and their models answers, or gives one of its two reasons."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_multimodal_oracle import ROWS

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from tests.anatomy.hostile import check
from tests.cases import in_case

numbers = st.sampled_from(
    [0, -1, 1, 2, 3, 7, 10**4, 10**6, 10**8, 10**12, 2**63, 10**40, 0.5, 1e300, float("nan"), float("inf")]
)
words = st.sampled_from(
    ["", "auto", "12", "x" * 500, "-3", "gated-gelu", "layer", "llama", "qwen2", "siglip_vision_model"]
)
scalars = st.one_of(st.none(), st.booleans(), numbers, words)
lists = st.lists(scalars, max_size=4)
values = st.one_of(
    scalars,
    lists,
    st.lists(lists, max_size=3),
    st.dictionaries(
        st.sampled_from(["model_type", "hidden_size", "num_hidden_layers", "depths"]),
        st.one_of(scalars, lists),
        max_size=3,
    ),
)


@cache
def richest(model_type: str) -> dict:
    row = max(ROWS[model_type], key=lambda row: len(row["config_json"]))
    return {**json.loads(row["config_json"]), "model_type": model_type, "architectures": [row["architecture"]]}


def paths(config: dict, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Where a config can be changed, three objects deep."""
    found = []
    for name, value in config.items():
        found.append((*before, name))
        if isinstance(value, dict) and len(before) < 2:
            found += paths(value, (*before, name))
    return sorted(found)


def changed(config: dict, path: tuple[str, ...], value) -> dict:
    if len(path) == 1:
        return {**config, path[0]: value}
    inner = config.get(path[0])
    return {**config, path[0]: changed(inner, path[1:], value) if isinstance(inner, dict) else value}


@pytest.mark.some(8)
@pytest.mark.parametrize("model_type", sorted(ROWS))
@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mutated_configs(model_type, data):
    config = richest(model_type)
    places = paths({k: v for k, v in config.items() if k != "model_type"})
    for _ in range(data.draw(st.integers(1, 3))):
        config = changed(config, data.draw(st.sampled_from(places)), data.draw(values))
    check(config)


@pytest.mark.some(20)
@pytest.mark.parametrize("model_type", sorted(ROWS))
def test_missing_fields_and_empty_configs(model_type):
    config = richest(model_type)
    check({"model_type": model_type})
    for path in paths(config):
        if path != ("model_type",):
            check(changed(config, path, None))


def test_too_many_layers_are_refused():
    """Ten million layers would be as many steps if a reader went through them; fields it does not read change nothing."""
    for model_type in sorted(ROWS):
        with in_case(model_type):
            config = richest(model_type)
            names = ("num_hidden_layers", "encoder_layers", "num_layers", "depth", "n_layers", "n_layer", "layers")
            for path in paths(config):
                if path[-1] in names:
                    try:
                        anatomy = read_config(changed(config, path, 10**7))
                    except (ContradictoryConfig, UnknownAnatomy):
                        continue
                    assert anatomy == read_config(config)
