"""What a crawl brings is told before the last snapshot makes room, and one that would lose many known models is kept apart."""

from __future__ import annotations

from functools import partial

import pytest

from pipeline.base.progress import quiet
from pipeline.cli import console
from pipeline.hub.crawl import Brought, crawl
from pipeline.hub.snapshot import newest_snapshot
from pipeline.press.brought import brought
from tests.fake_hub.models import LLAMA_COUNT, config, plain, row

NAMES = [f"org/m{i:02}" for i in range(40)]


def age(case):
    """All that is known was seen so long ago that each model is asked for by its name."""
    path = case.folder / "crawl" / "popularity.csv"
    names = path.read_text().splitlines()[1:]
    rows = [",".join([*line.split(",")[:3], "2020-01-01"]) for line in names]
    path.write_text("\n".join(["model_id,downloads_30d,likes,facts_as_of", *rows]) + "\n")


@pytest.mark.parametrize("status", [(404, "RepoNotFound"), (401, "")])
def test_a_crawl_that_would_lose_many_known_models_is_kept_apart_and_says_why(case, status):
    case.add(*NAMES, "org/stays")
    case.crawl()
    age(case)
    before, models = case.stable(), case.hub.models
    case.hub.models = models[-1:]
    case.hub.refused = dict.fromkeys(NAMES, status)
    done = case.crawl()
    assert "40 of 41 known models would be lost (40 since the Hub has them no more" in done.kept_apart
    assert case.stable() == before and case.snapshot().origin == "crawl"
    apart = newest_snapshot(case.work / "apart")
    assert (len(apart.records), sum(bool(r.removed_at) for r in apart.records)) == (41, 40)
    assert not (case.folder / ".crawl-next").exists()
    said = "\n".join(console._crawl_summary(done, 1.0))
    assert "kept apart" in said and "ARGS=--accept" in said
    # a person may know better; what was asked is not asked again
    case.requests()
    assert case.crawl(is_accepted=True).kept_apart == ""
    assert case.requests() == 0
    assert sum("removed_at" in record for record in case.records().values()) == 40


def test_a_hub_that_has_its_models_again_is_crawled_as_if_nothing_had_been(case):
    case.add(*NAMES)
    case.crawl()
    age(case)
    before, models = case.records(), case.hub.models
    case.hub.models, case.hub.refused = [plain("org/x")], dict.fromkeys(NAMES, (404, "RepoNotFound"))
    case.hub.files["org/x", "config.json"] = config()
    assert case.crawl().kept_apart
    case.hub.models, case.hub.refused = [*models, *case.hub.models], {}
    for path in case.work.glob("listing/*"):
        path.unlink()  # a day later
    assert case.crawl().kept_apart == ""
    assert {key: record for key, record in case.records().items() if key in before} == before


def test_a_few_models_that_are_gone_are_no_reason(case):
    case.add(*NAMES)
    case.crawl()
    age(case)
    case.hub.models = case.hub.models[3:]
    done = case.crawl()
    assert (done.removed, done.kept_apart) == (3, "")


@pytest.mark.full
def test_renamed_models_are_not_lost(case):
    case.add(*NAMES)
    case.crawl()
    age(case)
    for name in NAMES[:20]:
        new = name.replace("org/", "new/")
        case.hub.renamed[name] = new
        case.hub.row(name)["id"] = new
        case.hub.files[new, "config.json"] = config()
    done = crawl(case.settings(model_count=1), quiet, print, brought)
    assert (done.kept_apart, done.renamed, len(case.records())) == ("", 20, 40)


@pytest.mark.full
def test_the_report_says_which_grades_and_verdicts_a_crawl_changes_before_anything_is_replaced(case):
    case.add("org/same", "org/grows", "org/breaks")
    case.crawl()
    before = case.stable()
    case.hub.models[1] = plain("org/grows", version=2, safetensors=None)
    case.hub.files["org/grows", "config.json"] = config(num_hidden_layers=40, hidden_size=8192, intermediate_size=28672)
    case.hub.models[2] = plain("org/breaks", version=2)
    case.hub.files["org/breaks", "config.json"] = config(num_hidden_layers=9)
    case.add("org/new")
    told = []

    def compare(old, new):
        assert case.stable() == before  # the last snapshot is in its place still
        told.append(brought(old, new))
        return told[0]

    done = crawl(case.settings(), quiet, print, compare)
    said = "\n".join(done.brought)
    assert said.startswith("grades: ") and "unknown won 1 and lost 0 (1 models are new)" in said
    assert told[0].lost == {"org/breaks": "nothing would be known of their shape any more"}
    assert "org/grows, inference bf16 on " in said and "fits → no" in said
    assert "org/same" not in said
    rows = (case.work / "flipped.csv").read_text().splitlines()
    assert rows[0] == "model_id,scenario,gpu_id,before,now" and len(rows) == 1 + len(told[0].flipped) > 100
    assert all(row.startswith("org/grows,") for row in rows[1:])
    assert case.records()["org/grows"]["config"]["num_hidden_layers"] == 40


def test_a_crawl_after_which_less_would_be_known_is_kept_apart(case):
    """Not one model is gone, but their configs no longer give the totals that the Hub lists."""
    case.add(*NAMES)
    case.crawl()
    before = case.stable()
    case.hub.models = [plain(name, version=2) for name in NAMES]
    for name in NAMES:
        case.hub.files[name, "config.json"] = config(num_hidden_layers=9)
    done = crawl(case.settings(), quiet, print, partial(brought))
    assert (
        "40 of 40 known models would be lost (40 since nothing would be known of their shape any more"
        in done.kept_apart
    )
    assert case.stable() == before


def test_an_unchanged_hub_is_told_at_once(case):
    case.add("org/a")
    case.crawl()
    done = crawl(case.settings(), quiet, print, brought)
    assert done.brought == ["no fact of any model has changed"]


def test_every_known_fact_that_the_hub_does_not_contradict_stays(case):
    """A Hub that lists no totals, and refuses every file: what was read before is what is known."""
    case.add("org/a")
    case.crawl()
    record = case.records()["org/a"]
    for version in (1, 2):
        case.hub.models = [row("org/a", version=version, files=("config.json",), gated="manual")]
        case.crawl()
        now = case.records()["org/a"]
        assert now["config"] == record["config"]
        if version == 1:
            assert now["stored_parameter_count"] == LLAMA_COUNT
    assert Brought().lost == {}
