"""Chronos-Bolt and Chronos-2, which call themselves T5, and Kronos: held to the counts of their own code (tests/oracle/count_forecasters.py)."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config

FILE = Path(__file__).parents[1] / "oracle" / "forecasters.csv"
with FILE.open(newline="") as file:
    ROWS = list(csv.DictReader(file))


KRONOS = [row for row in ROWS if row["architecture"].startswith("Kronos")]


def config_of(row: dict[str, str]) -> dict:
    """Kronos' names neither a type nor a class."""
    named = {} if row in KRONOS else {"model_type": "t5", "architectures": [row["architecture"]]}
    return {**named, **json.loads(row["config_json"])}


@pytest.mark.parametrize("row", ROWS)
def test_count_is_the_packages(row):
    anatomy = read_config(config_of(row))
    linear = sum(t.element_count for t in anatomy.tensors if t.operator == "linear")
    assert (anatomy.parameter_count, linear) == (int(row["parameter_count"]), int(row["linear"]))


def test_a_token_is_a_patch_and_its_layers_say_nothing_of_a_forecast():
    """No engine of T5's runs them: what a forecast takes is counted whole (tests/formulas/test_forward_pass.py)."""
    assert read_config(config_of(ROWS[0])).max_context_tokens == 2048 // 16 + 1
    for row in ROWS:
        anatomy = read_config(config_of(row))
        assert (anatomy.layer_count, anatomy.attention, anatomy.towers) == (None, (), ())


@pytest.mark.parametrize("missing", ["input_patch_size", "quantiles", "context_length", "input_patch_stride"])
def test_what_the_package_needs_is_not_guessed(missing):
    config = config_of(ROWS[0])
    config["chronos_config"] = {k: v for k, v in config["chronos_config"].items() if k != missing}
    with pytest.raises(UnknownAnatomy, match=missing):
        read_config(config)


@pytest.mark.parametrize("broken", [{"quantiles": "many"}, {"input_patch_stride": 0}, {"input_patch_size": -1}])
def test_a_broken_config_is_set_aside(broken):
    config = config_of(ROWS[0])
    with pytest.raises(ContradictoryConfig):
        read_config({**config, "chronos_config": {**config["chronos_config"], **broken}})


def test_the_first_chronos_is_a_plain_t5():
    t5 = {
        "d_model": 64,
        "d_kv": 16,
        "d_ff": 128,
        "num_layers": 2,
        "num_heads": 4,
        "vocab_size": 4096,
        "model_type": "t5",
    }
    t5 |= {"architectures": ["T5ForConditionalGeneration"]}
    bins = {"context_length": 512, "prediction_length": 64, "n_tokens": 4096, "tokenizer_class": "MeanScaleUniformBins"}
    assert read_config({**t5, "chronos_config": bins}).tensors == read_config(t5).tensors


@pytest.mark.parametrize("row", KRONOS)
def test_kronos_is_told_by_its_fields_and_guesses_none(row):
    config = config_of(row)
    assert read_config(config).architecture == row["architecture"]
    shaping = {
        "d_model",
        "ff_dim",
        "n_heads",
        "s2_bits",
        "n_layers",
        "d_in",
        "n_dec_layers",
        "group_size",
    } & config.keys()
    for missing in shaping:
        with pytest.raises(UnknownAnatomy, match=missing):
            read_config({k: v for k, v in config.items() if k != missing})
    for broken in ({"s1_bits": 400}, {"n_heads": 7}, {"d_model": "wide"}):
        with pytest.raises(ContradictoryConfig):
            read_config({**config, **broken})


def test_of_kronos_a_checkpoint_holds_its_rotations_too():
    """102,311,008 elements are published for Kronos-base: 416 more than it has parameters."""
    base = read_config(config_of(KRONOS[0]))
    assert base.parameter_count + sum(base.stored_extra.values()) == 102_311_008
