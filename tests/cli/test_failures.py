"""What a person sees of a failure: one sentence and an exit status, and of a mistake of ours where it was made."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time

import duckdb
import polars as pl
import pytest

from pipeline.__main__ import main
from pipeline.base import failures
from pipeline.book.facts import POLARS_TYPES, FactError, read_facts
from pipeline.book.schema import PUBLISHED
from pipeline.press import formulas
from pipeline.press.publish import ROOT

MADE = (
    "model",
    "rejected",
    "stored_tensor",
    "stored_part",
    "component",
    "component_tensor",
    "tensor",
    "attention_layer",
    "feed_forward_layer",
    "tower",
    "measured",
)


def raising(error):
    def does(*_, **__):
        raise error

    return does


def no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/disk/build/tables/almanac.duckdb")


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (FactError(["tables/facts/gpu.csv:3: column x: wrong"]), 1, "error: tables/facts/gpu.csv:3: column x: wrong"),
        (no_space(), 1, "no space left on device: /disk/build/tables/almanac.duckdb; a build lies beside the last one"),
        (OSError(errno.EFBIG, "File too large", "x.parquet"), 1, "error: file too large: x.parquet"),
        (MemoryError(), 1, "error: not enough memory"),
        (
            duckdb.IOException("IO Error: Could not write file: No space left\n\nLINE 1"),
            1,
            "could not read or write: Could",
        ),
        (duckdb.IOException('IO Error: Could not set lock on file "x"'), 1, "another program has the database open"),
        (duckdb.OutOfMemoryException("Out of Memory Error: 1 GiB"), 1, "DuckDB has not enough memory (1 GiB)"),
        (
            duckdb.BinderException('Binder Error: no column "y"\n\nLINE 1: SELECT'),
            1,
            'could not answer: Binder Error: no column "y"',
        ),
        (KeyboardInterrupt(), 130, "interrupted: what is published is whole"),
        (RuntimeError("Query interrupted"), 130, "interrupted: what is published is whole"),
        (
            duckdb.InterruptException("INTERRUPT Error: Interrupted!"),
            130,
            "interrupted: what is published is whole",
        ),
    ],
)
def test_a_failure_from_outside_is_one_sentence(monkeypatch, capsys, error, status, words):
    monkeypatch.setattr("pipeline.cli.console.publish", raising(error))
    assert main(["publish", "--no-crawl"]) == status
    said = capsys.readouterr().err.strip()
    assert words in said and said.count("\n") == 0 and "Traceback" not in said


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "error",
    [IndexError("list index out of range"), KeyError("x"), ZeroDivisionError("division by zero"), RuntimeError("odd")],
)
def test_a_mistake_of_ours_is_never_a_sentence_alone(monkeypatch, capsys, error):
    monkeypatch.setattr("pipeline.cli.console.publish", raising(error))
    assert main(["publish", "--no-crawl"]) == 1
    said = capsys.readouterr().err
    assert "Traceback" in said and 'test_failures.py", line' in said
    assert f"a mistake of the almanac itself, what is published is whole: {type(error).__name__}" in said


def test_a_name_that_no_fact_has_is_a_sentence(capsys):
    assert main(["source", "gpu/rtx-4091"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: no fact is called 'gpu/rtx-4091'; did you mean") and said.count("\n") == 1


# ---- a config.json that somebody has

HOSTILE = {
    "deep": (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested"),
    "deeper than any": (b'{"a":' * 60 + b"1" + b"}" * 60, "nested deeper than 40"),
    "a key twice": (b'{"model_type": "llama", "model_type": "bert"}', "'model_type' is given twice"),
    "no number": (b'{"model_type": "llama", "a": NaN}', "NaN is no number of JSON"),
    "half a character": (b'{"model_type": "llama", "a": ["\\ud800"]}', "half a character"),
    "not UTF-8": (b'{"model_type": "\xff"}', "not UTF-8"),
    "no JSON": (b"{", "is not JSON"),
    "a page": (b"<!doctype html>", "HTML instead of JSON"),
    "nothing": (b"", "is not JSON"),
}


@pytest.mark.parametrize("command", ["anatomy", "fits"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_config_that_cannot_be_used_is_a_sentence_on_standard_error(tmp_path, capsys, command, name):
    content, reason = HOSTILE[name]
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert main([command, str(path)]) == {"anatomy": 1, "fits": 2}[command]  # 2: a question that cannot be asked
    told = capsys.readouterr()
    said = " ".join(told.err.split())  # the terminal's command folds its lines
    assert told.out == "" and said.removeprefix("error: ").startswith("config.json ") and reason in said


def test_a_mark_of_byte_order_and_an_infinite_number_are_taken(tmp_path, capsys, config_path):
    config = json.loads(config_path.read_text(encoding="utf-8")) | {"time_step_limit": [0.0, float("inf")]}
    path = tmp_path / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(config).encode())
    assert main(["anatomy", str(path)]) == 0
    assert "596,049,920" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["anatomy", "fits"])
@pytest.mark.parametrize("field", ["model_type", "architectures"])
def test_no_text_of_a_config_reaches_the_terminal_raw(tmp_path, capsys, config_path, command, field):
    nasty = "\x1b]0;owned\x07\r\u202e\n"
    config = json.loads(config_path.read_text(encoding="utf-8")) | {field: nasty if field == "model_type" else [nasty]}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    main([command, str(path)])
    told = capsys.readouterr()
    said = told.out + told.err
    assert not any(c in said for c in "\x1b\x07\r\u202e")
    assert "]0;owned" in said


def test_a_reader_that_fails_names_the_file_and_the_model(tmp_path, capsys, monkeypatch, config_path):
    monkeypatch.setattr("pipeline.cli.describe.read_config", raising(IndexError("list index out of range")))
    assert main(["anatomy", str(config_path)]) == 1
    said = capsys.readouterr().err
    assert str(config_path) in said and "qwen3" in said and "Traceback" in said
    monkeypatch.setattr("pipeline.press.anatomise.read_config", raising(IndexError("list index out of range")))
    unread = tmp_path / "config.json"  # what was read before is kept
    unread.write_text(json.dumps(json.loads(config_path.read_text()) | {"nobody": "read it"}))
    assert main(["fits", str(unread)]) == 2
    said = capsys.readouterr().err.split()  # a long path is wrapped
    assert str(unread) in "".join(said) and "the reader of this architecture failed: IndexError" in " ".join(said)


# ---- SQL


def test_a_constant_is_never_run_as_sql():
    """Also one that nobody checked: its name is a column, whatever it holds."""
    facts = read_facts()
    row = facts["constant"].row(0, named=True) | {"constant_id": 'x DOUBLE); DROP TABLE gpu_fact; --"', "value": 0.1}
    facts["constant"] = pl.concat([facts["constant"], pl.DataFrame([row], schema=facts["constant"].schema)])
    with duckdb.connect() as connection:
        formulas.load(connection, facts, {})
        assert connection.execute("SELECT count(*) > 100 FROM gpu_fact").fetchall() == [(True,)]
        wide = connection.execute("FROM constants")
        values = dict(zip((column[0] for column in wide.description), wide.fetchall()[0], strict=True))
        assert values == dict(facts["constant"].select("constant_id", "value").rows())


@pytest.mark.some(1)
@pytest.mark.parametrize("left", ["all but one", "none"])
def test_a_formula_that_does_not_run_is_named(left):
    """A constant that was removed or misspelt: the file that needs it, and DuckDB's reason."""
    facts = read_facts()
    facts["constant"] = facts["constant"].filter((pl.col("constant_id") != "cuda_gap_ratio") & (left != "none"))
    empty = {n: pl.DataFrame(schema={c.name: POLARS_TYPES[c.type] for c in PUBLISHED[n].columns}) for n in MADE}
    named = (
        "constant.csv holds no constant" if left == "none" else r"tables/sql/capacity/capacity\.sql .*cuda_gap_ratio"
    )
    with duckdb.connect() as connection, pytest.raises(formulas.FormulaError, match=named) as failure:
        formulas.load(connection, facts, empty)
        formulas.run_sql(connection)
    assert failures.sentence_of(failure.value) == str(failure.value)


