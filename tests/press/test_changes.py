"""What changed since the last release: which models, by how much, why, and that nothing is told without a release to compare with."""

import csv
import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.press import changes, digest
from pipeline.press.digest import Digest
from pipeline.render.data import tables as tables_module
from pipeline.render.environment import environment
from pipeline.render.pages import news
from tests.render.tiny_tables import GIB, build

VERSIONS = {"data_version": "2026-01-02-abc", "schema_version": "1.0.0", "snapshot_date": "2026-01-02"}
BASIS = VERSIONS | {
    "formulas": {"weights/weight.sql": "a"},
    "facts": {"constant.csv": "a"},
    "constants": {"gap": 0.1},
    "engines": {"vllm": "1"},
    "capacities": {"small": 10 * GIB, "large": 20 * GIB},
    "refusals": {},
}
BEFORE = Digest(
    {"a/One": ("r1", "x"), "b/Two": ("r1", "y")}, {"a/One": {"inference bf16 vllm": (9 * GIB, 0.05)}}, BASIS
)
numbers = st.dictionaries(
    st.sampled_from(["p q r", "s t u"]), st.tuples(st.integers(1, 2**45), st.sampled_from([0.03, 0.2]))
)


def only(summary):
    (model,) = summary["models"]
    return model


def moved(total, models=None, basis=None):
    after = replace(
        BEFORE,
        models=models or BEFORE.models,
        numbers={"a/One": {"inference bf16 vllm": (total, 0.05)}},
        basis=BASIS | (basis or {}),
    )
    return changes.compare(BEFORE, after)


def test_equal_releases_differ_in_nothing():
    summary, rows = changes.compare(BEFORE, BEFORE)
    assert summary["models"] == [] and summary["underneath"] == {} and rows == []


def test_a_number_that_moved_is_told_with_its_verdicts():
    summary, rows = moved(18 * GIB, basis={"formulas": {"weights/weight.sql": "b"}})
    model = only(summary)
    assert model["most"] == 1.0 and model["where"] == ("inference bf16 vllm", 9 * GIB, 18 * GIB)
    assert model["examples"] == [("inference bf16 vllm", "small", "fits", "no")] and model["why"] == ["formula"]
    assert rows == [("a/One", "inference bf16 vllm", 9 * GIB, 18 * GIB)]


@pytest.mark.parametrize(
    ("facts", "basis", "why"),
    [
        (("r2", "z"), {}, ["new revision on the Hub"]),
        (("r1", "z"), {}, ["its anatomy is read otherwise"]),
        (("r1", "x"), {"constants": {"gap": 0.2}, "facts": {"constant.csv": "b"}}, ["fact"]),
        (("r1", "x"), {"schema_version": "2.0.0"}, ["schema"]),
        (("r1", "x"), {}, ["code"]),
    ],
)
def test_a_change_has_its_reason(facts, basis, why):
    summary, _rows = moved(8 * GIB, {"a/One": facts, "b/Two": ("r1", "y")}, basis)
    assert only(summary)["why"] == why


def test_a_card_that_gives_less_changes_verdicts_without_numbers():
    summary, rows = moved(9 * GIB, basis={"capacities": {"small": 8 * GIB, "large": 20 * GIB}})
    assert only(summary)["why"] == ["capacity of a card"] and only(summary)["verdicts"] == 1 and rows == []


def test_what_a_card_runs_is_compared_too():
    refused = {"refusals": {"inference bf16 vllm": {"small": "no"}}}
    summary, rows = moved(9 * GIB, basis=refused)
    assert only(summary)["examples"] == [("inference bf16 vllm", "small", "fits", "won’t run")] and rows == []
    assert only(summary)["why"] == ["what a card runs"]
    assert summary["underneath"]["support"] == ["inference bf16 vllm: no longer on 1"]
    both = refused | {"capacities": {"small": 10 * GIB, "large": 8 * GIB}}
    assert only(moved(9 * GIB, basis=both)[0])["why"] == ["capacity of a card", "what a card runs"]
    old = replace(BEFORE, basis={k: v for k, v in BASIS.items() if k != "refusals"})  # kept before refusals were
    assert changes.compare(old, replace(BEFORE, basis=BASIS | refused))[0]["models"] == []


