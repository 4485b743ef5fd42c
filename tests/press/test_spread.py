"""Shards that others work out are what a build works out itself, and one that nobody could work out is left to it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline import ROOT
from pipeline.book.packs import Packs
from pipeline.press import blank, held, lookup, spread
from pipeline.press.anatomise import anatomise
from tests.once import blank_folder, bundled_snapshot

MODELS = ("BAAI/bge-m3", "google/gemma-3-270m", "openai-community/gpt2")
CLUSTER = ROOT / ".venv" / "cluster"


def snapshot(names=MODELS):
    whole = bundled_snapshot()
    return replace(whole, records=tuple(r for r in whole.records if r.model_id in names))


def footprints(packs: Packs | None = None) -> list[list[tuple]]:
    """What a build makes of the snapshot."""
    with blank.copied(blank_folder()) as connection:
        blank.fill(connection, anatomise(snapshot()))
        lookup.work_out(connection, packs=packs)
        return [
            connection.execute(f"FROM {of(table)} ORDER BY ALL").fetchall()
            for table in held.COLUMNS
            for of in (held.numbers, held.scenarios)
        ]


def here(function, shards):
    """An engine that is no cluster: one shard after the other, and an error in the place of its result."""
    for shard in shards:
        try:
            yield shard, function(shard)
        except Exception as error:
            yield shard, error


@pytest.mark.full
def test_a_build_finds_what_others_worked_out(tmp_path, monkeypatch):
    monkeypatch.setattr(lookup, "_PAIRS_PER_STEP", 1)
    first, packs = [], Packs(tmp_path)

    def once(function, shards):
        """A worker of another checkout, and one that dies."""
        shard = next(shards)
        first.append(shard)
        yield shard, next(iter(here(function, [replace(shard, formulas="others")])))[1]
        yield next(shards), RuntimeError("killed")
        yield from here(function, shards)

    told = spread.spread(snapshot(), packs, once)
    assert told.done == 1 and len(told.failed) == 2
    assert told.failed[0].startswith("OtherFormulas: this worker's checkout has other formulas")
    # what is done is not done again
    asked = []

    def rest(function, shards):
        for shard in shards:
            asked.append(shard)
            yield from here(function, [shard])

    assert spread.spread(snapshot(), packs, rest) == spread.Spread(2, ())
    assert first[0] in asked
    # and the build has nothing left to do
    monkeypatch.setattr(lookup, "_worked_out", lambda *_: pytest.fail("worked out again"))
    found = footprints(packs)
    monkeypatch.undo()
    assert found == footprints()
    assert spread.spread(snapshot(), packs, lambda *_: pytest.fail("asked again") if list(_[1]) else iter(())).done == 0


@pytest.mark.full
def test_two_workers_of_a_cluster_one_of_which_is_killed(tmp_path):
    """A cluster of this machine by Dask's own means; its libraries are a folder of their own (`make cluster`)."""
    if not CLUSTER.is_dir():
        assert not os.environ.get("CI"), "`make cluster` installs Dask"
        pytest.skip("no Dask: `make cluster` installs it")
    program = f"""
        import os, signal, threading
        from pathlib import Path
        from distributed import Client, LocalCluster
        from pipeline.press import lookup, spread
        from pipeline.book.packs import Packs
        from tests.press.test_spread import snapshot
        if __name__ == "__main__":
            lookup._PAIRS_PER_STEP = 1
            with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
                def kill():
                    os.kill(cluster.workers[0].pid, signal.SIGKILL)
                    print("killed", flush=True)
                threading.Timer(3, kill).start()
                print(spread.spread(snapshot(), Packs(Path({str(tmp_path)!r})), spread.over_dask(cluster.scheduler_address)))
    """
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(program), encoding="utf-8")
    path = os.pathsep.join([str(ROOT), str(CLUSTER)])
    run = subprocess.run(
        [sys.executable, str(script)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "Spread(done=3, failed=())" in run.stdout and "killed" in run.stdout, run.stdout + run.stderr[-2000:]
    assert footprints(Packs(tmp_path)) == footprints()


def test_the_folder_of_the_cluster_is_the_one_that_make_fills():
    assert f"CLUSTER := $(VENV)/{Path(CLUSTER).name}" in (ROOT / "Makefile").read_text(encoding="utf-8")
