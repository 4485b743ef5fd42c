"""A stand-in for the Hub on loopback: lists, single models, files with ranges, headers of shards, and faults by script.

It speaks what the client relies on: `Link: rel="next"`, ETag, X-Repo-Commit, X-Error-Code, 206 with Content-Range. What the Hub
refuses is refused here, with its words; each rule below names where it is known from.
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

# Fields of `expand` for one model: ExpandModelProperty_T in huggingface_hub 2.4.0, hf_api.py.
ONE = [
    "author",
    "baseModels",
    "cardData",
    "childrenModelCount",
    "config",
    "createdAt",
    "disabled",
    "downloads",
    "downloadsAllTime",
    "evalResults",
    "gated",
    "gguf",
    "inference",
    "inferenceProviderMapping",
    "lastModified",
    "library_name",
    "likes",
    "mask_token",
    "model-index",
    "pipeline_tag",
    "private",
    "resourceGroup",
    "safetensors",
    "sha",
    "siblings",
    "spaces",
    "tags",
    "transformersInfo",
    "trendingScore",
    "usedStorage",
    "widgetData",
]
# Lists know three fewer: github.com/huggingface/huggingface_hub, pull request 3182, whose review names the server's own two lists.
LISTED = [name for name in ONE if name not in ("baseModels", "childrenModelCount", "usedStorage")]
# The Hub's words by status and code. 401 without a code is what it says of a repository that is gone or private to whoever sends no
# token, and `Invalid credentials …` of a token that it does not know: hf_raise_for_status in huggingface_hub 2.4.0, utils/_http.py.
SAID = {
    (401, ""): "Invalid username or password.",
    (401, "RepoNotFound"): "Repository not found",
    (404, "RepoNotFound"): "Repository not found",
    (404, "EntryNotFound"): "Entry not found",
    (404, "RevisionNotFound"): "Invalid rev id",
    (401, "GatedRepo"): "Access to this model is restricted. You must be authenticated to access it.",
    (403, "GatedRepo"): "Access to this model is restricted and you are not in the authorized list.",
}
UNKNOWN_TOKEN = "Invalid credentials in Authorization header"

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
        hub.log.append((self.command, self.path, self.headers.get("range")))
        hub.agents.add(self.headers.get("user-agent", ""))
        hub.tokens.add(self.headers.get("authorization"))
        if any(fault(self) for fault in hub.faults):
            return
        if (self.headers.get("authorization") or "").removeprefix("Bearer ") in hub.unknown_tokens:
            return self.refuse(401, said=UNKNOWN_TOKEN)
        if path == "/api/models":
            self._list(hub, query)
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/safetensors-metadata/(.+)", path):
            body = hub.sharded.get(match[1])
            commit = (hub.row(match[1]) or {}).get("sha", "")
            self.reply(200, body, X_Repo_Commit=commit) if body else self.refuse(404, "EntryNotFound")
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)", path):
            self._info(hub, match[1], query)
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._file(hub, match[1], match[2], match[3])
        else:
            self.reply(404, b"{}")

    def _list(self, hub: FakeHub, query: dict[str, list[str]]) -> None:
        if self.refuses_fields(query, hub.listed_fields):
            return
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
        if model_id in hub.refused:
            return self.refuse(*hub.refused[model_id])
        if row is None:
            return self.refuse_gone()
        if self.refuses_fields(query, ONE):
            return None
        return self.reply(200, json.dumps(_expanded(row, query)).encode(), Content_Type="application/json")

    def _file(self, hub: FakeHub, model_id: str, revision: str, name: str) -> None:
        row = hub.row(model_id) or {}
        if model_id in hub.refused:
            return self.refuse(*hub.refused[model_id])
        if not row:
            return self.refuse_gone()
        body = hub.files.get((model_id, name))
        if body is None or revision not in ("main", row.get("sha")):
            return self.refuse(404, "EntryNotFound" if body is None else "RevisionNotFound")
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
