"""A config may be anything that JSON can hold. A reader answers with an anatomy or with one of its two reasons."""

from __future__ import annotations

import csv
import json
import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from tests.anatomy.hostile import check
from tests.cases import in_case

PARAMETERS = Path(__file__).parents[1] / "oracle" / "parameters.csv"


@cache
def of_libraries() -> dict[str, dict]:
    """One config of each text architecture, the one with the most fields."""
    richest: dict[str, dict] = {}
    with PARAMETERS.open(newline="") as file:
        for row in csv.DictReader(file):
            config = json.loads(row["config_json"])
            if len(config) > len(richest.get(row["model_type"], {})):
                held = {"model_type": row["model_type"], "architectures": [row["architecture"]]}
                richest[row["model_type"]] = config | held
    return richest


@cache
def configs() -> dict[str, dict]:
    """The same, and forms that no row of the oracle has."""
    richest = dict(of_libraries())
    draft = {"target_layer_ids": [1, 9, 17], "markov_rank": 256}
    richest["a draft"] = richest["qwen3"] | {
        "num_hidden_layers": 5,
        "architectures": ["DFlashDraftModel"],
        "dflash_config": draft,
    }
    richest["slopes"] = dict(SLOPES)
    return richest


SLOPES = {
    "model_type": "bert",
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "intermediate_size": 2048,
    "vocab_size": 30528,
    "position_embedding_type": "alibi",
    "feed_forward_type": "geglu",
}


def extra_fields() -> dict:
    """Fields that configs on the Hub carry and the counted ones do not."""
    return {
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096},
        "max_position_embeddings": 8192,
        "attention_dropout": 0.0,
        "hidden_dropout": 0.1,
        "id2label": {"0": "a", "1": "b"},
    }


absurd_numbers = st.sampled_from([0, -1, 1, 2, 3, 7, 10**4, 10**6, 10**8, 10**12, 2**63, 10**40, 0.5, 1e300, -0.0])
not_numbers = st.sampled_from([float("nan"), float("inf"), float("-inf"), "", "auto", "12", "M-M*", "x" * 500, "-3"])
scalars = st.one_of(st.none(), st.booleans(), absurd_numbers, not_numbers)
values = st.one_of(
    scalars,
    st.lists(scalars, max_size=4),
    st.lists(
        st.sampled_from(["full_attention", "sliding_attention", "linear_attention", "mamba", 1, None]), max_size=8
    ),
    st.dictionaries(st.sampled_from(["factor", "rope_type", "full_attention", "head_dim"]), scalars, max_size=3),
    st.just([[["global", "local"], 3]]),
    st.just({"num_experts": 4}),
)


@pytest.mark.some(6)
@pytest.mark.parametrize("model_type", sorted(configs()))
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mutated_configs(model_type, data):
    config = dict(configs()[model_type]) | extra_fields()
    names = sorted(set(config) - {"model_type"})
    for name in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True)):
        if data.draw(st.booleans()):
            config[name] = data.draw(values)
        else:
            del config[name]
    check(config)


@pytest.mark.some(6)
@pytest.mark.parametrize("model_type", sorted(configs()))
def test_each_field_alone(model_type):
    """Every field in turn missing, null, of another type, negative, absurd or not a number."""
    config = configs()[model_type] | extra_fields()
    wrong = (None, True, -1, 0, 10**30, 2.5, float("nan"), "four", "4", [], [1], {}, {"a": {"b": 1}}, ["x", None])
    for name in set(config) - {"model_type"}:
        check({k: v for k, v in config.items() if k != name})
        for value in wrong:
            check(config | {name: value})


def test_each_field_of_a_draft_alone():
    config = configs()["a draft"]
    for name in config["dflash_config"]:
        for value in (
            None,
            True,
            -1,
            0,
            10**30,
            float("nan"),
            "four",
            [],
            [1],
            [[]],
            [0] * 2000,
            {"a": {"b": {"c": 1}}},
        ):
            check(config | {"dflash_config": config["dflash_config"] | {name: value}})


def test_absurd_depth_is_refused_quickly():
    for model_type in sorted(configs()):
        with in_case(model_type):
            config = {k: v for k, v in configs()[model_type].items() if not isinstance(v, list)}
            depths = {
                name: 10**8 for name in ("num_hidden_layers", "n_layer", "n_layers", "num_layers") if name in config
            }
            started = time.thread_time()
            with pytest.raises((UnknownAnatomy, ContradictoryConfig)):
                read_config(config | depths | {"architectures": None, "hybrid_override_pattern": "?"})
            assert time.thread_time() - started < 1


@pytest.mark.parametrize(
    "config", [{}, {"model_type": None}, {"model_type": 5}, {"model_type": "no such"}, [], None, 3]
)
def test_no_architecture(config):
    with pytest.raises((UnknownAnatomy, ContradictoryConfig)):
        read_config(config)


@pytest.mark.parametrize("field", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])
def test_an_essential_field_is_never_guessed(field):
    for model_type, config in of_libraries().items():
        if field in config and not (model_type == "nemotron_h" and field == "num_hidden_layers"):
            needed = field != "num_attention_heads" or model_type != "nemotron_h" or "*" in str(config)
            if needed:
                with pytest.raises(UnknownAnatomy, match="has no"):
                    read_config({k: v for k, v in config.items() if k != field})
