"""What is too much: the border itself is read, and one more is a lie or a typo."""

from __future__ import annotations

import pytest

from pipeline.anatomy import ContradictoryConfig, read_config
from pipeline.base.bounds import LARGEST_SIZE, MOST_REPEATS

QWEN = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 1000, "tie_word_embeddings": True,
}  # fmt: skip


def test_as_many_layers_as_are_allowed_are_read_and_one_more_is_contradictory():
    assert read_config(QWEN | {"num_hidden_layers": MOST_REPEATS}).layer_count == MOST_REPEATS == 10_000
    with pytest.raises(ContradictoryConfig):
        read_config(QWEN | {"num_hidden_layers": MOST_REPEATS + 1})


def test_a_size_may_be_the_largest_and_no_larger():
    assert read_config(QWEN | {"vocab_size": LARGEST_SIZE}).vocab_size == LARGEST_SIZE == 10**8
    with pytest.raises(ContradictoryConfig):
        read_config(QWEN | {"vocab_size": LARGEST_SIZE + 1})
