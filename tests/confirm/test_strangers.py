"""Architectures that nobody described: read as one whose fields they have, and believed only with their published total."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.anatomy import read_config
from pipeline.anatomy.families import reader_for
from pipeline.confirm.borrowing import Lenders, settled
from pipeline.confirm.grade import Graded
from pipeline.confirm.strangers import CANDIDATES, is_stranger, readings
from pipeline.hub.record import Record
from tests.anatomy.small_model import LLAMA
from tests.once import bundled_snapshot

CONFIG = {
    **LLAMA,
    "model_type": "sideways",
    "architectures": ["SidewaysForCausalLM"],
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
}
COUNT = read_config({**CONFIG, "model_type": "llama", "architectures": ["LlamaForCausalLM"]}).parameter_count
RECORD = Record(
    "org/x", config=CONFIG, config_kind="verbatim", stored_parameter_count=COUNT, parameters_kind="exact_safetensors"
)


def graded(record: Record) -> Graded:
    unknown = Graded("unknown", "Architecture 'sideways' is not described yet")
    return settled(Lenders([(record, unknown)]), record, unknown)[1]


def test_every_candidate_is_described():
    assert all(map(reader_for, CANDIDATES))
    assert is_stranger(CONFIG) and not is_stranger({"model_type": "llama"}) and not is_stranger(None)


def test_fields_of_a_known_shape_and_its_total_are_matched_under_its_own_name():
    found = graded(RECORD)
    assert (found.grade, found.anatomy.parameter_count, found.anatomy.model_type) == ("matched", COUNT, "sideways")
    assert found.anatomy.architecture == "SidewaysForCausalLM"
    assert "'sideways' is not described" in found.note


def test_a_class_is_read_as_the_one_of_the_known_type_with_the_same_head_and_a_name_that_tells_of_none_as_no_other():
    def classes_for(model_type: str, name: str) -> list:
        config = {**CONFIG, "architectures": [name]}
        return [theirs["architectures"] for kind, theirs in readings(config) if kind == model_type]

    assert classes_for("llama", "SidewaysForCausalLM") == [["LlamaForCausalLM"]]
    assert classes_for("llama", "SidewaysLMHeadModel") == [["LlamaForCausalLM"]]  # as GPT-2's class calls the same head
    assert classes_for("llama", "SidewaysModel") == [["LlamaModel"]]
    assert classes_for("llama", "SidewaysForSequenceClassification") == [["LlamaForSequenceClassification"]]
    assert not list(readings(CONFIG | {"architectures": ["SidewaysForTea"]}))
    assert not list(readings(CONFIG | {"architectures": ["Sideways"]}))


def test_a_field_that_the_shape_does_not_know_is_not_ignored():
    for strange in ({"num_experts": 8}, {"kv_lora_rank": 64}, {"ssm_state_size": 16}, {"layers_block_type": ["x"] * 4}):
        assert graded(replace(RECORD, config=CONFIG | strange)).grade == "unknown", strange
    for idle in (
        {"bos_token_id": 1},
        {"rope_theta": 1e6},
        {"use_cache": True},
        {"num_experts": None},
        {"is_odd": False},
    ):
        assert graded(replace(RECORD, config=CONFIG | idle)).grade == "matched", idle


def test_a_class_whose_head_nobody_knows_is_no_known_shape():
    """The name tells what is on top: where it tells nothing, no total is asked."""
    for name in ("SidewaysEagle3", "SidewaysForRewardModel", "HF_ColBERT"):
        assert graded(replace(RECORD, config=CONFIG | {"architectures": [name]})).grade == "unknown", name
    assert graded(replace(RECORD, config=CONFIG | {"architectures": ["SidewaysLMHeadModel"]})).grade == "matched"


@settings(max_examples=25, deadline=None)
@given(off=st.integers(-10_000, 10_000).filter(lambda n: n not in (0, 8)))
@example(off=264)  # its rotary frequencies and the scales
@example(off=256)
@example(off=265)
def test_a_total_that_is_off_confirms_nothing(off):
    """But the scales of an fp8 cache: two for each layer, beside whatever else a checkpoint of this shape may hold; biases of queries, keys
    and values are another shape's."""
    found = graded(replace(RECORD, stored_parameter_count=COUNT + off))
    scales = 2 * CONFIG["num_hidden_layers"]
    assert (
        found.grade == "unknown"
        or found.anatomy.parameter_count + sum(found.anatomy.stored_extra.values()) + scales >= COUNT + off
    )


@settings(max_examples=80, deadline=None)
@given(
    changes=st.dictionaries(
        st.sampled_from([*CONFIG, "head_dim", "text_config", "layer_types"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
            max_leaves=5,
        ),
        max_size=3,
    )
)
def test_hostile_fields_never_fail(changes):
    for model_type, config in readings(CONFIG | changes):
        assert read_config(config).parameter_count >= 0 and model_type in CANDIDATES


@pytest.mark.parametrize("model_type", ["llama", "qwen2", "qwen3", "olmo2", "mixtral", "qwen3_moe"])
def test_real_configs_under_a_name_that_nobody_knows_keep_their_count(model_type):
    own = [
        r
        for r in bundled_snapshot().records
        if r.config_kind == "verbatim" and r.config.get("model_type") == model_type and r.stored_parameter_count
    ]
    for record in own[:5]:
        known = read_config(record.config)
        if known.parameter_count != record.stored_parameter_count:
            continue
        found = graded(replace(record, config={**record.config, "model_type": "sideways"}))
        assert found.grade == "unknown" or found.anatomy.parameter_count == known.parameter_count
        assert found.grade == "unknown" or found.anatomy.attention == known.attention
