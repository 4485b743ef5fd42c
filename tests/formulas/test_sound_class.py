"""Classes of sound that were run whole, against tests/oracle/sound_classes.csv, and what is not known of them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pipeline.book.facts import read_facts
from pipeline.render.data import sounds
from tests.formulas.at_once import at_once

ROWS = list(
    csv.DictReader(
        (Path(__file__).parents[1] / "oracle" / "sound_classes.csv").read_text(encoding="utf-8").splitlines()
    )
)
HEARS, SPEAKS = "nvidia/parakeet-tdt-0.6b-v3", "hexgrad/Kokoro-82M"


def told(book, model, seconds, dtype, columns):
    query = f"SELECT {columns} FROM speech_of($1, seconds := $2, dtype_id := $3)"
    (row,) = book.execute(query, [model, seconds, dtype]).fetchall()
    return row


def test_classes_hold_what_was_counted(book):
    # (they were counted at lengths that no pipeline gives them)
    query = """SELECT sound_class_bytes(class, $4) + class.beside_bytes
        FROM (SELECT * REPLACE (greatest(most_seconds, $4) AS most_seconds) FROM sound_class) AS class
        WHERE sound_type = $1 AND parameter_count = $2 AND element_bytes = $3"""
    assert len(ROWS) > 10
    for row in ROWS:
        key = [row["model_type"], int(row["parameter_count"]), int(row["element_bytes"]), float(row["seconds"])]
        ((found,),) = book.execute(query, key).fetchall()
        assert 0.999 * int(row["peak_bytes"]) <= found <= 1.005 * int(row["peak_bytes"]) + 1_000_000, row


def test_every_class_was_counted():
    counted = {(row["model_type"], int(row["parameter_count"]), int(row["element_bytes"])) for row in ROWS}
    assert counted == set(read_facts()["sound_class"].select("sound_type", "parameter_count", "element_bytes").rows())


@pytest.mark.full
def test_every_class_is_a_model_of_the_snapshot(whole_book):
    query = "FROM sound_class ANTI JOIN model ON sound_type = model_type AND sound_class.parameter_count = model.parameter_count"
    assert whole_book.execute(query).fetchall() == []


def by_seconds(book, *asked):
    """What is said of models, seconds and formats."""
    names = ("model_id", "seconds", "dtype_id")
    cases = [dict(zip(names, case, strict=True)) for case in asked]
    return [row for (row,) in at_once(book, "speech_of", names[:1], cases)]


def test_sound_is_asked_by_seconds(book):
    heard = [(HEARS, seconds, "bf16") for seconds in (60, 600)]
    spoken = [(SPEAKS, seconds, "fp32") for seconds in (30, 3600, 67)]
    cloned = [("coqui/XTTS-v2", seconds, "fp32") for seconds in (30, 3600)]
    minute, ten, half, hour, piece, short, long = by_seconds(book, *heard, *spoken, *cloned)
    assert minute["weights_bytes"] == ten["weights_bytes"] == 2 * 627_008_134
    assert [minute[name] for name in ("context_tokens", "codec_bytes", "unknown_reason")] == [None] * 3
    assert [ten[name] for name in ("context_tokens", "codec_bytes", "unknown_reason")] == [None] * 3
    # (what its attention holds grows with the square)
    assert ten["activations_bytes"] > 15 * minute["activations_bytes"]
    assert minute["total_bytes"] < 2.2e9 < ten["total_bytes"] < 8e9
    assert half["weights_bytes"] == 4 * 81_810_022 and half["total_bytes"] < 2e9
    assert alike(short) == alike(long) and short["total_bytes"] > 0
    # a text is cut into pieces: the longest of them counts, however many there are
    assert alike(hour) == alike(piece) and half["total_bytes"] < hour["total_bytes"] < 3 * 2**30


def alike(row):
    return {name: value for name, value in row.items() if name.endswith("_bytes") or name == "unknown_reason"}


@pytest.mark.full
def test_what_is_asked_alone_is_what_is_asked_with_others(book):
    columns = "weights_bytes, activations_bytes, total_bytes, context_tokens, codec_bytes, unknown_reason"
    for asked, row in zip(
        ((HEARS, 60, "bf16"), (SPEAKS, 30, "fp32")),
        by_seconds(book, (HEARS, 60, "bf16"), (SPEAKS, 30, "fp32")),
        strict=True,
    ):
        assert told(book, *asked, columns) == tuple(row[name] for name in columns.split(", "))


def test_who_speaks_when_takes_the_same_for_any_length(book):
    """It looks at windows of ten seconds; the two pipelines load the same classes. The batch of 32 was seen to hold 1.82 GiB."""
    models = ("pyannote/speaker-diarization-3.1", "pyannote/speaker-diarization-community-1")
    spoken = [(model, seconds, "fp32") for model in models for seconds in (60, 4 * 3600)]
    voices = [("pyannote/wespeaker-voxceleb-resnet34-LM", seconds, "fp32") for seconds in (10, 100)]
    *of_speakers, ten, hundred = by_seconds(book, *spoken, *voices)
    for minute, hours in (of_speakers[:2], of_speakers[2:]):
        assert alike(minute) == alike(hours) and minute["unknown_reason"] is None
        held = minute["weights_bytes"] + minute["activations_bytes"]
        assert 0.85 * 1.82 * 2**30 < held < 1.82 * 2**30 < minute["total_bytes"]
    assert hundred["activations_bytes"] == 10 * ten["activations_bytes"]


def test_what_comes_of_a_class_is_said(book):
    """Who tells speakers apart is no answer to a wish for text, though the Hub lists it as speech recognition, and a voice's vector no speech."""
    classes = sounds.classes(book)
    assert {what for _program, _note, what in classes.values()} == {
        "text",
        "speech",
        "music",
        "sound",
        "speakers",
        "vectors",
    }
    assert classes["pyannote/speaker-diarization-3.1"][2] == "speakers" and classes[HEARS][2] == "text"
    assert classes[SPEAKS][:2] == (
        "kokoro",
        book.execute("SELECT note FROM sound_class WHERE sound_type = 'kokoro'").fetchall()[0][0],
    )
    writers = sounds.writers(book)
    assert "unsloth/orpheus-3b-0.1-ft" in writers and writers.isdisjoint(classes)
    unlisted = "SELECT model_id FROM model WHERE pipeline_tag IS NULL"
    silent = {name for (name,) in book.execute(unlisted).fetchall()} & set(sounds.spoken_of(book)) - writers
    assert {classes[name][2] for name in silent} <= {"sound", "vectors"}  # none that a list of what speaks would miss


@pytest.mark.full
def test_what_was_not_counted_has_a_reason(book):
    asked = (
        (SPEAKS, 30, "fp16", "counted in 32 bits"),
        (HEARS, 30, "int8", "counted in 16 or 32 bits"),
        (HEARS, 30, "nothing", "counted in 16 or 32 bits"),
        (HEARS, 1201, "bf16", "up to 1200 seconds"),
        (HEARS, -1, "bf16", "start above 0"),
        ("ResembleAI/chatterbox", 41, "fp32", "up to 40 seconds"),
        ("bosonai/higgs-audio-v2-generation-3B-base", 30, "bf16", "not known (table speech_model)"),
    )
    told = by_seconds(book, *(case[:3] for case in asked))
    for row, (*_case, reason) in zip(told, asked, strict=True):
        assert (row["total_bytes"], row["weights_bytes"]) == (None, None) and reason in row["unknown_reason"]
    query = "SELECT verdict FROM speech_fits_on('rtx-3060-12gb', $1, seconds := $2, dtype_id := 'bf16')"
    assert [book.execute(query, [HEARS, n]).fetchall() for n in (60, 1200)] == [[("fits",)], [("no",)]]
