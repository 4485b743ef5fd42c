"""A fault that passes rejects nobody: only what is shown to be the Hub's own word settles anything, and only that is kept."""

from __future__ import annotations

import gzip
import hashlib
import json
import re

import pytest

from tests.fake_hub.models import LLAMA, config, gguf, plain, safetensors
from tests.hub.test_crawl_headers import ASKED, llama, single

HEAD = safetensors(llama())


def answers(status, body=b"", **headers):
    return lambda handler: handler.reply(status, body, **headers)


def own_head(handler, body):
    """A body that is not the file, behind the head that the Hub gives the file."""
    name = "config.json"
    handler.reply(200, body, ETag=f'"{"0" * 40}"', X_Repo_Commit=plain("org/bad")["sha"], Content_Disposition=name)


PASSING = {
    "a sign-in page": answers(200, b"<html>Sign in</html>", Content_Type="text/html"),
    "a body cut off": lambda handler: own_head(handler, config()[:-20]),
    "a body cut off without a head": answers(200, config()[:-20]),
    "another's JSON": answers(200, b'{"error": "blocked by policy"}', Content_Type="application/json"),
    "an empty body": answers(200, b""),
    "403 of a firewall": answers(403, b"<html>Forbidden</html>"),
    "403 of a firewall in JSON": answers(403, b'{"error": "Forbidden"}'),
    "401 of a gateway": answers(401, b"<html>Who are you?</html>"),
    "404 of a gateway": answers(404, b"<html>Not found</html>"),
    "404 of a gateway in JSON": answers(404, b'{"error": "Not found"}'),
    "418": answers(418),
    "451": answers(451),
    "an oversized answer": answers(200, b"x" * 5_000_000),
    "an oversized answer that unpacks": answers(200, gzip.compress(b" " * 9_000_000), Content_Encoding="gzip"),
}


@pytest.fixture(params=PASSING, ids=lambda name: name.replace(" ", "-"))
def fault(request):
    return PASSING[request.param]


def while_it_lasts(case, pattern, fault):
    """The fault at every request for what the pattern names, until the list of faults is cleared."""
    case.hub.faults.append(lambda handler: bool(re.search(pattern, handler.path)) and (fault(handler), True)[1])


@pytest.mark.some(2)
def test_a_config_that_is_not_the_hubs_costs_one_crawl_and_heals_by_itself(case, fault):
    case.add("org/bad", "org/good")
    while_it_lasts(case, "org/bad/resolve", fault)
    done = case.crawl()
    assert (set(case.records()), done.is_partial) == ({"org/good"}, False)
    assert case.reasons()["org/bad"].startswith("not reached: ")
    case.hub.faults.clear()
    case.requests()
    case.crawl()
    assert case.records()["org/bad"]["config"] == dict(LLAMA)
    assert (case.reasons(), case.requests("resolve")) == ({}, 1)


@pytest.mark.some(2)
def test_a_known_model_keeps_all_that_is_known_while_the_fault_lasts(case, fault):
    case.add("org/bad", "org/good")
    case.crawl()
    before = case.records()["org/bad"]
    case.hub.models[0] = plain("org/bad", version=2)
    while_it_lasts(case, "org/bad/resolve", fault)
    case.crawl()
    assert case.records()["org/bad"] == before
    case.hub.faults.clear()
    case.crawl()
    assert case.records()["org/bad"]["revision"] == plain("org/bad", version=2)["sha"]


@pytest.mark.some(2)
def test_headers_that_are_not_the_hubs_leave_the_model_its_config_and_come_with_the_next_crawl(case, fault):
    single(case, "org/bad")
    single(case, "org/good")
    while_it_lasts(case, "org/bad/resolve.*safetensors", fault)
    case.crawl(**ASKED)
    record = case.records()["org/bad"]
    assert record["config"] and record["is_header_due"] and not record.keys() & {"header", "header_problem"}
    assert case.reasons() == {}
    case.hub.faults.clear()
    case.crawl(**ASKED)
    assert "header" in case.records()["org/bad"] and "is_header_due" not in case.records()["org/bad"]


@pytest.mark.some(2)
def test_what_was_not_the_hubs_is_never_kept_for_another_reading(case, fault):
    case.add("org/bad")
    while_it_lasts(case, "org/bad/resolve", fault)
    case.crawl()
    case.hub.faults.clear()
    case.crawl(is_again=True)
    assert case.records()["org/bad"]["config"] == dict(LLAMA)


def test_an_answer_that_was_kept_and_cannot_be_read_is_asked_for_again(case):
    case.add("org/a")
    case.crawl()
    for path in case.work.glob("answers/*/*.json"):
        path.write_bytes(b"<html>")
    case.requests()
    case.crawl(is_again=True)
    assert (case.requests("resolve"), case.reasons()) == (1, {})
    case.crawl(is_again=True)
    assert case.requests("resolve") == 0


def test_what_an_older_crawl_rejected_is_asked_for_once_more(case):
    """Crawls before the present rules took a fault of a minute for the last word."""
    case.add("org/rejected")
    single(case, "org/good")
    single(case, "org/set-aside")
    case.crawl(**ASKED)
    crawl = case.folder / "crawl"
    about = json.loads((crawl / "snapshot.json").read_text())
    del about["rules"]
    (crawl / "snapshot.json").write_text(json.dumps(about))
    lines = [json.loads(line) for line in (crawl / "model" / "o.jsonl").read_text().splitlines()]
    kept = [record for record in lines if record["model_id"] != "org/rejected"]
    kept[-1] = {key: value for key, value in kept[-1].items() if key != "header"} | {"header_problem": "status 403"}
    (crawl / "model" / "o.jsonl").write_text("".join(json.dumps(record, sort_keys=True) + "\n" for record in kept))
    sha = plain("org/rejected")["sha"]
    (crawl / "rejected.csv").write_text(
        f"model_id,revision,reason,sources\norg/rejected,{sha},config.json: HTML instead of JSON,huggingface-hub\n"
    )
    case.hub.files["org/rejected", "model.safetensors"] = HEAD
    case.requests()
    case.crawl(**ASKED)
    assert case.reasons() == {} and case.records()["org/rejected"]["config"]
    assert "header" in case.records()["org/set-aside"]
    assert case.requests("org/good") == 0
    case.crawl(**ASKED)
    assert case.requests("resolve") == 0


