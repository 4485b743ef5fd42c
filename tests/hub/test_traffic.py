"""Politeness: the rate, what the Hub's headers say about it, and the budget."""

from __future__ import annotations

import datetime
import email.utils
import threading
import time

import httpx2
import pytest

from pipeline.hub.traffic import LONGEST_PAUSE, BudgetSpent, Stopped, Traffic
from pipeline.hub.transport import told_to_wait


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


def test_what_waits_is_woken_when_the_crawl_stops():
    traffic = Traffic({"api": 1e9})
    traffic.pause("api", 60)
    threading.Timer(0.1, traffic.stop).start()
    started = time.monotonic()
    with pytest.raises(Stopped):
        traffic.admit("api")
    assert time.monotonic() - started < 5
