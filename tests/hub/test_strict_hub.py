"""What the Hub refuses: fields that lists do not know, repositories that are gone to whoever sends no token, tokens that it does not know.

The stand-in is held to the library that speaks to the real one (huggingface_hub), and the crawl to the stand-in.
"""

from __future__ import annotations

import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

from pipeline.cli import console
from pipeline.hub.client import Refused
from pipeline.hub.listing import EXPAND, EXPAND_ONE
from pipeline.hub.traffic import Unavailable
from tests.fake_hub.day import TODAY
from tests.fake_hub.models import config, plain
from tests.fake_hub.words import LISTED, ONE, UNKNOWN_TOKEN


def asked_for(case, pattern="api/models"):
    return [path for _, path, _ in case.hub.log if pattern in path]


def age(case):
    """All that is known was seen so long ago that each model is asked for by its name."""
    path = case.folder / "crawl" / "popularity.csv"
    path.write_text(path.read_text().replace(TODAY, "2020-01-01"))


def test_lists_are_asked_for_fields_that_the_hub_gives_in_lists(case):
    case.add("org/a")
    assert case.crawl(trending_share=1).problems == []
    asked = asked_for(case)
    assert len(asked) == 2 and not any("usedStorage" in path for path in asked)
    assert set(EXPAND) <= set(LISTED) and set(EXPAND_ONE) <= set(ONE)


def test_the_size_of_a_repository_comes_from_where_the_hub_tells_it(case):
    case.list("include", "model_id,kind,reason,named_in", "wanted/one,test,for a test,nowhere")
    case.add("org/a")
    case.add("wanted/one", pipeline_tag="translation")
    case.crawl()
    assert case.records()["wanted/one"]["storage_bytes"] == case.hub.row("wanted/one")["usedStorage"]
    assert "storage_bytes" not in case.records()["org/a"]


@pytest.mark.parametrize("field", ["usedStorage", "baseModels", "childrenModelCount", "nonsense"])
def test_the_stand_in_refuses_the_client_what_the_hub_refuses(case, field):
    case.add("org/a")
    api = HfApi(endpoint=case.hub.url, token=False)
    with pytest.raises(HfHubHTTPError, match="Invalid option: expected one of") as refused:
        list(api.list_models(pipeline_tag="text-generation", expand=["sha", field]))
    assert refused.value.response.status_code == 400 and "at expand[1]" in refused.value.server_message
    assert [model.id for model in api.list_models(pipeline_tag="text-generation", expand=["sha"])] == ["org/a"]
    if field == "usedStorage":
        assert api.model_info("org/a", expand=["sha", field]).used_storage > 0


@pytest.mark.parametrize(
    ("token", "status", "code"), [(False, 401, None), ("hf_known", 404, "RepoNotFound"), ("hf_revoked", 401, None)]
)
def test_the_stand_in_says_gone_as_the_hub_does(case, token, status, code):
    case.hub.unknown_tokens = {"hf_revoked"}
    with pytest.raises(HfHubHTTPError) as refused:
        HfApi(endpoint=case.hub.url, token=token).model_info("org/none")
    answer = refused.value.response
    assert (answer.status_code, answer.headers.get("x-error-code")) == (status, code)


@pytest.mark.some(5)
@pytest.mark.parametrize("field", sorted(set(EXPAND) - {"sha", "siblings"}))
def test_a_field_that_the_hub_gives_no_more_costs_that_field_alone(case, field):
    case.add("org/a", "org/b")
    case.hub.listed_fields.remove(field)
    done = case.crawl(trending_share=1)
    assert (done.written, done.rejected, done.problems, done.is_partial) == (2, 0, [], False)
    assert all("config" in record for record in case.records().values())
    assert len(asked_for(case, "/api/models?")) == 3  # refused once, and not asked for again
    said = "\n".join(console._crawl_summary(done, 1.0))
    assert f"refuses the fields {field}" in said and "Invalid option: expected one of" in said


