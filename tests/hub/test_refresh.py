"""`make publish` crawls first where the Hub answers; otherwise it says so, quickly, and goes on. No real network is used."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from pipeline import __main__ as command
from pipeline.cli import console
from pipeline.hub import reach
from pipeline.hub.snapshot import FOLDER
from tests.fake_hub.day import TODAY


@pytest.fixture
def nobody():
    """An address of this machine at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_refused_port_is_one_line_and_the_crawl_is_left_out(case, nobody, capsys):
    started = time.monotonic()
    console.refresh(case.settings(endpoint=nobody))
    assert time.monotonic() - started < 2.5
    assert capsys.readouterr().out == (
        "The Hub does not answer (127.0.0.1: Connection refused): publishing from the last snapshot.\n"
    )
    assert not (case.folder / "crawl").exists()


def test_a_name_that_is_looked_up_for_ever_costs_no_more_than_the_patience(monkeypatch):
    def look_up(*_, **__):
        time.sleep(1)
        raise OSError("no such name")

    monkeypatch.setattr(reach.socket, "create_connection", look_up)
    started = time.monotonic()
    assert reach.why_unreachable("https://hub.invalid", seconds=0.2) == "hub.invalid: no answer in 0 s"
    assert time.monotonic() - started < 0.8
    time.sleep(1)


def test_offline_mode_is_respected(monkeypatch):
    monkeypatch.setattr(reach.constants, "is_offline_mode", lambda: True)
    assert reach.why_unreachable("http://127.0.0.1:1") == "HF_HUB_OFFLINE is set"


def test_a_proxy_is_where_the_way_to_the_hub_begins(monkeypatch, nobody):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", nobody)
    assert reach.why_unreachable("https://hub.invalid") == "127.0.0.1: Connection refused"


def test_a_hub_that_answers_is_crawled_once_a_day(case, capsys):
    case.add("org/a")
    console.refresh(case.settings())
    said = capsys.readouterr().out
    assert "Crawling the Hub" in said and "listed       1 models: 0 unchanged, 1 read" in said
    case.requests()
    console.refresh(case.settings())
    assert "is of today" in capsys.readouterr().out
    assert case.requests() == 0


def test_a_hub_that_answers_with_errors_leaves_the_last_snapshot(case, capsys):
    case.bundle({"model_id": "org/a", "sources": ["s"]})
    case.hub.faults.append(lambda handler: handler.reply(503) is None)
    console.refresh(case.settings())
    assert "The crawl failed (" in capsys.readouterr().out
    assert case.snapshot().origin == "bundled"


@pytest.fixture
def steps(monkeypatch):
    """What the publish command does in turn, with stand-ins for crawling and building; `has_new` is what a crawl brings."""
    done = []
    done_with = {"settings": None, "has_new": True}

    def refresh(settings, otherwise=""):
        done.append("crawl")
        done_with["settings"] = settings
        return done_with["has_new"]

    def publish(_snapshot, output, _accept="", _anew=False):
        done.append("publish")
        for name in ("tables/almanac.duckdb", "site/index.html"):
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            (output / name).touch()

    monkeypatch.setattr(console, "refresh", refresh)
    monkeypatch.setattr(console, "publish", publish)
    monkeypatch.setattr(console, "newest_snapshot", lambda *_: None)
    monkeypatch.setattr("pipeline.press.output.refuse", lambda *_: None)
    monkeypatch.delenv("ALMANAC_CRAWL", raising=False)
    return done, done_with


def test_a_first_publish_does_not_wait_for_the_hub_and_is_followed_by_one_of_what_the_crawl_brings(
    steps, tmp_path, capsys
):
    done, _ = steps
    output = tmp_path / "build"
    assert command.main(["publish", "--output", str(output)]) == 0
    assert done == ["publish", "crawl", "publish"]
    assert f"lies in {output}" in capsys.readouterr().out
    done.clear()
    assert command.main(["publish", "--output", str(output)]) == 0
    assert done == ["crawl", "publish"]


def test_a_first_publish_of_which_the_crawl_brings_nothing_is_not_done_twice(steps, tmp_path):
    done, more = steps
    more["has_new"] = False
    assert command.main(["publish", "--output", str(tmp_path / "build")]) == 0
    assert done == ["publish", "crawl"]


def test_publish_asks_the_hub_unless_it_is_told_not_to(steps, tmp_path, monkeypatch):
    done, more = steps
    arguments = ["publish", "--output", str(tmp_path / "build")]
    assert command.main([*arguments, "--no-crawl"]) == 0
    monkeypatch.setenv("ALMANAC_CRAWL", "0")
    assert command.main(arguments) == 0
    assert done == ["publish", "publish"]
    monkeypatch.delenv("ALMANAC_CRAWL")
    assert command.main([*arguments, "--models", "50"]) == 0
    assert (done[2:], more["settings"].model_count) == (["crawl", "publish"], 50)


@pytest.mark.parametrize("models", ["0", "-3", "many", "1e3", "99999999", "٣"])
def test_a_number_of_models_that_is_none_is_answered_at_once(models, capsys):
    with pytest.raises(SystemExit):
        command.main(["publish", "--models", models])
    assert "not a number of models" in capsys.readouterr().err


def test_ctrl_c_while_a_first_publish_crawls_leaves_what_was_published(steps, tmp_path, monkeypatch, capsys):
    done, _ = steps
    output = tmp_path / "build"

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(console, "refresh", interrupted)
    assert command.main(["publish", "--output", str(output)]) == 130
    assert done == ["publish"] and console.is_built(output)
    assert "what is published is whole" in capsys.readouterr().err


def test_more_models_than_todays_crawl_had_are_crawled(case, capsys):
    case.add("org/a", "org/b")
    assert console.refresh(case.settings(model_count=1))
    assert not console.refresh(case.settings(model_count=1))
    assert console.refresh(case.settings(model_count=2))
    assert len(case.records()) == 2


@pytest.mark.full
def test_the_crawl_command_without_a_hub_says_so(nobody, tmp_path):
    environment = {**os.environ, "HF_ENDPOINT": nobody}
    said = subprocess.run(
        [sys.executable, "-m", "pipeline", "crawl", "--output", str(tmp_path), "--work", str(tmp_path / "work")],
        cwd=FOLDER.parent.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert said.returncode == 1
    assert "error: the Hub does not answer (127.0.0.1: Connection refused)" in said.stderr
    assert "Traceback" not in said.stderr


def test_a_crawl_of_the_day_goes_before_the_bundled_snapshot(case):
    case.bundle({"model_id": "org/z", "sources": ["s"]}, date=TODAY)
    case.add("org/a")
    case.crawl()
    assert (case.snapshot().origin, len(case.snapshot().records)) == ("crawl", 2)
