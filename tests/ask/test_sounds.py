"""Models that hear or speak are asked by seconds of sound: as the macros say it."""

from __future__ import annotations

import duckdb
import pytest

from tests.few import HEARS, LISTENS, SPEAKS, TEXT

CARD = ("--gpu", "rtx-3060-12gb")


@pytest.fixture
def value(folder):
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:
        yield lambda query, *values: connection.execute(query, list(values)).fetchall()


@pytest.mark.full
def test_what_was_run_whole_is_told_by_seconds_in_what_runs_it(ask, ask_json, value):
    told = ask_json("fits", SPEAKS, *CARD, "--seconds", "60")
    (row,) = told["sounds"]
    query = "SELECT total_bytes, capacity_bytes, verdict FROM speech_fits_on('rtx-3060-12gb', $1, seconds := $2, dtype_id := 'fp32')"
    assert [(row["total_bytes"], row["capacity_bytes"], row["verdict"])] == value(query, SPEAKS, 60)
    for seconds, size in row["bytes_by_seconds"].items():
        assert (size,) == value(query, SPEAKS, int(seconds))[0][:1]
    assert set(row["bytes_by_seconds"]) == {"30", "60", "300", "3600"} and row["runs_in"] == "kokoro"
    status, out, _ = ask("fits", SPEAKS, *CARD)
    assert status == 0 and "with 30 seconds of sound, in fp32 (kokoro)" in " ".join(out.split())
    assert "30 seconds  5 minutes  1 hour" in out and "its pipeline cuts text at 510 phonemes" in " ".join(out.split())


@pytest.mark.full
def test_memory_that_is_free_counts_and_not_that_of_the_card(ask, ask_json, value):
    told = ask_json("fits", SPEAKS, "--free", "1GiB")
    assert told["verdict"] == "no" and told["best"]["capacity_bytes"] == 2**30
    assert ask_json("fits", SPEAKS, *CARD, "--free", "1GiB")["verdict"] == "no"
    query = "SELECT capacity_bytes, verdict FROM speech_fits_on($1, $2, dtype_id := 'fp32', free_bytes := $3)"
    assert value(query, None, SPEAKS, 10 * 2**30) == [(10 * 2**30, "fits")]
    assert value(query, "no-card", SPEAKS, 10 * 2**30) == [(None, None)]
    # more than the card has is not free of it
    ((capacity, _verdict),) = value(query, "rtx-3060-12gb", SPEAKS, 100 * 2**30)
    assert capacity < 12 * 2**30
    assert ask("fits", SPEAKS, "--free", "1GiB")[0] == 1


@pytest.mark.full
def test_who_hears_is_told_by_seconds(ask, ask_json, value):
    told = ask_json("fits", HEARS, *CARD)
    assert [row["dtype_id"] for row in told["sounds"]] == ["bf16", "int8", "nf4"] and told["use"]["seconds"] == 30
    query = (
        "SELECT total_bytes FROM footprint_of($1, dtype_id := 'int8', engine_id := 'transformers', audio_seconds := $2)"
    )
    for seconds, size in told["sounds"][1]["bytes_by_seconds"].items():
        assert [(size,)] == value(query, HEARS, int(seconds))
    assert told["best"]["dtype_id"] == "bf16"
    # an hour at once takes more than the card has
    status, out, _ = ask("fits", HEARS, *CARD, "--seconds", "3600")
    assert status == 1 and out.startswith(f"No: {HEARS} does not run") and "1 hour of sound" in out
    # asked by tokens it answers as any other
    assert ask_json("fits", HEARS, *CARD, "--context", "512")["formats"]


@pytest.mark.full
def test_sound_of_a_prompt_is_part_of_its_context(ask_json, value):
    assert "sounds" not in ask_json("fits", LISTENS, *CARD)  # it is asked by tokens, as it reads text too
    (row, *_) = ask_json("fits", LISTENS, *CARD, "--seconds", "60")["sounds"]
    query = """SELECT total_bytes FROM footprint_of($1, dtype_id := 'bf16', engine_id := 'transformers', audio_seconds := 60,
        context_tokens := 60 * (SELECT text_tokens_each FROM tower WHERE model_id = $1 AND component = 'audio') + 512)"""
    assert [(row["total_bytes"],)] == value(query, LISTENS)


def test_windows_of_one_length_are_said_to_be_such(ask):
    _, out, _ = ask("fits", "openai/whisper-tiny", *CARD, "--seconds", "600")
    assert "can run on one" in out and "longer sound takes no more" in " ".join(out.split())
    plain = " ".join(ask("fits", "openai/whisper-tiny", *CARD)[1].split())
    assert "longer sound takes no more" in plain
    assert plain.count("none of its classes has a converter to GGUF") == 1  # (of six formats)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((TEXT, "--seconds", "30"), "nothing says that it hears or speaks"),
        ((SPEAKS, "--seconds", "30", "--context", "512"), "by one of them"),
        ((SPEAKS, "--seconds", "30", "--users", "2"), "of one user"),
        ((SPEAKS, "--seconds", "30", "--phase", "lora"), "of inference"),
        ((SPEAKS, "--seconds", "0"), "it starts at 1"),
    ],
)
def test_what_makes_no_sense_is_said(ask, given, words):
    status, _, err = ask("fits", *given, *CARD)
    assert status == 2 and words in " ".join(err.split())


@pytest.mark.full
def test_of_several_cards_one_is_told_and_that_is_said(ask):
    one, two = (
        " ".join(ask("fits", SPEAKS, "--gpu", card)[1].split()) for card in ("rtx-3060-12gb", "2x rtx-3060-12gb")
    )
    assert "Told for one of the cards" in two and "Told for one" not in one


@pytest.mark.full
def test_a_format_that_was_not_counted_has_a_reason(ask):
    status, out, _ = ask("fits", SPEAKS, *CARD, "--format", "int8")
    assert status == 3 and "counted in 32 bits" in " ".join(out.split())


@pytest.mark.full
def test_sound_that_is_too_long_is_said_to_be_so(ask, monkeypatch):
    """Not that other formats were not counted."""
    from pipeline.ask import sounds

    asked = sounds._spoken

    def shorter(*given):
        rows = asked(*given)
        for row in rows:
            if row["seconds"] == 60:
                row |= {"total_bytes": None, "verdict": None}
                row["unknown_reason"] = row["unknown_reason"] or "counted with up to 30 seconds"
        return rows

    monkeypatch.setattr(sounds, "_spoken", shorter)
    status, out, _ = ask("fits", SPEAKS, *CARD, "--seconds", "60")
    assert status == 3 and "counted with up to 30 seconds" in out


@pytest.mark.full
def test_transformers_may_be_named_with_seconds_as_it_was_counted_in(ask_json, ask):
    asked = ("fits", LISTENS, *CARD, "--seconds", "300")
    named, plain = ask_json(*asked, "--program", "transformers"), ask_json(*asked)
    assert named["sounds"] == plain["sounds"] and named["verdict"] == plain["verdict"]
    for program, ended, words in (
        ("transformers 4.44", 3, "seconds of sound in Transformers 4.44"),
        ("vllm", 2, "without --program, or with --program transformers"),
    ):
        status, _out, problem = ask(*asked, "--program", program)
        assert status == ended and words in " ".join(problem.split())
    status, _out, problem = ask("fits", SPEAKS, *CARD, "--seconds", "30", "--program", "transformers")
    assert status == 3 and "counted in kokoro" in " ".join(problem.split())
