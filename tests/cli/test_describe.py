"""`python -m pipeline anatomy config.json`: what people read about one config, and what they read when it is none."""

import json

import pytest

from pipeline.__main__ import main

MIXTRAL = {
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
    "sliding_window": 512,
}


def told(tmp_path, capsys, content, status=0) -> str:
    path = tmp_path / "config.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    assert main(["anatomy", str(path)]) == status
    said = capsys.readouterr()
    assert not (said.out if status else said.err)
    return said.err if status else said.out


def test_a_config_is_told_by_class_and_by_what_it_caches(tmp_path, capsys):
    text = told(tmp_path, capsys, MIXTRAL)
    experts = 2 * 8 * 3 * 64 * 128
    attention = 2 * (2 * 64 * 64 + 2 * 32 * 64)
    total = experts + attention + 2 * 8 * 64 + 5 * 64 + 2 * 64_000
    assert f"parameters     {total:,}" in text
    assert f"per token    {total - experts * 3 // 4:,}" in text
    assert f"expert          {experts:>20,}".split()[-1] in text
    assert "2 × sliding: 64 elements per token of the last 512" in text
    assert "4,096 tokens" in text


def test_what_checkpoints_hold_besides_and_states_are_told(tmp_path, capsys):
    config = {
        "model_type": "mamba2",
        "hidden_size": 64,
        "num_heads": 4,
        "head_dim": 32,
        "state_size": 16,
        "n_groups": 1,
    }
    config |= {"num_hidden_layers": 3, "vocab_size": 500, "tie_word_embeddings": True}
    text = told(tmp_path, capsys, config)
    assert "3 × recurrent: a state of 2,048 in fp32" in text
    assert "the head is the embedding" in text and "+32,000  tied head stored again" in text


@pytest.mark.parametrize(
    ("content", "beginning"),
    [
        ("{", "config.json is not JSON"),
        ({"model_type": "no-such"}, "unknown: architecture 'no-such' is not described yet"),
        (MIXTRAL | {"num_key_value_heads": 3}, "contradictory: config: 4 heads cannot share 3"),
        ([], "contradictory: config is a list"),
    ],
)
def test_what_cannot_be_told_has_a_reason(tmp_path, capsys, content, beginning):
    said = told(tmp_path, capsys, content, status=1)
    assert said.startswith(f"error: {beginning}") and said.count("\n") == 1


def test_a_missing_file_is_an_error_in_one_line(tmp_path, capsys):
    assert main(["anatomy", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err
