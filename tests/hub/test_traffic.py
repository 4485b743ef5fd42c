"""Politeness: the rate, what the Hub's headers say about it, and the budget."""

from __future__ import annotations

import datetime
import email.utils
import threading
import time
from types import SimpleNamespace

import httpx2
import pytest

from pipeline.hub.reading import Reading
from pipeline.hub.traffic import LONGEST_PAUSE, SHARE, BudgetSpent, Stopped, Traffic, Unavailable
from pipeline.hub.transport import Patience, Transport, told_to_wait


def in_seconds(seconds):
    return email.utils.format_datetime(
        datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds), usegmt=True
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 7 "}, 7),
        ({"retry-after": 200}, 200),
        ({"retry-after": -50}, 0),
        ({"retry-after": "99999999999999999999"}, LONGEST_PAUSE),
        ({"retry-after": 10**8}, LONGEST_PAUSE),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "Wed, 99 Foo 2015 07:28:00 GMT"}, None),
        ({"ratelimit": '"api";r=0;t=55'}, 55),
        ({"ratelimit": '"api";r=0;t=55', "retry-after": "3"}, 55),
        ({"ratelimit": '"api";r=9;t=55', "retry-after": "3"}, 3),
        ({"ratelimit": "nonsense"}, None),
        ({}, None),
    ],
)
def test_what_an_answer_asks_to_wait(headers, seconds):
    # a number stands for a date so many seconds from when the test runs
    dated = {name: in_seconds(value) if isinstance(value, int) else value for name, value in headers.items()}
    told = told_to_wait(httpx2.Headers(dated))
    assert told == (pytest.approx(seconds, abs=60) if seconds == 200 else seconds)


def test_requests_of_one_kind_keep_to_its_rate_over_all_threads():
    traffic = Traffic({"api": 20, "file": 1e9}, window=1)  # 18 a second, ten seconds' worth at once
    started = time.monotonic()
    for _ in range(180):
        traffic.admit("api")
    assert time.monotonic() - started < 0.5
    threads = [threading.Thread(target=traffic.admit, args=("api",)) for _ in range(6)]
    for thread in threads:
        thread.start()
    traffic.admit("file")
    assert time.monotonic() - started < 0.5
    for thread in threads:
        thread.join()
    assert 0.2 < time.monotonic() - started < 1.5
    assert traffic.asked == {"api": 186, "file": 1}


def test_a_pause_holds_one_kind_of_request_and_no_other():
    traffic = Traffic({"api": 1e9, "file": 1e9})
    traffic.learn("api", {"ratelimit": '"api";r=0;t=1'})
    started = time.monotonic()
    traffic.admit("file")
    assert time.monotonic() - started < 0.5
    traffic.admit("api")
    assert time.monotonic() - started > 0.9


def test_the_limit_that_the_hub_states_goes_before_ours():
    traffic = Traffic({"api": 500})
    assert traffic.seconds_for("api", 1000) > 600
    traffic.learn("api", {"ratelimit": '"api";r=499;t=300', "ratelimit-policy": '"fixed window";"api";q=30000;w=300'})
    assert traffic.seconds_for("api", 1000) < 20
    for nonsense in ('"fixed window";"api";q=0;w=300', '"api";q=999999999999;w=1', '"api";q=5;w=0'):
        traffic.learn("api", {"ratelimit": '"api";r=1;t=300', "ratelimit-policy": nonsense})
    assert traffic.seconds_for("api", 1000) < 20


def test_how_long_requests_wait_for_windows_that_the_hub_states():
    traffic = Traffic({"api": 500})
    traffic.learn("api", {"ratelimit": '"api";r=1000;t=100', "ratelimit-policy": '"fixed window";"api";q=1000;w=300'})
    left, window = int(SHARE * 1000), 300
    assert traffic.seconds_until("api", left) == 0.0
    first, last, next_first = (traffic.seconds_until("api", count) for count in (left + 1, 2 * left, 2 * left + 1))
    assert 99 < first < 110 and abs(first - last) < 1
    assert abs(next_first - first - window) < 1
    assert traffic.seconds_until("elsewhere", 10**6) == 0.0