def test_cards_that_come_and_go_are_told():
    summary, _rows = moved(9 * GIB, basis={"capacities": {"small": 10 * GIB, "new": 30 * GIB}})
    assert summary["added_gpus"] == ["new"] and summary["removed_gpus"] == ["large"]
    assert summary["models"] == [] and "capacities" not in summary["underneath"]


def test_what_becomes_known_or_unknown_is_no_percentage():
    summary, rows = changes.compare(BEFORE, replace(BEFORE, numbers={"b/Two": {"lora bf16 transformers": (GIB, 0.2)}}))
    one, two = sorted(summary["models"], key=lambda m: m["model_id"])
    assert (one["unknown"], two["known"], one["most"], two["most"]) == (1, 1, None, None)
    assert rows == [("a/One", "inference bf16 vllm", 9 * GIB, None), ("b/Two", "lora bf16 transformers", None, GIB)]


@given(st.dictionaries(st.sampled_from(["a/A", "b/B", 'c/"<,']), numbers))
def test_a_digest_comes_back_as_it_was_kept(tmp_path_factory, cells):
    kept = Digest(dict.fromkeys(cells, ("r", "h")), {m: c for m, c in cells.items() if c}, BASIS)
    folder = tmp_path_factory.mktemp("digest")
    digest.write(kept, folder)
    assert digest.read(folder) == kept


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return build(tmp_path_factory.mktemp("tables"))


def page_of(book, found):
    """The page of changes, with links to tables by their name alone."""
    env = environment(book)
    env.globals["table_link"] = lambda name: name
    return env.get_template("changes.html").render(**found)


def test_without_a_release_the_page_says_so(tables, tmp_path):
    changes.write(tables, tmp_path, VERSIONS, tmp_path / "release")
    assert json.loads((tables / "changes.json").read_text()) == {"since": None}
    book = tables_module.read(tables)
    text = page_of(book, news.page(book, {}))
    assert "first release" in text


def test_a_kept_release_is_compared_with(tables, tmp_path):
    changes.write(tables, tmp_path, VERSIONS, tmp_path / "release")
    changes.keep(tables, tmp_path / "release")
    footprint = pl.read_parquet(tables / "footprint.parquet")
    more = pl.when(pl.col("model_id") == "acme/Alpha-7B-Instruct").then(2 * pl.col("total_bytes"))
    footprint.with_columns(more.otherwise(pl.col("total_bytes")).alias("total_bytes")).write_parquet(
        tables / "footprint.parquet"
    )
    refused = pl.read_parquet(tables / "runs_on.parquet")
    refused.with_columns(runs=pl.col("runs") & (pl.col("gpu_id") != "l40s")).write_parquet(tables / "runs_on.parquet")
    changes.write(tables, tmp_path, VERSIONS | {"schema_version": "2.0.0"}, tmp_path / "release")
    book = tables_module.read(tables)
    for gpu in book["gpu"]:
        gpu["short"] = gpu["name"]
    found = news.page(book, {"acme/Alpha-7B-Instruct": "acme/Alpha"})
    assert found["models"][0]["name"] == "acme/Alpha-7B-Instruct"
    text = page_of(book, found)
    assert "+100 %" in text and "../models/acme/Alpha/" in text and "schema" in text
    assert "l40s: fits → won’t run" in text.lower() and "What cards run" in text
    with (tables / "changes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 10 and all(int(r["new_bytes"]) == 2 * int(r["old_bytes"]) for r in rows)


def test_nothing_is_kept_of_a_folder_without_a_build(tmp_path):
    with pytest.raises(FileNotFoundError, match="make publish"):
        changes.keep(tmp_path, tmp_path / "release")
