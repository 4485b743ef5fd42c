"""A stand-in for the Hub on loopback: lists, single models, files with ranges, headers of shards, and faults by script.

It speaks what the client relies on: `Link: rel="next"`, ETag, X-Repo-Commit, X-Error-Code, 206 with Content-Range.
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
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

Fault = Callable[["Handler"], bool]  # answers itself and gives True, or leaves the request to the Hub


class FakeHub:
    """`models`: rows of the listing. `files`: bytes by (model_id, path). `faults` are asked in turn before an answer."""

    def __init__(self, models: list[dict[str, Any]], files: dict[tuple[str, str], bytes], page: int = 100):
        self.models, self.files, self.page = models, files, page
        self.log: list[tuple[str, str, str | None]] = []  # method, path with query, range
        self.agents: set[str] = set()
        self.tokens: set[str | None] = set()
        self.faults: list[Fault] = []
        self.refused: dict[str, tuple[int, str]] = {}  # model_id → status and error code of all that it is asked
        self.sharded: dict[str, bytes] = {}  # model_id → body of safetensors-metadata
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
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

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
        hub.log.append((self.command, self.path, self.headers.get("range")))
        hub.agents.add(self.headers.get("user-agent", ""))
        hub.tokens.add(self.headers.get("authorization"))
        if any(fault(self) for fault in hub.faults):
            return
        if path == "/api/models":
            self._list(hub, query)
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/safetensors-metadata/(.+)", path):
            body = hub.sharded.get(match[1])
            commit = (hub.row(match[1]) or {}).get("sha", "")
            self.reply(200, body, X_Repo_Commit=commit) if body else self.reply(
                404, b"{}", X_Error_Code="EntryNotFound"
            )
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)", path):
            self._info(hub, match[1], query)
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._file(hub, match[1], match[2], match[3])
        else:
            self.reply(404, b"{}")

    def _list(self, hub: FakeHub, query: dict[str, list[str]]) -> None:
        start = int(query.get("cursor", ["0"])[0])
        hub.before_page(start // hub.page)
        tag = query.get("pipeline_tag", [""])[0]
        rows = [r for r in hub.models if not isinstance(r, dict) or r.get("pipeline_tag") == tag]
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
        status, code = hub.refused.get(model_id, (404, "RepoNotFound") if row is None else (200, ""))
        if status != 200:
            return self.reply(status, b'{"error": "no"}', **({"X_Error_Code": code} if code else {}))
        return self.reply(200, json.dumps(_expanded(row, query)).encode(), Content_Type="application/json")

    def _file(self, hub: FakeHub, model_id: str, revision: str, name: str) -> None:
        row = hub.row(model_id) or {}
        status, code = hub.refused.get(model_id, (200, ""))
        if status != 200:
            return self.reply(status, b"no", **({"X_Error_Code": code} if code else {}))
        body = hub.files.get((model_id, name))
        if body is None or revision not in ("main", row.get("sha")):
            return self.reply(404, b"", X_Error_Code="EntryNotFound" if body is None else "RevisionNotFound")
        headers = {
            "ETag": f'"{hashlib.sha1(body, usedforsecurity=False).hexdigest()}"',
            "X_Repo_Commit": row["sha"],
            "Accept_Ranges": "bytes",
        }
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range") or "")
        if wanted and self.command == "GET":
            first, last = int(wanted[1]), min(int(wanted[2]), len(body) - 1)
            if first >= len(body):
                return self.reply(416, b"", Content_Range=f"bytes */{len(body)}")
            headers["Content_Range"] = f"bytes {first}-{last}/{len(body)}"
            return self.reply(206, body[first : last + 1], **headers)
        return self.reply(200, body, **headers)


def _expanded(row: Any, query: dict[str, list[str]]) -> Any:
    wanted = query.get("expand")
    return {k: v for k, v in row.items() if k in ("id", "_id", *wanted)} if wanted and isinstance(row, dict) else row
