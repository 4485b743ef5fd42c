"""`python -m pipeline fits config.json`: a model that the almanac does not hold is answered as those that it holds."""

from __future__ import annotations

import pytest

from pipeline.__main__ import main
from pipeline.cli import own
from pipeline.press.lookup import fill_footprints

QWEN = "Qwen/Qwen3-0.6B"


@pytest.fixture(scope="module")
def answer(config_path):
    with own.book_of(config_path) as connection:
        yield connection


@pytest.mark.parametrize("scenario", ["context_tokens := 3000", "phase_id := 'lora'", "dtype_id := 'gguf-q4_k_m'"])
def test_the_same_config_has_the_same_footprint(answer, book, scenario):
    query = "SELECT * EXCLUDE (model_id) FROM footprint_of('{}', {})"
    mine = answer.execute(query.format(own.MODEL_ID, scenario)).fetchall()
    assert mine == book.execute(query.format(QWEN, scenario)).fetchall()
    assert mine[0][-1] is None


def test_a_card_is_told_with_verdict_and_longest_context(answer):
    text = own.told(answer, "rtx-3060-12gb", 10_000)
    assert "596,049,920 parameters, 28 layers, context 40,960" in text
    assert "8,192 of the 10,000 tokens asked for" in text and "one sequence of 8,192 tokens" in text
    assert "asked for" not in own.told(answer, "rtx-3060-12gb", 8192)
    (line,) = (line for line in text.splitlines() if line.startswith("  bf16 in vllm"))
    assert line.split()[-3:] == ["fits", "1", "40,960"]
    (line,) = (line for line in text.splitlines() if line.startswith("  mxfp4 in vllm"))
    assert line.endswith("unknown: this format is for routed experts, and the model has none")
    assert "training, 2,048 tokens" in text and "  qlora nf4 " in text


@pytest.mark.parametrize(("gpu_id", "context"), [("rtx-3060-12gb", 10_000), ("h100-sxm", 600)])
def test_an_answer_that_loads_only_its_card_is_the_same(answer, config_path, gpu_id, context):
    assert own.answer(config_path, gpu_id, context) == own.told(answer, gpu_id, context)


def test_what_is_kept_can_be_asked(config_path, tmp_path, capsys):
    kept = tmp_path / "own.duckdb"
    assert main(["fits", str(config_path), "--gpu", "h100-sxm", "--keep", str(kept)]) == 0
    assert "h100-sxm gives one process" in capsys.readouterr().out
    assert kept.stat().st_size > 0
    assert main(["fits", str(config_path), "--keep", str(kept)]) == 1
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "arguments", "reason"),
    [
        ("{", [], "is not JSON"),
        ("[1]", [], "a JSON object was expected"),
        ('{"model_type": "sideways"}', [], "Architecture 'sideways' is not described yet"),
        ('{"model_type": "llama"}', [], "Config has no hidden_size"),
        (None, ["--gpu", "4090"], "no such GPU: 4090 (nearest: rtx-4090"),
        (None, ["--context", "12"], "--context starts at 512"),
        (None, ["--keep", "no-such-folder/own.duckdb"], "no-such-folder is no folder"),
    ],
)
def test_bad_input_is_one_line(config_path, tmp_path, capsys, text, arguments, reason):
    path = config_path
    if text is not None:
        path = tmp_path / "config.json"
        path.write_text(text, encoding="utf-8")
    assert main(["fits", str(path), *arguments]) == 1
    said = capsys.readouterr().err
    assert reason in said and said.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--gpu", "nope"], ["--context", "12"], ["--keep", "no-such-folder/own.duckdb"]])
def test_a_wrong_argument_is_answered_before_any_work(config_path, capsys, monkeypatch, arguments):
    monkeypatch.setattr(own, "anatomise", None)
    monkeypatch.setattr(own.build, "load", None)
    assert main(["fits", str(config_path), *arguments]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_question_is_planned_once(config_path, monkeypatch):
    """Planning the formulas takes longer than answering all scenarios of a model: one question for both tables."""
    asked = []

    class Watched:
        def __init__(self, connection):
            self.connection = connection

        def __getattr__(self, name):
            return getattr(self.connection, name)

        def execute(self, query, *values):
            asked.append(query)
            return self.connection.execute(query, *values)

    monkeypatch.setattr(own, "fill_footprints", lambda connection, sets: fill_footprints(Watched(connection), sets))
    with own.book_of(config_path) as connection:
        assert sum("FROM footprints(" in query for query in asked) == 1
        assert connection.execute("SELECT count(*) > 500 FROM footprint").fetchall() == [(True,)]
        assert connection.execute("SELECT count(*) > 200 FROM ladder").fetchall() == [(True,)]


def test_a_card_is_found_however_its_id_is_spelled(config_path):
    assert own.answer(config_path, "RTX-4090", 8192) == own.answer(config_path, "rtx-4090", 8192)
