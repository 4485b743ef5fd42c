"""Readers of text decoders against what transformers builds and caches, exactly. Exceptions are rows with a reason."""

from __future__ import annotations

import csv
import json
import sys
from functools import cache
from pathlib import Path

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.rows import OPERATORS, TENSOR_CLASSES
from tests.once import bundled_snapshot

ORACLE = Path(__file__).parents[1] / "oracle"


@cache
def rows(name: str) -> list[dict[str, str]]:
    csv.field_size_limit(sys.maxsize)
    with (ORACLE / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def excused(table: str) -> set[tuple[str, str]]:
    return {(row["model_type"], row["key"]) for row in rows("exceptions") if row["table"] == table}


def config(row: dict[str, str]) -> dict:
    held = {"model_type": row["model_type"], "architectures": [row["architecture"]]}
    return json.loads(row["config_json"]) | held


def model_types(name: str) -> list[str]:
    return sorted({row["model_type"] for row in rows(name)})


@pytest.mark.some(70)
@pytest.mark.parametrize("model_type", model_types("parameters"))
def test_parameters_equal_the_built_model(model_type):
    compared = 0
    for row in rows("parameters"):
        if row["model_type"] != model_type or (model_type, row["parameter_count"]) in excused("parameters"):
            continue
        anatomy = read_config(config(row))
        by_operator = {operator: 0 for operator in OPERATORS}
        for tensor in anatomy.tensors:
            by_operator[tensor.operator] += tensor.element_count
        linear, subclass = by_operator.pop("linear"), by_operator.pop("linear-subclass")
        found = (anatomy.parameter_count, linear, subclass, sum(by_operator.values()), anatomy.is_head_tied)
        built = (row["parameter_count"], row["linear"], row["linear_subclass"], row["other"])
        assert found == (*map(int, built), row["is_head_tied"] == "true"), row["config_json"]
        compared += 1
    assert compared


@pytest.mark.parametrize("model_type", model_types("cache"))
def test_cache_equals_the_running_model(model_type):
    """A window of w tokens keeps w − 1 after a prompt: the next token completes it."""
    if (model_type, "") in excused("cache"):
        pytest.skip("an exception with a reason")
    for row in rows("cache"):
        if row["model_type"] != model_type:
            continue
        held = 0
        for layer in read_config(config(row)).attention:
            tokens = int(row["tokens"])
            if layer.window_tokens is not None:
                tokens = min(tokens, layer.window_tokens - 1)
            states = layer.state_elements + layer.conv_state_elements
            held += layer.layer_count * (tokens * layer.elements_per_token + states)
        assert held == int(row["cache_elements"]), row["tokens"]


def test_exceptions_are_still_exceptional():
    """An exception that has become equal must go."""
    for row in rows("parameters"):
        if (row["model_type"], row["parameter_count"]) not in excused("parameters"):
            continue
        try:
            found = read_config(config(row)).parameter_count
        except UnknownAnatomy:
            continue
        assert found != int(row["parameter_count"]), row["model_type"]


def test_every_architecture_of_the_snapshot_is_held_or_excused():
    """What the bundled snapshot has and a reader describes is compared with the library, or a row says why it cannot be."""
    held = {*model_types("parameters"), *model_types("parameters_multimodal"), *model_types("modules")}
    held |= {row["class_name"] for row in rows("parts")}
    reasons = {row["model_type"]: row["reason"] for row in rows("exceptions") if row["table"] == "snapshot"}
    described = set()
    for record in bundled_snapshot().records:
        try:
            anatomy = read_config(record.config) if record.config else None
        except (UnknownAnatomy, ContradictoryConfig):
            continue
        is_timm = "architecture" in (record.config or {})  # held by their architecture, in test_timm.py
        if anatomy and not is_timm and record.config_kind not in ("partial", "assumed"):
            described.add(record.config.get("model_type") or record.config.get("_class_name") or anatomy.model_type)
    assert described - held == set(reasons), "a row for each, and none for what is held"
    assert all(len(reason) > 10 for reason in reasons.values())


def test_dimensions_at_the_top_of_a_config_that_nests_them_are_a_reason():
    """Sources that list dims only leave out the language model's own config, and the tower's: no count is made of them."""
    for model_type in ("qwen3_5", "qwen3_5_moe", "qwen3_vl", "mistral3"):
        dims = {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}
        with pytest.raises(UnknownAnatomy, match="has no"):
            read_config({"model_type": model_type, **dims, "num_key_value_heads": 2, "head_dim": 64})


def test_rows_use_the_published_vocabulary():
    for row in rows("parameters"):
        if (row["model_type"], row["parameter_count"]) in excused("parameters"):
            continue
        anatomy = read_config(config(row))
        kinds = [layer.kind for layer in anatomy.attention]
        assert len(kinds) == len(set(kinds))
        assert {tensor.tensor_class for tensor in anatomy.tensors} <= set(TENSOR_CLASSES)
        assert all(tensor.element_count > 0 for tensor in anatomy.tensors)
        assert all(size > 0 for size in anatomy.stored_extra.values())
        assert 0 < anatomy.active_parameter_count <= anatomy.parameter_count
        assert sum(layer.layer_count for layer in anatomy.feed_forward) <= anatomy.layer_count
