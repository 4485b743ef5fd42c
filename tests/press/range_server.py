"""A static file host on loopback, as strict with ranges as RFC 9110 asks (§13.2, §14): what page hosts and release hosts speak.

One range a request gets 206 with Content-Range, one that begins behind the end 416, several or none the whole file; If-Match and
If-None-Match are heeded. It keeps what was asked: `asked` holds method, path, first byte and bytes sent.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

_RANGE = re.compile(r"bytes=(?P<first>\d*)-(?P<last>\d*)")


class Host(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.asked: list[tuple[str, str, int, int]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def sent_bytes(self) -> int:
        return sum(sent for _method, _path, _first, sent in self.asked)


@contextmanager
def serving(folder: Path) -> Iterator[Host]:
    with Host(folder) as host:
        thread = threading.Thread(target=host.serve_forever, daemon=True)
        thread.start()
        try:
            yield host
        finally:
            host.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Host

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        path = (self.server.folder / unquote(self.path).lstrip("/")).resolve()
        if not path.is_relative_to(self.server.folder.resolve()) or not path.is_file():
            return self._say(404, {}, b"", with_body)
        whole = path.read_bytes()
        tag = f'"{hashlib.sha256(whole).hexdigest()[:16]}"'
        headers = {"ETag": tag, "Accept-Ranges": "bytes"}
        wanted = self.headers.get("If-Match")
        if wanted and wanted != "*" and tag not in wanted:
            return self._say(412, headers, b"", with_body)
        if tag in self.headers.get("If-None-Match", ""):
            return self._say(304, headers, b"", with_body)
        found = _RANGE.fullmatch(self.headers.get("Range", ""))
        if found is None or found["first"] == found["last"] == "":
            return self._say(200, headers, whole, with_body)
        if found["first"]:
            first, last = int(found["first"]), min(int(found["last"] or len(whole) - 1), len(whole) - 1)
        else:
            first, last = max(len(whole) - int(found["last"]), 0), len(whole) - 1
        if first >= len(whole) or first > last:
            return self._say(416, headers | {"Content-Range": f"bytes */{len(whole)}"}, b"", with_body)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(whole)}"
        return self._say(206, headers, whole[first : last + 1], with_body, first)

    def _say(self, status: int, headers: dict[str, str], body: bytes, with_body: bool, first: int = 0) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.server.asked.append((self.command, self.path, first, len(body) if with_body else 0))
        if with_body and status != 304:
            self.wfile.write(body)
