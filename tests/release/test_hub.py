"""A release on the Hub, sent by the real huggingface_hub to a stand-in that refuses what the Hub refuses: it changes at once or not at all."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from huggingface_hub import HfApi, constants
from huggingface_hub.utils import disable_progress_bars, enable_progress_bars

from pipeline import ROOT
from pipeline.base.failures import Failure
from pipeline.press import manifest
from pipeline.release import build, cards, hub
from tests.fake_hub.commits import CommitHub
from tests.release.conftest import contents, make

REPO = "acme/almanac"
# the library's own way to send a large file whole
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture
def fake(monkeypatch):
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    disable_progress_bars()
    with CommitHub().serving() as running:
        yield running
    enable_progress_bars()


@pytest.fixture(params=["lfs", "xet"])
def storage(request, monkeypatch):
    """Both ways that large files take."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", request.param == "lfs")
    return request.param


def send(fake, built, kind="dataset", token="hf_write"):
    whole = build.whole(built)
    files = whole.of_tables() if kind == "dataset" else whole.of_site()
    card = cards.of_dataset(whole, REPO) if kind == "dataset" else cards.of_space(whole)
    return hub.Target(REPO, kind, endpoint=fake.url, token=token).send(files, card, whole.data_version)


def held(fake, built, kind="dataset"):
    """What the repository holds is what was built, the card and what the Hub puts there."""
    files = dict(fake.repo(kind=kind).files)
    card = files.pop("README.md")
    del files[".gitattributes"]
    part = built / ("tables" if kind == "dataset" else "site")
    wanted = contents(part)
    large = {name: manifest.sha256(part / name) for name, told in files.items() if isinstance(told, str)}
    return card.decode(), files == {name: large.get(name, content) for name, content in wanted.items()}, set(large)


def test_a_data_set_is_made_filled_and_tagged_in_one_commit(fake, built, storage):
    done = send(fake, built)
    card, is_whole, large = held(fake, built)
    assert is_whole and large == {"almanac.duckdb", "correction.parquet", "gpu.parquet"}
    repo = fake.repo()
    assert len(repo.refs["main"]) == 2 and repo.tags == {build.whole(built).data_version: done.commit}
    assert done.commit_count == 1 and done.file_count == len(contents(built / "tables")) + 1
    assert card.startswith("---\n") and repo.pulls == {}
    assert fake.asked(r"POST /lfs|PUT /lfs") == (3 if storage == "lfs" else 0)
    assert fake.asked("POST /v1/xorbs") == (0 if storage == "lfs" else 1)


def test_what_is_there_is_not_sent_again(fake, built, tmp_path, storage):
    send(fake, built)
    received = fake.storage.received
    fake.log.clear()
    assert send(fake, built).commit_count == 0
    assert fake.asked("commit|preupload|lfs|xorbs") == 0
    second = make(tmp_path / "second", "b", tables={"gpu.csv": "gpu_id\nt4\n"})
    done = send(fake, second)
    assert held(fake, second)[1]
    # the changed table, the two descriptions, and the card that names the release
    assert done.file_count == 3 and fake.storage.received == received


def test_what_the_last_release_had_and_this_one_has_not_is_deleted_and_nothing_else(fake, built, tmp_path):
    first = make(tmp_path / "first", "a", tables={"old.csv": "x\n"})
    send(fake, first)
    repo = fake.repo()
    repo.refs["main"][-1].tree["thesis.txt"] = ("regular", b"somebody's")
    done = send(fake, make(tmp_path / "second", "b"))
    assert done.deleted_count == 1 and "old.csv" not in repo.files
    assert repo.files["thesis.txt"] == b"somebody's" and ".gitattributes" in repo.files


@pytest.mark.parametrize(
    ("token", "said"),
    [("hf_read", "does not let this token write"), ("hf_unknown", "does not let this token write"), (False, "401")],
)
def test_a_token_that_may_not_write_is_told_and_nothing_is_made(fake, built, token, said):
    with pytest.raises(Failure, match=said):
        send(fake, built, token=token)
    assert fake.repos == {}
    fake.create()
    with pytest.raises(Failure, match=said):
        send(fake, built, token=token)
    assert len(fake.repo().refs["main"]) == 1


def test_somebody_elses_name_is_refused(fake, built):
    fake.owners = {"other"}
    with pytest.raises(Failure, match="403"):
        send(fake, built)


