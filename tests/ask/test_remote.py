"""The almanac at an address: a strict server on loopback, and all that a network does to a file on its way."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pipeline.ask import remote
from pipeline.ask.almanac import opened
from pipeline.ask.problems import NoData
from pipeline.base.sealed import sealed
from tests.few import TEXT

DAY = remote.DAY_SECONDS


class Server(ThreadingHTTPServer):
    """Serves a folder as a strict host does: ETags, 304, ranges of what is there, and nothing that is not. `faults` are taken one by one."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.asked: list[tuple[str, str | None, int]] = []  # path, range, status
        self.faults: list[tuple[str, object]] = []  # name of a file, what happens to its next answer

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def fault(self, name: str) -> object:
        for place, (file, _what) in enumerate(self.faults):
            if file == name:
                return self.faults.pop(place)[1]
        return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        name, asked = self.path.lstrip("/"), self.headers.get("Range")
        assert self.headers.get("User-Agent") == "vram-almanac"
        path, fault = self.server.folder / name, self.server.fault(name)
        if isinstance(fault, int) or not path.is_file():
            return self._answer(fault or 404, b"", {})
        if fault == "hang":
            self.server.asked.append((name, asked, 0))
            self.close_connection = True
            return threading.Event().wait(3)
        body = path.read_bytes()
        tag = f'"{hashlib.sha256(body).hexdigest()[:12]}"'
        if self.headers.get("If-None-Match") == tag:
            return self._answer(304, b"", {"ETag": tag})
        if fault == "other":
            body = bytes(len(body))
        status, headers = 200, {"ETag": tag}
        if asked and fault != "whole":
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                return self._answer(416, b"", {"Content-Range": f"bytes */{len(body)}"})
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            status, body = 206, body[start:]
        self._answer(status, body, headers, cut=fault == "cut")

    def _answer(self, status: int, body: bytes, headers: dict[str, str], *, cut: bool = False) -> None:
        self.server.asked.append((self.path.lstrip("/"), self.headers.get("Range"), status))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True


@pytest.fixture
def server(folder, tmp_path, alone):
    published = tmp_path / "published"
    published.mkdir()
    for name in ("almanac.duckdb", "manifest.json"):
        shutil.copyfile(folder / name, published / name)
    running = Server(published)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()


def publish(server: Server, **changes: object) -> None:
    """Another release: the manifest with some of its values changed, sealed anew."""
    path = server.folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(sealed(manifest)), encoding="utf-8")


def files_of(server: Server, **changes: object) -> dict[str, object]:
    manifest = json.loads((server.folder / "manifest.json").read_text(encoding="utf-8"))
    return {"files": {**manifest["files"], "almanac.duckdb": manifest["files"]["almanac.duckdb"] | changes}}


def test_it_is_fetched_once_and_then_asked_after_once_a_day(server, ask):
    assert ask("fits", TEXT, "--gpu", "rtx-4090", "--data", server.address)[0] == 0
    assert [name for name, _, _ in server.asked] == ["manifest.json", "almanac.duckdb"]
    assert ask("fits", TEXT, "--gpu", "rtx-4090", "--data", server.address)[0] == 0
    assert len(server.asked) == 2
    assert ask("fits", TEXT, "--gpu", "rtx-4090", "--data", server.address, "--fresh")[0] == 0
    assert server.asked[2:] == [("manifest.json", None, 304)]


@pytest.mark.full
@pytest.mark.parametrize("tables_url", ["", "{address}/releases/data-{data_version}/"])
def test_the_address_of_a_site_is_enough(server, ask, tables_url):
    """As people have it before them: its manifest says where the tables of this release lie."""
    version = json.loads((server.folder / "manifest.json").read_text(encoding="utf-8"))["data_version"]
    place = server.folder / (f"releases/data-{version}" if tables_url else "tables")
    place.mkdir(parents=True)
    for name in ("almanac.duckdb", "manifest.json"):
        (server.folder / name).rename(place / name)
    told = {"tables": {"data_version": version}, "tables_url": tables_url.replace("{address}", server.address)}
    (server.folder / "manifest.json").write_text(json.dumps(sealed(told | {"files": {}})), encoding="utf-8")
    for _time in range(2):
        assert ask("fits", TEXT, "--gpu", "rtx-4090", "--data", f"{server.address}/")[0] == 0
    assert [name for name, _range, _status in server.asked] == [
        "manifest.json", *(f"{place.relative_to(server.folder)}/{name}" for name in ("manifest.json", "almanac.duckdb"))
    ]  # fmt: skip


