"""Lists that fail, hang or are cut short: the crawl says that it is not whole, within a bounded number of requests and seconds."""

from __future__ import annotations

import json
import time

import pytest

from pipeline.book.schema import NOW_NAMED
from pipeline.hub.client import LEAST_PAGE_ROWS
from pipeline.hub.select import queries
from pipeline.hub.traffic import Unavailable
from pipeline.hub.transport import Patience
from tests.fake_hub.day import TODAY
from tests.fake_hub.models import config, plain
from tests.fake_hub.patience import HASTY, QUICK

LARGEST_PAGE = 64 * 2**20  # bytes: a thousand models with all names of their files
TAGS = [f"tag-{i:02}" for i in range(24)]


def lists(case, pattern="/api/models?"):
    return [path for _, path, _ in case.hub.log if pattern in path]


def by_tags(case):
    case.list("crawl", "pipeline_tag,share", *(f"{tag},{1 / len(TAGS)}" for tag in TAGS))
    for tag in TAGS:
        case.add(f"{tag}/a", f"{tag}/b", pipeline_tag=tag)


def linked(case, following, rows=None):
    """Every page of a list names as its next what `following` makes of how many were asked for."""

    def fault(handler):
        if "/api/models?" not in handler.path:
            return False
        number = len(lists(case))
        given = json.dumps(case.hub.models if rows is None else rows(number)).encode()
        handler.reply(200, given, Link=f'<{following(handler, number)}>; rel="next"')
        return True

    case.hub.faults.append(fault)


CUT_SHORT = {
    "another host": (lambda handler, number: "http://127.0.0.2:9/api/models?cursor=2", None, 1),
    "another port": (lambda handler, number: "http://127.0.0.1:9/api/models?cursor=2", None, 1),
    "another scheme": (
        lambda handler, number: handler.server.hub.url.replace("http", "https") + "/api/models",
        None,
        1,
    ),
    "itself": (lambda handler, number: f"{handler.server.hub.url}{handler.path}", None, 1),
    "the same page again": (lambda handler, number: f"{handler.server.hub.url}/api/models?c={number}", None, 3),
    "empty pages": (
        lambda handler, number: f"{handler.server.hub.url}/api/models?c={number}",
        lambda number: [plain(f"org/m{i}") for i in range(5)] if number == 1 else [],
        3,
    ),
    "a model a page": (
        lambda handler, number: f"{handler.server.hub.url}/api/models?c={number}",
        lambda number: [plain(f"org/m{number}")],
        100,
    ),
}


@pytest.mark.some(3)
@pytest.mark.parametrize("how", CUT_SHORT)
def test_a_list_that_is_cut_short_is_a_partial_crawl_that_says_so(case, monkeypatch, how):
    monkeypatch.setenv("HF_TOKEN", "hf_secret_of_a_test")
    case.add(*(f"org/m{i}" for i in range(5)))
    following, rows, most = CUT_SHORT[how]
    linked(case, following, rows)
    done = case.crawl(trending_share=0, model_count=1000)
    assert done.is_partial and case.snapshot().origin == "partial crawl"
    assert done.written >= 4 and "cut short" in done.problems[0]
    assert len(lists(case)) <= most
    assert case.hub.tokens == {"Bearer hf_secret_of_a_test"}  # and nobody else was asked


def test_a_list_of_small_pages_is_followed_for_ten_pages_beyond_the_fewest_rows_that_pages_have(case):
    linked(case, *CUT_SHORT["a model a page"][:2])
    done = case.crawl(trending_share=0, model_count=1000)
    pages = 10 + 1000 // LEAST_PAGE_ROWS
    assert len(lists(case)) == pages
    assert f"more than {pages} pages" in done.problems[0]


def test_a_list_goes_on_over_a_page_that_brings_nothing_new_again_and_again(case):
    """A listing that changes while it is read gives some models twice."""
    linked(
        case,
        lambda handler, number: f"{handler.server.hub.url}/api/models?c={number}",
        lambda number: [plain(f"org/m{number // 2}", files=())],
    )
    done = case.crawl(trending_share=0, model_count=9)
    assert (done.written, done.problems) == (5, [])


