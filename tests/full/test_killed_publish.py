"""The real publish of a few models, killed at random moments of all its stages: what is published is whole, and the next
one ends. (tests/press/test_killed.py does the same often and fast, with stages that only write files.) KILLS=200 kills it 200 times, in half
an hour."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import duckdb
import pytest

from pipeline import ROOT
from pipeline.press import manifest

TIMES = int(os.environ.get("KILLS", "20"))
MODELS = ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B", "openai/gpt-oss-20b")
PROGRAM = """
    import pathlib, sys
    from dataclasses import replace
    from pipeline.base import failures
    from pipeline.base.progress import quiet
    from pipeline.book.packs import Packs
    from pipeline.hub.snapshot import newest_snapshot
    from pipeline.press.publish import publish
    output, root, packs, *models = sys.argv[1:]
    whole = newest_snapshot()
    some = tuple(record for record in whole.records if record.model_id in models)
    try:
        publish(replace(whole, records=some), quiet, pathlib.Path(output), pathlib.Path(root),
                say=lambda line: print(line, flush=True), packs=Packs(pathlib.Path(packs)))
    except Exception as error:
        sys.exit(failures.told(error))
"""


class Publishing:
    def __init__(self, folder: Path) -> None:
        self.folder, self.output, self.root = folder, folder / "build", folder / "root"
        self.root.mkdir()
        for name in ("tables", "pipeline", "site", "mkdocs.yml"):
            (self.root / name).symlink_to(ROOT / name)
        (folder / "scratch").mkdir()

    def start(self, content: str) -> subprocess.Popen:
        """Another content is another input: tables and site are built anew, of what is kept."""
        (self.root / "requirements.lock").write_text(content)
        environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(self.folder / "scratch")}
        told = (self.output, self.root, self.folder / "packs", *MODELS)
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), *map(str, told)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)

    def whole(self, content: str) -> float:
        began, process = time.monotonic(), self.start(content)
        _said, problem = process.communicate()
        assert process.returncode == 0, problem.decode()
        return time.monotonic() - began

    def hold(self) -> None:
        """Each part is whole and of one run, the tables answer, and the site is of tables that were published."""
        for part in ("tables", "site"):
            assert manifest.damage(self.output / part) == [] and manifest.unlisted(self.output / part) == []
        with duckdb.connect(self.output / "tables" / "almanac.duckdb", read_only=True) as connection:
            asked = "SELECT count(*) FROM model JOIN footprint USING (model_id) WHERE total_bytes > 0"
            assert connection.execute(asked).fetchall()[0][0] > 1000


def killed(folder: Path, times: int) -> None:
    chance, publishing = random.Random(times), Publishing(folder)
    publishing.whole("0")
    seconds = publishing.whole("1")  # of what is kept, as those that are killed
    for number in range(times):
        process = publishing.start(f"{number} killed")
        time.sleep(chance.uniform(0, seconds * 1.1))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        missing = [part for part in ("tables", "site") if not (publishing.output / part / manifest.FILE).exists()]
        # only where a system cannot exchange two folders in one step: then it lies beside, for whoever comes next to put back
        assert all((folder / ".build-previous" / part / manifest.FILE).exists() for part in missing)
        if not missing:
            publishing.hold()
    publishing.whole("last")
    publishing.hold()
    assert not (folder / ".build-next").exists()


@pytest.mark.full
def test_a_real_publish_that_is_killed_at_random_moments_leaves_what_is_published_whole(tmp_path):
    killed(tmp_path, TIMES)
