"""What llama.cpp sets aside for the towers of models that see, against its own account (tests/oracle/tower_buffer.csv, count_tower_buffer.py)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.formulas.set_aside import SET_ASIDE

ROWS = list(
    csv.DictReader((Path(__file__).parents[1] / "oracle" / "tower_buffer.csv").read_text(encoding="utf-8").splitlines())
)


def asked_of(row, images):
    return {
        "model_id": row["model_id"], "dtype_id": "gguf-q4_k_m", "engine_id": "llama.cpp", "context_tokens": 65_536,
        "attention": row["attention"],
        "max_context_tokens": 65_536, "images": images, "image_width": int(row["image_width"]) if images else None,
        "image_height": int(row["image_height"]) if images else None,
    }  # fmt: skip


@pytest.fixture(scope="module")
def buffers(footprints):
    asked = [asked_of(row, int(row["images"]) if row["image_width"] else 0) for row in ROWS]
    return list(zip(ROWS, footprints(asked), strict=True))


def by_model(buffers):
    found = {}
    for row, answer in buffers:
        found.setdefault((row["model_id"], row["attention"]), []).append((row, answer))
    return found


# images whose buffer is told from above: masks of Qwen2.5-VL beyond 10,000 tokens, Pixtral 12B's beyond the warm-up
ABOVE = {"Qwen/Qwen2.5-VL-7B-Instruct": 0.14, "mistral-experimental/pixtral-12b": 0.35}


def test_buffers_grow_as_llama_cpp_reserves_them(buffers):
    """The smallest is that of the warm-up, which stays: a smaller image takes nothing more, a larger one what its graph holds more."""
    compared, off = 0, {}
    for (model, attention), rows in by_model(buffers).items():
        warm_row, warm = next((row, answer) for row, answer in rows if not row["image_width"])
        if warm["total_bytes"] is None:
            continue  # no engine of it, or no anatomy, is known: images change nothing of that
        for row, answer in rows:
            assert answer["total_bytes"], (model, answer["unknown_reason"])
            counted = max(int(row["buffer_bytes"]), int(warm_row["buffer_bytes"]))
            told = answer["activations_bytes"] - warm["activations_bytes"] + int(warm_row["buffer_bytes"])
            compared += 1
            if not -0.0001 <= told / counted - 1 <= max(ABOVE.get(model, 0), 0.003):
                off[model, attention, row["image_width"], row["images"]] = f"{told / counted - 1:+.2%}"
    assert compared > 300
    assert not off


@pytest.mark.parametrize("attention", ["flash", "eager"])
def test_what_is_reserved_at_the_start_is_in_every_figure(book, attention):
    """Of the image that it warms up with, and the tower of sound in the same file."""
    told = dict(book.execute(SET_ASIDE, [attention]).fetchall())
    counted = {
        row["model_id"]: int(row["buffer_bytes"]) + int(row["sound_bytes"])
        for row in ROWS
        if not row["image_width"] and row["attention"] == attention and row["model_id"] in told
    }
    assert len(counted) > 40
    off = {name: told[name] / size - 1 for name, size in counted.items() if not 0 <= told[name] / size - 1 < 0.001}
    assert not off


LOGGED = {  # MiB, as programs print them
    ("Qwen3.5-4B", "flash"): 223.30,  # CUDA: ggml-org/llama.cpp pull request 22673
    ("Qwen2.5-VL-7B", "eager"): 4872,  # ROCm: gpustack/gguf-parser-go issue 44, as the next three
    ("Qwen2-VL-7B", "eager"): 4598,
    ("gemma-3-4b", "eager"): 1132,
    ("gemma-3-4b", "flash"): 121.25,  # CUDA: ggml-org/llama.cpp pull request 22790
}


@pytest.mark.parametrize(("name", "attention"), LOGGED)
def test_cards_hold_what_was_counted(book, name, attention):
    told = book.execute(SET_ASIDE, [attention]).fetchall()
    (size,) = {size for model, size in told if name.lower() in model.lower() and "omni" not in model.lower() and size}
    assert size / 2**20 == pytest.approx(LOGGED[name, attention], abs=0.5)


def test_a_tower_that_nobody_counted_has_no_answer_for_images(footprints):
    known = {"dtype_id": "gguf-q4_k_m", "engine_id": "llama.cpp", "context_tokens": 8192, "max_context_tokens": None}
    (alone, seeing) = footprints(
        [{"model_id": "zai-org/GLM-5.3-Flash", "images": images, **known} for images in (0, 1)]
    )
    assert alone["total_bytes"]
    assert seeing["total_bytes"] is None and "has not been counted" in seeing["unknown_reason"]


def test_a_program_that_loads_a_tower_which_nobody_counted_has_no_answer(footprints):
    """llama-server can be told to leave it out, LM Studio cannot. (Of Ollama no release is known for the class.)"""
    asked = {"model_id": "zai-org/GLM-5.3-Flash", "dtype_id": "gguf-q4_k_m", "context_tokens": 8192}
    own, other = footprints([asked | {"program": program} for program in ("llama.cpp", "lm-studio")])
    assert own["total_bytes"]
    assert other["total_bytes"] is None and "loads that where its files have it" in other["unknown_reason"]


# MiB of the second file, as llama.cpp prints it (ggml-org/llama.cpp pull requests 22790, 22673 and 23269, issues 24758 and 16842)
SECOND_FILES = {
    "google/gemma-3-4b-it": 811.79,
    "Qwen/Qwen3.5-4B": 644.26,
    "Qwen/Qwen3.6-35B-A3B": 857.60,
    "nvidia/Gemma-4-31B-IT-NVFP4": 1145.08,
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506": 837.36,
}


@pytest.mark.parametrize("model", SECOND_FILES)
def test_what_a_model_sees_with_is_as_large_as_its_file(book, model):
    ((size,),) = book.execute("SELECT second_file_bytes(?)", [model]).fetchall()
    assert -0.002 < size / 2**20 / SECOND_FILES[model] - 1 < 0.005
