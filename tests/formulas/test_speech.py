"""Speech from text by seconds: codecs against their own classes (tests/oracle/speech_codecs.csv), and what is not known."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

ROWS = list(
    csv.DictReader(
        (Path(__file__).parents[1] / "oracle" / "speech_codecs.csv").read_text(encoding="utf-8").splitlines()
    )
)
ORPHEUS, QWEN = "unsloth/orpheus-3b-0.1-ft", "Qwen/Qwen3-TTS-12Hz-0.6B-Base"


def asked(book, macro, *arguments, **scenario):
    named = "".join(f", {name} := ${name}" for name in scenario)
    given = {f"a{i}": value for i, value in enumerate(arguments)}
    result = book.execute(f"FROM {macro}({', '.join('$' + name for name in given)}{named})", given | scenario)
    columns = [column[0] for column in result.description]
    (row,) = result.fetchall()
    return dict(zip(columns, row, strict=True))


def test_codecs_hold_what_their_classes_hold(book):
    query = "SELECT decoding_bytes(codec, $2, $3) FROM speech_codec AS codec WHERE codec_id = $1"
    assert len(ROWS) > 10
    for row in ROWS:
        told = book.execute(query, [row["codec_id"], row["dtype_id"], float(row["seconds"])]).fetchall()[0][0]
        assert told >= 0.998 * int(row["peak_bytes"]), row
        # (of 26 seconds the first 24 are decoded at once, and the rest with two of them)
        assert told <= 1.09 * int(row["peak_bytes"]) + 5_000_000, row


def test_speech_is_a_footprint_of_its_tokens_and_a_codec(book, footprint_of):
    row = asked(book, "speech_of", ORPHEUS, seconds=30)
    assert row["context_tokens"] == 512 + 2461 and row["codec_id"] == "snac-24khz"
    alone = footprint_of(ORPHEUS, dtype_id="bf16", engine_id="transformers", context_tokens=row["context_tokens"])
    assert row["total_bytes"] == alone["total_bytes"] + row["codec_bytes"]
    assert row["codec_bytes"] > 4 * 19_842_914
    longer, fewer = (
        asked(book, "speech_of", ORPHEUS, seconds=300),
        asked(book, "speech_of", ORPHEUS, seconds=30, dtype_id="nf4"),
    )
    assert longer["total_bytes"] > row["total_bytes"] > fewer["total_bytes"]
    # one that decodes 26 seconds at most needs hardly more for ten times as many
    half, five = asked(book, "speech_of", QWEN, seconds=30), asked(book, "speech_of", QWEN, seconds=300)
    assert five["total_bytes"] - half["total_bytes"] < 0.5 * half["total_bytes"]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("model", "scenario", "reason"),
    [
        ("bosonai/higgs-audio-v2-generation-3B-base", {}, "not known (table speech_model)"),
        ("hexgrad/Kokoro-82M", {}, "counted in 32 bits"),
        ("nobody/nothing", {}, "no such model"),
        (ORPHEUS, {"seconds": 0}, "start above 0"),
        (ORPHEUS, {"seconds": "soon"}, "start above 0"),
        (ORPHEUS, {"seconds": 1e12}, "is beyond"),
        (ORPHEUS, {"engine_id": "vllm"}, "as Transformers makes it"),
        (QWEN, {"seconds": 3600}, "the model reads 32768"),
        (ORPHEUS, {"dtype_id": "nothing"}, "nothing"),
    ],
)
def test_speech_that_is_not_known_has_a_reason(book, model, scenario, reason):
    row = asked(book, "speech_of", model, **scenario)
    assert row["total_bytes"] is None and row["codec_bytes"] is None and reason in row["unknown_reason"]


@pytest.mark.full
def test_a_card_has_a_verdict_for_speech(book):
    assert asked(book, "speech_fits_on", "rtx-4090", ORPHEUS)["verdict"] == "fits"
    assert asked(book, "speech_fits_on", "rtx-3060-12gb", ORPHEUS, seconds=600)["verdict"] == "no"
    assert "no such GPU" in asked(book, "speech_fits_on", "no-card", ORPHEUS)["unknown_reason"]
