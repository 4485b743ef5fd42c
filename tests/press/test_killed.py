"""A publish that is killed at any moment leaves tables and site whole, and the next one works."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from pipeline import ROOT
from pipeline.base.sealed import unsealed
from pipeline.press import manifest
from tests.press import small_disk

# The real publish with stages that write a hundred files each and nothing else, so that the moments between steps are most of its time.
PROGRAM = """
    import datetime, pathlib, sys
    from pipeline.base.progress import quiet
    from pipeline.hub.snapshot import Snapshot
    from pipeline.press import publish as p
    output, root, content = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    def build_tables(folder, *_):
        for number in range(100):
            (folder / f"part{number}.csv").write_text(content * 100)
        (folder / "almanac.duckdb").write_text(content)
        return {"model": 1}
    def render(tables, site, progress, packs=None):
        (site / "assets" / "almanac").mkdir(parents=True)
        for number in range(100):
            (site / f"page{number}.html").write_text(content + (tables / "almanac.duckdb").read_text())
        (site / "assets" / "almanac" / "almanac.js").write_text(content)
    p.build.build_tables, p.render.render = build_tables, render
    p.changes.write = lambda *_: None
    p.checks.run_checks = lambda *_: []
    print("begins", flush=True)
    p.publish(Snapshot(root, datetime.date(2026, 1, 2), "test", (), {}), quiet, output, root)
"""
INPUTS = ("tables/facts/gpu.csv", "pipeline/press/build.py", "requirements.lock", "site/docs/index.md", "mkdocs.yml")


class Publishing:
    def __init__(self, folder: Path) -> None:
        self.output, self.root = folder / "build", folder / "root"
        self.program = folder / "program.py"
        self.program.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
        for name in INPUTS:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text("1")

    def start(self, content: str) -> subprocess.Popen:
        """Another content is another input: all is built anew."""
        (self.root / INPUTS[0]).write_text(content)
        command = [sys.executable, str(self.program), str(self.output), str(self.root), content]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
        assert process.stdout.readline() == b"begins\n"
        return process

    def whole(self, content: str) -> float:
        """A publish that nobody stops, and the seconds that it takes."""
        started = time.monotonic()
        process = self.start(content)
        begun = time.monotonic()
        _said, problem = process.communicate(timeout=60)
        assert process.returncode == 0, problem.decode()
        assert started <= begun
        return time.monotonic() - begun

    def is_of(self, content: str) -> bool:
        return (self.output / "tables" / "almanac.duckdb").read_text() == content

    def hold(self, contents: set[str]) -> None:
        """What is published is whole, and of one run; a site may still be of the tables before."""
        for part in ("tables", "site"):
            folder = self.output / part
            assert unsealed((folder / manifest.FILE).read_bytes()), part
            assert manifest.damage(folder) == [] and manifest.unlisted(folder) == []
        tables = (self.output / "tables" / "almanac.duckdb").read_text()
        pages = {(self.output / "site" / f"page{number}.html").read_text() for number in range(100)}
        (page,) = pages
        assert tables in contents and page in {content * 2 for content in contents}


def killed_at_random(folder: Path, times: int) -> None:
    chance, publishing, before = random.Random(times), Publishing(folder), "0"
    seconds = publishing.whole(before)
    contents = {before}
    for number in range(1, times + 1):
        contents.add(str(number))
        process = publishing.start(str(number))
        time.sleep(chance.uniform(0, seconds * 1.1))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        missing = [part for part in ("tables", "site") if not (publishing.output / part / manifest.FILE).exists()]
        # only where a system cannot exchange two folders in one step: then it lies beside, for whoever comes next to put back
        assert all((publishing.output.with_name(".build-previous") / part / manifest.FILE).exists() for part in missing)
        if not missing:
            publishing.hold(contents)
    publishing.whole("last")
    publishing.hold({"last"})
    assert sorted(path.name for path in publishing.output.parent.iterdir()) == [
        ".build.lock", "build", "program.py", "root",
    ]  # fmt: skip


def test_a_publish_that_is_killed_leaves_what_is_published_whole(tmp_path):
    killed_at_random(tmp_path, 3)


@pytest.mark.full
def test_a_publish_that_is_killed_at_200_moments_leaves_what_is_published_whole(tmp_path):
    killed_at_random(tmp_path, 200)


@pytest.mark.full
def test_a_clock_that_jumps_back_changes_nothing(tmp_path):
    """Files of next year are those of today: what is published is told by what it holds."""
    publishing = Publishing(tmp_path)
    publishing.whole("1")
    for path in [*publishing.output.rglob("*"), *publishing.root.rglob("*")]:
        os.utime(path, (2**31, 2**31))
    before = (publishing.output / "tables" / manifest.FILE).read_bytes()
    publishing.whole("1")
    assert (publishing.output / "tables" / manifest.FILE).read_bytes() == before
    publishing.hold({"1"})


def test_a_disk_that_is_full_leaves_what_is_published_whole(tmp_path):
    """No file may grow beyond some bytes: the build fails in the middle of a stage, with a sentence and not half of a part."""
    publishing = Publishing(tmp_path)
    publishing.whole("1")
    publishing.program.write_text(
        "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (150, 150))\n" + publishing.program.read_text(),
        encoding="utf-8",
    )
    process = publishing.start("22")
    _said, problem = process.communicate(timeout=60)
    assert process.returncode != 0 and b"File too large" in problem
    publishing.hold({"1"})
    assert not (tmp_path / ".build-next").exists()


@pytest.mark.full
@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare: nobody else's view of disks is left alone")
def test_a_small_disk_that_runs_full_leaves_what_is_published_whole(tmp_path):
    """A real one, of memory, in a namespace of its own."""
    command = ["unshare", "-rm", sys.executable, "-m", "tests.press.small_disk", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    if "unshare" in run.stderr or run.returncode == small_disk.NOT_ALLOWED:
        pytest.skip("this system lets nobody mount")
    assert run.stdout.splitlines() == ["held"], run.stderr


@pytest.mark.full
def test_of_two_publishes_at_once_one_is_told_and_the_other_is_whole(tmp_path):
    publishing = Publishing(tmp_path)
    publishing.whole("0")
    first = publishing.start("1")
    os.kill(first.pid, signal.SIGSTOP)  # wherever it is: begun, or done
    second = publishing.start("1")
    said, problem = second.communicate(timeout=60)
    was_first_done = publishing.is_of("1")
    os.kill(first.pid, signal.SIGCONT)
    first.communicate(timeout=60)
    assert first.returncode == 0
    if second.returncode:
        assert b"another build of" in problem and b"is running" in problem
    else:  # the first had not begun, or was done
        assert was_first_done
    publishing.hold({"1"})
    assert not (tmp_path / ".build-next").exists() and said == b""
