"""A release in a plain folder: it changes at once and whole, writes what changed, loses nobody's files, and mends what a stop left."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from pipeline import ROOT
from pipeline.base import swap
from pipeline.base.failures import Failure
from pipeline.press import manifest
from pipeline.release import build, folder
from tests.release.conftest import contents, make


def served(built):
    """What a folder that serves a build holds: the site, and all tables below it."""
    return contents(built / "site") | {
        f"tables/{name}": content for name, content in contents(built / "tables").items()
    }


def put(built, target):
    return folder.write(build.whole(built), target)


def test_the_folder_holds_the_site_and_all_tables(built, tmp_path):
    done = put(built, tmp_path / "www")
    assert contents(tmp_path / "www") == served(built)
    assert done.file_count == len(served(built)) and done.kept_count == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == [".www.lock", "build", "www"]


def test_only_what_changed_is_written_and_what_is_gone_is_gone(built, tmp_path):
    target = tmp_path / "www"
    put(built, target)
    before = {p.relative_to(target).as_posix(): p.stat().st_ino for p in target.rglob("*") if p.is_file()}
    second = make(tmp_path / "second", "b", {"index.html": "<p>New</p>", "new.html": "new"})
    (second / "site" / "models" / "a" / "One" / "index.html").unlink()
    manifest.write_site(second / "site", second / "tables", "sb", {})
    done = put(second, target)
    assert contents(target) == served(second)
    after = {p.relative_to(target).as_posix(): p.stat().st_ino for p in target.rglob("*") if p.is_file()}
    written = {name for name in after if before.get(name) != after[name]}
    assert {"index.html", "new.html", "manifest.json", "tables/manifest.json"} <= written and len(
        written
    ) == done.file_count
    assert "data/models.json" not in written and "models/a/One/index.html" not in after


def test_a_release_that_is_there_already_is_left_alone(built, tmp_path):
    put(built, tmp_path / "www")
    inode = (tmp_path / "www").stat().st_ino
    assert put(built, tmp_path / "www").file_count == 0
    assert (tmp_path / "www").stat().st_ino == inode


@pytest.mark.parametrize("name", ["index.html", "tables/gpu.parquet", "manifest.json", "tables/manifest.json"])
@pytest.mark.parametrize("how", ["missing", "other"])
def test_what_is_damaged_there_is_written_anew(built, tmp_path, name, how):
    target = tmp_path / "www"
    put(built, target)
    (target / name).chmod(0o644)
    (target / name).unlink() if how == "missing" else (target / name).write_bytes(b"x" * (target / name).stat().st_size)
    assert put(built, target).file_count == 1
    assert contents(target) == served(built)


@pytest.mark.parametrize("name", ["thesis.txt", "tables/mine.csv", ".well-known/token", "CNAME"])
def test_a_file_that_somebody_put_there_is_not_lost(built, tmp_path, name):
    target = tmp_path / "www"
    put(built, target)
    (target / name).parent.mkdir(exist_ok=True)
    (target / name).write_text("mine")
    before = contents(target)
    with pytest.raises(Failure, match="would be lost"):
        put(make(tmp_path / "second", "b"), target)
    assert contents(target) == before


def test_a_folder_of_somebody_else_is_refused(built, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "index.html").write_text("mine")
    with pytest.raises(Failure, match=r"index\.html, which is no part of a release"):
        put(built, tmp_path / "home")
    (tmp_path / "www").symlink_to(tmp_path / "home")
    with pytest.raises(Failure, match="link"):
        put(built, tmp_path / "www")
    (tmp_path / ".site-next").mkdir()
    (tmp_path / ".site-next" / "thesis.txt").write_text("mine")
    with pytest.raises(Failure, match="in the way"):
        put(built, tmp_path / "site")
    assert (
        (tmp_path / "home" / "index.html").read_text() == (tmp_path / ".site-next" / "thesis.txt").read_text() == "mine"
    )


def test_two_runs_are_never_released_together(tmp_path):
    one, two = make(tmp_path / "one", "a"), make(tmp_path / "two", "b", tables={"gpu.csv": "gpu_id\n"})
    (one / "tables").rename(tmp_path / "old")
    (two / "tables").rename(one / "tables")
    with pytest.raises(Failure, match="two runs are never released together"):
        put(one, tmp_path / "www")
    assert not (tmp_path / "www").exists()


@pytest.mark.parametrize("how", ["missing", "short", "stranger"])
def test_nothing_of_a_damaged_build_is_released(built, tmp_path, how):
    put(built, tmp_path / "www")
    before = contents(tmp_path / "www")
    second = make(tmp_path / "second", "b")
    page = second / "site" / "index.html"
    if how == "stranger":
        (second / "site" / "mine.html").write_text("x")
    else:
        page.unlink() if how == "missing" else page.write_text("")
    with pytest.raises(Failure, match="nothing of it is released"):
        put(second, tmp_path / "www")
    assert contents(tmp_path / "www") == before


def test_a_second_release_at_the_same_time_is_told_so(built, tmp_path):
    with folder._alone(tmp_path / "www"), pytest.raises(Failure, match="another release"):
        put(built, tmp_path / "www")


PROGRAM = """
import pathlib, resource, sys
from pipeline.base import swap
from pipeline.release import build, folder
built, target, limit, exchange = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
if exchange == "no":
    swap.exchanged = lambda one, other: False