def test_all_that_is_left_of_a_window_goes_at_once_and_the_next_one_whole(monkeypatch):
    traffic, now = Traffic({"api": 500}), 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    traffic.learn("api", {"ratelimit": '"api";r=50;t=100', "ratelimit-policy": '"fixed window";"api";q=100;w=300'})
    waits = []

    def sleep(seconds):
        nonlocal now
        if seconds:
            waits.append((traffic.asked["api"], seconds))
            now += seconds

    monkeypatch.setattr(traffic, "sleep", sleep)
    for _ in range(131):
        traffic.admit("api")
    # a tenth of each window is for others; a second more than told, as the Hub tells whole ones
    assert waits == [(40, 101), (130, 300)]


def test_the_budget_is_never_passed():
    traffic = Traffic({"api": 1e9}, budget=50)
    spent = []

    def ask():
        try:
            for _ in range(20):
                traffic.admit("api")
        except BudgetSpent:
            spent.append(1)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (traffic.request_count, len(spent) >= 3) == (50, True)


@pytest.mark.parametrize("tries", [1, 3])
def test_between_tries_it_waits_and_not_after_the_last(tries):
    class Refusing(httpx2.BaseTransport):
        def handle_request(self, request):
            return httpx2.Response(502)

    traffic, waits = Traffic({}), []
    traffic.sleep = lambda seconds: waits.append(seconds) if seconds else None
    transport = Transport(Refusing(), traffic, Patience(tries=tries), "hub")
    with pytest.raises(Unavailable, match=f"at each of {tries} tries"):
        transport.handle_request(httpx2.Request("GET", "https://hub/a/resolve/main/b"))
    assert len(waits) == tries - 1


@pytest.mark.parametrize(
    ("rate", "seconds", "is_read"),
    [(10, 20, True), (10, 21, False), (999, 21, False), (1000, 120, True), (1000, 121, False), (50_000, 121, False)],
)
def test_an_answer_may_take_as_long_as_a_silent_one_then_has_to_come_at_a_rate_and_to_end(
    monkeypatch, rate, seconds, is_read
):
    """So many bytes a second, of an answer of so many seconds."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    class Dripping(httpx2.SyncByteStream):
        def __iter__(self):
            nonlocal now
            for _ in range(seconds):
                now += 1
                yield b" " * rate

    class Slow(httpx2.BaseTransport):
        def handle_request(self, request):
            return httpx2.Response(200, stream=Dripping())

    transport = Transport(Slow(), Traffic({}), Patience(tries=1, read=20, whole=120), "hub")
    request = httpx2.Request("GET", "https://hub/a/resolve/main/b")
    if is_read:
        assert len(transport.handle_request(request).content) == rate * seconds
    else:
        with pytest.raises(Unavailable, match="the answer does not end"):
            transport.handle_request(request)


def test_a_crawl_tells_the_minutes_that_are_left_at_the_limit():
    traffic = Traffic({"file": 500})
    traffic.asked["file"] = 120
    traffic.seconds_until = lambda kind, count: 60.0 * count
    reading = SimpleNamespace(hub=SimpleNamespace(traffic=traffic), count=20, total=70, asked_before=20)
    assert (
        Reading.told(reading) == "120 requests, about 250 min left at the Hub's limit"
    )  # five for each of fifty models
    reading.count = 19
    assert Reading.told(reading) == "120 requests"


def test_what_waits_is_woken_when_the_crawl_stops():
    traffic = Traffic({"api": 1e9})
    traffic.pause("api", 60)
    threading.Timer(0.1, traffic.stop).start()
    started = time.monotonic()
    with pytest.raises(Stopped):
        traffic.admit("api")
    assert time.monotonic() - started < 5