def test_a_site_that_names_no_address_of_tables(server):
    publish(server, tables={"data_version": "x"}, tables_url="file:///etc")
    with pytest.raises(NoData, match="names no address of tables"):
        remote.copy_of(server.address)


@pytest.mark.full
def test_the_address_that_was_last_asked_is_asked_again(server, ask, monkeypatch, tmp_path):
    monkeypatch.delenv("VRAM_ALMANAC")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pipeline.ask.almanac._local", lambda: None)
    status, _, err = ask("fits", TEXT, "--gpu", "rtx-4090")
    assert status == 4 and "There is no almanac here" in err and "VRAM_ALMANAC" in err
    assert ask("fits", TEXT, "--gpu", "rtx-4090", "--data", f"{server.address}/")[0] == 0
    assert ask("fits", TEXT, "--gpu", "rtx-4090")[0] == 0


def test_a_newer_release_takes_the_place_of_the_copy(server):
    first = remote.copy_of(server.address, now=0)
    database = server.folder / "almanac.duckdb"
    database.write_bytes(database.read_bytes() + bytes(4096))
    body = database.read_bytes()
    publish(server, **files_of(server, size_bytes=len(body), sha256=hashlib.sha256(body).hexdigest()))
    second = remote.copy_of(server.address, now=2 * DAY)
    assert second.path != first.path and second.path.read_bytes() == body and not first.path.exists()
    assert [status for _, _, status in server.asked] == [200, 200, 200, 200]


@pytest.mark.full
def test_without_an_answer_the_copy_says_how_old_it_is(server, ask):
    copy = remote.copy_of(server.address, now=0)
    server.faults = [("manifest.json", 503)]
    old = remote.copy_of(server.address, now=3 * DAY)
    assert old.path == copy.path and "503" in old.note and "3 days ago" in old.note
    server.faults = [("manifest.json", 503)]
    _, out, _ = ask("fits", TEXT, "--gpu", "rtx-4090", "--data", server.address, "--fresh")
    assert "does not answer" in out and out.startswith("Yes:")


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ([("manifest.json", 404)], "404"),
        ([("manifest.json", 500)], "500"),
        ([("almanac.duckdb", 404)], "404"),
        ([("manifest.json", "cut")], "does not give an almanac"),
        ([("manifest.json", "other")], "damaged, or none of ours"),
        ([("almanac.duckdb", "other")], "another checksum"),
        ([("manifest.json", "hang")], "no answer in time"),
    ],
)
def test_what_is_not_whole_is_not_used(server, ask, monkeypatch, tmp_path, faults, said):
    monkeypatch.setattr(remote, "PATIENCE_SECONDS", 0.5)
    server.faults = list(faults)
    status, out, err = ask("fits", TEXT, "--gpu", "rtx-4090", "--data", server.address)
    assert (status, out) == (4, "") and said in " ".join(err.split())
    kept = [path.name for end in ("*.duckdb", "*.part") for path in (tmp_path / "cache").rglob(end)]
    assert all(name.startswith("blank-") for name in kept)
    # and the next question finds it whole
    assert ask("fits", TEXT, "--gpu", "rtx-4090", "--data", server.address)[0] == 0


