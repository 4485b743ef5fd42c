"""A stand-in for the Hub on loopback: lists, single models, files with ranges, headers of shards, and faults by script.

It is as strict as the Hub: README.md beside this file says of each behaviour where it is known from.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from huggingface_hub.utils.sha import git_hash

from tests.fake_hub.quota import Quota
from tests.fake_hub.words import LISTED, ONE, SAID, UNKNOWN_TOKEN

CLOSED = ("auto", "manual", True)  # what `gated` of a row says where files are for those alone who were let in
ELSEWHERE = (".safetensors", ".gguf", ".bin", ".pt")  # kept in storage of another name

Fault = Callable[["Handler"], bool]  # answers itself and gives True, or leaves the request to the Hub


class FakeHub:
    """`models`: rows of the listing. `files`: bytes by (model_id, path). `faults` are asked in turn before an answer."""

    def __init__(self, models: list[dict[str, Any]], files: dict[tuple[str, str], bytes], page: int = 100):
        self.models, self.files, self.page = models, files, page
        self.listed_fields = list(LISTED)  # what lists may be asked
        self.log: list[tuple[str, str, str | None]] = []  # method, path with query, range
        self.agents: set[str] = set()
        self.tokens: set[str | None] = set()
        self.faults: list[Fault] = []
        self.refused: dict[str, tuple[int, str]] = {}  # model_id → status and error code of all that it is asked
        self.unknown_tokens: set[str] = set()  # revoked, or never given out
        self.sharded: dict[str, bytes] = {}  # model_id → body of safetensors-metadata
        self.sharded_says_commit = True
        self.renamed: dict[str, str] = {}  # old id → new
        self.granted: set[str | None] = set()  # tokens that may read gated files; None: all may
        self.hops: list[str] = []  # second requests of one answer: the cache of small files, the storage of large ones
        self.quota = Quota()
        self.before_page: Callable[[int], None] = lambda number: None  # called before each page of a list
        self.url = ""

    def asked(self, pattern: str) -> int:
        return sum(bool(re.search(pattern, path)) for _, path, _ in self.log)

    def row(self, model_id: str) -> dict[str, Any] | None:
        return next((row for row in self.models if isinstance(row, dict) and row.get("id") == model_id), None)

    @contextmanager
    def serving(self) -> Iterator[FakeHub]:
        server = _Server(("127.0.0.1", 0), Handler)
        server.hub = self
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.stopping.set()
            server.shutdown()
            server.server_close()
            thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    hub: FakeHub

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.stopping = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the script."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: Any) -> None:
        pass

    def reply(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {**self.server.hub.quota.headers(self.path), **given}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status: int, code: str = "", said: str | None = None) -> None:
        """As the Hub refuses: its words in a header and in the body, its code where it has one."""
        said = SAID.get((status, code), "") if said is None else said
        headers = {"X_Error_Code": code} if code else {}
        headers |= {"X_Error_Message": said} if said else {}
        self.reply(status, json.dumps({"error": said}).encode() if said else b"no", **headers)

    def refuse_gone(self) -> None:
        """What it says of a repository that is gone or private depends on whether a token came."""
        self.refuse(404, "RepoNotFound") if self.headers.get("authorization") else self.refuse(401)

    def refuses_fields(self, query: dict[str, list[str]], allowed: list[str]) -> bool:
        """A field that the endpoint does not know: 400, which names its place and all that are known."""
        places = [n for n, name in enumerate(query.get("expand", [])) if name not in allowed]
        options = "|".join(f'"{name}"' for name in allowed)
        if places:
            self.refuse(400, said=f"Invalid option: expected one of {options} at expand[{places[0]}]")
        return bool(places)

    def reset(self) -> None:
        """Ends the connection as a crash would: no farewell."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub = self.server.hub
        address = urlsplit(self.path)
        path, query = unquote(address.path), parse_qs(address.query)
        is_hop = path.startswith(("/api/resolve-cache/", "/storage/"))
        if is_hop:
            hub.hops.append(self.path)
        else:
            hub.log.append((self.command, self.path, self.headers.get("range")))
            hub.agents.add(self.headers.get("user-agent", ""))
            hub.tokens.add(self.headers.get("authorization"))
        allowed = hub.quota.take(self.path)
        if any(fault(self) for fault in hub.faults):
            return
        if not allowed:
            return self.reply(429, b"Too Many Requests")
        if self.token in hub.unknown_tokens:
            return self.refuse(401, said=UNKNOWN_TOKEN)
        if path == "/api/models":
            self._list(hub, query)
        elif is_hop:
            self._kept(hub, path)
        elif old := next(
            (name for name in hub.renamed if f"{path}/".startswith((f"/api/models/{name}/", f"/{name}/"))), None
        ):
            moved = path.replace(old, hub.renamed[old], 1)
            self.reply(307, b"Temporary Redirect", Location=f"{quote(moved)}{'?' * bool(address.query)}{address.query}")
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/safetensors-metadata/(.+)", path):
            self._sharded(hub, match[1])
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)", path):
            self._info(hub, match[1], query)
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._file(hub, match[1], match[2], match[3])
        else:
            self.refuse(404, said="Sorry, we can't find the page you are looking for.")

    @property
    def token(self) -> str:
        return (self.headers.get("authorization") or "").removeprefix("Bearer ")

    def _list(self, hub: FakeHub, query: dict[str, list[str]]) -> None:
        if self.refuses_fields(query, hub.listed_fields):
            return
        start = int(query.get("cursor", ["0"])[0])
        hub.before_page(start // hub.page)
        rows = [row for row in hub.models if _is_asked_for(row, query)]
        if query.get("sort") == ["trendingScore"]:
            rows = sorted(rows, key=lambda r: -(r.get("trendingScore", 0) if isinstance(r, dict) else 0))
        size = min(int(query.get("limit", [hub.page])[0]), hub.page)
        page = [_expanded(row, query) for row in rows[start : start + size]]
        headers = {}
        if start + size < len(rows):
            following = urlencode({**query, "cursor": start + size}, doseq=True)
            headers["Link"] = f'<{hub.url}/api/models?{following}>; rel="next"'
        self.reply(200, json.dumps(page).encode(), Content_Type="application/json", **headers)

    def _info(self, hub: FakeHub, model_id: str, query: dict[str, list[str]]) -> None:
        row = hub.row(model_id)
        if model_id in hub.refused:
            return self.refuse(*hub.refused[model_id])
        if row is None:
            return self.refuse_gone()
        if self.refuses_fields(query, ONE):
            return None
        return self.reply(200, json.dumps(_expanded(row, query)).encode(), Content_Type="application/json")

    def _is_refused(self, hub: FakeHub, model_id: str) -> bool:
        """Refuses what is gone, and the files of a gated model to whoever was not let in."""
        row = hub.row(model_id)
        if model_id in hub.refused:
            self.refuse(*hub.refused[model_id])
        elif row is None:
            self.refuse_gone()
        elif row.get("gated") in CLOSED and not {self.token, None} & hub.granted:
            self.refuse(403 if self.token else 401, "GatedRepo")
        else:
            return False
        return True

    def _sharded(self, hub: FakeHub, model_id: str) -> None:
        if self._is_refused(hub, model_id):
            return None
        body = hub.sharded.get(model_id)
        commit = {"X_Repo_Commit": hub.row(model_id)["sha"]} if hub.sharded_says_commit else {}
        return self.reply(200, body, **commit) if body else self.refuse(404, "EntryNotFound")

    def _file(self, hub: FakeHub, model_id: str, revision: str, name: str) -> None:
        """Where a file lies: small ones in a cache on the same host, large ones in storage of another name."""
        if self._is_refused(hub, model_id):
            return None
        row, body = hub.row(model_id), hub.files.get((model_id, name))
        if body is None or revision not in ("main", row.get("sha")):
            return self.refuse(404, "EntryNotFound" if body is None else "RevisionNotFound")
        headers = {"X_Repo_Commit": row["sha"], "Accept_Ranges": "bytes"}
        if name.endswith(ELSEWHERE):
            headers |= {"X_Linked_Size": str(len(body)), "X_Linked_ETag": f'"{hashlib.sha256(body).hexdigest()}"'}
            port = self.server.server_port
            return self.reply(
                302, b"Found", Location=f"http://localhost:{port}/storage/{quote(model_id)}/{quote(name)}", **headers
            )
        etag = quote(f'"{git_hash(body)}"')
        where = f"/api/resolve-cache/models/{quote(model_id)}/{row['sha']}/{quote(name, safe='')}"
        return self.reply(
            307, b"Temporary Redirect", Location=f"{where}?{quote(self.path, safe='')}=&etag={etag}", **headers
        )

    def _kept(self, hub: FakeHub, path: str) -> None:
        match = re.fullmatch(r"/api/resolve-cache/models/([^/]+/[^/]+)/([0-9a-f]{40})/(.+)", path)
        if match:
            body = hub.files[match[1], match[3]]
            return self.send_file(body, ETag=f'"{git_hash(body)}"', X_Repo_Commit=match[2], Accept_Ranges="bytes")
        _, _, organisation, model, name = path.split("/", 4)
        body = hub.files[f"{organisation}/{model}", name]
        return self.send_file(body, ETag=f'"{hashlib.sha256(body).hexdigest()[:32]}"', Accept_Ranges="bytes")

    def send_file(self, body: bytes, **headers: str) -> None:
        """The whole, or the range that is asked for."""
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range") or "")
        if not wanted or self.command != "GET":
            return self.reply(200, body, **headers)
        first, last = int(wanted[1]), min(int(wanted[2]), len(body) - 1)
        if first >= len(body):
            return self.reply(416, b"", Content_Range=f"bytes */{len(body)}")
        return self.reply(206, body[first : last + 1], Content_Range=f"bytes {first}-{last}/{len(body)}", **headers)


def _is_asked_for(row: Any, query: dict[str, list[str]]) -> bool:
    if not isinstance(row, dict):
        return True
    tag, author = (query.get(name, [None])[0] for name in ("pipeline_tag", "author"))
    is_theirs = author is None or str(row.get("id")).startswith(f"{author}/")
    return is_theirs and (tag is None or row.get("pipeline_tag") == tag)


def _expanded(row: Any, query: dict[str, list[str]]) -> Any:
    wanted = query.get("expand")
    return {k: v for k, v in row.items() if k in ("id", "_id", *wanted)} if wanted and isinstance(row, dict) else row