def test_two_runs_never_mix_a_commit_in_between_is_refused(fake, built, tmp_path, storage):
    """The other one's whole release stays, and the next run is on top of it."""
    send(fake, built)
    second = make(tmp_path / "second", "b", tables={"gpu.csv": "gpu_id\nt4\n"})

    def other(handler, path):
        if "/commit/" in path and len(fake.repo().refs["main"]) == 2:
            tree = fake.repo().refs["main"][-1].tree
            fake.repo().add("main", {**tree, "other.txt": ("regular", b"x")}, "another run")
        return False

    fake.faults.append(other)
    with pytest.raises(Failure, match="somebody else committed"):
        send(fake, second)
    assert (
        fake.repo().files["other.txt"] == b"x"
        and fake.repo().files["gpu.csv"] == (built / "tables" / "gpu.csv").read_bytes()
    )
    fake.faults.clear()
    send(fake, second)
    assert fake.repo().files["gpu.csv"] == b"gpu_id\nt4\n"


def test_a_storage_that_refuses_leaves_the_last_release(fake, built, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    send(fake, built)
    before = fake.repo().files
    second = make(tmp_path / "second", "b", tables={"almanac.duckdb": "DUCK\0 new"})
    fake.faults.append(lambda handler, path: path.startswith("/lfs/") and (handler.reply(403, b"expired") or True))
    with pytest.raises(Failure, match=r"was not brought up to date"):
        send(fake, second)
    assert fake.repo().files == before
    fake.faults.clear()
    send(fake, second)
    assert held(fake, second)[1]


def test_a_hub_that_takes_half_is_noticed_and_the_next_run_mends_it(fake, built, tmp_path):
    send(fake, built)
    second = make(tmp_path / "second", "b", tables={"gpu.csv": "gpu_id\nt4\n"})

    def half(handler, path):
        tree = fake.repo().refs["main"][-1].tree
        if "/tree/" in path and tree.get("gpu.csv") == ("regular", b"gpu_id\nt4\n"):
            tree["gpu.csv"] = ("regular", b"gpu_id\n")
        return False

    fake.faults.append(half)
    with pytest.raises(Failure, match=r"does not hold what was sent: gpu\.csv"):
        send(fake, second)
    fake.faults.clear()
    send(fake, second)
    assert held(fake, second)[1]


@pytest.fixture
def few(monkeypatch):
    """A Hub that takes few files in a commit."""
    rows = [
        {"host": "Hub", "of": "commit", "what": w, "most": m, "source": ""}
        for w, m in (("file_count", "3"), ("site_bytes", "9999"), ("file_bytes", "9999"))
    ]
    monkeypatch.setattr(hub, "limits", lambda: rows)


def test_a_space_of_many_files_is_put_together_in_a_pull_request_and_changes_at_once(fake, built, few, storage):
    pages = make(
        built.parent / "pages",
        "b",
        {f"models/a/{n}/index.html": f"<p>{n}</p>" for n in range(8)} | {"data/a.bin": "\0" * 40},
    )
    seen = set()

    def watch(handler, path):
        if ("space", REPO) in fake.repos:
            seen.add(frozenset(fake.repo(kind="space").files))
        return False

    fake.faults.append(watch)
    done = send(fake, pages, "space")
    card, is_whole, large = held(fake, pages, "space")
    repo = fake.repo(kind="space")
    assert is_whole and large == {"data/a.bin"} and "sdk: static" in card and repo.sdk == "static"
    assert done.commit_count > 3 and [p["status"] for p in repo.pulls.values()] == ["merged"]
    # people saw the empty Space, and then all of it
    assert len(seen | {frozenset(repo.files)}) == 2


def test_a_run_that_is_stopped_in_a_pull_request_leaves_the_space_and_the_next_one_tidies_up(fake, built, few):
    send(fake, built, "space")
    before = fake.repo(kind="space").files
    second = make(built.parent / "second", "b", {f"models/b/{n}/index.html": f"<p>{n}</p>" for n in range(8)})
    count = len(fake.log)

    def hang_up(handler, path):
        if "/commit/refs" in path and len(fake.log) > count:
            handler.close_connection = True
            handler.connection.close()
            return True
        return "/discussions/2/status" in path and (handler.reply(503, b"") or True)  # not even that

    fake.faults.append(hang_up)
    with pytest.raises(Failure, match="was not brought up to date"):
        send(fake, second, "space")
    repo = fake.repo(kind="space")
    assert repo.files == before and repo.pulls[2]["status"] == "open"
    fake.faults.clear()
    send(fake, second, "space")
    assert held(fake, second, "space")[1]
    assert [p["status"] for p in repo.pulls.values()] == ["merged", "closed", "merged"]


def test_a_pull_request_is_not_merged_over_what_somebody_else_committed(fake, built, few):
    send(fake, built, "space")
    repo = fake.repo(kind="space")
    second = make(built.parent / "second", "b", {f"models/b/{n}/index.html": f"<p>{n}</p>" for n in range(8)})

    def other(handler, path):
        if "/commit/refs" in path and "other.txt" not in repo.files:
            repo.add("main", {**repo.refs["main"][-1].tree, "other.txt": ("regular", b"x")}, "another")
        return False

    fake.faults.append(other)
    with pytest.raises(Failure, match="somebody else committed"):
        send(fake, second, "space")
    assert repo.pulls[2]["status"] == "closed" and not any("models/b" in name for name in repo.files)


def test_a_card_that_the_hub_cannot_read_is_refused_before_anything_is_sent(fake, built):
    whole = build.whole(built)
    for card in ("---\nconfigs: none\n---\n", "---\nconfigs: [\n---\n"):
        with pytest.raises(Failure, match="Invalid metadata"):
            hub.Target(REPO, "dataset", endpoint=fake.url, token="hf_write").send(whole.of_tables(), card, "v")
    assert len(fake.repo().refs["main"]) == 1 and fake.storage.objects == {}


@pytest.mark.parametrize("name", ["almanac", "a/b/c", "../x/y", "a/b?x", ""])
def test_what_is_no_repository_is_told(name):
    with pytest.raises(Failure, match="is not owner/name"):
        hub.Target(name, "dataset")


def test_the_stand_in_refuses_what_the_hub_refuses(fake, tmp_path, monkeypatch):
    """By the library itself, without the code of ours."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    api = HfApi(endpoint=fake.url, token="hf_write")
    fake.create()
    post = lambda lines, **query: _post(api, fake, lines, **query)  # noqa: E731
    header = {"key": "header", "value": {"summary": "x"}}
    file = lambda path, content: {"key": "file", "value": {"path": path, "encoding": "base64", "content": content}}  # noqa: E731
    text = lambda content: base64.b64encode(content).decode()  # noqa: E731
    sha = "0" * 64
    for lines, status, said in (
        ([], 400, "header"),
        ([{"key": "header", "value": {"summary": ""}}], 400, "summary"),
        ([header, file("a.txt", text(b"x" * (10 * 2**20 + 1)))], 400, "larger than 10 MiB"),
        ([header, file("a.png", text(b"\0png"))], 400, "binary files"),
        ([header, file("../a", text(b"x"))], 400, "Invalid path"),
        (
            [header, {"key": "lfsFile", "value": {"path": "a.bin", "algo": "sha256", "oid": sha, "size": 1}}],
            400,
            "does not exist",
        ),
        ([header, {"key": "deletedFile", "value": {"path": "none"}}], 404, "doesn't exist"),
        ([{"key": "header", "value": {"summary": "x", "parentCommit": sha[:40]}}], 412, "A commit has happened since"),
        ([header, file("README.md", text(b"---\nconfigs: 1\n---\n"))], 400, "Invalid metadata"),
    ):
        answer = post(lines)
        assert (answer.status_code, said in answer.text) == (status, True), lines
    answer = api_session().put(f"{fake.url}/lfs/{sha}", content=b"other")
    assert answer.status_code == 400 and fake.storage.objects == {}
    assert len(fake.repo().refs["main"]) == 1


def api_session():
    from huggingface_hub.utils import get_session

    return get_session()


def _post(api, fake, lines, **query):
    return api_session().post(
        f"{fake.url}/api/datasets/{REPO}/commit/main",
        content=b"".join(json.dumps(line).encode() + b"\n" for line in lines),
        headers={"authorization": "Bearer hf_write", "content-type": "application/x-ndjson"},
        params=query,
    )


PROGRAM = """
import pathlib, sys
from huggingface_hub.utils import disable_progress_bars
from pipeline.release import build, cards, hub
disable_progress_bars()
whole = build.whole(pathlib.Path(sys.argv[1]))
target = hub.Target("acme/almanac", "dataset", endpoint=sys.argv[2], token="hf_write")
target.send(whole.of_tables(), cards.of_dataset(whole, "acme/almanac"), whole.data_version)
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("moment", ["validate-yaml", "preupload", "/lfs/", "/commit/", "after the commit", "/tag/"])
def test_killed_at_any_moment_one_whole_release_is_there_and_the_next_run_goes_on(
    fake, built, tmp_path, monkeypatch, moment
):
    """A real process, killed while the Hub holds its breath."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    send(fake, built)
    before = fake.repo().files
    second = make(tmp_path / "second", "b", tables={"almanac.duckdb": "DUCK\0 new", "gpu.csv": "gpu_id\nt4\n"})
    reached, go = threading.Event(), threading.Event()

    def hold(handler, path):
        is_done = len(fake.repo().refs["main"]) > 2
        if moment in path or (moment == "after the commit" and is_done):
            reached.set()
            go.wait(30)
            handler.close_connection = True
            return True
        return False

    fake.faults.append(hold)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(second), fake.url],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        env={**os.environ, "HF_HUB_DISABLE_XET": "1"},
    )
    assert reached.wait(60), process.communicate(timeout=10)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    go.set()
    if moment in ("after the commit", "/tag/"):
        assert held(fake, second)[1]
    else:
        assert fake.repo().files == before
    fake.faults.clear()
    send(fake, second)
    assert held(fake, second)[1] and build.whole(second).data_version in fake.repo().tags
