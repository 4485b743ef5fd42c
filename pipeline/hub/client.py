"""What the crawl asks of the Hub, with huggingface_hub's own session, token and addresses.

Answers are raw: `HfApi.list_models` would end a listing at the first malformed row, `model_info` and the range requests of
`get_safetensors_metadata` raise at once on 429 and read bodies of any size, and `hf_hub_download` costs two requests a file
where one is enough. So the session is the library's, its transport ours, and every answer is checked by who asked. What is not
shown to be the Hub's own word (answers.py) settles nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator
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

from pipeline.hub.answers import ORIGIN, Doubtful, Origin, Refused, is_proven, refusal, refused_fields
from pipeline.hub.careful import Malformed, parse
from pipeline.hub.errors import HubError
from pipeline.hub.record import is_model_id
from pipeline.hub.traffic import BodyTooLarge, Traffic
from pipeline.hub.transport import BODY_LIMIT, TRIES, Patience, Transport

PAGE_BYTES = 64 * 2**20
FILE_BYTES = 4 * 2**20  # config.json and its like; the largest known has 2 MB
HEADER_BYTES = 64 * 2**20  # of all shards of one model together
LEAST_PAGE_ROWS = 20  # a list of smaller pages is not followed to its end
TRIES_IN_ADDITION = 2  # of a request that another can stand in for
# A config without anything that shows whose it is counts where it says what only a config does.
TELLING = frozenset({"model_type", "architectures", "_class_name", "peft_type", "quant_method", "quantization", "bits"})
_SHA = re.compile(r"[0-9a-f]{40}")


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

    def pages(self, params: dict[str, Any], most: int, needed: Collection[str] = ()) -> Iterator[list[Any] | HubError]:
        """The pages of a listing of models, until `most` rows are there. A page that cannot be read is given as its error, and the
        next one follows; a list that does not go on as a list does is cut short, with the reason as its last page.

        Fields of `expand` that the Hub refuses are left out, but for those `needed`.
        """
        url, asked, seen = f"{self.endpoint}/api/models", set(), set()
        pages = count = stale = 0
        while url and count < most:
            pages += 1
            if pages > 10 + most // LEAST_PAGE_ROWS:
                yield Malformed(f"the list is given in more than {pages - 1:,} pages: cut short")
                return
            asked.add(url)
            response = self._expanded(url, PAGE_BYTES, params, needed) if pages == 1 else self._get(url, PAGE_BYTES)
            asked.add(str(response.url))
            try:
                rows = parse(response.content, deepest=60, most_nodes=3 * 10**6)
            except Malformed as problem:
                yield Malformed(f"a page of the listing is unreadable: {problem}")
            else:
                if not isinstance(rows, list):
                    yield Malformed("a page of the listing is no list")
                    rows = []
                yield rows
                count += len(rows)
                names = {row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)}
                stale = 0 if names - seen else stale + 1
                seen |= names
            url = response.links.get("next", {}).get("url")
            if url and count < most and (problem := self._detour(url, asked, stale)):
                yield Malformed(f"{problem}: the list is cut short")
                return

    def _detour(self, url: str, asked: set[str], stale: int) -> str | None:
        """Why the next page is not asked for: a token goes nowhere else, and a circle ends."""
        address = urlsplit(url)
        if address[:2] != urlsplit(self.endpoint)[:2]:
            return f"its next page is said to be at {address.netloc[:80]!r}, which is not the Hub that was asked"
        if url in asked:
            return "its next page is one that was read already"
        return "its pages bring nothing new" if stale > 1 else None

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
            except Refused as refused:
                left_out = refused_fields(fields, refused)
                if not left_out or left_out & set(needed):
                    raise
                self._refused_fields |= left_out
                self.notes.append(
                    f"the Hub refuses the fields {', '.join(sorted(left_out))}: asked without ({refused})"
                )

    def json(self, model_id: str, sha: str, name: str) -> dict[str, Any]:
        """A small file of a revision that holds an object, from the cache where it has been read before.

        Raises Malformed where the file is the Hub's and is no such thing, and Doubtful where that is not sure. Only what could be
        read, and is sure to be the Hub's, is kept.
        """
        path = self._cached(model_id, sha, name)
        if path and path.exists():
            try:
                return _object(path.read_bytes(), name)
            except Malformed:
                path.unlink()
        origin = Origin()
        try:
            response = self._get(self._address(model_id, sha, name), FILE_BYTES, origin=origin)
        except BodyTooLarge as problem:
            if origin.commit == sha:
                raise
            raise Doubtful(f"{problem}; and nothing shows that it is the Hub's") from None
        is_whole = is_proven(response.content, origin)
        if is_whole is False:
            raise Doubtful(f"{name}: what came is not the file that the Hub says it is")
        try:
            found = _object(response.content, name)
        except Malformed as problem:
            if is_whole:
                raise
            raise Doubtful(f"{problem}; and nothing shows that it is the Hub's") from None
        if not is_whole and origin.commit != sha and not TELLING & found.keys():
            raise Doubtful(f"{name}: nothing shows that what came is the Hub's")
        if path and is_whole:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(".part")
            beside.write_bytes(response.content)
            os.replace(beside, path)
        return found

    def part(self, model_id: str, sha: str, name: str, start: int, stop: int) -> tuple[bytes, int]:
        """Bytes `start` to `stop` (not included) of a file, fewer where it ends, and the size of the whole file.

        Only an answer that says of which bytes it is counts; another is Doubtful.
        """
        headers, origin = {"range": f"bytes={start}-{stop - 1}", "accept-encoding": "identity"}, Origin()
        try:
            response = self._get(self._address(model_id, sha, name), stop - start, headers=headers, origin=origin)
        except BodyTooLarge as problem:
            raise Doubtful(f"{name}: {problem}") from None
        told = response.headers.get("content-range", "")
        if response.status_code == 416 and (size := re.fullmatch(r"bytes \*/(\d{1,18})", told)):
            return b"", int(size[1])
        found = re.fullmatch(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", told)
        if response.status_code != 206 or not found:
            raise Doubtful(f"{name}: status {response.status_code} for a part of a file, without the range that it is")
        first, last, size = map(int, found.groups())
        if first != start or last - first + 1 != len(response.content) or last >= size:
            raise Doubtful(f"{name}: another range than the one asked for")
        if last + 1 < min(stop, size) or origin.size not in (None, size):
            raise Doubtful(f"{name}: a part of another file than the Hub names, or not the whole of it")
        return response.content, size

    def sharded_headers(self, model_id: str, index: str) -> tuple[Any, str | None]:
        """The safetensors headers of all shards, in one request (of `main`), and the commit that they are of where that is said."""
        url = f"{self.endpoint}/api/models/{model_id}/safetensors-metadata/{index}"
        response = self._get(url, HEADER_BYTES, tries=TRIES_IN_ADDITION)
        return parse(response.content, most_nodes=5 * 10**6), response.headers.get("x-repo-commit")

    def _address(self, model_id: str, sha: str, name: str) -> str:
        if not is_model_id(model_id) or not is_sha(sha):
            raise Malformed("not a model and a commit")
        return hf_hub_url(model_id, name, revision=sha, endpoint=self.endpoint)

    def _get(
        self,
        url: str,
        limit: int,
        params: dict | None = None,
        headers: dict | None = None,
        origin: Origin | None = None,
        tries: int | None = None,
    ) -> httpx2.Response:
        """An answer of 200 or 206, or of 416 to a range. Raises Refused where the Hub says no, another HubError where it was not reached."""
        response = self.answer(url, limit, params, headers, origin, tries)
        if response.status_code in (200, 206) or (response.status_code == 416 and headers):
            return response
        raise refusal(response, urlsplit(url).path[:160], "authorization" in self._headers)

    def answer(
        self,
        url: str,
        limit: int,
        params: dict | None = None,
        headers: dict | None = None,
        origin: Origin | None = None,
        tries: int | None = None,
    ) -> httpx2.Response:
        """Whatever is answered. Raises a HubError where nothing is."""
        self.traffic.sleep(0)  # who is left behind by a crawl that has ended asks no more
        extensions = {BODY_LIMIT: limit, ORIGIN: origin, TRIES: tries or self._patience.tries}
        try:
            return get_session().get(
                url, params=params, headers={**self._headers, **(headers or {})}, extensions=extensions
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # no network: it leads nowhere, in a circle or elsewhere than to a server
            raise Doubtful(f"{urlsplit(url).path[:160]}: {type(error).__name__}") from error

    def _cached(self, model_id: str, sha: str, name: str) -> Path | None:
        """No part of the path is anybody's text."""
        if self._cache is None:
            return None
        key = hashlib.sha256(f"{model_id}\n{sha}\n{name}".encode()).hexdigest()
        return self._cache / key[:2] / f"{key}.json"


def _object(content: bytes, name: str) -> dict[str, Any]:
    try:
        value = parse(content)
    except Malformed as problem:
        raise Malformed(f"{name}: {problem}") from None
    if not isinstance(value, dict):
        raise Malformed(f"{name} is no object")
    return value
