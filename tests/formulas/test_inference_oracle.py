"""Encoders, towers and encoder-decoders in Transformers against the real library (tests/oracle/inference.csv, count_inference.py)."""

from __future__ import annotations

import csv
import math
import statistics
from pathlib import Path

import pytest

ROWS = list(
    csv.DictReader((Path(__file__).parents[1] / "oracle" / "inference.csv").read_text(encoding="utf-8").splitlines())
)
TOLERANCE = 0.005
WHOLE = ("context_tokens", "sequences", "images")


@pytest.fixture(scope="module")
def errors(footprints):
    """Predicted ÷ counted − 1, by scenario."""
    asked = [
        {"model_id": row["model_id"], "dtype_id": row["dtype_id"], "engine_id": "transformers"}
        | {name: int(row[name]) if row[name] else None for name in WHOLE}
        | dict.fromkeys(
            ("image_width", "image_height"), math.isqrt(int(row["image_pixels"])) if row["image_pixels"] else None
        )
        | {"attention": row["attention"] or "flash"}
        | {"audio_seconds": float(row["audio_seconds"]) if row["audio_seconds"] else None}
        for row in ROWS
    ]
    answers = footprints(asked)
    assert not [(a["model_id"], a["unknown_reason"]) for a in answers if a["unknown_reason"]]
    return {
        tuple(scenario.values()): (answer["total_bytes"] - answer["overhead_bytes"]) / int(row["peak_bytes"]) - 1
        for scenario, answer, row in zip(asked, answers, ROWS, strict=True)
    }


def test_peaks_are_those_of_the_library(errors):
    outside = {key: f"{error:+.2%}" for key, error in errors.items() if abs(error) > TOLERANCE}
    assert not outside


def test_most_peaks_are_far_better_than_the_tolerance(errors):
    assert statistics.median(map(abs, errors.values())) < 0.0005


@pytest.mark.full
def test_a_captioner_caches_keys_and_values_of_its_image(footprints):
    """BLIP at 384 × 384: the real class holds 22,007,808 bytes after 20 tokens, the image's 577 among them in each of 12 layers."""
    asked = {"model_id": "Salesforce/blip-image-captioning-base", "dtype_id": "bf16", "engine_id": "transformers"}
    asked["context_tokens"] = 20
    (said,) = footprints([asked])
    one, none = footprints([asked | {"images": images} for images in (1, 0)])
    assert (said["images"], said["kv_cache_bytes"]) == (1, 22_007_808) == (1, one["kv_cache_bytes"])
    assert none["kv_cache_bytes"] == 12 * 20 * 2 * 768 * 2


def test_sound_in_a_prompt_has_its_tokens_in_the_context(footprints):
    """Voxtral hears windows of 30 seconds, the last filled up: 375 tokens each. What does not fit, or another program, is a reason."""
    asked = {"model_id": "mistralai/Voxtral-Mini-3B-2507", "dtype_id": "bf16", "context_tokens": 2048}
    scenarios = [("transformers", 30.0), ("transformers", 1.0), ("transformers", 600.0), ("vllm", 30.0)]
    whole, short, long, other = footprints([asked | {"engine_id": e, "audio_seconds": s} for e, s in scenarios])
    assert whole["total_bytes"] == short["total_bytes"] > 0
    assert long["unknown_reason"] == "the sound alone is 7500 tokens, more than the context of 2048"
    assert other["unknown_reason"] == "sound in a prompt is counted in Transformers only"
