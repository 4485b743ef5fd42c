"""How often the stand-in may be asked: fixed windows by kind of request, told on every answer."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

LOTS = 10**6


def kind_of(path: str) -> str | None:
    """What the Hub counts a request as; None for what it does not count."""
    path = urlsplit(path).path
    if path.startswith(("/api/resolve-cache/", "/storage/")):
        return None
    return "api" if path.startswith("/api/") else "resolvers"


@dataclass
class Quota:
    """`limits`: requests per window of `window` seconds. The seconds that are told are whole, rounded down."""

    limits: dict[str, int] = field(default_factory=lambda: {"api": LOTS, "resolvers": LOTS})
    window: int = 300
    is_told: bool = True
    refused: int = 0  # requests that came too early
    _asked: dict[str, int] = field(default_factory=dict)
    _started: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, path: str) -> bool:
        kind = kind_of(path)
        if kind is None:
            return True
        with self._lock:
            now = time.monotonic()
            if self._started is None or now >= self._started + self.window:
                self._started, self._asked = now, {}
            self._asked[kind] = self._asked.get(kind, 0) + 1
            is_allowed = self._asked[kind] <= self.limits[kind]
            self.refused += not is_allowed
            return is_allowed

    def headers(self, path: str) -> dict[str, str]:
        kind = kind_of(path)
        if kind is None or not self.is_told or self._started is None:
            return {}
        left = max(0, self.limits[kind] - self._asked.get(kind, 0))
        seconds = int(max(0.0, self._started + self.window - time.monotonic()))
        return {
            "RateLimit": f'"{kind}";r={left};t={seconds}',
            "RateLimit-Policy": f'"fixed window";"{kind}";q={self.limits[kind]};w={self.window}',
        }
