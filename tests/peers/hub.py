"""The stand-in for the Hub, at the Hub's own address: peers are run as they are, and speak TLS to huggingface.co.

A proxy takes their connections, whatever the host, with a certificate of its own authority, and hands them to tests/fake_hub. Peers are told of
both by the environment, which the libraries of HTTP read (HTTPS_PROXY, SSL_CERT_FILE). Weights take no room: a file of safetensors is its
header, and as long as that says; whoever reads beyond is refused.

What is answered here beyond the stand-in, and where it is known from: `tree` and `revision` of a model, as `list_repo_tree` and `model_info` of
huggingface_hub 2.4.0 (`hf_api.py`) read them; `raw` as a browser's link to a file, the same bytes as `resolve`.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.fake_hub.server import FakeHub, Handler, _Server

HOSTS = ("huggingface.co", "storage.hf.co")


class Weights(bytes):
    """The beginning of a file that is as long as it says."""

    def __new__(cls, header: dict[str, Any]) -> Weights:
        told = json.dumps(header, separators=(",", ":")).encode()
        found = super().__new__(cls, struct.pack("<Q", len(told)) + told)
        found.size = found.__bytes_length() + max(
            (row["data_offsets"][1] for name, row in header.items() if name != "__metadata__"), default=0
        )
        return found

    def __bytes_length(self) -> int:
        return super().__len__()

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: slice) -> bytes:
        first, last, _ = place.indices(self.size)
        held = super().__getitem__(slice(first, last))
        return held + bytes(last - first - len(held))


class TreeHandler(Handler):
    """With the endpoints that peers ask besides."""

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        hub = self.server.hub
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/[^/]+/?", path):
            hub.log.append((self.command, self.path, None))
            rows = [
                {"type": "file", "path": name, "size": len(body), "oid": "0" * 40}
                for (model, name), body in hub.files.items()
                if model == match[1]
            ]
            return self.reply(200, json.dumps(rows).encode(), Content_Type="application/json")
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/[^/]+", path):
            self.path = f"/api/models/{match[1]}"
        self.path = re.sub(r"^(/[^/]+/[^/]+)/raw/", r"\1/resolve/", self.path)
        return super().do_GET()

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Storage is another host of the Hub's, and spoken to by TLS as well."""
        where = headers.get("Location", "")
        if where.startswith("http://localhost:"):
            headers["Location"] = f"https://{HOSTS[1]}/{where.split('/', 3)[3]}"
        super().reply(status, body, **headers)


@contextmanager
def serving(hub: FakeHub, folder: Path) -> Iterator[dict[str, str]]:
    """Serves it until the end. Gives the environment that leads there."""
    authority = _certificates(folder)
    server = _Server(("127.0.0.1", 0), TreeHandler)
    server.hub = hub
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "host.pem", folder / "host.key")
    proxy = socket.create_server(("127.0.0.1", 0))
    hub.url = f"https://{HOSTS[0]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    threading.Thread(target=_accept, args=(proxy, context, server), daemon=True).start()
    address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
    try:
        yield {
            **dict.fromkeys(("HTTPS_PROXY", "https_proxy", "ALL_PROXY"), address),
            **dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), str(authority)),
        }
    finally:
        proxy.close()
        server.stopping.set()
        server.shutdown()
        server.server_close()


def _accept(proxy: socket.socket, context: ssl.SSLContext, server: _Server) -> None:
    while True:
        try:
            connection, _ = proxy.accept()
        except OSError:
            return
        threading.Thread(target=_lead, args=(connection, context, server), daemon=True).start()


def _lead(connection: socket.socket, context: ssl.SSLContext, server: _Server) -> None:
    """CONNECT host:443, then TLS, then requests."""
    try:
        asked = b""
        while b"\r\n\r\n" not in asked:
            if not (more := connection.recv(4096)):
                return
            asked += more
        if not asked.startswith(tuple(f"CONNECT {host}:443 ".encode() for host in HOSTS)):
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with context.wrap_socket(connection, server_side=True) as inside:
            TreeHandler(inside, ("127.0.0.1", 0), server)
    except (OSError, ssl.SSLError):
        pass
    finally:
        connection.close()


def _certificates(folder: Path) -> Path:
    """An authority, and a certificate of it for the hosts. Gives the authority's file."""
    names = ",".join(f"DNS:{host}" for host in HOSTS)
    (folder / "names").write_text(f"subjectAltName={names}\n", encoding="utf-8")
    key = ["-newkey", "rsa:2048", "-nodes", "-days", "2"]
    for command in (
        ["req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Loopback Hub"],
        ["req", *key[:3], "-keyout", "host.key", "-out", "host.csr", "-subj", f"/CN={HOSTS[0]}"],
        [
            "x509",
            "-req",
            "-in",
            "host.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "names",
            "-out",
            "host.pem",
        ],
    ):
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)
    return folder / "ca.pem"