def test_what_the_hub_itself_says_of_a_config_is_final(case):
    """Its body is what its ETag says, so a file that is no JSON is so at this commit for ever."""
    case.hub.models = [plain("org/html"), plain("org/large"), plain("org/none"), plain("org/closed")]
    case.hub.files = {
        ("org/html", "config.json"): b"<html>",
        ("org/large", "config.json"): b'{"a": "' + b"x" * 5_000_000 + b'"}',
    }
    case.hub.refused["org/closed"] = (403, "", "Access to this resource is disabled.")
    case.crawl()
    assert set(case.reasons()) == {"org/html", "org/large", "org/closed"}
    assert not any("not reached" in reason for reason in case.reasons().values())
    case.requests()
    case.crawl()
    assert case.requests("resolve") == 0


def test_an_infinite_number_of_a_config_is_text_and_its_line_is_read_again(case):
    case.add("org/a")
    case.hub.files["org/a", "config.json"] = config(rope_theta="X").replace(b'"X"', b"1e999")
    case.crawl()
    assert case.records()["org/a"]["config"]["rope_theta"] == "Infinity"
    assert [record.model_id for record in case.snapshot().records] == ["org/a"] and case.reasons() == {}


def test_a_config_behind_very_many_files_of_weights_is_found(case):
    weights = tuple(f"a{i:04}.gguf" for i in range(450))
    case.hub.models.append(plain("org/a", files=("config.json", *weights)))
    case.hub.files["org/a", "config.json"] = config()
    case.hub.files |= {("org/a", name): gguf({"a": ([256, 2], 12)}) for name in weights[:1]}
    case.crawl()
    assert case.records()["org/a"]["config"] == dict(LLAMA)


def test_a_token_that_is_let_in_later_brings_the_config_of_a_gated_model(case, monkeypatch):
    case.add("org/gated", gated="manual")
    case.crawl()
    assert "config" not in case.records()["org/gated"]
    case.requests()
    case.crawl()
    assert case.requests("resolve") == 0  # without a token nothing can have changed
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    case.crawl()
    assert "config" not in case.records()["org/gated"]
    case.hub.granted = {"hf_of_a_test"}
    case.crawl()
    assert case.records()["org/gated"]["config"] == dict(LLAMA)
    case.requests()
    case.crawl()
    assert case.requests("resolve") == 0


def test_a_model_that_is_closed_with_a_new_commit_keeps_the_config_of_the_one_before(case):
    case.add("org/a")
    case.crawl()
    case.hub.models = [plain("org/a", version=2, gated="manual")]
    case.crawl()
    record = case.records()["org/a"]
    assert (record["config"], record["is_gated"]) == (dict(LLAMA), True)
    assert plain("org/a")["sha"][:12] in record["config_note"]
    before = case.stable()
    case.crawl()
    assert case.stable() == before


def test_a_crawl_that_did_not_reach_many_models_is_not_whole(case):
    """One in three is refused by something in between: never so many in a row that the Hub would be down."""
    names = [f"org/m{i:03}" for i in range(90)]
    case.add(*names)
    refuse = answers(403, b"<html>Forbidden</html>")
    case.hub.faults.append(lambda handler: any(n in handler.path for n in names[::3]) and (refuse(handler), True)[1])
    done = case.crawl(threads=1, trending_share=0)
    assert done.is_partial and done.written == 60
    assert "30 models were not reached" in done.problems[0]


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_config_in_storage_is_held_to_the_hash_that_the_hub_gives_it(case, is_whole):
    """The storage calls its copy by a hash of its own, which proves nothing either way."""
    case.add("org/a")
    body = config()
    sent = body if is_whole else body.replace(b"64", b"65")

    def stored(handler):
        if handler.path.startswith("/storage/config"):
            handler.reply(200, sent, ETag=f'"{"ab" * 32}"')
        elif "resolve" in handler.path:
            port, head = handler.server.server_port, {"X_Linked_ETag": f'"{hashlib.sha256(body).hexdigest()}"'}
            handler.reply(302, b"", Location=f"http://localhost:{port}/storage/config", **head)
        else:
            return False
        return True

    case.hub.faults.append(stored)
    case.crawl()
    assert (case.reasons() == {}) == is_whole
    assert is_whole or "not the file that the Hub says it is" in case.reasons()["org/a"]


@pytest.mark.parametrize("body", [b'{"error": "blocked"}', b"[]", b"<html>", b'{"id": "../x"}'])
def test_whatever_answers_for_a_single_model_takes_nothing_from_what_is_known(case, body):
    """Nor is the model renamed to what the answer says."""
    case.bundle({"model_id": "old/known", "sources": ["s"], "license": "mit"})
    case.add("org/a")
    while_it_lasts(case, "/api/models/old", answers(200, body, Content_Type="application/json"))
    case.crawl()
    assert case.records()["old/known"] == {"model_id": "old/known", "sources": ["s"], "license": "mit"}
    assert case.reasons()["old/known"].startswith("not reached: ")
    case.hub.faults.clear()
    case.add("old/known", pipeline_tag="translation")
    case.crawl()
    assert case.records()["old/known"]["revision"] and case.reasons() == {}