# ---- stopping


def started(code: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


IN_SQL = """
import signal, sys, duckdb
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests may run where it is ignored, as under nohup
from pathlib import Path
from pipeline import __main__ as command
from pipeline.base import failures
from pipeline.cli import console
def publish(*_):
    folder = Path({folder!r})
    folder.mkdir()
    try:
        print("begun", flush=True)
        with failures.interruptible(duckdb.connect()) as connection:
            connection.execute("{statement}")
    finally:
        folder.rmdir()
console.publish = publish
sys.exit(command.main(["publish", "--no-crawl"]))
"""


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("number", "words"),
    [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "ended by SIGTERM"), (signal.SIGHUP, "ended by SIGHUP")],
)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM range(1000000000000) AS t(a) WHERE a % 7 = 3",
        # one task of another thread, in which DuckDB hears no signal
        "SELECT max(list_sum(list_transform(range(100000), lambda i: i * a % 7))) FROM range(100000) AS t(a)",
    ],
)
def test_a_build_that_is_stopped_in_its_sql_tidies_up_and_says_so(tmp_path, number, words, statement):
    run = started(IN_SQL.format(folder=str(tmp_path / ".build-next"), statement=statement))
    try:
        assert run.stdout.readline() == "begun\n"
        time.sleep(0.5)
        run.send_signal(number)
        said = run.communicate(timeout=60)[1]
    finally:
        run.kill()
        run.communicate()
    assert said.strip() == f"{words}: what is published is whole"
    assert run.returncode == 128 + number and not (tmp_path / ".build-next").exists()


def test_ctrl_c_while_a_command_is_imported_is_no_traceback():
    code = "import sys, builtins\nreal = builtins.__import__\n"
    code += "def interrupted(name, *rest):\n    if name == 'polars': raise KeyboardInterrupt\n    return real(name, *rest)\n"
    code += "builtins.__import__ = interrupted\nfrom pipeline.__main__ import main\nsys.exit(main(['publish', '--no-crawl']))"
    run = started(code)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 130 and said.strip() == "interrupted: what is published is whole"


def test_signals_are_as_before_once_a_command_is_done(config_path, capsys):
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)]
    assert main(["anatomy", str(config_path)]) == 0
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)] == before


def broken(by: Exception | None) -> Exception:
    error = RuntimeError("the pages could not be written")
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    ("error", "is_full"),
    [
        (no_space(), True),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), True),
        # DuckDB says it in a second line, and of a transaction
        (duckdb.IOException("IO Error: CHECKPOINT failed.\n\nCould not write file: No space left on device"), True),
        (duckdb.TransactionException('Failed to commit: Could not write "x.wal": No space left on device'), True),
        (broken(no_space()), True),
        (broken(None), False),
        (OSError(errno.EACCES, "Permission denied", "/x"), False),
    ],
)
def test_a_full_disk_is_known_whoever_met_it(error, is_full):
    assert failures.is_out_of_room(error) is is_full
