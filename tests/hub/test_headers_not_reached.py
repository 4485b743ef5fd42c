"""Headers that cannot be had cost headers alone: the model keeps its config, the crawl goes on, and the next one asks again."""

from __future__ import annotations

import json

import pytest

from tests.fake_hub.models import LLAMA, config, row, safetensors
from tests.hub.test_crawl_headers import ASKED, INDEX, SHARDS, llama, sharded, single, together
from tests.hub.test_passing_faults import answers, while_it_lasts

HEAD = safetensors(llama())


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "fault",
    [
        answers(200, HEAD),
        answers(206, HEAD),
        answers(206, HEAD[:100], Content_Range=f"bytes 0-{len(HEAD) - 1}/{len(HEAD)}"),
        answers(206, HEAD[:100], Content_Range=f"bytes 0-99/{len(HEAD)}"),
        answers(206, HEAD[8:], Content_Range=f"bytes 8-{len(HEAD) - 1}/{len(HEAD)}"),
        answers(206, HEAD, Content_Range=f"bytes 0-{len(HEAD) - 1}/{len(HEAD) + 1000}"),
        answers(403, b"<Error><Code>SlowDown</Code></Error>"),
    ],
    ids=["the whole", "no range", "less than told", "less than asked", "another part", "another size", "refused"],
)
def test_a_part_counts_only_where_the_storage_says_of_which_bytes_it_is(case, fault):
    single(case, "org/bad")
    while_it_lasts(case, "^/storage/", fault)
    case.crawl(**ASKED)
    record = case.records()["org/bad"]
    assert record["is_header_due"] and "header_problem" not in record
    case.hub.faults.clear()
    case.crawl(**ASKED)
    assert len(case.records()["org/bad"]["header"]["tensors"]) == 12


def test_an_empty_file_of_weights_is_a_reason_for_good(case):
    single(case, "org/bad", b"")
    case.crawl(**ASKED)
    assert "too short" in case.records()["org/bad"]["header_problem"]
    case.requests()
    case.crawl(**ASKED)
    assert case.requests("resolve") == 0


def test_all_shards_at_once_that_fails_falls_back_to_shards(case):
    sharded(case, "org/a")
    while_it_lasts(case, "safetensors-metadata", answers(504))
    case.crawl(**ASKED)
    assert len(case.records()["org/a"]["header"]["tensors"]) == 12
    assert case.hub.asked("safetensors-metadata") == 2


@pytest.mark.parametrize(
    "fault", [answers(200, b"<html>"), answers(200, b"[]"), answers(403), answers(200, b"x" * 70_000_000)]
)
def test_all_shards_at_once_that_is_no_such_thing_falls_back_to_shards(case, fault):
    sharded(case, "org/a")
    while_it_lasts(case, "safetensors-metadata", fault)
    case.crawl(**ASKED)
    assert "header" in case.records()["org/a"]


def test_all_shards_at_once_are_read_where_their_headers_are_no_larger_than_those_of_any_model(case):
    for model_id, size in (("org/largest", 64 * 2**20), ("org/larger", 64 * 2**20 + 1)):
        sharded(case, model_id)
        body = json.dumps({"headers": together(case, model_id)}).encode()
        case.hub.sharded[model_id] = body.ljust(size)
    case.crawl(**ASKED)
    assert [case.hub.asked(f"{model_id}/resolve.*model-") for model_id in case.hub.sharded] == [0, 2]
    assert "header" in case.records()["org/largest"] and "header" in case.records()["org/larger"]


@pytest.mark.full
def test_shards_that_fail_too_leave_sharded_models_their_configs_and_end_no_crawl(case):
    """However many they are: the next crawl asks again."""
    for i in range(25):
        sharded(case, f"org/m{i:02}")
    while_it_lasts(case, "safetensors-metadata|resolve.*safetensors", answers(504))
    done = case.crawl(**ASKED)
    assert (len(case.records()), case.reasons()) == (25, {})
    assert all(record["config"] and record["is_header_due"] for record in case.records().values())
    assert any("tensor headers of 10 models in a row" in problem for problem in done.problems)
    assert case.requests("safetensors-metadata") <= 2 * (3 + 4)  # then it is not tried any more, nor are shards
    case.hub.faults.clear()
    assert not case.crawl(**ASKED).is_partial
    assert all("header" in record for record in case.records().values())


def test_all_shards_at_once_counts_only_where_it_is_sure_to_be_of_the_commit(case):
    sharded(case, "org/a")
    sharded(case, "org/other")
    headers = together(case, "org/a")
    case.hub.sharded_says_commit = False
    case.hub.sharded["org/a"] = json.dumps({"headers": headers}).encode()
    less = {SHARDS[0]: headers[SHARDS[0]]}
    case.hub.sharded["org/other"] = json.dumps({"headers": less}).encode()
    case.crawl(**ASKED)
    assert case.hub.asked("org/a/resolve.*model-") == 0  # the elements are those of the listing
    assert case.hub.asked("org/other/resolve.*model-") == 2
    assert case.records()["org/a"]["header"] == case.records()["org/other"]["header"] | {"file": INDEX}


@pytest.mark.parametrize("kind", ["safetensors", "gguf"])
def test_a_broken_header_leaves_the_model_its_config_where_the_hub_lists_no_total_either(case, kind):
    name = f"model.{kind}"
    case.hub.models.append(row("org/a", files=("config.json", name)))
    case.hub.files = {
        ("org/a", "config.json"): config(),
        ("org/a", name): b"GGUF" + b"\0" * 40 if kind == "gguf" else b"abc",
    }
    case.crawl(**ASKED)
    record = case.records()["org/a"]
    assert record["config"] == dict(LLAMA) and record["header_problem"] and case.reasons().keys() <= {"org/a"}
    case.requests()
    case.crawl(**ASKED)
    assert case.requests("resolve") == 0


def test_a_storage_that_is_down_costs_the_headers_of_a_crawl_and_little_time(case):
    """Models without weights in between do not count as headers that came."""
    for i in range(30):
        single(case, f"org/m{i:02}")
        case.add(f"org/n{i:02}", files=("config.json",))
    while_it_lasts(case, "^/storage/", answers(503))
    done = case.crawl(threads=1, **ASKED)
    assert done.is_partial and len(case.records()) == 60 and case.reasons() == {}
    assert sum(path.startswith("/storage/") for path in case.hub.hops) == 10 * 3
    assert "tensor headers of 10 models in a row could not be had" in done.problems[0]
