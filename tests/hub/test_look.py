"""`make crawl ARGS=--dry-run`: some fifty requests say whether the Hub still behaves as the crawl assumes, and what differs."""

from __future__ import annotations

import json

import pytest

from pipeline.cli import console
from pipeline.hub import look
from pipeline.hub.look import look_at_hub
from pipeline.hub.seen import DIFFERS, NOT_SEEN
from pipeline.hub.transport import Patience
from tests.fake_hub.models import config, gguf, plain, row
from tests.hub.test_crawl_headers import llama, safetensors, sharded, single, together


@pytest.fixture
def hub(case):
    """One model of each kind that is looked at, and enough of them for a second page."""
    case.list("limit", "token,api_requests,file_requests,window_seconds", "none,1000000,1000000,300", "free,1,1,300")
    single(case, "org/single")
    sharded(case, "org/sharded")
    case.hub.sharded["org/sharded"] = json.dumps({"headers": together(case, "org/sharded")}).encode()
    case.hub.models.append(row("org/gguf", files=("a-Q4_K_M.gguf",)))
    case.hub.files["org/gguf", "a-Q4_K_M.gguf"] = gguf({"a": ([256, 2], 12)})
    case.add("org/gated", gated="manual")
    case.add(*(f"org/m{i:03}" for i in range(120)))
    case.hub.renamed[look.RENAMED] = "org/single"
    return case


def seen(case, **more):
    return look_at_hub(case.settings(rates=None, **more))


def test_a_hub_as_we_assume_it_differs_in_nothing_and_is_asked_little(hub):
    found = seen(hub)
    assert [one for one in found.seen if one.verdict in (DIFFERS, NOT_SEEN)] == []
    assert len(found.seen) > 20 and found.request_count < 30
    told = "\n".join(found.lines())
    assert "what a small file costs of the limit, hop and all: 1 requests" in told


def drop(name):
    return lambda case: case.hub.listed_fields.remove(name)


def fault(pattern, act):
    return lambda case: case.hub.faults.append(lambda handler: pattern in handler.path and (act(handler), True)[1])


def without(case, *names):
    """The Hub's answers lack these headers."""
    from tests.fake_hub.server import Handler

    send = Handler.send_header

    def send_some(self, name, value):
        if name.lower() not in names:
            send(self, name, value)

    case.monkeypatch.setattr(Handler, "send_header", send_some)


DRIFTS = {
    "lists give all fields": drop("gguf"),
    "each of their fields has a value somewhere: none in likes": lambda case: [r.pop("likes") for r in case.hub.models],
    "lists refuse a field that they do not have": lambda case: case.hub.listed_fields.append("usedStorage"),
    "the limit of requests is that of limit.csv: 500 in 300 s": lambda case: case.hub.quota.limits.update(api=500),
    "every answer tells the limit": lambda case: setattr(case.hub.quota, "is_told", False),
    "lists are sorted by trend too": fault("trendingScore", lambda handler: handler.refuse(400, said="Invalid sort")),
    "an organisation's models are a list": fault("author=", lambda handler: handler.reply(200, b"[]")),
    "a single model has its size besides": fault("/api/models/org/single?", lambda handler: handler.reply(200, b"{}")),
    "is 401 without a code": fault(look.NEVER, lambda handler: handler.refuse(404, "RepoNotFound")),
    "a renamed model is one relative 307 away": lambda case: case.hub.renamed.clear(),
    "its ETag is the hash": lambda case: without(case, "etag"),
    "its commit is told": lambda case: without(case, "x-repo-commit"),
    "a file that is not there is 404": fault("there-is-no-such-file", lambda handler: handler.reply(404, b"no")),
    "refused as GatedRepo": fault("org/gated/resolve", lambda handler: handler.reply(403, b"no")),
    "a part of a file comes with its range (safetensors)": lambda case: without(case, "content-range"),
    "its size and commit are told before": lambda case: without(case, "x-linked-size"),
    "the headers of all shards come together: status 504": fault("-metadata/", lambda handler: handler.reply(404, b"")),
    "the next page of a list is at the Hub": lambda case: setattr(case.hub, "url", "http://127.0.0.2:9"),
}


@pytest.mark.parametrize("what", DRIFTS)
def test_a_hub_that_behaves_otherwise_is_told_in_a_line(hub, monkeypatch, what):
    hub.monkeypatch = monkeypatch
    settings = hub.settings(rates=None)
    DRIFTS[what](hub)
    found = look_at_hub(settings)
    differing = [line for line in found.lines() if line.strip().startswith(DIFFERS)]
    assert found.differs and any(what.partition(": status 504")[0] in line for line in differing), "\n".join(
        found.lines()
    )


def in_the_cache(path):
    return f"/api/resolve-cache/models{path.replace('/resolve', '')}"


@pytest.mark.parametrize(
    "reply",
    [
        lambda handler: handler.send_file(config()),
        lambda handler: handler.reply(302, Location=in_the_cache(handler.path)),
        lambda handler: handler.reply(307, Location="/elsewhere/config.json"),
    ],
    ids=["at once", "by another status", "elsewhere"],
)
def test_a_small_file_that_is_not_a_hop_to_the_cache_away_is_told(hub, reply):
    fault("/org/single/resolve/", reply)(hub)
    assert "  differs     a small file is a relative 307 away" in "\n".join(seen(hub).lines())


def test_a_hub_that_fails_some_of_it_is_looked_at_for_the_rest(hub):
    hub.hub.faults.append(lambda handler: "resolve" in handler.path and (handler.reply(503), True)[1])
    found = seen(hub)
    assert any(one.verdict == NOT_SEEN and "status 503" in one.answer for one in found.seen)
    assert sum(one.verdict == "as assumed" for one in found.seen) > 10


def test_a_hub_that_answers_nothing_is_asked_no_more(hub, capsys):
    hub.hub.faults.append(lambda handler: handler.server.stopping.wait(30) or True)
    patient = Patience(tries=6, first_wait=0.01, read=0.5, silence=1)
    assert console.look(hub.settings(rates=None, patience=patient)) == 3
    assert "not seen" in capsys.readouterr().out and len(hub.hub.log) <= 3


def test_a_dry_run_looks_first_and_says_what_a_crawl_would_ask_and_writes_nothing(hub, capsys):
    assert console.look(hub.settings(rates=None)) == 0
    said = capsys.readouterr().out
    assert "as assumed" in said and "would read 124 models" in said and "nothing was written" in said
    assert list(hub.folder.iterdir()) == []
    assert len(hub.hub.log) < 60
    hub.hub.listed_fields.remove("gguf")
    assert console.look(hub.settings(rates=None)) == 3
    assert "differs     lists give all fields" in capsys.readouterr().out


def test_examples_come_from_the_lists(case):
    """A Hub that has nothing of a kind is not said to differ in it."""
    case.hub.models.append(plain("org/a"))
    case.hub.files["org/a", "config.json"] = config()
    case.hub.files["org/a", "model.safetensors"] = safetensors(llama())
    told = "\n".join(seen(case).lines())
    assert "not seen    the headers of all shards come together: no list has a sharded model" in told
