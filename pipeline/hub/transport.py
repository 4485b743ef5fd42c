"""The one way out to the Hub: every request of huggingface_hub's client goes through this transport.

It keeps to the rate, counts the budget, tries again what may be better the next time (429 with `RateLimit`, or
`Retry-After` in seconds or as a date; 408, 5xx; timeouts, resets, bodies that end early), and reads no more of an answer
than its kind may have. Bodies are read here, since a connection that breaks in mid-body is as much worth another try as
one that is refused.
"""

from __future__ import annotations

import datetime
import email.utils
import random
import time
from dataclasses import dataclass

import httpx2
from huggingface_hub.utils import parse_ratelimit_headers

from pipeline.hub.answers import ORIGIN
from pipeline.hub.traffic import HOP, LONGEST_PAUSE, SURE, BodyTooLarge, Silent, Traffic, Unavailable

AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524})
BODY_LIMIT = "body_limit"  # request extension: the most bytes that the decoded body may have
TRIES = "tries"  # request extension: how often it is tried at most
LARGEST_BODY = 8 * 2**20
SLOWEST = 1000  # bytes per second, of an answer that has taken longer than the patience with silence


@dataclass(frozen=True)
class Patience:
    """How long to bear with the Hub. Times are in seconds."""

    tries: int = 6
    first_wait: float = 1.0
    longest_wait: float = 30.0  # between tries where no header names a time
    connect: float = 5.0
    read: float = 20.0  # without a byte
    whole: float = 120.0  # for a whole answer
    silence: float = 40.0  # in which every request fails, before the Hub is taken to be down


class Transport(httpx2.BaseTransport):
    def __init__(self, inner: httpx2.BaseTransport, traffic: Traffic, patience: Patience, host: str):
        self._inner, self._traffic, self._patience, self._host = inner, traffic, patience, host

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer with its body read. Raises Unavailable, BodyTooLarge, BudgetSpent or Stopped."""
        kind = self._kind(request)
        what = f"{request.method} {request.url.path[:120]}"
        tries = request.extensions.get(TRIES, self._patience.tries)
        problem = ""
        for attempt in range(tries):
            self._traffic.admit(kind)
            wait = self._backoff(attempt)
            started = time.monotonic()
            try:
                response = self._ask(request)
            except (httpx2.TimeoutException, httpx2.NetworkError, httpx2.ProtocolError, httpx2.DecodingError) as error:
                problem = f"{type(error).__name__} ({str(error)[:120]})"
            else:
                self._traffic.learn(kind, response.headers)
                if response.status_code not in AGAIN:
                    self._traffic.heard()
                    return response
                problem = f"status {response.status_code}"
                told = told_to_wait(response.headers)
                wait = wait if told is None else told + SURE
                if response.status_code == 429:
                    self._traffic.heard()
                    self._traffic.pause(kind, wait)  # the whole crawl was too fast, not this thread
            if (seconds := self._traffic.seconds_unheard(started)) > self._patience.silence:
                raise Silent(f"{what}: {problem}, and no request was answered for {seconds:.0f} s")
            if attempt + 1 < tries:
                self._traffic.sleep(wait)
        raise Unavailable(f"{what}: {problem}, at each of {tries} tries")

    def close(self) -> None:
        self._inner.close()

    def _kind(self, request: httpx2.Request) -> str:
        """What the Hub counts the request as. The storage that files are redirected to counts none; that the hop to the cache of small
        files counts is in no source, and its answers name no limit."""
        if request.url.host != self._host:
            return "storage"
        path = request.url.path
        return HOP if path.startswith("/api/resolve-cache/") else "api" if path.startswith("/api/") else "file"

    def _ask(self, request: httpx2.Request) -> httpx2.Response:
        deadline = time.monotonic() + self._patience.whole
        response = self._inner.handle_request(request)
        response.request = request
        try:
            origin = request.extensions.get(ORIGIN)
            if origin is not None and request.url.host == self._host:
                origin.note(response.headers)
            body = b"" if request.method == "HEAD" else self._read(request, response, deadline)
        finally:
            response.close()
        # the body is decoded, so that its headers must not say otherwise
        left = {"content-encoding", "content-length", "transfer-encoding"}
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in left]
        return httpx2.Response(
            response.status_code,
            headers=headers,
            content=body,
            request=request,
            extensions=dict(response.extensions),
        )

    def _read(self, request: httpx2.Request, response: httpx2.Response, deadline: float) -> bytes:
        """The decoded body. Counted after decoding, chunk by chunk, since a small answer may unpack to a huge one. A server that drips
        holds no thread for long."""
        limit = request.extensions.get(BODY_LIMIT, LARGEST_BODY)
        told = response.headers.get("content-length", "")
        if told.isdigit() and int(told) > limit:
            raise BodyTooLarge(f"an answer of {int(told):,} bytes, where {limit:,} are the most")
        started = time.monotonic()
        chunks, size = [], 0
        for chunk in response.iter_bytes():
            size += len(chunk)
            if size > limit:
                raise BodyTooLarge(f"an answer of more than {limit:,} bytes")
            now = time.monotonic()
            if now > deadline or (now - started > self._patience.read and size < SLOWEST * (now - started)):
                raise httpx2.ReadTimeout("the answer does not end", request=request)
            chunks.append(chunk)
        return b"".join(chunks)

    def _backoff(self, attempt: int) -> float:
        wait = min(self._patience.first_wait * 2**attempt, self._patience.longest_wait)
        return wait * random.uniform(0.8, 1.2)  # threads that failed together do not come back together


def told_to_wait(headers: httpx2.Headers) -> float | None:
    """Seconds that an answer asks to wait: `RateLimit` where nothing remains, else `Retry-After` in either form."""
    told = parse_ratelimit_headers(headers)
    if told is not None and told.remaining == 0:
        return min(told.reset_in_seconds, LONGEST_PAUSE)
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:6]), LONGEST_PAUSE)
    try:
        date = email.utils.parsedate_to_datetime(text)
        if date.tzinfo is None:
            date = date.replace(tzinfo=datetime.UTC)
        left = (date - datetime.datetime.now(datetime.UTC)).total_seconds()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(left, 0.0), LONGEST_PAUSE)
