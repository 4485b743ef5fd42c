"""Serves the built site on this machine only, as a static host would; tables too large for such a host come from beside the site."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Handler(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".bin": "application/octet-stream"}

    def translate_path(self, path: str) -> str:
        """A file of the site, or else the table of that name in `tables` beside it."""
        found = Path(super().translate_path(path))
        site = Path(self.directory)
        beside = site.with_name("tables") / found.name
        is_table = found.parent == site / "tables" and not found.exists() and beside.is_file()
        # the site is served with its own slash rules: a folder's path keeps its last slash
        return str(beside) if is_table else super().translate_path(path)

    def log_message(self, *_: object) -> None:
        """A reader of a page needs no log of requests."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Shows the site's own page for what is not there."""
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.exists():
            return super().send_error(code, message, explain)
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def server(site: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of the folder on 127.0.0.1; port 0 takes a free one. Raises FileNotFoundError where nothing is built."""
    if not (site / "index.html").exists():
        raise FileNotFoundError(f"{site} holds no site; `make publish` builds it")
    return ThreadingHTTPServer(("127.0.0.1", port), partial(_Handler, directory=str(site)))


def serve(site: Path, port: int) -> None:
    """Serves until interrupted."""
    with server(site, port) as running:
        print(f"http://127.0.0.1:{running.server_port}/   (Ctrl-C ends)", flush=True)
        running.serve_forever()