def test_a_list_that_has_all_that_is_wanted_need_not_go_on(case):
    case.add(*(f"org/m{i}" for i in range(5)))
    linked(case, lambda handler, number: "http://127.0.0.2:9/api/models?cursor=2")
    assert not case.crawl(trending_share=0, model_count=5).is_partial


def test_the_third_list_that_fails_in_a_row_is_the_last_that_is_asked_for(case):
    by_tags(case)
    case.hub.faults.append(lambda handler: len(lists(case)) > 1 and not handler.reply(502, b""))
    done = case.crawl(trending_share=0, threads=1)
    assert len(lists(case)) == 1 + 3 * 3  # at three tries each
    assert [problem.partition(" by ")[0] for problem in done.problems[:-1]] == [f"list {tag}" for tag in TAGS[1:4]]
    assert done.problems[-1] == "20 more lists were not read for that"


def test_lists_that_fail_in_a_row_end_the_lists_and_what_was_listed_is_read(case):
    by_tags(case)
    first = []

    def down(handler):
        if "/api/models?" not in handler.path or not first:
            first.append(handler.path)
            return False
        handler.reply(502, b"<html>Bad Gateway</html>")
        return True

    case.hub.faults.append(down)
    done = case.crawl(trending_share=0, threads=4)
    assert done.is_partial and done.written == 2
    assert len(lists(case)) <= 1 + 3 * (3 + 4)  # three lists in a row, and those under way, at three tries each
    assert "more lists were not read" in " ".join(done.problems)
    case.hub.faults.clear()
    assert case.crawl(trending_share=0).written == 48


def test_a_page_as_large_as_pages_may_be_is_read(case):
    case.add("org/a")
    page = json.dumps(case.hub.models).encode().ljust(LARGEST_PAGE)
    case.hub.faults.append(lambda handler: "/api/models?" in handler.path and not handler.reply(200, page))
    assert (case.crawl(trending_share=0, model_count=1).written, case.requests("/api/models?")) == (1, 1)


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (b"[" + b"[" * 59 + b"]" * 59 + b"]", ""),
        (b"[" + b"[" * 60 + b"]" * 60 + b"]", "unreadable: nested deeper than 60"),
        (b"[" + b"," * (3 * 10**6 - 1), "unreadable: not JSON"),
        (b"[" + b"," * (3 * 10**6), "unreadable: more than 3,000,000 values"),
    ],
    ids=["deep", "deeper", "long", "longer"],
)
def test_a_page_that_is_deeper_or_longer_than_any_costs_itself_and_the_next_one_is_read(case, page, why):
    case.add("org/a")

    def fault(handler):
        if "/api/models?" not in handler.path or "cursor" in handler.path:
            return False
        handler.reply(200, page, Link=f'<{case.hub.url}{handler.path}&cursor=0>; rel="next"')
        return True

    case.hub.faults.append(fault)
    done = case.crawl(trending_share=0)
    assert done.written == 1
    assert why in "".join(done.problems) and done.is_partial == bool(why)


@pytest.mark.some(2)
@pytest.mark.parametrize("how", ["504", "too large", "too slow"])
def test_a_list_whose_pages_are_too_heavy_is_read_in_smaller_ones(case, how):
    case.add(*(f"org/m{i:03}" for i in range(150)))

    def heavy(handler):
        if "limit=1000" not in handler.path and "limit=500" not in handler.path:
            return False
        if how == "too slow":
            handler.server.stopping.wait(2)
        handler.reply(504) if how == "504" else handler.reply(200, b"[]".ljust(LARGEST_PAGE + 1))
        return True

    case.hub.faults.append(heavy)
    done = case.crawl(trending_share=0, patience=HASTY if how == "too slow" else QUICK)
    assert (done.written, done.is_partial) == (150, False)


