"""How much the crawl may ask, and how fast: a budget of requests, and a rate per kind of request that the Hub corrects.

The Hub counts requests to its API and requests for files apart, per window of five minutes, and by whether a token is
sent. Its published limits are rows of `tables/hub/limit.csv`; what its `RateLimit` headers say goes before them.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from huggingface_hub.utils import parse_ratelimit_headers

from pipeline.hub.errors import HubError

SHARE = 0.9  # of the Hub's limit that the crawl takes
LONGEST_PAUSE = 330  # seconds; the Hub's window is 300, so a longer wait that a header asks for is a mistake


class Unavailable(HubError):
    """The Hub was not reached, or it failed at every try. Another crawl may find it well again."""


class BodyTooLarge(HubError):
    """An answer is larger than anything of its kind; it was not read."""


class BudgetSpent(HubError):
    """The crawl has made as many requests as it was given."""


class Stopped(HubError):
    """The crawl was told to stop while a request waited."""


@dataclass
class _Bucket:
    """A token bucket; `free_at` is when a request may go that finds the bucket paused. Times are monotonic seconds."""

    rate: float  # requests per second
    burst: float
    tokens: float
    filled_at: float
    free_at: float = 0.0

    def wait(self, now: float) -> float:
        """Takes a token and says how many seconds it has to be waited for."""
        self.tokens = min(self.burst, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now
        self.tokens -= 1
        return max(0.0, -self.tokens / self.rate, self.free_at - now)


class Traffic:
    """Shared by all threads of one crawl. `rates`: requests per window of `window` seconds by kind, `api` and `file`."""

    def __init__(self, rates: Mapping[str, float], window: float = 300, budget: int | None = None):
        now = time.monotonic()
        self.budget = budget
        self.asked: Counter[str] = Counter()  # requests by kind, retries included
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._window = window
        self._buckets = {kind: _bucket(SHARE * limit / window, now) for kind, limit in rates.items()}

    @property
    def request_count(self) -> int:
        return sum(self.asked.values())

    def seconds_for(self, kind: str, count: int) -> float:
        """How long so many requests take at the rate that is known now."""
        bucket = self._buckets.get(kind)
        return max(0.0, count - bucket.burst) / bucket.rate if bucket else 0.0

    def admit(self, kind: str) -> None:
        """Waits until a request of this kind may go. Raises BudgetSpent or Stopped."""
        with self._lock:
            if self.budget is not None and self.request_count >= self.budget:
                raise BudgetSpent(f"the budget of {self.budget} requests is spent")
            self.asked[kind] += 1
            bucket = self._buckets.get(kind)
            seconds = bucket.wait(time.monotonic()) if bucket else 0.0
        self.sleep(seconds)

    def pause(self, kind: str, seconds: float) -> None:
        """No request of this kind goes out for so long, whichever thread makes it."""
        with self._lock:
            bucket = self._buckets.get(kind)
            if bucket:
                bucket.free_at = max(bucket.free_at, time.monotonic() + min(seconds, LONGEST_PAUSE))

    def learn(self, kind: str, headers: Mapping[str, str]) -> None:
        """Takes over the limit that the Hub states, and pauses where it says that nothing is left."""
        told = parse_ratelimit_headers(headers)
        if told is None or kind not in self._buckets:
            return
        if told.limit and told.window_seconds and 0 < told.limit <= 10**6 and 0 < told.window_seconds <= 86400:
            with self._lock:
                self._buckets[kind].rate = SHARE * told.limit / told.window_seconds
        if told.remaining == 0:
            self.pause(kind, told.reset_in_seconds)

    def sleep(self, seconds: float) -> None:
        """Sleeps unless the crawl is stopped meanwhile. Raises Stopped."""
        if (self._stop.wait(seconds) if seconds > 0 else self._stop.is_set()) or self._stop.is_set():
            raise Stopped("the crawl was stopped")

    def stop(self) -> None:
        self._stop.set()


def _bucket(rate: float, now: float) -> _Bucket:
    burst = max(1.0, rate * 10)  # ten seconds' worth at once
    return _Bucket(rate, burst, burst, now)
