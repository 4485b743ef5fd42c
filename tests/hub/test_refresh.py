"""`make publish` crawls first where the Hub answers; otherwise it says so, quickly, and goes on. No real network is used."""

from __future__ import annotations

import datetime
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
    assert "Crawling the Hub first" in said and "listed       1 models: 0 unchanged, 1 read" in said
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


def test_publish_asks_the_hub_unless_it_is_told_not_to(monkeypatch):
    asked = []
    monkeypatch.setattr(console, "refresh", lambda settings: asked.append("crawl"))
    monkeypatch.setattr(console, "publish", lambda *_: asked.append("publish"))
    monkeypatch.delenv("ALMANAC_CRAWL", raising=False)
    assert command.main(["publish"]) == 0
    assert asked == ["crawl", "publish"]
    assert command.main(["publish", "--no-crawl"]) == 0
    monkeypatch.setenv("ALMANAC_CRAWL", "0")
    assert command.main(["publish"]) == 0
    assert asked == ["crawl", "publish", "publish", "publish"]


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
    today = datetime.date.today().isoformat()
    case.bundle({"model_id": "org/z", "sources": ["s"]}, date=today)
    case.add("org/a")
    case.crawl()
    assert (case.snapshot().origin, len(case.snapshot().records)) == ("crawl", 2)
