"""A repository of GGUF files alone: what the file says of its layers is a config, and where it does not say enough there is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.anatomy import read_config
from pipeline.base.bounds import LARGEST_SIZE, MOST_REPEATS
from pipeline.hub.gguf_config import config_of
from pipeline.hub.snapshot import snapshot_in
from pipeline.press.anatomise import anatomise
from tests.fake_hub.models import LLAMA, LLAMA_COUNT, llama_gguf, row

ASKED = {"trending_share": 0, "header_requests": 100}


def crawled(case, body: bytes, *more: str) -> dict:
    case.hub.models.append(row("org/a", files=("a-f16.gguf", *more)))
    case.hub.files["org/a", "a-f16.gguf"] = body
    case.crawl(**ASKED)
    return case.records()["org/a"]


def test_the_cache_of_a_gguf_file_is_that_of_its_own_metadata(case):
    record = crawled(case, llama_gguf())
    assert record["config_source"] == "huggingface-hub:metadata of a-f16.gguf"
    mine, theirs = read_config(record["config"]), read_config(LLAMA)
    assert (mine.tensors, mine.attention, mine.max_context_tokens) == (theirs.tensors, theirs.attention, 2048)
    tables = anatomise(snapshot_in(case.folder / "crawl"))
    model = tables["model"].row(0, named=True)
    assert (model["anatomy_grade"], model["parameter_count"]) == ("exact", LLAMA_COUNT)
    assert tables["attention_layer"]["elements_per_token"].to_list() == [2 * 2 * 16]


def test_a_config_of_the_repositorys_own_goes_before_what_the_file_says(case):
    case.hub.files["org/a", "config.json"] = json.dumps(LLAMA | {"max_position_embeddings": 512}).encode()
    record = crawled(case, llama_gguf(), "config.json")
    assert (record["config_kind"], record["config"]["max_position_embeddings"]) == ("verbatim", 512)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "changed",
    [
        {"general__architecture": "mamba"},
        {"llama__block_count": None},
        {"llama__attention__head_count_kv": [2, 1]},
        {"llama__attention__key_length": 16},
        {"llama__attention__sliding_window": 512},
        {"llama__embedding_length": 128},
        {"llama__attention__head_count": "four"},
    ],
)
def test_where_the_metadata_do_not_determine_the_layers_there_is_no_cache(case, changed):
    record = crawled(case, llama_gguf(**changed))
    assert "config" not in record
    tables = anatomise(snapshot_in(case.folder / "crawl"))
    model = tables["model"].row(0, named=True)
    assert model["parameter_count"] == LLAMA_COUNT, "the census is that of the headers"
    assert "no config is known" in model["anatomy_note"]
    assert tables["attention_layer"].is_empty()


SIZES = {
    "block_count": 12,
    "context_length": 32768,
    "embedding_length": 640,
    "feed_forward_length": 2048,
    "attention.head_count": 4,
    "attention.head_count_kv": 1,
    "attention.key_length": 256,
    "attention.value_length": 256,
    "attention.sliding_window": 512,
}


def gemma(**changed) -> dict:
    return metadata("gemma3", **changed)


def metadata(architecture: str, **changed) -> dict:
    sizes = {**SIZES, **{name.replace("__", "."): value for name, value in changed.items()}}
    said = {f"{architecture}.{name}": value for name, value in sizes.items() if value is not None}
    return {"general.architecture": architecture, **said}


TENSORS = [("token_embd.weight", "F16", [1000, 640])]


def test_windows_are_those_of_the_file_in_the_pattern_of_the_class():
    layers = {a.kind: a for a in read_config(config_of(gemma(), TENSORS)).attention}
    assert {kind: (a.layer_count, a.window_tokens) for kind, a in layers.items()} == {
        "full": (2, None),
        "sliding": (10, 512),
    }
    listed = config_of(gemma(attention__sliding_window_pattern=[True, False] * 6), TENSORS)
    assert {a.kind: a.layer_count for a in read_config(listed).attention} == {"full": 6, "sliding": 6}
    assert config_of(gemma(attention__sliding_window_pattern=4), TENSORS) is None
    assert config_of(gemma(attention__sliding_window=None), TENSORS) is None


@pytest.mark.parametrize(("architecture", "period"), [("gemma2", 2), ("gemma3", 6), ("gpt-oss", 2)])
def test_a_period_of_windows_is_that_of_the_class_or_there_is_no_config(architecture, period):
    """The periods of Transformers' Gemma2Config, Gemma3TextConfig and GptOssConfig."""
    experts = {"expert_count": 8, "expert_used_count": 2} if architecture == "gpt-oss" else {}

    def kinds(pattern: int | None) -> dict | None:
        config = config_of(metadata(architecture, attention__sliding_window_pattern=pattern, **experts), TENSORS)
        return config and {a.mechanism: a.layer_count for a in read_config(config).attention}

    assert kinds(None) == kinds(period) == {"full": 12 // period, "sliding": 12 - 12 // period}
    assert kinds(period + 1) is kinds(period - 1) is None


def test_all_layers_of_a_phi_have_its_window():
    config = config_of(metadata("phi3"), TENSORS)
    assert [(a.layer_count, a.window_tokens) for a in read_config(config).attention] == [(12, 512)]
    assert config_of(metadata("phi3", attention__sliding_window_pattern=2), TENSORS) is None


NO_WINDOW = {"attention__sliding_window": None}


@pytest.mark.parametrize(
    ("architecture", "said", "width"),
    [
        ("llama", NO_WINDOW, 2048),  # Mixtral: experts are as wide as the feed-forward
        ("llama", {**NO_WINDOW, "expert_feed_forward_length": 768}, 768),
        ("gpt-oss", {"feed_forward_length": None, "expert_feed_forward_length": 768}, 768),
        ("qwen3moe", {**NO_WINDOW, "expert_feed_forward_length": 768}, 768),
    ],
)
def test_experts_are_as_many_and_as_wide_as_the_file_says(architecture, said, width):
    config = config_of(metadata(architecture, expert_count=8, expert_used_count=2, **said), TENSORS)
    (row,) = read_config(config).feed_forward
    assert (row.expert_count, row.experts_per_token, row.layer_count) == (8, 2, 12)
    assert (row.expert_width or row.width) == width
    assert config_of(metadata("qwen2", expert_count=8, expert_used_count=2, **NO_WINDOW), TENSORS) is None


def test_heads_are_as_wide_as_the_file_says_or_share_the_width():
    def dim(**said) -> int | None:
        config = config_of(metadata("llama", **NO_WINDOW, **said), TENSORS)
        return config and config.get("head_dim")

    assert dim() == 256
    assert dim(attention__key_length=None, attention__value_length=None) == 640 // 4
    assert dim(attention__key_length=None, attention__value_length=0) == 640 // 4
    assert dim(attention__key_length=None, attention__value_length=None, attention__head_count=3) is None
    assert dim(attention__value_length=128) is None


def test_a_size_may_be_said_of_each_layer_where_all_are_one():
    one = config_of(gemma(attention__head_count_kv=[1] * 12), TENSORS)
    assert one == config_of(gemma(), TENSORS)
    assert config_of(gemma(attention__head_count_kv=[1] * 11 + [2]), TENSORS) is None
    assert config_of(gemma(attention__head_count_kv=[]), TENSORS) is None


def test_sizes_are_read_up_to_what_any_model_has():
    assert config_of(gemma(context_length=LARGEST_SIZE), TENSORS)["max_position_embeddings"] == LARGEST_SIZE
    assert config_of(gemma(context_length=LARGEST_SIZE + 1), TENSORS) is None
    assert config_of(gemma(block_count=MOST_REPEATS), TENSORS)["num_hidden_layers"] == MOST_REPEATS
    assert config_of(gemma(block_count=MOST_REPEATS + 1), TENSORS) is None


def test_stretched_positions_are_told_apart_from_the_trained_length():
    config = config_of(
        gemma(rope__scaling__type="yarn", rope__scaling__factor=4.0, rope__scaling__original_context_length=8192),
        TENSORS,
    )
    found = read_config(config)
    assert (found.max_context_tokens, found.trained_context_tokens) == (32768, 8192)


@pytest.mark.parametrize(
    "said",
    [
        {"factor": 1.0},
        {"factor": 0.5},
        {"factor": float("inf")},
        {"factor": float(LARGEST_SIZE)},
        {"factor": None},
        {"factor": 4},
        {"original_context_length": None},
        {"type": "spiral"},
        {"type": None},
    ],
)
def test_a_stretch_that_is_none_or_half_said_is_left_out(said):
    whole = {"type": "linear", "factor": 4.0, "original_context_length": 8192}
    scaling = {f"rope__scaling__{name}": value for name, value in (whole | said).items()}
    assert "rope_scaling" not in config_of(gemma(**scaling), TENSORS)
    assert config_of(gemma(**{f"rope__scaling__{n}": v for n, v in whole.items()}), TENSORS)["rope_scaling"] == {
        "rope_type": "linear",
        "factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(sorted(gemma())),
    value=st.one_of(
        st.none(), st.booleans(), st.integers(-5, 2**64), st.floats(), st.text(max_size=5), st.lists(st.integers(0, 9))
    ),
)
def test_any_value_ends_as_a_config_or_none(name, value):
    config = config_of({**gemma(), name: value}, TENSORS)
    assert config is None or json.dumps(config, allow_nan=False)
