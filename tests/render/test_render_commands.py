"""What a model's page gives to paste: of engines that load it and whose way with it was read, with what makes the figures hold."""

from __future__ import annotations

import pytest

from pipeline.render.data.relatives import Relatives
from pipeline.render.pages import commands
from tests import few

MODEL = {
    "model_id": "maker/Model-7B",
    "base_model_id": None,
    "family": "llama",
    "pipeline_tag": "text-generation",
    "stored_format": "bf16",
}


@pytest.fixture
def of():
    made = commands.Commands([MODEL], Relatives([MODEL]))
    return lambda gaps, unread=(): {row["engine"]: row["command"] for row in made.of(0, 8192, gaps, unread)}


def test_an_engine_that_cannot_load_it_or_was_not_read_has_no_command(of):
    every = of({})
    assert {"vllm", "sglang", "transformers"} <= every.keys()
    assert of({}, ["sglang", "mlx-lm"]).keys() == every.keys() - {"sglang", "mlx-lm"}
    assert not {"vllm", "sglang"} & of({}, ["vllm"]).keys(), "of SGLang the numbers of vLLM are told"
    assert not {"llama.cpp", "ollama"} & of({}, ["llama.cpp"]).keys()


def test_a_cache_in_one_format_alone_is_told_to_vllm_and_to_no_other(of):
    said = of({"kept": " --kv-cache-dtype fp8_e4m3"})
    assert [engine for engine, command in said.items() if "--kv-cache-dtype" in command] == ["vllm"]
    assert "--tensor-parallel" not in said["vllm"] and "{" not in said["vllm"]


def test_what_engines_make_of_models_is_read_from_the_file():
    """Of a file without formulas nothing is known."""
    found = commands.kept_in(few.written())
    assert {"mlx-lm"} <= set(found["openai/whisper-tiny"]["unread"]) and found["openai/whisper-tiny"]["kept"] is None
    assert "Qwen/Qwen3-8B" not in found


@pytest.mark.parametrize("original", ["maker/Original-7B", None])
def test_what_is_packed_already_is_not_packed_again_but_its_original_is(original):
    model = MODEL | {"model_id": "mlx-community/Model-7B-Q8", "stored_format": None}
    made = commands.Commands([model], Relatives([model]))
    said = {row["engine"]: row for row in made.of(0, 8192, {}, container={"original_id": original})}
    assert all("--hf-path mlx-community" not in row["command"] for row in said.values())
    assert ("mlx-lm" in said) == (original is not None)
    if original:
        assert (
            f"mlx_lm.convert --hf-path {original} " in said["mlx-lm"]["command"] and said["mlx-lm"]["model"] == original
        )


def test_what_makers_leave_in_16_bits_is_read_from_the_file():
    assert isinstance(commands.packings(few.written()), dict)
