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


@pytest.mark.some(120)
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


# Configs as people publish them.
FALCON_MAMBA = {
    "model_type": "falcon_mamba", "architectures": ["FalconMambaForCausalLM"], "hidden_size": 4096, "intermediate_size": 8192, "expand": 16,
    "state_size": 16, "conv_kernel": 4, "num_hidden_layers": 64, "vocab_size": 65024, "time_step_rank": 256, "tie_word_embeddings": False,
    "use_bias": False, "use_conv_bias": True,
}  # fmt: skip


def test_a_width_that_a_config_states_goes_before_what_it_expands_by():
    """falcon-mamba-7b says `expand` 16 and a width of twice the hidden size: 7.27 billion parameters, not 54.5."""
    assert read_config(FALCON_MAMBA).parameter_count == 7_272_665_088
    derived = {k: v for k, v in FALCON_MAMBA.items() if k != "intermediate_size"} | {"expand": 2}
    assert read_config(derived).parameter_count == 7_272_665_088


@pytest.mark.parametrize("model_type", ["ernie4_5", "seed_oss", "internlm3", "iquestcoder", "higgs_audio_v2"])
def test_heads_without_a_dimension_share_the_hidden_size(model_type):
    default = class_defaults()[model_type]
    hidden, heads = default["hidden_size"], default["num_attention_heads"]
    while hidden % heads:
        heads -= 1
    config = default | {"num_attention_heads": heads, "num_key_value_heads": 1}
    said = read_config(config | {"head_dim": None})
    assert {layer.head_dim for layer in said.attention if layer.component == "text"} == {hidden // heads}
    assert said.tensors == read_config(config | {"head_dim": hidden // heads}).tensors
    all_heads = read_config(config | {"head_dim": None, "num_key_value_heads": None})
    assert {layer.kv_head_count for layer in all_heads.attention if layer.component == "text"} == {heads}


TIE = "tie_word_embeddings"


@pytest.mark.parametrize(
    "model_type", ["llama", "qwen2", "gemma3_text", "gpt2", "bert", "whisper", "qwen3_vl", "mistral3"]
)
def test_a_null_that_the_class_refuses_is_no_flag(model_type):
    """The library raises for it: neither a tied head nor one of its own can be told."""
    with pytest.raises(UnknownAnatomy, match=f"{TIE} is null, which its class refuses"):
        read_config(class_defaults()[model_type] | {TIE: None})


@pytest.mark.parametrize("model_type", ["gemma3", "mistral3", "llava"])
def test_a_null_in_a_nested_config_is_refused_too(model_type):
    default = class_defaults()[model_type]
    with pytest.raises(UnknownAnatomy, match=r"text_config\.tie_word_embeddings is null"):
        read_config(default | {"text_config": default["text_config"] | {TIE: None}})


def test_a_null_that_the_class_takes_is_what_it_makes_of_it():
    """Gemma 3 takes it for false, T5 ties whatever is said, Qwen2-VL's text has no such field."""
    defaults = class_defaults()
    assert not read_config(defaults["gemma3"] | {TIE: None}).is_head_tied
    assert read_config(defaults["t5"] | {TIE: None}).is_head_tied
    text = defaults["qwen2_vl"]["text_config"] | {TIE: None}
    assert read_config(defaults["qwen2_vl"] | {"text_config": text}) == read_config(defaults["qwen2_vl"])


def test_a_gate_that_is_said_by_itself_is_there():
    t5 = class_defaults()["t5"]
    bare = {k: v for k, v in t5.items() if k not in ("feed_forward_proj", "is_gated_act", "dense_act_fn")}
    more = read_config(bare | {"is_gated_act": True}).parameter_count - read_config(bare).parameter_count
    assert more == (t5["num_layers"] + t5["num_decoder_layers"]) * t5["d_model"] * t5["d_ff"]
    assert (
        read_config(bare | {"feed_forward_proj": "gated-gelu"}).parameter_count
        == read_config(bare).parameter_count + more
    )


def test_a_model_that_sees_its_whole_prompt_and_writes_on_has_a_cache():
    """PaliGemma says that its text is bidirectional: real code still keeps keys and values of every token. So does a bare encoder's."""
    default = class_defaults()["paligemma"]
    text = {
        "hidden_size": 2048,
        "num_hidden_layers": 18,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "head_dim": 256,
    }
    text |= {"model_type": "gemma", "intermediate_size": 16384, "vocab_size": 257216}
    for flag in (None, True, False):
        config = default | {"architectures": ["PaliGemmaForConditionalGeneration"]}
        found = read_config(config | {"text_config": text | {"use_bidirectional_attention": flag}})
        assert sum(layer.layer_count * layer.elements_per_token for layer in found.attention) == 9_216
    gemma = class_defaults()["gemma3_text"] | {"use_bidirectional_attention": True}
    encoder = read_config(gemma | {"architectures": ["Gemma3TextModel"]})
    assert {(layer.mechanism, layer.elements_per_token) for layer in encoder.attention} == {
        ("bidirectional", 2 * gemma["num_key_value_heads"] * gemma["head_dim"])
    }
    writer = read_config(gemma | {"architectures": ["Gemma3ForCausalLM"]})
    assert {layer.window_tokens for layer in writer.attention} == {None, gemma["sliding_window"] // 2 + 1}


def test_linear_layers_of_bailing_have_heads_of_their_own():
    default = class_defaults()["bailing_hybrid"]
    usual, twice = read_config(default), read_config(default | {"linear_num_heads": 2 * default["num_attention_heads"]})
    assert twice.parameter_count > usual.parameter_count
    assert [layer for layer in twice.attention if not layer.state_elements] == [
        layer for layer in usual.attention if not layer.state_elements
    ]
