"""`fits config.json`: a model that the almanac does not hold is answered as those that it holds."""

from __future__ import annotations

import json
import shutil

import duckdb
import pytest

from pipeline.__main__ import main
from pipeline.base.caches import cache_folder
from pipeline.cli import kept, own
from pipeline.press import blank
from pipeline.press.flat import grid
from pipeline.press.lookup import fill_footprints
from tests.once import blank_folder

QWEN = "Qwen/Qwen3-0.6B"


@pytest.fixture(scope="module")
def answer(config_path):
    with own.book_of(config_path) as connection:
        yield connection


@pytest.mark.some(1)
@pytest.mark.parametrize("scenario", ["context_tokens := 3000", "phase_id := 'lora'", "dtype_id := 'gguf-q4_k_m'"])
def test_the_same_config_has_the_same_footprint(answer, book, scenario):
    query = "SELECT * EXCLUDE (model_id) FROM footprint_of('{}', {})"
    mine = answer.execute(query.format(own.MODEL_ID, scenario)).fetchall()
    assert mine == book.execute(query.format(QWEN, scenario)).fetchall()
    assert mine[0][-1] is None


def test_a_card_is_told_with_verdict_and_longest_context(config_path, answer, capsys):
    assert main(["fits", str(config_path), "--gpu", "RTX-3060-12GB", "--context", "10000", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (row,) = (r for r in told["formats"] if (r["dtype_id"], r["engine_id"]) == ("bf16", "vllm"))
    query = "SELECT total_bytes, verdict FROM fits_on('rtx-3060-12gb', $id, dtype_id := 'bf16', engine_id := 'vllm', context_tokens := 10000)"
    assert [(row["total_bytes"], row["verdict"])] == answer.execute(query, {"id": own.MODEL_ID}).fetchall()
    assert row["max_context_tokens"] == 40_960
    main(["fits", str(config_path), "--gpu", "rtx-3060-12gb"])
    text = " ".join(capsys.readouterr().out.split())
    assert "596,049,920 parameters in 28 layers and reads 40,960 tokens" in text


def test_every_format_has_a_verdict_or_a_reason(config_path, capsys):
    assert main(["fits", str(config_path), "--gpu", "rtx-3060-12gb", "--all", "--json"]) == 0
    formats = {(r["dtype_id"], r["engine_id"]): r for r in json.loads(capsys.readouterr().out)["formats"]}
    reason = "this format is for routed experts, and the model has none"
    assert formats["mxfp4", "vllm"]["unknown_reason"] == reason
    assert all((row["verdict"] is None) == (row["unknown_reason"] is not None) for row in formats.values())


@pytest.mark.full
@pytest.mark.parametrize(("phase", "dtype"), [("qlora", "nf4"), ("full-finetune", "bf16")])
def test_its_training_is_told(config_path, answer, capsys, phase, dtype):
    main(["fits", str(config_path), "--gpu", "h100-sxm", "--phase", phase, "--json"])
    row = next(r for r in json.loads(capsys.readouterr().out)["formats"] if r["dtype_id"] == dtype)
    query = "SELECT total_bytes FROM footprint_of($id, phase_id := $phase, dtype_id := $dtype, checkpointing := 'full')"
    asked = {"id": own.MODEL_ID, "phase": phase, "dtype": dtype}
    assert answer.execute(query, asked).fetchall() == [(row["total_bytes"],)]


def test_a_plan_is_made_of_it(config_path, capsys):
    assert main(["plan", str(config_path), "--gpu", "rtx-4090", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cards"][0]["plans"][0]["gpu_count"] == 1


@pytest.mark.full
def test_what_is_kept_can_be_asked(config_path, tmp_path, capsys):
    kept = tmp_path / "own.duckdb"
    assert main(["fits", str(config_path), "--gpu", "h100-sxm", "--keep", str(kept)]) == 0
    assert "FROM footprint_of('own/model')" in " ".join(capsys.readouterr().out.split())
    with duckdb.connect(str(kept), read_only=True) as connection:
        assert connection.execute("SELECT count(*) > 500 FROM footprint").fetchall() == [(True,)]
        assert connection.execute(f"SELECT total_bytes > 0 FROM footprint_of('{own.MODEL_ID}')").fetchall() == [(True,)]
    assert main(["fits", str(config_path), "--gpu", "h100-sxm", "--keep", str(kept)]) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "arguments", "reason"),
    [
        ("{", [], "is not JSON"),
        ("[1]", [], "a JSON object was expected"),
        ('{"model_type": "sideways"}', [], "Architecture 'sideways' is not described yet"),
        ('{"model_type": "llama"}', [], "Config has no hidden_size"),
        (None, ["--gpu", "rtx-409"], "rtx-409 is no card of this almanac. Near it: rtx-4090"),
        (None, ["--context", "50000"], "reads 40,960 tokens at most"),
        (None, ["--keep", "no-such-folder/own.duckdb"], "no-such-folder is no folder"),
    ],
)
def test_bad_input_is_said(config_path, tmp_path, capsys, text, arguments, reason):
    path = config_path
    if text is not None:
        path = tmp_path / "config.json"
        path.write_text(text, encoding="utf-8")
    assert main(["fits", str(path), *(arguments if "--gpu" in arguments else ["--gpu", "rtx-4090", *arguments])]) == 2
    said = capsys.readouterr()
    assert reason in " ".join(said.err.split()) and not said.out and "Traceback" not in said.err


def test_a_place_that_is_taken_is_said_before_any_work(config_path, capsys, monkeypatch):
    monkeypatch.setattr(own, "anatomise", None)
    monkeypatch.setattr(own.blank, "kept", None)
    assert main(["fits", str(config_path), "--gpu", "rtx-4090", "--keep", "no-such-folder/own.duckdb"]) == 2
    assert "no-such-folder is no folder" in capsys.readouterr().err


@pytest.mark.full
def test_what_is_kept_is_planned_once(config_path, tmp_path, monkeypatch):
    """Planning the formulas takes longer than answering all scenarios of a model: a question for both tables, of serving and of training."""
    asked = []

    class Watched:
        def __init__(self, connection):
            self.connection = connection

        def __getattr__(self, name):
            return getattr(self.connection, name)

        def __enter__(self):
            return self

        def __exit__(self, *_error):
            self.connection.close()

        def cursor(self):
            return Watched(self.connection.cursor())

        def execute(self, query, *values):
            asked.append(query)
            return self.connection.execute(query, *values)

    monkeypatch.setattr(own, "fill_footprints", lambda connection: fill_footprints(Watched(connection)))
    with own.book_of(config_path, tmp_path / "own.duckdb"):
        for side in grid.SIDES:
            assert sum(f"TABLE answer_{side} AS" in query for query in asked) == 1
        assert not any("FROM footprints" in query for query in asked)


@pytest.mark.full
def test_a_config_is_read_once_and_again_where_what_is_kept_is_damaged(config_path, tmp_path, monkeypatch):
    blank_file = blank.kept(blank_folder())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache_folder().mkdir(parents=True)
    (cache_folder() / blank_file.name).hardlink_to(blank_file)
    mine, query = tmp_path / "config.json", f"SELECT total_bytes FROM footprint_of('{own.MODEL_ID}')"
    mine.write_bytes(config_path.read_bytes())

    def answered():
        with kept.book_of(mine) as connection:
            return connection.execute(query).fetchall()

    files = lambda: list(cache_folder().glob("own-*"))  # noqa: E731
    first = answered()
    (file,) = files()
    with monkeypatch.context() as patch:
        patch.setattr(own, "anatomise", None)  # nothing reads the config
        assert answered() == first != [(None,)]
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 3])
    assert answered() == first and files() == [file]
    mine.write_text(json.dumps(json.loads(mine.read_text()) | {"num_hidden_layers": 20}), encoding="utf-8")
    monkeypatch.setattr(kept, "KEPT", 1)
    assert answered() < first and len(files()) == 1 and files() != [file]
    kept.forget(mine)
    assert files() == []
    shutil.rmtree(cache_folder())
    cache_folder().write_text("a file where a folder is wanted", encoding="utf-8")
    monkeypatch.setattr(own.blank, "make", None)  # in memory, of a blank that is found elsewhere
    monkeypatch.setattr(own.blank, "kept", lambda folder: blank_file)
    assert answered() < first