def test_a_list_without_what_every_model_needs_is_no_list_and_the_hub_says_why(case):
    case.add("org/a")
    case.crawl()
    before = case.stable()
    case.hub.listed_fields.remove("siblings")
    with pytest.raises(Unavailable, match=r"status 400: Invalid option: expected one of .* at expand\[\d+\]"):
        case.crawl()
    assert case.stable() == before


def test_a_400_about_something_else_is_told_in_the_hubs_words(case):
    case.add("org/a")
    case.hub.faults.append(lambda handler: handler.refuse(400, said="Invalid sort parameter") or True)
    with pytest.raises(Unavailable, match="status 400: Invalid sort parameter"):
        case.crawl()
    assert len(case.hub.log) == 2  # one for each list: there is nothing to try again without


def test_models_that_are_gone_are_marked_without_a_token_too_and_make_room_for_others(case):
    """The Hub tells it by 401 alone. A model that stayed the one unseen for longest would be asked for again each time."""
    case.add(*(f"gone/m{i}" for i in range(3)), *(f"here/m{i}" for i in range(3)))
    case.crawl()
    age(case)
    case.hub.models = [plain(f"here/m{i}", version=2, pipeline_tag="translation") for i in range(3)] + [plain("org/x")]
    case.hub.files["org/x", "config.json"] = config()
    first = case.crawl(recheck_count=3, trending_share=0)
    assert first.removed == 3
    assert [case.records()[f"gone/m{i}"].get("removed_at") for i in range(3)] == [TODAY] * 3
    assert case.snapshot().rejected == ()
    case.requests()
    case.crawl(recheck_count=3, trending_share=0)
    assert case.requests("gone/") == 0
    changed = [case.records()[f"here/m{i}"]["revision"] for i in range(3)]
    assert changed == [plain(f"here/m{i}", version=2)["sha"] for i in range(3)]


def test_a_model_that_vanishes_after_the_list_was_read_is_marked_without_a_token_too(case):
    case.add("org/known", "org/stays")
    case.crawl()
    case.hub.models[0] = plain("org/known", version=2)
    case.hub.refused["org/known"] = (401, "")
    assert case.crawl().removed == 1
    assert case.records()["org/known"]["removed_at"] == TODAY


def test_a_token_that_the_hub_does_not_know_marks_nothing_as_gone(case, monkeypatch):
    case.add("org/known")
    case.crawl()
    before = case.stable()
    age(case)
    monkeypatch.setenv("HF_TOKEN", "hf_revoked")
    case.hub.unknown_tokens = {"hf_revoked"}
    with pytest.raises(Unavailable, match="status 401: Invalid credentials in Authorization header"):
        case.crawl()
    assert case.stable() == before


def test_a_token_that_is_revoked_after_the_lists_were_read_marks_nothing_as_gone(case, monkeypatch):
    """With a token 401 is about the token, whatever was asked for."""
    case.add("org/known", "org/stays")
    case.crawl()
    age(case)
    case.hub.models.pop(0)
    monkeypatch.setenv("HF_TOKEN", "hf_revoked")
    case.hub.faults.append(
        lambda handler: "org/known" in handler.path and (handler.refuse(401, said=UNKNOWN_TOKEN) or True)
    )
    assert case.crawl().removed == 0
    assert "removed_at" not in case.records()["org/known"]


def test_a_401_of_something_in_between_marks_nothing_as_gone(case):
    case.add("org/known", "org/stays")
    case.crawl()
    age(case)
    case.hub.models.pop(0)

    def gateway(handler):
        if "org/known" in handler.path:
            handler.reply(401, b"<html>Sign in to the network</html>")
            return True
        return False

    case.hub.faults.append(gateway)
    assert case.crawl().removed == 0
    assert "removed_at" not in case.records()["org/known"]
    assert "status 401" in case.reasons()["org/known"]


def test_refusals_keep_their_code_and_words():
    refusal = Refused(401, "GatedRepo", "/a", "Access is restricted")
    assert str(refusal) == "/a: status 401 (GatedRepo)" and not refusal.is_gone
    assert str(Refused(400, "", "/a", "No such field")) == "/a: status 400: No such field"
