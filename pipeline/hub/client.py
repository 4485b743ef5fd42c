"""What the crawl asks of the Hub, with huggingface_hub's own session, token and addresses.

Answers are raw: `HfApi.list_models` would end a listing at the first malformed row, `model_info` and the range requests of
`get_safetensors_metadata` raise at once on 429 and read bodies of any size, and `hf_hub_download` costs two requests a file
where one is enough. So the session is the library's, its transport ours, and every answer is checked by who asked.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2
from huggingface_hub import hf_hub_url, set_client_factory
from huggingface_hub.utils import get_session, get_token_to_send
from huggingface_hub.utils._http import default_client_factory, hf_request_event_hook

from pipeline.hub.careful import Malformed, parse
from pipeline.hub.record import is_model_id
from pipeline.hub.traffic import HubError, Traffic
from pipeline.hub.transport import BODY_LIMIT, Patience, Transport

PAGE_BYTES = 64 * 2**20
FILE_BYTES = 4 * 2**20  # config.json and its like; the largest known has 2 MB
HEADER_BYTES = 64 * 2**20  # of all shards of one model together
MOST_PAGES = 1000
LONGEST_MESSAGE = 1000  # characters of the Hub's own words; the longest known names all fields that it allows
_SHA = re.compile(r"[0-9a-f]{40}")


class Refused(HubError):
    """The Hub answered, but not with what was asked: `status` and, where it gives them, its own error code and its words for it."""

    def __init__(self, status: int, code: str, what: str, message: str = "", has_token: bool = False):
        why = f" ({code[:60]})" if code else f": {message}" if message else ""
        super().__init__(f"{what}: status {status}{why}")
        self.status, self.code, self.message, self.has_token = status, code, message, has_token

    @property
    def is_gone(self) -> bool:
        """Whether there is no such repository, or none for us; a missing file is another matter.

        To a request without a token the Hub says of a repository that is gone or private 401, without a code; with a token that
        status is about the token. huggingface_hub takes it for the same (`hf_raise_for_status`).
        """
        if self.code == "RepoNotFound":
            return True
        if self.status == 401 and not self.code:
            return not self.has_token and bool(self.message)  # a gateway in between has no words of the Hub's
        return self.status in (404, 410) and self.code not in ("EntryNotFound", "RevisionNotFound")


def refused_fields(fields: Sequence[str], refusal: Refused) -> set[str]:
    """Which fields of `expand` a 400 is about: those at the places it names, and those that are not among the ones it allows."""
    if refusal.status != 400:
        return set()
    allowed = set(re.findall(r'"([\w-]+)"', refusal.message))
    named = {fields[int(n)] for n in re.findall(r"expand\[(\d{1,3})\]", refusal.message) if int(n) < len(fields)}
    if named and allowed & set(fields):
        named |= set(fields) - allowed
    return named


def said_by(response: httpx2.Response) -> str:
    """Why the Hub refuses, in its own words: a header has them, or `error` of a JSON body. Empty where it gives none."""
    said = response.headers.get("x-error-message", "")
    if not said:
        try:
            body = parse(response.content[:10_000])
        except Malformed:
            return ""
        said = body.get("error") if isinstance(body, dict) else ""
    return "".join(c if c.isprintable() else " " for c in said)[:LONGEST_MESSAGE] if isinstance(said, str) else ""


def is_sha(value: Any) -> bool:
    return isinstance(value, str) and bool(_SHA.fullmatch(value))


def has_token() -> bool:
    return get_token_to_send(None) is not None


def proxy_for(endpoint: str) -> str | None:
    """The proxy that the environment names for an address; a client with a transport of its own does not look itself."""
    address = urlsplit(endpoint)
    if proxy_bypass(address.hostname or ""):
        return None
    found = getproxies()
    return found.get(address.scheme) or found.get("all")


class Hub:
    """One crawl's client; a context, since the library keeps one session for the whole process."""

    def __init__(self, endpoint: str, traffic: Traffic, patience: Patience | None = None, cache: Path | None = None):
        self.endpoint = endpoint.rstrip("/")
        self.traffic = traffic
        self._patience = patience or Patience()
        self._cache = cache
        self._host = urlsplit(self.endpoint).hostname or ""
        token = get_token_to_send(None)  # the library's own means: environment, then its token file
        agent = f"vram-almanac/0.1; hf_hub/{version('huggingface_hub')}; crawl of configs and headers, never weights"
        self._headers = {"user-agent": agent, **({"authorization": f"Bearer {token}"} if token else {})}
        self.notes: list[str] = []  # what the Hub would not tell, in words for people
        self._refused_fields: set[str] = set()

    def __enter__(self) -> Hub:
        set_client_factory(self._client)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        set_client_factory(default_client_factory)

    def _client(self) -> httpx2.Client:
        inner = httpx2.HTTPTransport(proxy=proxy_for(self.endpoint))
        transport = Transport(inner, self.traffic, self._patience, self._host)
        return httpx2.Client(
            transport=transport,
            event_hooks={"request": [hf_request_event_hook]},
            follow_redirects=True,
            timeout=httpx2.Timeout(self._patience.read, connect=self._patience.connect),
        )

    def pages(self, params: dict[str, Any], needed: Collection[str] = ()) -> Iterator[list[Any] | HubError]:
        """The pages of a listing of models. A page that cannot be read is given as its error, and the next one follows.

        Fields of `expand` that the Hub refuses are left out, but for those `needed`.
        """
        url, asked = f"{self.endpoint}/api/models", set()
        while url and len(asked) < MOST_PAGES:
            asked.add(url)
            if len(asked) == 1:
                response = self._expanded(url, PAGE_BYTES, params, needed)
            else:
                response = self._get(url, PAGE_BYTES)
            try:
                rows = parse(response.content, deepest=60, most_nodes=3 * 10**6)
                yield rows if isinstance(rows, list) else Malformed("a page of the listing is no list")
            except Malformed as problem:
                yield Malformed(f"a page of the listing is unreadable: {problem}")
            url = self._following(response, asked)

    def _following(self, response: httpx2.Response, asked: set[str]) -> str | None:
        """The next page, if it is the Hub's own and a new one: a token goes nowhere else, and a loop ends."""
        url = response.links.get("next", {}).get("url")
        if not url or url in asked or urlsplit(url)[:2] != urlsplit(self.endpoint)[:2]:
            return None
        return url

    def info(self, model_id: str, expand: Collection[str], needed: Collection[str] = ()) -> Any:
        """One model as the listing has it. Raises Refused, Malformed or another HubError."""
        if not is_model_id(model_id):
            raise Malformed("model_id is not organisation/name")
        url = f"{self.endpoint}/api/models/{model_id}"
        return parse(self._expanded(url, FILE_BYTES, {"expand": expand}, needed).content)

    def _expanded(self, url: str, limit: int, params: dict[str, Any], needed: Collection[str]) -> httpx2.Response:
        """An answer with fewer fields where the Hub refuses some: it names their places, and those that it knows. What it has
        refused once is not asked for again."""
        while True:
            fields = [field for field in params["expand"] if field not in self._refused_fields]
            try:
                return self._get(url, limit, params={**params, "expand": fields})
            except Refused as refusal:
                refused = refused_fields(fields, refusal)
                if not refused or refused & set(needed):
                    raise
                self._refused_fields |= refused
                self.notes.append(f"the Hub refuses the fields {', '.join(sorted(refused))}: asked without ({refusal})")

    def file(self, model_id: str, sha: str, name: str) -> bytes:
        """A small file of a revision, from the cache where it has been read before."""
        path = self._cached(model_id, sha, name)
        if path and path.exists():
            return path.read_bytes()
        content = self._get(self._address(model_id, sha, name), FILE_BYTES).content
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(".part")
            beside.write_bytes(content)
            os.replace(beside, path)
        return content

    def part(self, model_id: str, sha: str, name: str, start: int, stop: int) -> tuple[bytes, int | None]:
        """Bytes `start` to `stop` (not included) of a file, and the size of the whole file where the Hub gives it."""
        headers = {"range": f"bytes={start}-{stop - 1}", "accept-encoding": "identity"}
        response = self._get(self._address(model_id, sha, name), stop - start, headers=headers)
        told = re.fullmatch(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", response.headers.get("content-range", ""))
        if response.status_code == 206 and told and int(told[1]) != start:
            raise Malformed(f"{name}: another range than the one asked for")
        return response.content, int(told[3]) if told else None

    def sharded_headers(self, model_id: str, index: str) -> tuple[Any, str | None]:
        """The safetensors headers of all shards, in one request (of `main`), and the commit that they are of."""
        url = f"{self.endpoint}/api/models/{model_id}/safetensors-metadata/{index}"
        response = self._get(url, HEADER_BYTES)
        return parse(response.content, most_nodes=5 * 10**6), response.headers.get("x-repo-commit")

    def _address(self, model_id: str, sha: str, name: str) -> str:
        if not is_model_id(model_id) or not is_sha(sha):
            raise Malformed("not a model and a commit")
        return hf_hub_url(model_id, name, revision=sha, endpoint=self.endpoint)

    def _get(self, url: str, limit: int, params: dict | None = None, headers: dict | None = None) -> httpx2.Response:
        what = urlsplit(url).path[:160]
        try:
            response = get_session().get(
                url, params=params, headers={**self._headers, **(headers or {})}, extensions={BODY_LIMIT: limit}
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise HubError(f"{what}: {type(error).__name__}") from error
        if response.status_code not in (200, 206):
            code, has_token = response.headers.get("x-error-code", ""), "authorization" in self._headers
            raise Refused(response.status_code, code, what, said_by(response), has_token)
        return response

    def _cached(self, model_id: str, sha: str, name: str) -> Path | None:
        """No part of the path is anybody's text."""
        if self._cache is None:
            return None
        key = hashlib.sha256(f"{model_id}\n{sha}\n{name}".encode()).hexdigest()
        return self._cache / key[:2] / f"{key}.json"
