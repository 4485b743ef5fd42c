"""The real publish of few models, killed at any moment of all that it does: formulas, footprints, the file, pages and what is kept."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from pipeline import ROOT
from pipeline.base.progress import quiet
from pipeline.press import manifest, publish
from tests.press.few_models import root_of, snapshot_of


def start(folder: Path, number: int) -> subprocess.Popen:
    where = (folder / name for name in ("build", "root", "packs"))
    command = [sys.executable, "-m", "tests.press.few_models", *map(str, where), str(number)]
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout.readline() == b"begins\n"
    return run


def whole(folder: Path, number: int) -> float:
    began = time.monotonic()
    run = start(folder, number)
    _said, problem = run.communicate(timeout=600)
    assert run.returncode == 0, problem.decode()
    return time.monotonic() - began


def hold(build: Path) -> None:
    """What is published is whole, and of one snapshot."""
    for part in ("tables", "site"):
        assert manifest.damage(build / part) == [] and manifest.unlisted(build / part) == [], part
    with duckdb.connect(str(build / "tables" / "almanac.duckdb"), read_only=True) as connection:
        models = connection.execute("SELECT model_id FROM model").fetchall()
    assert len(models) == manifest.read(build / "tables")["row_counts"]["model"] == 3


def killed(folder: Path, times: int) -> None:
    root_of(folder / "root")
    chance, seconds = random.Random(times), 0.0
    for number in range(2):  # the first finds nothing kept
        seconds = whole(folder, number)
    for number in range(2, times + 2):
        run = start(folder, number)
        time.sleep(chance.uniform(0, seconds * 1.1))
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        hold(folder / "build")
    whole(folder, times + 2)
    hold(folder / "build")
    assert {path.name for path in folder.iterdir()} == {".build.lock", "build", "root", "packs"}
    # what was kept by those that were killed is what a build that keeps nothing makes
    publish.publish(snapshot_of(times + 2), quiet, folder / "anew", folder / "root")
    files = [
        {n: f["sha256"] for n, f in manifest.read(folder / b / "tables")["files"].items()} for b in ("build", "anew")
    ]
    assert files[0] == files[1]
    pages = [manifest.read(folder / b / "site")["files"] for b in ("build", "anew")]
    assert pages[0] == pages[1]


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot exchange two folders in one step")
@pytest.mark.parametrize("times", [200])
def test_a_real_publish_that_is_killed_at_200_moments_leaves_what_is_published_whole(tmp_path, times):
    killed(tmp_path, times)