def test_a_tag_without_a_share_has_no_list_and_one_with_the_smallest_has(case):
    case.list("crawl", "pipeline_tag,share", "tag-00,0.5", "tag-01,0.5", "tag-02,0")
    for tag in TAGS[:3]:
        case.add(f"{tag}/a", f"{tag}/b", pipeline_tag=tag)
    few = {"trending_share": 0, "model_count": 2}
    assert [tag for tag, *_ in queries(case.settings(**few))] == ["tag-00", "tag-01"]
    case.crawl(**few)
    assert set(case.records()) == {"tag-00/a", "tag-01/a"} and len(lists(case)) == 2


def test_one_list_that_fails_costs_that_list(case):
    by_tags(case)
    case.hub.faults.append(lambda handler: "tag-03" in handler.path and (handler.reply(502), True)[1])
    done = case.crawl(trending_share=0)
    assert done.written == 46 and len(done.problems) == 1 and "list tag-03 by downloads" in done.problems[0]


def test_a_hub_that_accepts_and_never_answers_is_given_up_soon(case):
    """However many tries are left: nothing was answered for as long as the patience with silence is."""
    by_tags(case)
    case.hub.faults.append(lambda handler: handler.server.stopping.wait(30) or True)
    started = time.monotonic()
    with pytest.raises(Unavailable, match="no request was answered for"):
        case.crawl(patience=Patience(tries=6, first_wait=0.01, read=0.5, silence=1))
    assert time.monotonic() - started < 5
    assert Patience().read * 2 + 1 < 60 and Patience().silence < 2 * Patience().read + 1  # the second try is the last


def test_a_hub_that_stops_to_answer_while_models_are_read_ends_the_crawl_soon(case):
    case.add(*(f"org/m{i:02}" for i in range(40)))
    read = []

    def hang(handler):
        if "resolve" in handler.path:
            read.append(handler.path)
        return len(read) > 20 and (handler.server.stopping.wait(30) or True)

    case.hub.faults.append(hang)
    started = time.monotonic()
    done = case.crawl(trending_share=0, patience=Patience(tries=6, first_wait=0.01, read=0.5, silence=1))
    assert time.monotonic() - started < 8
    assert done.is_partial and 5 <= done.written < 20 and "no request was answered" in done.problems[0]


