"""The crawl through every fault that a script can play: nothing lost, nothing half-written, each bad model one reason."""

from __future__ import annotations

import email.utils
import re
import time

import pytest

from pipeline.hub.transport import Patience
from tests.fake_hub.patience import HASTY, QUICK

GOOD = [f"org/good-{i:02}" for i in range(12)]


def for_paths(pattern, times, act):
    """A fault for the first requests of a path."""
    left = [times]

    def fault(handler):
        if left[0] > 0 and re.search(pattern, handler.path):
            left[0] -= 1
            act(handler)
            return True
        return False

    return fault


def status(code, body=b"", **headers):
    return lambda handler: handler.reply(code, body, **headers)


def reset(handler):
    handler.reset()


def reset_in_mid_body(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[{")
    handler.reset()


def ends_early(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[{}]")
    handler.wfile.flush()
    handler.close_connection = True


def stall(handler):
    handler.server.stopping.wait(2)
    handler.close_connection = True


def drip(handler):
    """A byte now and then: never a silence long enough for a timeout of reading."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    try:
        while not handler.server.stopping.wait(0.1):
            handler.wfile.write(b" ")
            handler.wfile.flush()
    except OSError:
        pass
    handler.close_connection = True


def date_in(seconds):
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


def patience(act):
    return HASTY if act in (stall, drip) else QUICK


@pytest.mark.some(2)
@pytest.mark.parametrize("where", ["api/models", "resolve"])
@pytest.mark.parametrize(
    "act",
    [
        status(429, RateLimit='"api";r=0;t=0'),
        status(429, Retry_After="0"),
        status(429, Retry_After=date_in(-5)),
        status(429, Retry_After="soon"),
        status(429),
        status(500, b"oops"),
        status(502, b"<html>Bad Gateway</html>"),
        status(503, Retry_After="0"),
        status(504),
        status(408),
        reset,
        reset_in_mid_body,
        ends_early,
        stall,
    ],
    ids=lambda act: getattr(act, "__name__", "status"),
)
def test_a_fault_that_passes_costs_a_try_and_nothing_else(case, where, act):
    case.add(*GOOD)
    case.hub.faults.append(for_paths(where, 2, act))
    done = case.crawl(trending_share=0, threads=2, patience=patience(act))
    assert (done.read, done.rejected, done.is_partial) == (12, 0, False)
    assert sum(done.requests.values()) == 13 + 2


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (status(500), "status 500, at each of 3 tries"),
        (status(429, Retry_After="0"), "status 429, at each of 3 tries"),
        (reset, "at each of 3 tries"),
        (reset_in_mid_body, "at each of 3 tries"),
        (stall, "ReadTimeout"),
        (drip, "ReadTimeout (the answer does not end)"),
    ],
    ids=["500", "429", "reset", "mid-body", "stall", "drip"],
)
def test_a_model_that_fails_at_every_try_is_one_reason_and_asked_for_again(case, act, reason):
    case.add(*GOOD, "org/bad")
    case.hub.faults.append(for_paths("org/bad/resolve", 99, act))
    done = case.crawl(patience=patience(act))
    assert (done.read, done.written, done.rejected, done.is_partial) == (12, 12, 1, False)
    assert reason in case.reasons()["org/bad"] and "not reached" in case.reasons()["org/bad"]
    case.hub.faults.clear()
    case.crawl()
    assert case.reasons() == {}
    assert "config" in case.records()["org/bad"]


def test_a_storm_of_429_is_waited_out_by_all_threads_together(case):
    case.add(*GOOD)
    times = []

    def storm(handler):
        if "resolve" not in handler.path:
            return False
        times.append(time.monotonic())
        if times[-1] - times[0] < 0.5:
            handler.reply(
                429, b"", RateLimit='"resolvers";r=0;t=1', RateLimit_Policy='"fixed window";"resolvers";q=1000000;w=1'
            )
            return True
        return False

    case.hub.faults.append(storm)
    done = case.crawl(trending_share=0, threads=4)
    assert (done.read, done.rejected) == (12, 0)
    early = [at for at in times if at - times[0] < 0.9]
    assert len(early) <= 8  # what was under way; then a second of silence


@pytest.mark.full
def test_a_listing_that_changes_between_pages_loses_and_doubles_nothing_that_was_known(case):
    case.add(*(f"org/m{i:03}" for i in range(250)))
    case.crawl(trending_share=0)
    before = case.records()

    def shift(number):
        if number == 1:
            case.hub.models.insert(0, case.hub.models.pop())  # one row is given twice, at the seam
        if number == 2:
            del case.hub.models[0:2]  # and now two are never given

    case.hub.before_page = shift
    case.crawl(trending_share=0)
    assert case.records() == before


@pytest.mark.full
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "HTML"),
        (b"[{", "not JSON"),
        (b"{}", "no list"),
        (b"[" * 10**6, "nested too deep"),
        (b"[" + b" " * 70_000_000 + b"]", "an answer of"),
    ],
)
def test_a_page_that_cannot_be_read_leaves_a_partial_crawl_of_the_others(case, body, reason):
    case.add(*(f"org/m{i:03}" for i in range(250)))
    link = {}

    def second(handler):
        if "cursor=100" not in handler.path:
            return False
        link["Link"] = f'<{case.hub.url}{handler.path.replace("cursor=100", "cursor=200")}>; rel="next"'
        handler.reply(200, body, **link)
        return True

    case.hub.faults.append(second)
    done = case.crawl(trending_share=0)
    assert done.is_partial and any(reason in problem for problem in done.problems)
    assert done.written in (100, 150)  # too large a page ends its list, since the way on is in its header
    assert case.snapshot().origin == "partial crawl"
    case.hub.faults.clear()
    assert case.crawl(trending_share=0).written == 250


def test_a_token_is_sent_to_the_hub_and_written_nowhere(case, monkeypatch, capfd, caplog):
    monkeypatch.setenv("HF_TOKEN", "hf_secret_of_a_test")
    caplog.set_level(0)
    case.add(*GOOD, "org/bad", "org/worse")
    case.hub.refused = {"org/bad": (403, ""), "org/worse": (500, "")}
    case.crawl()
    assert case.hub.tokens == {"Bearer hf_secret_of_a_test"}
    said = capfd.readouterr()
    files = b"".join(path.read_bytes() for path in case.top.rglob("*") if path.is_file())
    assert "hf_secret" not in said.out + said.err + caplog.text
    assert b"hf_secret" not in files
    assert all("vram-almanac" in agent and "hf_hub" in agent for agent in case.hub.agents)


@pytest.mark.full
def test_a_hub_that_goes_down_in_the_middle_ends_the_crawl_early_with_what_it_gave(case):
    case.add(*(f"org/m{i:03}" for i in range(120)))
    served = []

    def down(handler):
        served.append(handler.path)
        if len(served) > 60:
            handler.reset()
            return True
        return False

    case.hub.faults.append(down)
    done = case.crawl(trending_share=0, patience=Patience(tries=2, first_wait=0.001, connect=1, read=1, whole=1))
    assert done.is_partial and 20 <= done.written < 40
    assert len(served) < 60 + 2 * 60
    case.hub.faults.clear()
    case.requests()
    again = case.crawl(trending_share=0)
    assert (again.written, again.rejected, again.is_partial) == (120, 0, False)
    assert case.requests("resolve") == 120 - done.written
