"""A stand-in for the Hub on loopback that takes commits: data sets and Spaces, files small and large, pull requests, tags.

It is as strict as the Hub: README.md beside this file says of each behaviour where it is known from. Large files come in by the LFS batch
endpoint and by Xet (xet.py).
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from huggingface_hub.utils.sha import git_hash

from tests.fake_hub.cards import check_card
from tests.fake_hub.repositories import REGULAR_BYTES, Refusal, Repo, Tree, entry, is_binary, is_large
from tests.fake_hub.xet import Storage

PREUPLOAD_FILES = 256
PAGE = 1000
ATTRIBUTES = "*.parquet filter=lfs diff=lfs merge=lfs -text\n*.bin filter=lfs diff=lfs merge=lfs -text\n"
MOVED = "A commit has happened since. Please refresh and try again."


class CommitHub:
    """`tokens` by what they may: write, read. `faults` are asked in turn before an answer, with the handler and the path."""

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.tokens = {"hf_write": "write", "hf_read": "read"}
        self.owners = {"acme"}  # whom the tokens belong to
        self.storage = Storage()
        self.log: list[tuple[str, str]] = []
        self.faults: list[Callable[[Handler, str], bool]] = []
        self.lock = threading.RLock()
        self.url = ""

    def repo(self, name: str = "acme/almanac", kind: str = "dataset") -> Repo:
        return self.repos[kind, name]

    def create(self, name: str = "acme/almanac", kind: str = "dataset", sdk: str | None = None) -> Repo:
        repo = self.repos[kind, name] = Repo(kind, name, sdk, {"main": []})
        repo.add("main", {".gitattributes": ("regular", ATTRIBUTES.encode())}, "initial commit")
        return repo

    def asked(self, pattern: str) -> int:
        return sum(bool(re.search(pattern, f"{method} {path}")) for method, path in self.log)

    @contextmanager
    def serving(self) -> Iterator[CommitHub]:
        server = _Server(("127.0.0.1", 0), Handler)
        server.hub = self
        self.url = self.storage.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    hub: CommitHub

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the script."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: Any) -> None:
        pass

    def reply(self, status: int, body: Any = b"", **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _answer(self) -> None:
        hub = self.server.hub
        length = int(self.headers.get("content-length") or 0)
        self.body = self.rfile.read(length) if length else self._chunks()
        address = urlsplit(self.path)
        self.query = parse_qs(address.query)
        self.where = address.path
        hub.log.append((self.command, address.path))
        if any(fault(self, address.path) for fault in hub.faults):
            return
        try:
            with hub.lock:
                self._route(hub, address.path)
        except Refusal as refusal:
            said = {"error": refusal.said} | (
                {"errors": [{"message": e} for e in refusal.errors]} if refusal.errors else {}
            )
            headers = {"X_Error_Message": refusal.said.splitlines()[0]} | (
                {"X_Error_Code": refusal.code} if refusal.code else {}
            )
            self.reply(refusal.status, said, **headers)

    do_GET = do_POST = do_PUT = do_HEAD = _answer

    def _chunks(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return b""
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    # who may do what

    def _may(self) -> str | None:
        token = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        if not token:
            return None
        if token not in self.server.hub.tokens:
            raise Refusal(401, "Invalid credentials in Authorization header")
        return self.server.hub.tokens[token]

    def _write(self, owner: str) -> None:
        may = self._may()
        if may is None:
            raise Refusal(401, "Invalid username or password.")
        if may != "write" or owner not in self.server.hub.owners:
            raise Refusal(
                403, f'You don\'t have the rights to create or write to a repository under the namespace "{owner}"'
            )

    def _repo(self, kind: str, name: str) -> Repo:
        may = self._may()
        found = self.server.hub.repos.get((kind, name))
        if found is None:
            raise (
                Refusal(404, "Repository not found", "RepoNotFound")
                if may
                else Refusal(401, "Invalid username or password.")
            )
        return found

    def _json(self) -> Any:
        return json.loads(self.body or b"{}")

    # what is asked

    def _route(self, hub: CommitHub, path: str) -> None:
        if path == "/api/repos/create":
            return self._create(hub)
        if path == "/api/validate-yaml":
            return self._validate()
        if path.startswith(("/v1/", "/v2/")):
            return hub.storage.answer(self, path)
        if match := re.fullmatch(r"/lfs/([0-9a-f]{64})", path):
            return hub.storage.put(self, match[1])
        if match := re.fullmatch(r"/(dataset|space)s/([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            return self._batch(self._repo(match[1], match[2]))
        if match := re.fullmatch(
            r"/(?:api/resolve-cache/)?(dataset|space)s/([^/]+/[^/]+)/(?:resolve/)?([^/]+)/(.+)", path
        ):
            return self._file(
                self._repo(match[1], match[2]), unquote(match[3]), unquote(match[4]), "resolve-cache" in path
            )
        match = re.fullmatch(r"/api/(dataset|space)s/([^/]+/[^/]+)(?:/(.*))?", path)
        if match is None:
            raise Refusal(404, "Sorry, we can't find the page you are looking for.")
        repo, rest = self._repo(match[1], match[2]), match[3] or ""
        verb, _, revision = rest.partition("/")
        revision = unquote(revision)
        if self.command == "POST":
            self._write(repo.name.split("/")[0])
        if verb in ("", "revision"):
            commit = repo.commit(revision or "main")
            return self.reply(
                200,
                {
                    "id": repo.name,
                    "sha": commit.oid,
                    "private": False,
                    "siblings": [{"rfilename": p} for p in commit.tree],
                },
            )
        asked = {
            "tree": self._tree, "preupload": self._preupload, "commit": self._commit, "tag": self._tag, "discussions": self._discussions,
            "xet-write-token": self._xet_token,
        }  # fmt: skip
        if verb not in asked:
            raise Refusal(404, "Sorry, we can't find the page you are looking for.")
        return asked[verb](repo, revision)

    def _create(self, hub: CommitHub) -> None:
        asked = self._json()
        owner = asked.get("organization") or "acme"
        self._write(owner)
        kind, name = asked["type"], f"{owner}/{asked['name']}"
        if (kind, name) in hub.repos:
            # the client reads the address of the repository that is there from the refusal
            said = f"You already created this {kind} repo"
            return self.reply(409, {"error": said, "url": f"{hub.url}/{kind}s/{name}"}, X_Error_Message=said)
        if kind == "space" and asked.get("sdk") not in ("gradio", "docker", "static"):
            raise Refusal(400, "Invalid sdk")
        hub.create(name, kind, asked.get("sdk"))
        self.reply(200, {"url": f"{hub.url}/{kind}s/{name}", "name": name, "id": "0"})

    def _validate(self) -> None:
        asked = self._json()
        check_card(asked["content"], asked["repoType"])
        self.reply(200, {"errors": [], "warnings": []})

    def _tree(self, repo: Repo, revision: str) -> None:
        commit = repo.commit(revision)
        if self.query.get("recursive", ["false"])[0].lower() not in ("true", "1"):
            raise Refusal(400, "this stand-in lists whole trees")
        entries = [entry(path, mode, value) for path, (mode, value) in sorted(commit.tree.items())]
        start = int(self.query.get("cursor", ["0"])[0])
        headers = {}
        if start + PAGE < len(entries):
            headers["Link"] = f'<{self.server.hub.url}{self.where}?recursive=true&cursor={start + PAGE}>; rel="next"'
        self.reply(200, entries[start : start + PAGE], **headers)

    def _preupload(self, repo: Repo, revision: str) -> None:
        asked = self._json()["files"]
        if len(asked) > PREUPLOAD_FILES:
            raise Refusal(413, "too many parameters")
        tree = repo.commit(revision).tree
        told = []
        for file in asked:
            is_stored_apart = is_large(file["path"], file["size"], base64.b64decode(file["sample"]))
            there = tree.get(file["path"])
            oid = there and (git_hash(there[1]) if there[0] == "regular" else there[1][0])
            told.append(
                {"path": file["path"], "uploadMode": "lfs" if is_stored_apart else "regular", "shouldIgnore": False}
                | ({"oid": oid} if oid else {})
            )
        self.reply(200, {"files": told})

    def _batch(self, repo: Repo) -> None:
        self._write(repo.name.split("/")[0])
        hub, objects = self.server.hub, []
        for asked in self._json()["objects"]:
            found = {"oid": asked["oid"], "size": asked["size"]}
            if asked["oid"] not in hub.storage.objects:
                found["actions"] = {"upload": {"href": f"{hub.url}/lfs/{asked['oid']}", "header": {}}}
            objects.append(found)
        self.reply(200, {"transfer": "basic", "objects": objects})

    def _xet_token(self, repo: Repo, _revision: str) -> None:
        self._write(repo.name.split("/")[0])
        self.reply(
            200, {"casUrl": self.server.hub.url, "exp": 4102444800, "accessToken": "xet"},
            X_Xet_Cas_Url=self.server.hub.url, X_Xet_Access_Token="xet", X_Xet_Token_Expiration="4102444800",
        )  # fmt: skip

    def _commit(self, repo: Repo, revision: str) -> None:
        if self.headers.get("content-type") != "application/x-ndjson":
            raise Refusal(400, "a commit is application/x-ndjson")
        lines = [json.loads(line) for line in self.body.splitlines()]
        if not lines or lines[0]["key"] != "header" or not lines[0]["value"].get("summary"):
            raise Refusal(400, "the first line of a commit is its header, with a summary")
        header = lines[0]["value"]
        base = repo.commit(revision)
        if header.get("parentCommit", base.oid) != base.oid:
            raise Refusal(412, MOVED)
        tree = self._changed(repo, dict(base.tree), lines[1:])
        answer: dict[str, Any] = {}
        if self.query.get("create_pr") == ["1"]:
            number = len(repo.pulls) + 1
            repo.pulls[number] = {"title": header["summary"], "status": "open", "base": base.oid}
            revision = f"refs/pr/{number}"
            repo.refs[revision] = []
            answer["pullRequestUrl"] = f"{self.server.hub.url}/{repo.kind}s/{repo.name}/discussions/{number}"
        elif revision not in repo.refs:
            raise Refusal(404, f"Revision {revision} not found", "RevisionNotFound")
        made = repo.add(revision, tree, header["summary"])
        self.reply(
            200,
            {
                "success": True,
                "commitOid": made.oid,
                "commitUrl": f"{self.server.hub.url}/{repo.kind}s/{repo.name}/commit/{made.oid}",
                **answer,
            },
        )

    def _changed(self, repo: Repo, tree: Tree, lines: list[dict[str, Any]]) -> Tree:
        for line in lines:
            value = line["value"]
            path = value["path"]
            if path.startswith("/") or ".." in path.split("/"):
                raise Refusal(400, f"Invalid path {path}")
            if line["key"] == "file":
                content = base64.b64decode(value["content"], validate=True)
                if len(content) > REGULAR_BYTES:
                    raise Refusal(
                        400, "Your push was rejected because it contains files larger than 10 MiB. Please use https://git-lfs.github.com/ "
                        f"to store large files.\nOffending files:\n  - {path}",
                    )  # fmt: skip
                if is_binary(content):
                    raise Refusal(
                        400, "Your push was rejected because it contains binary files. Please use https://huggingface.co/docs/hub/xet to "
                        f"store binary files.\nOffending files:\n  - {path}",
                    )  # fmt: skip
                if path == "README.md":
                    check_card(content.decode(), repo.kind)
                tree[path] = ("regular", content)
            elif line["key"] == "lfsFile":
                size = self.server.hub.storage.objects.get(value["oid"])
                if value["algo"] != "sha256" or size is None or size != value.get("size", size):
                    raise Refusal(400, f"LFS pointer pointed to a file that does not exist: {path}")
                tree[path] = ("lfs", (value["oid"], size))
            elif line["key"] == "deletedFile":
                if path not in tree:
                    raise Refusal(404, "A file with this name doesn't exist", "EntryNotFound")
                del tree[path]
            else:
                raise Refusal(400, f"unknown operation {line['key']}")
        return tree

    def _tag(self, repo: Repo, revision: str) -> None:
        tag, commit = self._json()["tag"], repo.commit(revision)
        if tag in repo.tags:
            raise Refusal(409, f"Tag {tag} already exists")
        repo.tags[tag] = commit.oid
        self.reply(200, {})

    def _discussions(self, repo: Repo, rest: str) -> None:
        if not rest:
            wanted = self.query.get("status", [None])[0]
            rows = [
                {
                    "num": n, "title": p["title"], "status": p["status"], "isPullRequest": True, "author": {"name": "acme"},
                    "createdAt": "2026-01-02T00:00:00.000Z", "repo": {"name": repo.name, "type": repo.kind},
                }
                for n, p in repo.pulls.items()
                if wanted in (None, p["status"])
            ]  # fmt: skip
            return self.reply(200, {"discussions": rows, "count": len(rows), "start": 0})
        number, verb = int(rest.split("/")[0]), rest.split("/")[1]
        pull = repo.pulls[number]
        if pull["status"] != "open":
            raise Refusal(409, f"This pull request is {pull['status']}")
        if verb == "merge":
            if repo.refs["main"][-1].oid != pull["base"]:
                raise Refusal(409, "This pull request has conflicts")
            repo.add("main", repo.refs[f"refs/pr/{number}"][-1].tree, pull["title"])
            pull["status"] = "merged"
        else:
            pull["status"] = self._json()["status"]
        now = {"id": "0", "type": "status-change", "createdAt": "2026-01-02T00:00:00.000Z", "author": {"name": "acme"}}
        return self.reply(200, {"newStatus": now | {"data": {"status": pull["status"]}}})

    def _file(self, repo: Repo, revision: str, path: str, is_hop: bool) -> None:
        commit = repo.commit(revision)
        mode, value = commit.tree.get(path) or ("", b"")
        if mode != "regular":
            raise Refusal(404, "Entry not found", "EntryNotFound")
        etag = f'"{git_hash(value)}"'
        if not is_hop:
            where = f"/api/resolve-cache/{repo.kind}s/{repo.name}/{commit.oid}/{quote(path, safe='')}"
            return self.reply(307, b"", Location=where, X_Repo_Commit=commit.oid, ETag=etag, Accept_Ranges="bytes")
        return self.reply(200, value, X_Repo_Commit=commit.oid, ETag=etag)
