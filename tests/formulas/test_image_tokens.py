"""Tokens of a picture against real processors (tests/oracle/image_tokens.csv, count_image_tokens.py)."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest

from pipeline.book.facts import read_facts

ROWS = list(
    csv.DictReader((Path(__file__).parents[1] / "oracle" / "image_tokens.csv").read_text(encoding="utf-8").splitlines())
)
# a patch of its edge that makes no token: the tower sees a row or a column more than is counted
EDGE = "lighton-ocr"


@pytest.fixture(scope="module")
def ask(book):
    def answer(model_id, width=None, height=None):
        result = book.execute(
            "FROM image_tokens_of($1, image_width := $2, image_height := $3)", [model_id, width, height]
        )
        return dict(zip([column[0] for column in result.description], result.fetchall()[0], strict=True))

    return answer


@pytest.fixture(scope="module")
def counted(book):
    """Each row of the oracle beside what the formula says."""
    rows = [{k: int(v) if v.isdigit() else v or None for k, v in row.items()} for row in ROWS]
    book.register("real", pl.DataFrame(rows, infer_schema_length=None).to_arrow())
    book.execute("CREATE OR REPLACE TEMP TABLE oracle_pictures AS SELECT model_id, image_width, image_height FROM real")
    result = book.execute(
        "SELECT real.*, p.prompt_tokens AS said_prompt, p.tower_tokens AS said_tower, p.tiles AS said_tiles "
        "FROM real JOIN pictures('oracle_pictures') AS p USING (model_id, image_width, image_height)"
    )
    return [dict(zip([column[0] for column in result.description], row, strict=True)) for row in result.fetchall()]


def test_every_picture_is_as_many_tokens_as_its_processor_makes(counted):
    assert len(counted) == len(ROWS) > 300
    assert not [row for row in counted if row["said_prompt"] != row["prompt_tokens"]]


def test_the_tower_sees_the_tiles_and_patches_that_the_processor_cuts(counted):
    assert not [row for row in counted if row["tiles"] and row["said_tiles"] != row["tiles"]]
    patches = [row for row in counted if row["tower_tokens"] and row["processor_id"] != EDGE]
    assert len(patches) > 100
    assert not [row for row in patches if row["said_tower"] != row["tower_tokens"]]


def test_every_processor_of_the_book_is_held_to_a_real_one(anatomies):
    known = {row["processor_id"] for row in ROWS}
    assert known == set(read_facts()["image_processor"]["processor_id"])
    assert set(anatomies["tower"]["processor_id"].drop_nulls()) <= known


def test_a_tower_whose_tokens_the_text_reads_has_a_processor(anatomies):
    read = anatomies["tower"].filter(pl.col("component") == "vision", pl.col("reader") == "language-model")
    assert len(read) > 50
    assert read["processor_id"].null_count() == 0


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model_id", "reason"),
    [("nobody/nothing", "no such model"), ("Qwen/Qwen3-8B", "not known"), ("openai/whisper-large-v3", "not known")],
)
def test_what_is_not_known_is_null_with_its_reason(ask, model_id, reason):
    said = ask(model_id, 640, 480)
    assert reason in said["unknown_reason"]
    assert said["prompt_tokens"] is None and said["tower_tokens"] is None and said["tiles"] is None


def test_a_picture_without_pixels_has_a_reason(ask):
    for sides in ((0, 1080), (640, -1), (0, None)):
        said = ask("Qwen/Qwen2.5-VL-7B-Instruct", *sides)
        assert "start at 1" in said.pop("unknown_reason") and set(said.values()) == {
            None,
            "Qwen/Qwen2.5-VL-7B-Instruct",
        }


def test_a_picture_of_which_nobody_says_the_size_is_a_square_of_1024(ask):
    assert ask("Qwen/Qwen2.5-VL-7B-Instruct") == ask("Qwen/Qwen2.5-VL-7B-Instruct", 1024, 1024)


def test_a_footprint_counts_the_tokens_of_its_pictures(ask, footprint_of):
    """A context that is one token too short for its pictures has no answer; one that just holds them has."""
    model = "HuggingFaceTB/SmolVLM-256M-Instruct"
    tokens = 3 * ask(model, 1920, 1080)["prompt_tokens"]
    facts = {"images": 3, "image_width": 1920, "image_height": 1080, "engine_id": "transformers"}
    assert f"{tokens} tokens" in footprint_of(model, context_tokens=tokens - 1, **facts)["unknown_reason"]
    assert footprint_of(model, context_tokens=tokens, **facts)["total_bytes"] > 0


@pytest.mark.full
def test_a_larger_picture_never_holds_less(footprint_of):
    for model in ("Qwen/Qwen2.5-VL-7B-Instruct", "mistralai/Mistral-Small-3.1-24B-Instruct-2503"):
        held = [
            footprint_of(
                model, context_tokens=20_000, images=1, image_width=side, image_height=side, engine_id="transformers"
            )["activations_bytes"]
            for side in (100, 1000, 2000, 3000)
        ]
        assert held == sorted(held)


def test_vllm_sets_the_largest_image_aside_whatever_is_sent(footprint_of):
    """16,384 tokens of Qwen2.5-VL: its tower runs on 65,536 patches at start, or the text beside what they became."""
    facts = {"engine_id": "vllm", "context_tokens": 8192}
    none, small, large = (
        footprint_of("Qwen/Qwen2.5-VL-7B-Instruct", images=images, image_width=side, image_height=side, **facts)
        for images, side in ((0, 64), (1, 64), (1, 2000))
    )
    assert small["activations_bytes"] == large["activations_bytes"]
    kept = 2 * 16_384 * 3584
    assert small["activations_bytes"] >= none["activations_bytes"] + kept
    assert small["error_band"] > none["error_band"]


@pytest.mark.full
def test_vllm_profiles_several_images_where_they_are_small(footprint_of):
    """32 of Gemma 3's images are the 8192 tokens of a step: the tower holds pixels, two tensors of its width and four of its hidden size."""
    facts = {"engine_id": "vllm", "context_tokens": 8192}
    none, one = (footprint_of("google/gemma-3-4b-it", images=images, **facts) for images in (0, 1))
    assert one["activations_bytes"] == 2 * 32 * 4096 * (588 + 2 * 4304 + 4 * 1152) > none["activations_bytes"]


@pytest.mark.full
def test_vllm_is_told_which_images_it_gets(book):
    query = "SELECT engine_setting FROM fits_on('h100-sxm', 'Qwen/Qwen2.5-VL-7B-Instruct', engine_id := 'vllm', context_tokens := 8192, images := $1)"
    said = {images: book.execute(query, [images]).fetchall()[0][0] for images in (0, 3)}
    assert '"image": 0, "video": 0' in said[0] and '"image": 3, "video": 0' in said[3]
