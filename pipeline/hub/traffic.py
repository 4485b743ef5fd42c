"""How much the crawl may ask, and how fast: a budget of requests, and a rate per kind of request that the Hub corrects.

The Hub counts requests to its API and requests for files apart, per window of five minutes, and by whether a token is
sent. Its published limits are rows of `tables/hub/limit.csv`; what its `RateLimit` headers say goes before them. Where they say what
is left of a window, that may go at once, and what comes after it waits for the next window; else requests go at an even rate.
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
LONGEST_WINDOW = 3600  # seconds; a longer one is a mistake, and the even rate holds
SURE = 1.0  # seconds that are waited longer than told: the Hub tells whole ones
HOP = "hop"  # the second request of one answer, which is counted by nobody
NAMES = {"api": "api", "resolvers": "file"}  # the Hub's names of what it counts, and ours


class Unavailable(HubError):
    """The Hub was not reached, or it failed at every try. Another crawl may find it well again."""


class Silent(Unavailable):
    """Nothing that the crawl asked was answered for so long that the Hub is down."""


class BodyTooLarge(HubError):
    """An answer is larger than anything of its kind; it was not read."""


class BudgetSpent(HubError):
    """The crawl has made as many requests as it was given."""


class Stopped(HubError):
    """The crawl was told to stop while a request waited."""


@dataclass
class _Bucket:
    """A token bucket, or a window of the Hub where it has told one; no request goes before `free_at`. Times are monotonic seconds."""

    rate: float  # requests per second
    burst: float
    tokens: float
    filled_at: float
    free_at: float = 0.0
    limit: int | None = None  # requests of a window, as the Hub tells
    left: int = 0  # of them, for us
    seconds: int = 0  # of a window
    ends_at: float = 0.0

    def take(self, now: float) -> tuple[bool, float]:
        """Whether a request may go, and after how many seconds; where it may not, it asks again then."""
        pause = max(0.0, self.free_at - now)
        if self.limit is None:
            self.tokens = min(self.burst, self.tokens + (now - self.filled_at) * self.rate)
            self.filled_at = now
            self.tokens -= 1
            return True, max(0.0, -self.tokens / self.rate, pause)
        if pause:
            return False, pause
        if now >= self.ends_at:
            self.left, self.ends_at = int(SHARE * self.limit), now + self.seconds
        if self.left < 1:
            return False, self.ends_at - now
        self.left -= 1
        return True, 0.0

    def learn(self, limit: int, seconds: int, remaining: int, reset: float, now: float) -> None:
        """What the Hub says of its window; an answer that was long under way takes nothing back."""
        left, ends_at = max(0, int(remaining - (1 - SHARE) * limit)), now + reset + SURE
        is_next = self.limit != limit or ends_at > self.ends_at + 2 * SURE
        self.left = left if is_next else min(left, self.left)
        self.rate, self.limit, self.seconds = SHARE * limit / seconds, limit, seconds
        self.ends_at = ends_at if is_next else min(ends_at, self.ends_at)


class Traffic:
    """Shared by all threads of one crawl. `rates`: requests per window of `window` seconds by kind, `api` and `file`.

    Where it is not `learning`, the rates hold whatever limit the Hub states; it may still ask for a pause.
    """

    def __init__(
        self, rates: Mapping[str, float], window: float = 300, budget: int | None = None, learning: bool = True
    ):
        now = time.monotonic()
        self._is_learning = learning
        self.budget = budget
        self.asked: Counter[str] = Counter()  # requests by kind, retries included
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._unheard_since: float | None = None
        self._buckets = {kind: _bucket(SHARE * limit / window, now) for kind, limit in rates.items()}

    @property
    def request_count(self) -> int:
        return sum(self.asked.values())

    def told(self) -> str:
        """How much was asked and how much may still be, for people."""
        with self._lock:
            now = time.monotonic()
            parts = [f"{self.request_count:,} requests"]
            for kind, bucket in self._buckets.items():
                wait = max(bucket.free_at, bucket.ends_at if bucket.limit and bucket.left < 1 else 0.0) - now
                if wait > 2:
                    parts.append(f"{kind} quota spent for {wait:.0f} s")
                elif bucket.limit and bucket.ends_at > now:
                    parts.append(f"{kind} quota {bucket.left:,} of {bucket.limit:,}")
        return ", ".join(parts)

    def seconds_until(self, kind: str, count: int) -> float:
        """How long the Hub's windows make so many requests wait from now on; what they take besides is not counted."""
        with self._lock:
            bucket, now = self._buckets.get(kind), time.monotonic()
            if bucket is None:
                return 0.0
            if bucket.limit is None:
                return max(0.0, count - bucket.tokens) / bucket.rate
            beyond = count - (bucket.left if now < bucket.ends_at else 0)
            if beyond <= 0:
                return 0.0
            return max(0.0, bucket.ends_at - now) + (beyond - 1) // max(1, int(SHARE * bucket.limit)) * bucket.seconds

    def seconds_for(self, kind: str, count: int) -> float:
        """How long so many requests take at the rate that is known now."""
        bucket = self._buckets.get(kind)
        return max(0.0, count - bucket.burst) / bucket.rate if bucket else 0.0

    def admit(self, kind: str) -> None:
        """Waits until a request of this kind may go. Raises BudgetSpent or Stopped."""
        if kind == HOP:
            return self.sleep(0)
        is_free = False
        while not is_free:
            with self._lock:
                if self.budget is not None and self.request_count >= self.budget:
                    raise BudgetSpent(f"the budget of {self.budget} requests is spent")
                bucket = self._buckets.get(kind)
                is_free, seconds = bucket.take(time.monotonic()) if bucket else (True, 0.0)
                self.asked[kind] += is_free
            self.sleep(seconds)
        return None

    def heard(self) -> None:
        """Something was answered."""
        with self._lock:
            self._unheard_since = None

    def seconds_unheard(self, started: float) -> float:
        """How long nothing has been answered, now that a request failed that went out at `started`; 0 where the Hub asks to wait."""
        with self._lock:
            now = time.monotonic()
            if any(bucket.free_at > now for bucket in self._buckets.values()):
                return 0.0
            if self._unheard_since is None:
                self._unheard_since = started
            return now - self._unheard_since

    def pause(self, kind: str, seconds: float) -> None:
        """No request of this kind goes out for so long, whichever thread makes it."""
        with self._lock:
            bucket = self._buckets.get(kind)
            if bucket:
                bucket.free_at = max(bucket.free_at, time.monotonic() + min(seconds, LONGEST_PAUSE))

    def learn(self, kind: str, headers: Mapping[str, str]) -> None:
        """Takes over the limit that the Hub states, and pauses where it says that nothing is left."""
        told = parse_ratelimit_headers(headers)
        if told is None:
            return
        kind = NAMES.get(told.resource_type, kind)
        bucket = self._buckets.get(kind)
        limit, seconds = told.limit or 0, told.window_seconds or 0
        is_sane = 0 < limit <= 10**6 and 0 < seconds <= LONGEST_WINDOW and told.reset_in_seconds <= seconds
        if bucket and is_sane and self._is_learning:
            with self._lock:
                bucket.learn(limit, seconds, told.remaining, told.reset_in_seconds, time.monotonic())
        if told.remaining == 0:
            self.pause(kind, told.reset_in_seconds + SURE)

    def sleep(self, seconds: float) -> None:
        """Sleeps unless the crawl is stopped meanwhile. Raises Stopped."""
        if (self._stop.wait(seconds) if seconds > 0 else self._stop.is_set()) or self._stop.is_set():
            raise Stopped("the crawl was stopped")

    def stop(self) -> None:
        self._stop.set()


def _bucket(rate: float, now: float) -> _Bucket:
    burst = max(1.0, rate * 10)  # ten seconds' worth at once
    return _Bucket(rate, burst, burst, now)