@pytest.mark.full
def test_a_server_that_drips_holds_a_try_no_longer_than_one_that_is_silent(case):
    case.add("org/a")

    def drip(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        try:
            while not handler.server.stopping.wait(0.05):
                handler.wfile.write(b" ")
                handler.wfile.flush()
        except OSError:
            pass
        handler.close_connection = True
        return True

    case.hub.faults.append(drip)
    started = time.monotonic()
    with pytest.raises(Unavailable):
        case.crawl(patience=Patience(tries=2, first_wait=0.01, read=0.3, whole=60, silence=9))
    assert time.monotonic() - started < 5


def test_lists_are_read_side_by_side_and_taken_in_their_order(case):
    by_tags(case)
    case.add("org/twice", pipeline_tag="tag-05")
    case.hub.models[-1]["tags"] = ["license:mit"]
    busy, most = [0], [0]

    def slow(handler):
        if "/api/models?" in handler.path:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
            time.sleep(0.1)
            busy[0] -= 1
        return False

    case.hub.faults.append(slow)
    case.crawl(trending_share=0, threads=6)
    assert most[0] > 2
    before = case.stable()
    case.crawl(trending_share=0, threads=1)
    assert case.stable() == before


def test_known_models_of_one_organisation_are_asked_for_together(case):
    """Ten single requests are one: a re-crawl costs little more than its lists."""
    names = [f"old/m{i}" for i in range(10)]
    case.bundle(*({"model_id": name, "sources": ["s"]} for name in [*names, "lone/a"]))
    case.add("org/x")
    case.add(*names, "lone/a", "old/unknown", pipeline_tag="translation")
    case.hub.models = [row for row in case.hub.models if row["id"] != "old/m3"]  # gone
    case.hub.renamed["old/m4"] = "new/m4"
    case.hub.row("old/m4")["id"] = "new/m4"
    case.hub.files["new/m4", "config.json"] = config()
    case.crawl()
    single = lists(case, "/api/models/")
    assert len(lists(case, "author=old")) == 1
    assert {path.partition("?")[0] for path in single} == {
        *(f"/api/models/{name}" for name in ("old/m3", "old/m4", "new/m4", "lone/a"))
    }
    records = case.records()
    assert records["old/m3"]["removed_at"] == TODAY and "old/unknown" not in records
    assert all(records[f"old/m{i}"]["revision"] for i in (0, 1, 2, 5, 6, 7, 8, 9))
    case.requests()
    case.crawl()
    assert len(case.hub.log) == 2  # the lists


def test_a_renamed_model_stands_once_under_its_new_name_with_all_that_is_known_of_it(case):
    shape = {"config": {"model_type": "llama"}, "config_kind": "quoted", "config_source": "s", "config_sources": ["s1"]}
    case.bundle({"model_id": "old/name", "sources": ["s0"], "quantization_hint": "AWQ-4bit", **shape})
    case.add("org/x", tags=["base_model:old/name"])
    case.hub.renamed["old/name"] = "new/name"
    case.hub.models.append(plain("new/name", files=("model.safetensors",), pipeline_tag="translation"))
    done = case.crawl()
    assert set(case.records()) == {"org/x", "new/name"} and done.renamed == 1
    assert case.reasons()["old/name"] == f"{NOW_NAMED}new/name"  # by which its old page leads to the new one
    record = case.records()["new/name"]
    assert (record["config"], record["quantization_hint"]) == (shape["config"], "AWQ-4bit")
    assert record["revision"] == plain("new/name")["sha"] and record["sources"] == ["huggingface-hub", "s0"]
    before = case.stable()
    case.requests()
    case.crawl()
    assert (case.stable(), case.requests("old/name")) == (before, 0)
    case.hub.models[-1] = plain("new/name", version=2, files=("model.safetensors",))
    case.crawl()
    assert case.records()["new/name"]["config"] == shape["config"] and "old/name" not in case.records()


def test_a_renamed_model_that_a_list_has_under_its_new_name_stands_once(case):
    case.add("old/name", "org/x")
    case.crawl()
    case.hub.models[0] = plain("new/name")
    case.hub.files["new/name", "config.json"] = config()
    case.hub.renamed["old/name"] = "new/name"
    path = case.folder / "crawl" / "popularity.csv"
    path.write_text(path.read_text().replace(TODAY, "2020-01-01"))
    case.crawl()
    assert set(case.records()) == {"org/x", "new/name"}
    case.crawl()
    assert set(case.records()) == {"org/x", "new/name"}


def test_the_second_hop_of_an_answer_is_counted_by_nobody(case):
    case.add(*(f"org/m{i}" for i in range(9)))
    done = case.crawl(trending_share=0, budget=10)
    assert (done.requests, done.is_partial, len(case.hub.hops)) == ({"api": 1, "file": 9}, False, 9)


def test_a_window_of_the_hub_is_used_at_once_and_never_beyond_its_limit(case):
    """The Hub tells whole seconds, rounded down; who takes them at their word comes too early."""
    case.list("limit", "token,api_requests,file_requests,window_seconds", "none,30,30,2", "free,30,30,2")
    case.hub.quota.limits, case.hub.quota.window = {"api": 30, "resolvers": 30}, 2
    case.add(*(f"org/m{i:02}" for i in range(50)))
    started = time.monotonic()
    done = case.crawl(trending_share=0, rates=None)
    assert done.written == 50 and not done.rejected and not done.is_partial
    assert case.hub.quota.refused == 0
    assert 2 < time.monotonic() - started < 12


def test_a_rate_that_a_person_gives_holds_whatever_the_hub_would_allow(case):
    case.add(*(f"org/m{i:02}" for i in range(14)))
    started = time.monotonic()
    case.crawl(trending_share=0, rates={"api": 300, "file": 300})  # one a second
    assert time.monotonic() - started > 4
