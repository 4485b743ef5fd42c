"""What llama.cpp sets aside for the towers of models that see, against its own account (tests/oracle/tower_buffer.csv, count_tower_buffer.py)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

ROWS = list(
    csv.DictReader((Path(__file__).parents[1] / "oracle" / "tower_buffer.csv").read_text(encoding="utf-8").splitlines())
)


def asked_of(row, images):
    return {
        "model_id": row["model_id"], "dtype_id": "gguf-q4_k_m", "engine_id": "llama.cpp", "context_tokens": 65_536,
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
        found.setdefault(row["model_id"], []).append((row, answer))
    return found


def test_buffers_grow_as_llama_cpp_reserves_them(buffers):
    """The smallest is that of the warm-up, which stays: a smaller image takes nothing more, a larger one what its graph holds more."""
    compared, off = 0, {}
    for model, rows in by_model(buffers).items():
        warm_row, warm = next((row, answer) for row, answer in rows if not row["image_width"])
        if warm["total_bytes"] is None:
            continue  # no engine of it, or no anatomy, is known: images change nothing of that
        for row, answer in rows:
            counted = max(int(row["buffer_bytes"]), int(warm_row["buffer_bytes"])) - int(warm_row["buffer_bytes"])
            assert answer["total_bytes"], (model, answer["unknown_reason"])
            told = answer["activations_bytes"] - warm["activations_bytes"]
            compared += 1
            if not -4096 <= told - counted <= max(0.01 * int(row["buffer_bytes"]), 2**20):
                off[model, row["image_width"], row["images"]] = told - counted
    assert compared > 150
    # (above 10,000 tokens of the tower its masks are told from above, by a tenth at most)
    large = {key: value for key, value in off.items() if "Qwen2.5-VL" in key[0] and 0 < value < 0.12 * 2e9}
    assert off == large


def test_what_is_reserved_at_the_start_is_in_every_figure(book):
    """4 × tokens × elements, + masks × tokens², + the tower of sound, of each row's own image."""
    told = book.execute(
        """
        SELECT model_id, tower_buffer_bytes_llama_cpp(shape_row.model.tower, graph_tokens(shape_row.model.tower, {
            'images': 0, 'picture_width': NULL::DOUBLE, 'picture_height': NULL::DOUBLE, 'picture_rows': NULL::DOUBLE,
            'picture_columns': NULL::DOUBLE}))
        FROM shape_row WHERE model_id IN (SELECT unnest(?))
        """,
        [[row["model_id"] for row in ROWS if not row["image_width"]]],
    ).fetchall()
    counted = {
        row["model_id"]: int(row["buffer_bytes"]) + int(row["sound_bytes"]) for row in ROWS if not row["image_width"]
    }
    assert len(told) > 40
    off = {model: (size, counted[model]) for model, size in told if not -4096 <= size - counted[model] <= 2**20}
    assert not off


def test_qwen_holds_223_mib_as_a_log_of_cuda_says():
    """Qwen3.5-4B: ggml-org/llama.cpp pull request 22673 prints `CUDA0 compute buffer size = 223.30 MiB` for the image of the warm-up."""
    row = next(row for row in ROWS if "Qwen3.5-4B" in row["model_id"] and not row["image_width"])
    assert int(row["buffer_bytes"]) / 2**20 == pytest.approx(223.30, abs=0.005)


def test_a_tower_that_nobody_counted_has_no_answer_for_images(footprints):
    known = {"dtype_id": "gguf-q4_k_m", "engine_id": "llama.cpp", "context_tokens": 8192, "max_context_tokens": None}
    (alone, seeing) = footprints(
        [{"model_id": "zai-org/GLM-5.3-Flash", "images": images, **known} for images in (0, 1)]
    )
    assert alone["total_bytes"]
    assert seeing["total_bytes"] is None and "has not been counted" in seeing["unknown_reason"]
