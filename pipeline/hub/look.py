"""Whether the Hub still behaves as the crawl assumes: a few dozen requests that write nothing, each for one assumption.

Examples are taken from the Hub's own lists, so that none grows old; only a model that was renamed and one that never was are named here.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
from huggingface_hub.utils import parse_ratelimit_headers

from pipeline.hub.answers import Origin, is_proven, said_by
from pipeline.hub.client import FILE_BYTES, HEADER_BYTES, PAGE_BYTES, Hub, has_token
from pipeline.hub.crew import each
from pipeline.hub.errors import HubError
from pipeline.hub.listing import EXPAND, EXPAND_ONE, Listed, read_row
from pipeline.hub.safetensors import FIRST_BYTES
from pipeline.hub.seen import NOT_SEEN, TOLD, Looked, Seen, seen_to_be
from pipeline.hub.settings import WINDOW_SECONDS, Settings
from pipeline.hub.traffic import Silent, Traffic

RENAMED = "gpt2"  # from before models had organisations; the Hub has it as openai-community/gpt2
NEVER = "vram-almanac/there-is-no-such-model"
_ALWAYS = (
    "sha",
    "siblings",
    "tags",
    "downloads",
    "likes",
    "createdAt",
    "lastModified",
    "pipeline_tag",
    "private",
    "gated",
)


def look_at_hub(settings: Settings) -> Looked:
    """Never raises for what the Hub answers, or does not."""
    looked, started = Looked(settings.endpoint), time.monotonic()
    traffic = Traffic(settings.limits(has_token()), learning=settings.rates is None)
    with Hub(settings.endpoint, traffic, settings.patience) as hub:
        look = _Look(hub, settings)
        for _, seen in each(look.one, look.looks(), 1, traffic.stop):
            looked.seen += seen
        looked.is_silent = look.is_silent
    looked.request_count, looked.seconds = traffic.request_count, time.monotonic() - started
    return looked


@dataclass
class _Look:
    hub: Hub
    settings: Settings
    rows: list[dict[str, Any]] = field(default_factory=list)
    is_silent: bool = False

    def looks(self) -> list[Callable[[], Iterator[Seen]]]:
        looks = [
            self.lists,
            self.sizes,
            self.trends,
            self.organisations,
            self.single,
            self.gone,
            self.renamed,
            self.configs,
        ]
        return [*looks, self.missing, self.gated, self.parts, self.shards, self.gguf]

    def one(self, look: Callable[[], Iterator[Seen]]) -> list[Seen]:
        """What one look has seen; a Hub that does not answer it is seen not to, and one that answers nothing is asked no more."""
        seen: list[Seen] = []
        if self.is_silent:
            return seen
        try:
            seen += look()
        except HubError as problem:
            seen.append(Seen(NOT_SEEN, look.__name__, str(problem)))
            self.is_silent = isinstance(problem, Silent)
        return seen

    def list(self, limit: int, expand: tuple[str, ...] = EXPAND, **more: str) -> httpx2.Response:
        params = {"sort": "downloads", **more, "limit": limit, "expand": expand}
        return self.hub.answer(f"{self.hub.endpoint}/api/models", PAGE_BYTES, params)

    def example(self, fits: Callable[[Listed], bool]) -> Listed | None:
        rows = (read_row(row) for row in self.rows)
        return next((row for row in rows if isinstance(row, Listed) and fits(row)), None)

    def file(self, row: Listed, name: str, start: int | None = None) -> tuple[httpx2.Response, Origin]:
        headers = (
            {}
            if start is None
            else {"range": f"bytes={start}-{start + FIRST_BYTES - 1}", "accept-encoding": "identity"}
        )
        origin = Origin()
        url = f"{self.hub.endpoint}/{row.model_id}/resolve/{row.sha}/{name}"
        return self.hub.answer(url, FILE_BYTES, headers=headers, origin=origin), origin

    def lists(self) -> Iterator[Seen]:
        answer = self.list(100, pipeline_tag="text-generation")
        yield seen_to_be(answer.status_code == 200, "lists give all fields that we ask for", _words(answer))
        self.rows = _rows(answer)
        never = [name for name in _ALWAYS if not any(name in row for row in self.rows)]
        yield seen_to_be(not never, "each of their fields has a value somewhere", f"none in {', '.join(never)}")
        told = parse_ratelimit_headers(answer.headers)
        limit = self.settings.limits(has_token())["api"] if self.settings.rates is None else None
        yield seen_to_be(
            told is not None and told.limit is not None, "every answer tells the limit and what is left of it"
        )
        if told and told.limit and limit:
            per_window = told.limit * WINDOW_SECONDS / (told.window_seconds or WINDOW_SECONDS)
            found = f"{told.limit} in {told.window_seconds} s, not {limit:.0f} in {WINDOW_SECONDS}"
            yield seen_to_be(per_window == limit, "the limit of requests is that of limit.csv", found)
        url = answer.links.get("next", {}).get("url", "")
        if not url:
            yield Seen(NOT_SEEN, "a list goes on with another page", f"{len(self.rows)} rows, and no next page")
            return
        is_ours = urlsplit(url)[:2] == urlsplit(self.hub.endpoint)[:2]
        yield seen_to_be(is_ours, "the next page of a list is at the Hub that was asked", url[:120])
        if is_ours:
            more = _rows(self.hub.answer(url, PAGE_BYTES))
            seen = {row.get("id") for row in self.rows}
            yield seen_to_be(any(row.get("id") not in seen for row in more), "the next page brings other models")
            self.rows += more

    def sizes(self) -> Iterator[Seen]:
        answer = self.list(1, expand=("sha", "usedStorage"))
        is_so = answer.status_code == 400 and "expand[1]" in said_by(answer)
        yield seen_to_be(
            is_so, "lists refuse a field that they do not have with 400, and name its place", _words(answer)
        )

    def trends(self) -> Iterator[Seen]:
        answer = self.list(2, pipeline_tag="text-generation", sort="trendingScore")
        yield seen_to_be(
            answer.status_code == 200 and bool(_rows(answer)), "lists are sorted by trend too", _words(answer)
        )

    def organisations(self) -> Iterator[Seen]:
        row = self.example(lambda row: True)
        if row is None:
            return
        name = row.model_id.partition("/")[0]
        rows = _rows(self.list(3, author=name))
        is_so = bool(rows) and all(str(r.get("id")).startswith(f"{name}/") for r in rows)
        yield seen_to_be(is_so, "an organisation's models are a list", f"{[r.get('id') for r in rows]} for {name}")

    def single(self) -> Iterator[Seen]:
        row = self.example(lambda row: True)
        if row:
            answer = self.hub.answer(
                f"{self.hub.endpoint}/api/models/{row.model_id}", FILE_BYTES, {"expand": EXPAND_ONE}
            )
            is_so = answer.status_code == 200 and "usedStorage" in answer.text
            yield seen_to_be(is_so, "a single model has its size besides", _words(answer))

    def gone(self) -> Iterator[Seen]:
        answer = self.hub.answer(f"{self.hub.endpoint}/api/models/{NEVER}", FILE_BYTES)
        if has_token():
            is_so = answer.headers.get("x-error-code") == "RepoNotFound"
            yield seen_to_be(is_so, "a model that is not there is RepoNotFound to a token", _words(answer))
        else:
            is_so = answer.status_code == 401 and "x-error-code" not in answer.headers and bool(said_by(answer))
            what = "a model that is not there is 401 without a code, in the Hub's words, to who has no token"
            yield seen_to_be(is_so, what, _words(answer))

    def renamed(self) -> Iterator[Seen]:
        answer = self.hub.answer(f"{self.hub.endpoint}/api/models/{RENAMED}", FILE_BYTES)
        where = [hop.headers.get("location", "") for hop in answer.history]
        is_so = bool(where) and where[0].startswith("/api/models/") and answer.history[0].status_code == 307
        yield seen_to_be(
            is_so, "a renamed model is one relative 307 away", f"{_words(answer)} by way of {where or 'nothing'}"
        )

    def configs(self) -> Iterator[Seen]:
        left = []
        for number, row in enumerate(filter(None, (self.example(_open_with("config.json")),) * 2)):
            answer, origin = self.file(row, "config.json")
            hops = [(hop.status_code, hop.headers.get("location", "")) for hop in answer.history]
            left += [parse_ratelimit_headers((answer.history or [answer])[0].headers)]
            if number:
                continue
            is_so = bool(hops) and hops[0][0] == 307 and hops[0][1].startswith("/api/resolve-cache/")
            yield seen_to_be(
                is_so, "a small file is a relative 307 away, in the Hub's cache", f"{hops or answer.status_code}"
            )
            yield seen_to_be(
                is_proven(answer.content, origin) is True,
                "its ETag is the hash of its blob in git",
                answer.headers.get("etag", "none"),
            )
            yield seen_to_be(origin.commit == row.sha, "its commit is told", str(origin.commit))
            hop = parse_ratelimit_headers(answer.headers)
            yield Seen(TOLD, "the cache tells a limit of its own", f"{hop.resource_type} {hop.limit}" if hop else "no")
        if len(left) == 2 and all(left):
            cost = left[0].remaining - left[1].remaining
            yield Seen(TOLD, "what a small file costs of the limit, hop and all", f"{cost} requests")

    def missing(self) -> Iterator[Seen]:
        if row := self.example(_open_with("config.json")):
            answer, _ = self.file(row, "there-is-no-such-file.json")
            is_so = answer.status_code == 404 and answer.headers.get("x-error-code") == "EntryNotFound"
            yield seen_to_be(is_so, "a file that is not there is 404 EntryNotFound", _words(answer))

    def gated(self) -> Iterator[Seen]:
        row = self.example(lambda row: row.is_closed and "config.json" in row.files)
        if row is None:
            yield Seen(NOT_SEEN, "the files of a gated model are refused as GatedRepo", "no list has one")
            return
        answer, _ = self.file(row, "config.json")
        if answer.status_code == 200:
            yield Seen(TOLD, "the token may read a gated model", row.model_id)
        else:
            is_so = answer.status_code in (401, 403) and answer.headers.get("x-error-code") == "GatedRepo"
            yield seen_to_be(is_so, "the files of a gated model are refused as GatedRepo", _words(answer))

    def parts(self) -> Iterator[Seen]:
        yield from self._part(_open_with("model.safetensors"), lambda name: name == "model.safetensors")

    def gguf(self) -> Iterator[Seen]:
        if not self.example(_open_with(".gguf")):
            self.rows += _rows(self.list(20, filter="gguf"))
        yield from self._part(_open_with(".gguf"), lambda name: name.endswith(".gguf"))

    def _part(self, fits: Callable[[Listed], bool], is_it: Callable[[str], bool]) -> Iterator[Seen]:
        if not (row := self.example(fits)):
            yield Seen(NOT_SEEN, "a part of a file of weights comes with its range", "no list has such a file")
            return
        name = next(filter(is_it, row.files))
        answer, origin = self.file(row, name, 0)
        found = re.fullmatch(r"bytes 0-\d+/(\d+)", answer.headers.get("content-range", ""))
        kind = name.rpartition(".")[2]
        yield seen_to_be(
            answer.status_code == 206 and bool(found), f"a part of a file comes with its range ({kind})", _words(answer)
        )
        size = int(found[1]) if found else None
        yield seen_to_be(
            origin.size == size and origin.commit == row.sha,
            f"its size and commit are told before ({kind})",
            str(origin),
        )

    def shards(self) -> Iterator[Seen]:
        index = "model.safetensors.index.json"
        if not (row := self.example(_open_with(index))):
            yield Seen(NOT_SEEN, "the headers of all shards come together", "no list has a sharded model")
            return
        started = time.monotonic()
        url = f"{self.hub.endpoint}/api/models/{row.model_id}/safetensors-metadata/{index}"
        answer = self.hub.answer(url, HEADER_BYTES, tries=1)
        is_so = answer.status_code == 200 and isinstance(_json(answer), dict) and "headers" in _json(answer)
        yield seen_to_be(is_so, "the headers of all shards come together", _words(answer))
        shards = sum(name.endswith(".safetensors") for name in row.files)
        commit = answer.headers.get("x-repo-commit", "no commit")
        yield Seen(TOLD, f"the headers of {shards} shards", f"{time.monotonic() - started:.1f} s, of {commit[:12]}")


def _open_with(name: str) -> Callable[[Listed], bool]:
    return lambda row: not row.is_closed and any(file.endswith(name) and "/" not in file for file in row.files)


def _json(answer: httpx2.Response) -> Any:
    try:
        return json.loads(answer.content)
    except ValueError:
        return None


def _rows(answer: httpx2.Response) -> list[dict[str, Any]]:
    rows = _json(answer) if answer.status_code == 200 else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _words(answer: httpx2.Response) -> str:
    code = answer.headers.get("x-error-code", "")
    return " ".join(filter(None, (f"status {answer.status_code}", code, said_by(answer)[:200])))
