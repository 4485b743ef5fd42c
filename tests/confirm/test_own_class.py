"""A relative lends its shape, and not the class that it was trained as."""

from __future__ import annotations

import pytest

from pipeline.confirm.own_class import in_its_class
from pipeline.hub.record import Record


def record(task, model_type, name, kind="sibling"):
    config = {"model_type": model_type, "architectures": [name], "hidden_size": 64}
    return Record("acme/one", pipeline_tag=task, config=config, config_kind=kind)


@pytest.mark.parametrize(
    ("task", "model_type", "lent", "own"),
    [
        ("text-generation", "llama", "LlamaForSequenceClassification", "LlamaForCausalLM"),
        ("text-generation", "mistral", "MistralModel", "MistralForCausalLM"),
        ("feature-extraction", "bert", "BertForSequenceClassification", "BertModel"),
        ("text-classification", "llama", "LlamaForSequenceClassification", "LlamaForSequenceClassification"),
        ("text-generation", "gpt2", "GPT2LMHeadModel", "GPT2LMHeadModel"),  # has its head under another name
        ("text-generation", "t5", "T5EncoderModel", "T5EncoderModel"),  # no such class of the family
        (None, "llama", "LlamaForSequenceClassification", "LlamaForSequenceClassification"),
    ],
)
def test_the_class_is_that_of_the_task(task, model_type, lent, own):
    found = in_its_class(record(task, model_type, lent))
    assert found.config["architectures"] == [own]
    assert ("architectures" in found.config_inferred_fields) == (own != lent)


def test_a_config_of_its_own_says_its_class():
    one = record("text-generation", "llama", "LlamaForSequenceClassification", kind="verbatim")
    assert in_its_class(one) is one


def test_a_chat_model_with_the_shape_of_a_reward_model_has_its_head(named):
    rows = {row["model_id"]: row for row in named["model"].to_dicts()}
    found = rows["unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit"]
    assert found["parameter_count"] == rows["meta-llama/Llama-3.1-8B"]["parameter_count"] == 8_030_261_248
