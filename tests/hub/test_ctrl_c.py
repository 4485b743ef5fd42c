"""Ctrl-C is heard within a second whatever the crawl waits for: the Hub, its turn, or a pause that the Hub asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from pipeline.hub.snapshot import FOLDER

ROOT = FOLDER.parent.parent


def start(case, *more):
    # the command itself, which imports polars: that sets a handler of its own for SIGINT
    environment = {**os.environ, "HF_ENDPOINT": case.hub.url, "HF_HOME": str(case.top / "home")}
    command = ["-m", "pipeline", "crawl", "--output", str(case.folder), "--work", str(case.work), *more]
    return subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def hang(pattern):
    def fault(handler):
        return pattern in handler.path and (handler.server.stopping.wait(60) or True)

    return fault


def pause(pattern):
    def fault(handler):
        if pattern in handler.path:
            handler.reply(429, b"", RateLimit='"resolvers";r=0;t=299')
            return True
        return False

    return fault


@pytest.mark.some(1)
@pytest.mark.parametrize("pattern", ["/api/models?", "/api/models/", "/resolve/"], ids=["lists", "others", "models"])
@pytest.mark.parametrize("fault", [hang, pause], ids=["a Hub that never answers", "a long pause"])
def test_ctrl_c_is_heard_at_once_and_the_next_crawl_goes_on(case, pattern, fault):
    case.add(*(f"org/m{i:02}" for i in range(30)))
    case.hub.faults.append(fault(pattern))
    process = start(case)
    deadline = time.monotonic() + 60
    while not case.hub.asked(pattern.replace("?", r"\?")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)  # all of them wait
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    # a second on a machine that is not busy; what is waited for takes twenty seconds and more
    assert time.monotonic() - started < 5
    assert process.returncode == 130, said
    assert "interrupted: what is published is whole" in said and "Traceback" not in said
    assert not (case.folder / "crawl").exists()
    case.hub.faults.clear()
    case.list("crawl", "pipeline_tag,share", "text-generation,1")
    assert case.crawl().written == 30