def test_what_broke_off_is_gone_on_with(server):
    server.faults = [("almanac.duckdb", "cut"), ("almanac.duckdb", "cut")]
    copy = remote.copy_of(server.address)
    size = (server.folder / "almanac.duckdb").stat().st_size
    assert copy.path.stat().st_size == size
    ranges = [asked for name, asked, _ in server.asked if name == "almanac.duckdb"]
    assert ranges == [None, f"bytes={size // 2}-", f"bytes={size // 2 + (size - size // 2) // 2}-"]


def test_what_broke_off_too_often_is_gone_on_with_in_the_next_run(server):
    server.faults = [("almanac.duckdb", "cut")] * remote.TRIES
    with pytest.raises(NoData, match="the next run goes on"):
        remote.copy_of(server.address)
    before = len(server.asked)
    assert remote.copy_of(server.address).path.is_file()
    assert server.asked[before + 1][1].startswith("bytes=") and server.asked[before + 1][2] == 206


def test_a_host_without_ranges_sends_it_whole(server):
    server.faults = [("almanac.duckdb", "cut"), ("almanac.duckdb", "whole")]
    assert remote.copy_of(server.address).path.stat().st_size == (server.folder / "almanac.duckdb").stat().st_size


@pytest.mark.parametrize(
    ("version", "said"), [("2.0.0", "a newer vram-almanac is needed"), ("0.9.0", "a newer almanac is needed")]
)
def test_another_schema_is_refused_before_it_is_fetched(server, ask, version, said):
    publish(server, schema_version=version)
    status, _, err = ask("fits", TEXT, "--gpu", "rtx-4090", "--data", server.address)
    assert status == 4 and said in " ".join(err.split())
    assert [name for name, _, _ in server.asked] == ["manifest.json"]


@pytest.mark.full
def test_a_minor_schema_is_no_matter(server, ask):
    publish(server, schema_version="1.7.0")
    assert ask("fits", TEXT, "--gpu", "rtx-4090", "--data", server.address)[0] == 0


@pytest.mark.parametrize("changes", [{"size_bytes": 0}, {"size_bytes": 2**50}, {"sha256": "../../x"}, {"sha256": None}])
def test_a_manifest_that_names_no_file_of_ours(server, changes):
    publish(server, **files_of(server, **changes))
    with pytest.raises(NoData, match=r"names no almanac\.duckdb"):
        remote.copy_of(server.address)


def test_nobody_listens(alone):
    with pytest.raises(NoData, match="does not give an almanac"):
        remote.copy_of("http://127.0.0.1:9")


def test_a_folder_that_nothing_can_be_kept_in(server, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(NoData, match="cannot be kept"):
        remote.copy_of(server.address)


def test_a_damaged_or_foreign_file(ask, folder, tmp_path):
    for name, content, said in (
        ("text.duckdb", b"no database at all", "cannot be read"),
        ("cut.duckdb", (folder / "almanac.duckdb").read_bytes()[:20_000], ""),
        ("empty.duckdb", b"", ""),
    ):
        (tmp_path / name).write_bytes(content)
        status, out, err = ask("fits", TEXT, "--gpu", "rtx-4090", "--data", tmp_path / name)
        assert (status, out) == (4, "") and err.strip() and said in " ".join(err.split()), name
        assert "Traceback" not in err
    status, _, err = ask("fits", TEXT, "--data", tmp_path / "none")
    assert status == 4 and "is not there" in err


def test_a_file_of_an_older_release_says_so(ask, tmp_path):
    import duckdb

    with duckdb.connect(str(tmp_path / "almanac.duckdb")) as connection:
        connection.execute("CREATE TABLE model (model_id VARCHAR)")
    (tmp_path / "manifest.json").write_text('{"schema_version": "1.0.0"}', encoding="utf-8")
    status, _, err = ask("fits", TEXT, "--gpu", "rtx-4090", "--data", tmp_path)
    assert status == 4 and "is of an older release (schema 1.0.0)" in " ".join(err.split())


def test_a_folder_above_the_tables_is_enough(folder, tmp_path):
    (tmp_path / "tables").symlink_to(folder)
    with opened(str(tmp_path)) as almanac:
        assert almanac.value("SELECT count(*) > 0 FROM gpu")