print("begun", flush=True)
folder.write(build.whole(built), target)
print("done", flush=True)
"""


def start(built, target, limit=0, exchange="yes"):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(built), str(target), str(limit), exchange],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture
def two(tmp_path):
    """A release that is served, and the next one, of many files, of which a few stay."""
    pages = lambda word: {f"models/a/{n}/index.html": f"{word} {n}" * 50 for n in range(150)}  # noqa: E731
    old, new = make(tmp_path / "old", "a", pages("old")), make(tmp_path / "new", "b", pages("new"))
    put(old, tmp_path / "www")
    return old, new, tmp_path / "www"


@pytest.mark.full
def test_a_full_disk_leaves_the_last_release_and_the_next_run_goes_on(two):
    """No file may grow beyond some bytes, as on a disk that is full."""
    old, new, target = two
    said = start(new, target, limit=300).communicate(timeout=60)[1]
    assert "File too large" in said
    assert contents(target) == served(old) and not target.with_name(".www-next").exists()
    put(new, target)
    assert contents(target) == served(new)


def test_a_file_system_that_loses_what_was_written_is_noticed(two, monkeypatch):
    old, new, target = two
    copy = folder.shutil.copyfile
    monkeypatch.setattr(folder.shutil, "copyfile", lambda source, to: (copy(source, to), os.truncate(to, 1)))
    with pytest.raises(Failure, match="not what was written"):
        put(new, target)
    assert contents(target) == served(old)


@pytest.mark.some(1)
@pytest.mark.parametrize("exchange", ["yes", "no"])
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_moment_there_is_one_whole_release_and_the_next_run_mends(two, seed, exchange):
    old, new, target = two
    process = start(new, target, exchange=exchange)
    assert process.stdout.readline() == "begun\n"
    time.sleep(random.Random(seed).uniform(0, 0.5))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    if exchange == "yes":  # where folders cannot be exchanged there is a moment without either
        assert contents(target) in (served(old), served(new))
    put(new, target)
    assert contents(target) == served(new)
    assert {p.name for p in target.parent.iterdir()} == {".www.lock", "www", "old", "new"}


@pytest.mark.some(1)
@pytest.mark.parametrize("left", ["beside", "half removed", "between"])
def test_what_each_stop_leaves_is_mended(two, left):
    _old, new, target = two
    if left == "beside":
        target.with_name(".www-next").mkdir()
        (target.with_name(".www-next") / folder._MARK).touch()
        (target.with_name(".www-next") / "half.html").touch()
    elif left == "half removed":
        aside = target.with_name(".www-next")
        aside.mkdir()
        for name in ("models", folder._MARK):
            (aside / name).touch()
    else:
        target.rename(target.with_name(".www-previous"))
    put(new, target)
    assert contents(target) == served(new)
    assert {p.name for p in target.parent.iterdir()} == {".www.lock", "www", "old", "new"}


def test_a_stop_is_heard_and_tidied_up(two):
    _old, new, target = two
    process = start(new, target)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert not target.with_name(".www-next").exists()


def test_the_manifest_names_the_release_that_is_served(built, tmp_path):
    put(built, tmp_path / "www")
    site = json.loads((tmp_path / "www" / "manifest.json").read_text())
    assert site["tables"] == manifest.tables_of(tmp_path / "www" / "tables")
    assert (
        swap.recover(tmp_path / "www") is None
        and resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    )
