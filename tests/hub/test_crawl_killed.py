"""A crawl that is stopped at any stage: the snapshot is as it was or whole, and the next run asks for nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from pipeline.hub.journal import Journal, JournalError
from pipeline.hub.snapshot import FOLDER, newest_snapshot
from tests.fake_hub.models import config, plain

ROOT = FOLDER.parent.parent
IDS = [f"{'abc'[i % 3]}org/m{i:03}" for i in range(90)]

# a real process; `hang` stops it at a stage and says so
PROGRAM = """
    import pathlib, sys, time
    from pipeline.hub import store
    from pipeline.hub.crawl import crawl
    from pipeline.hub.settings import Settings
    from pipeline.base.progress import quiet
    top, url, stage = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    def hang():
        (top / "reached").touch()
        time.sleep(60)
    write, swaps = store._write, []
    def write_half(path, content):
        if path.name == stage:
            path.write_bytes(content[: len(content) // 2])
            hang()
        write(path, content)
    store._write = write_half
    rename = pathlib.Path.rename
    def rename_or_hang(self, target):
        if stage == "swap" and self.name == store.UNFINISHED:
            hang()
        return rename(self, target)
    pathlib.Path.rename = rename_or_hang
    crawl(Settings(folder=top / "hub", work=top / "work", lists=top, endpoint=url, rates={"api": 1e9, "file": 1e9},
                   trending_share=0, threads=2, header_requests=0), quiet)
"""


def start(case, stage=""):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(case.top), case.hub.url, stage],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def stop(case, process, how=signal.SIGKILL):
    deadline = time.monotonic() + 60
    while not (case.top / "reached").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, how)
    process.wait(30)
    assert (case.top / "reached").exists()


@pytest.fixture
def grown(case):
    """A Hub that was crawled once and has changed since: a third of the models, all of one shard, is new."""
    case.add(*IDS)
    everything, case.hub.models = case.hub.models, case.hub.models[:60]
    case.crawl(trending_share=0)
    case.hub.models = everything
    case.hub.models[0] = plain(IDS[0], version=2)
    case.hub.files[IDS[0], "config.json"] = config(hidden_size=96)
    case.hub.log.clear()
    return case


def pause_at(case, pattern, number):
    """The Hub holds its breath at the n-th request of a kind."""

    def fault(handler):
        if pattern in handler.path and case.hub.asked(pattern) >= number:
            (case.top / "reached").touch()
            handler.server.stopping.wait(1.5)
            handler.close_connection = True
            return True
        return False

    case.hub.faults.append(fault)


@pytest.mark.some(1)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("pattern", "number"), [("/api/models?", 1), ("resolve", 12)], ids=["lists", "models"])
def test_killed_while_it_asks(grown, pattern, number, how):
    before = grown.stable()
    pause_at(grown, pattern, number)
    stop(grown, start(grown), how)
    assert grown.stable() == before
    grown.hub.faults.clear()
    done = grown.crawl(trending_share=0)
    assert (done.written, done.is_partial) == (90, False)
    asked = [path for _, path, _ in grown.hub.log if "resolve" in path]
    # every model once, and those once more that were under way when it was killed
    assert 31 <= len(asked) <= 31 + 2
    assert len(set(asked)) == 31
    assert grown.records()[IDS[0]]["config"]["hidden_size"] == 96


@pytest.mark.full
@pytest.mark.parametrize("stage", ["a.jsonl", "c.jsonl", "popularity.csv", "rejected.csv", "snapshot.json", "swap"])
def test_killed_while_it_writes(grown, stage):
    before = {record.model_id: record for record in newest_snapshot(grown.folder).records}
    stop(grown, start(grown, stage))
    # whoever reads now finds the last snapshot whole, between the two renames too
    assert {record.model_id: record for record in newest_snapshot(grown.folder).records} == before
    grown.hub.log.clear()
    done = grown.crawl(trending_share=0)
    # everything had been asked for: the new run asks for nothing at all
    assert grown.requests() == 0
    assert (done.written, done.resumed, done.is_partial) == (90, 31, False)
    assert sorted(path.name for path in grown.folder.iterdir()) == ["crawl"]
    assert len(newest_snapshot(grown.folder).records) == 90


def test_a_journal_that_was_cut_off_is_read_up_to_there(tmp_path):
    with Journal(tmp_path).opened() as journal:
        journal.add("org/a", "1", {"facts": {"x": "é"}})
        journal.add("org/b", "1", {"reason": "no"})
    with (tmp_path / "done.jsonl").open("ab") as file:
        file.write(b'{"model_id": "org/c", "sha": "1", "fac')
    with Journal(tmp_path).opened() as journal:
        assert (journal.has("org/a", "1"), journal.has("org/a", "2"), journal.has("org/c", "1")) == (True, False, False)
        journal.add("org/d", "1", {"facts": {}})
        assert journal.get("org/a", "1")["facts"] == {"x": "é"}
        assert journal.get("org/b", "1")["reason"] == "no"
    with Journal(tmp_path).opened() as journal:
        assert journal.get("org/d", "1") == {"model_id": "org/d", "sha": "1", "facts": {}}
        with pytest.raises(JournalError, match="another crawl"), Journal(tmp_path).opened():
            pass


def test_a_list_of_an_interrupted_crawl_is_used_again_for_a_day(tmp_path):
    day = 24 * 60 * 60
    with Journal(tmp_path).opened() as journal:
        journal.keep_list("a list", [{"id": "org/a"}])
        (path,) = (tmp_path / "listing").iterdir()
        for age, rows in ((day - 10, [{"id": "org/a"}]), (day + 10, None)):
            os.utime(path, (time.time() - age,) * 2)
            assert journal.list_rows("a list") == rows


def test_the_command_crawls_and_says_what_it_did(case):
    """`python -m pipeline crawl`, with the lists of the book and the endpoint of the environment."""
    case.add("org/a", "org/b")
    environment = {**os.environ, "HF_ENDPOINT": case.hub.url, "HF_HOME": str(case.top / "home")}
    command = [
        sys.executable,
        "-m",
        "pipeline",
        "crawl",
        "--output",
        str(case.folder),
        "--work",
        str(case.work),
        "--rate",
        "1e6",
    ]
    said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    assert "listed       2 models: 0 unchanged, 2 read" in said.stdout
    about = json.loads((case.folder / "crawl" / "snapshot.json").read_text())
    assert (about["origin"], about["record_count"], about["is_partial"]) == ("crawl", 2, False)
    # a budget that is spent after the lists, whichever of them the threads ask first
    lists = case.hub.asked(r"/api/models\?pipeline_tag=")
    case.hub.models = [plain(model_id, version=2) for model_id in ("org/a", "org/b")]
    budget = str(lists + 1)
    said = subprocess.run(
        [*command, "--budget", budget], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert said.returncode == 3, said.stderr
    assert f"the budget of {budget} requests is spent" in said.stdout
