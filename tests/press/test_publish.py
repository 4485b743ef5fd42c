"""A publish is whole or it did not happen: stages by fingerprint, the swap, and what a failing or killed build leaves behind."""

from __future__ import annotations

import datetime
import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from pipeline.base.progress import quiet
from pipeline.base.sealed import sealed
from pipeline.hub.snapshot import Snapshot
from pipeline.press import manifest
from pipeline.press import publish as publishing

SNAPSHOT = Snapshot(folder=publishing.ROOT, date=datetime.date(2026, 1, 2), origin="test", records=(), popularity={})


@pytest.fixture
def stages(monkeypatch, tmp_path):
    """The real publish over stand-in stages that write one file each and count their runs."""
    ran = []

    def build_tables(folder, snapshot, progress, packs=None):
        ran.append("tables")
        (folder / "almanac.duckdb").write_text("tables")
        return {"model": 1}

    def render(tables, site, progress, packs=None):
        ran.append("site")
        assert (tables / "almanac.duckdb").exists()
        (site / "index.html").write_text("site")
        (site / "assets" / "almanac").mkdir(parents=True)
        (site / "assets" / "almanac" / "almanac.js").write_text("site")

    monkeypatch.setattr(publishing.build, "build_tables", build_tables)
    monkeypatch.setattr(publishing.changes, "write", lambda tables, sources, versions, release, records, packs: None)
    monkeypatch.setattr(publishing.checks, "run_checks", lambda *_: [])
    monkeypatch.setattr(publishing.render, "render", render)
    root = tmp_path / "root"
    for name in (
        "tables/facts/gpu.csv",
        "pipeline/press/build.py",
        "requirements.lock",
        "site/docs/index.md",
        "mkdocs.yml",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("1")
    return ran, root, tmp_path / "build"


def run(root, output):
    return publishing.publish(SNAPSHOT, quiet, output, root)


def contents(output):
    return {p.relative_to(output).as_posix(): p.read_bytes() for p in output.rglob("*") if p.is_file()}


def test_a_first_publish_builds_everything_and_says_what_it_is(stages):
    ran, root, output = stages
    assert run(root, output).rebuilt == ("tables", "site")
    assert ran == ["tables", "site"]
    manifest = json.loads((output / "tables" / "manifest.json").read_text())
    assert manifest["snapshot_date"] == "2026-01-02"
    assert manifest["row_counts"] == {"model": 1}
    assert set(manifest["files"]) == {"almanac.duckdb", "datapackage.json"}
    assert all(len(file["sha256"]) == 64 for file in manifest["files"].values())


def test_nothing_is_rebuilt_that_has_not_changed(stages):
    ran, root, output = stages
    run(root, output)
    assert run(root, output).rebuilt == ()
    assert ran == ["tables", "site"]


def test_a_change_of_the_site_keeps_the_tables(stages):
    ran, root, output = stages
    run(root, output)
    (root / "site/docs/index.md").write_text("2")
    assert run(root, output).rebuilt == ("site",)
    assert ran == ["tables", "site", "site"]
    assert (output / "tables" / "almanac.duckdb").read_text() == "tables"


def test_a_change_of_a_fact_rebuilds_both(stages):
    _ran, root, output = stages
    run(root, output)
    (root / "tables/facts/gpu.csv").write_text("2")
    assert run(root, output).rebuilt == ("tables", "site")


def test_tables_can_be_asked_before_the_site_is_written(stages, monkeypatch):
    """And they have taken their place, whole, when whoever waits is told so."""
    _ran, root, output = stages
    told = []

    def say(line):
        told.append(line)
        assert manifest.damage(output / "tables") == [] and not (output / "site").exists()

    publishing.publish(SNAPSHOT, quiet, output, root, say)
    assert len(told) == 1 and str(output / "tables" / "almanac.duckdb") in told[0]
    run(root, output)
    assert len(told) == 1


def test_a_site_that_fails_after_its_tables_were_put_in_place_says_what_stands(stages, monkeypatch):
    _ran, root, output = stages
    run(root, output)
    (root / "tables/facts/gpu.csv").write_text("2")
    told = []

    def end(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(publishing.render, "render", end)
    with pytest.raises(KeyboardInterrupt):
        publishing.publish(SNAPSHOT, quiet, output, root, told.append)
    assert "the site is as it was" in told[-1]
    assert manifest.read(output / "site")["tables"] != manifest.tables_of(output / "tables")


def test_a_site_names_the_tables_that_it_was_rendered_from(stages):
    _ran, root, output = stages
    run(root, output)
    site, tables = manifest.read(output / "site"), output / "tables"
    assert site["tables"]["data_version"] == manifest.read(tables)["data_version"]
    # a site of other tables is not taken for one of these
    other = manifest.read(tables) | {"code_revision": "another"}
    (tables / "manifest.json").chmod(0o644)
    (tables / "manifest.json").write_text(json.dumps(sealed(other)))
    assert run(root, output).rebuilt == ("site",)


@pytest.mark.parametrize("stage", ["tables", "checks", "site"])
def test_a_failing_stage_leaves_the_last_good_build(stages, monkeypatch, stage):
    _ran, root, output = stages
    run(root, output)
    before = contents(output)
    (root / "tables/facts/gpu.csv").write_text("2")

    def fail(*_, **__):
        raise RuntimeError("no space left")

    kept = before
    if stage == "site":  # the tables were whole before it failed: they are published, and the site is as it was
        kept = {name: content for name, content in before.items() if name.startswith("site/")}
    if stage == "checks":
        monkeypatch.setattr(publishing.checks, "run_checks", lambda *_: ["gpu: key is unique: ('a', 2)"])
        with pytest.raises(publishing.PublishError, match="key is unique"):
            run(root, output)
    else:
        module, name = {
            "tables": (publishing.build, "build_tables"),
            "site": (publishing.render, "render"),
        }[stage]
        monkeypatch.setattr(module, name, fail)
        with pytest.raises(RuntimeError):
            run(root, output)
    assert contents(output) == before if kept is before else contents(output).items() >= kept.items()
    assert manifest.damage(output / "tables") == manifest.damage(output / "site") == []
    assert sorted(p.name for p in output.parent.iterdir()) == [".build.lock", "build", "root"]
    if stage == "site":
        monkeypatch.undo()  # the next run has only the site to make
        monkeypatch.setattr(publishing.render, "render", lambda tables, site, *_, **__: (site / "index.html").touch())
        assert run(root, output).rebuilt == ("site",)


def test_a_stop_between_the_two_renames_is_mended(stages):
    _ran, root, output = stages
    run(root, output)
    before = contents(output)
    output.rename(output.with_name(".build-previous"))
    assert run(root, output).rebuilt == ()
    assert contents(output) == before


def test_a_second_build_at_the_same_time_is_told_so(stages):
    _, root, output = stages
    with publishing.alone(output), pytest.raises(publishing.PublishError, match="another build"):
        run(root, output)


@pytest.mark.full
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_killed_build_leaves_the_last_good_build_and_the_next_one_works(stages, tmp_path, how):
    """A real process, stopped while its tables are being written."""
    _, root, output = stages
    run(root, output)
    before = contents(output)
    (root / "tables/facts/gpu.csv").write_text("2")
    program = f"""
        import datetime, pathlib, time
        from pipeline.press import publish as p
        from pipeline.hub.snapshot import Snapshot
        from pipeline.base.progress import quiet
        def build_tables(folder, *_):
            (folder / "half.parquet").write_text("half")
            pathlib.Path({str(tmp_path / "started")!r}).touch()
            time.sleep(60)
        p.build.build_tables = build_tables
        snapshot = Snapshot(p.ROOT, datetime.date(2026, 1, 2), "test", (), {{}})
        p.publish(snapshot, quiet, pathlib.Path({str(output)!r}), pathlib.Path({str(root)!r}))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=publishing.ROOT, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, how)
    process.wait(30)
    assert (tmp_path / "started").exists()
    assert contents(output) == before
    assert output.with_name(".build-next").exists() == (how == signal.SIGKILL)
    assert run(root, output).rebuilt == ("tables", "site")
    assert not output.with_name(".build-next").exists()


def test_a_disk_without_room_is_named_and_another_ones_room_is_not_told_as_this_ones(stages, monkeypatch):
    _ran, root, output = stages
    run(root, output)
    before = contents(output)
    (root / "tables/facts/gpu.csv").write_text("2")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(output.with_name(".build-next") / "tables" / "x"))
    elsewhere = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/nowhere/of/ours")
    for error, told in (
        (full, publishing.PublishError),
        (OSError(errno.ENOSPC, "x"), publishing.PublishError),
        (elsewhere, OSError),
    ):
        monkeypatch.setattr(publishing.build, "build_tables", lambda *_, error=error: (_ for _ in ()).throw(error))
        with pytest.raises(told) as problem:
            run(root, output)
        assert (str(output) in str(problem.value)) is (told is publishing.PublishError)
        assert contents(output) == before
