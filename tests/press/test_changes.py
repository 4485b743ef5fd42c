"""What changed since the last release: which models, by how much, why, and that nothing is told without a release to compare with."""

import csv
import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.book.packs import Packs
from pipeline.press import changes, digest
from pipeline.press.digest import Digest, Seen
from pipeline.render.data import tables as tables_module
from pipeline.render.environment import environment
from pipeline.render.pages import news
from tests.render.tiny_models import GIB
from tests.render.tiny_tables import build

VERSIONS = {"data_version": "2026-01-02-abc", "schema_version": "1.0.0", "snapshot_date": "2026-01-02"}
BASIS = VERSIONS | {
    "formulas": {"weights/weight.sql": "a"},
    "facts": {"constant.csv": "a"},
    "constants": {"gap": 0.1},
    "engines": {"vllm": "1"},
    "capacities": {"small": 10 * GIB, "large": 20 * GIB},
    "refusals": {},
    "code": {"anatomy": "a", "press": "a"},
}
ONE, TWO = Seen("r1", "x", "h"), Seen("r1", "y", "h")
BEFORE = Digest({"a/One": ONE, "b/Two": TWO}, {"a/One": {"inference bf16 vllm": (9 * GIB, 0.05)}}, BASIS)
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
    found = changes.compare(BEFORE, after)
    return found.summary, found.numbers


def test_equal_releases_differ_in_nothing():
    found = changes.compare(BEFORE, BEFORE)
    assert found.summary["models"] == [] and found.summary["underneath"] == {}
    assert found.numbers == found.verdicts == [] and found.summary["causes"] == {}


def test_a_number_that_moved_is_told_with_its_verdicts():
    summary, rows = moved(18 * GIB, basis={"formulas": {"weights/weight.sql": "b"}})
    model = only(summary)
    assert model["most"] == 1.0 and model["where"] == ("inference bf16 vllm", 9 * GIB, 18 * GIB)
    assert model["examples"] == [("inference bf16 vllm", "small", "fits", "no")] and model["why"] == ["formula"]
    assert rows == [("a/One", "inference bf16 vllm", 9 * GIB, 18 * GIB, 1.0, "formula")]
    assert summary["verdicts"] == {"fits → no": 1} and summary["numbers"] == {"changed": 1, "moved": 1}
    assert summary["causes"]["formula"] == {
        "models": 1, "numbers": 1, "moved": 1, "verdicts": 1, "among": ["formula: weights/weight.sql"],
    }  # fmt: skip


def test_a_number_within_a_hundredth_is_changed_and_has_not_moved():
    summary, rows = moved(9 * GIB + GIB // 20, basis={"constants": {"gap": 0.2}})
    assert summary["numbers"] == {"changed": 1, "moved": 0} and len(rows) == 1


@pytest.mark.parametrize(
    ("one", "basis", "cause", "among"),
    [
        (Seen("r2", "z", "i"), {}, "snapshot", ["snapshot: commit r1 → r2"]),
        (Seen("r1", "z", "i"), {}, "snapshot", ["snapshot: another record of it"]),
        (Seen("r1", "z", "h"), {"code": {"anatomy": "b", "press": "a"}}, "reader", ["reader: anatomy"]),
        (Seen("r1", "z", "h"), {"facts": {"checkpoint_gap.csv": "b", "constant.csv": "a"}}, "fact", ["fact: checkpoint_gap.csv"]),
        (ONE, {"constants": {"gap": 0.2}, "facts": {"constant.csv": "b"}}, "constant", ["constant: gap 0.1 → 0.2"]),
        (ONE, {"facts": {"constant.csv": "b", "dtype.csv": "c"}}, "fact", ["fact: dtype.csv"]),
        (ONE, {"code": {"anatomy": "a", "press": "b"}}, "code", ["code: press"]),
        # several of them: nobody can say which
        (
            Seen("r2", "z", "i"), {"constants": {"gap": 0.2}}, "not told apart",
            ["snapshot: commit r1 → r2", "constant: gap 0.1 → 0.2"],
        ),
        (
            Seen("r1", "z", "i"), {"code": {"anatomy": "b", "press": "a"}}, "not told apart",
            ["snapshot: another record of it", "reader: anatomy"],
        ),
        # nothing of which a fingerprint is kept
        (ONE, {}, "not told apart", []),
        # a new name in facts that decide no number, and a reader that gives the same anatomy, are no cause
        (ONE, {"facts": {"gpu.csv": "b", "constant.csv": "a"}, "code": {"anatomy": "b", "press": "a"}}, "not told apart", []),
        # the record is new and what was read from it is not
        (Seen("r2", "x", "i"), {"constants": {"gap": 0.2}}, "constant", ["constant: gap 0.1 → 0.2"]),
    ],
)  # fmt: skip
def test_a_change_has_its_cause_and_no_guess(one, basis, cause, among):
    summary, rows = moved(8 * GIB, {"a/One": one, "b/Two": TWO}, basis)
    model = only(summary)
    assert (model["cause"], model["among"]) == (cause, among) and rows[0][-1] == cause


def test_a_shape_that_is_a_relatives_may_have_moved_with_it():
    summary, _rows = moved(8 * GIB, {"a/One": Seen("r1", "z", "h"), "b/Two": Seen("r1", "y", "other")})
    assert only(summary)["among"] == ["snapshot: the record of a relative"] and only(summary)["cause"] == "snapshot"


def test_of_a_digest_from_before_fingerprints_of_code_nothing_is_known_of_the_code():
    old = replace(
        BEFORE,
        models={"a/One": Seen("r1", "x"), "b/Two": Seen("r1", "y")},
        basis={k: v for k, v in BASIS.items() if k != "code"},
    )
    after = replace(
        BEFORE, numbers={"a/One": {"inference bf16 vllm": (8 * GIB, 0.05)}}, basis=BASIS | {"constants": {"gap": 0.2}}
    )
    assert only(changes.compare(old, after).summary)["cause"] == "not told apart"


def test_a_card_that_gives_less_changes_verdicts_without_numbers():
    summary, rows = moved(9 * GIB, basis={"capacities": {"small": 8 * GIB, "large": 20 * GIB}})
    assert only(summary)["why"] == ["capacity of a card"] and only(summary)["verdicts"] == 1 and rows == []


def test_a_verdict_has_the_cause_that_flips_it_alone():
    """The number moved and so did the card: each is tried with all else as it was."""

    def flip(total, capacity):
        after = replace(
            BEFORE,
            numbers={"a/One": {"inference bf16 vllm": (total, 0.05)}},
            basis=BASIS | {"constants": {"gap": 0.2}, "capacities": {"small": capacity, "large": 20 * GIB}},
        )
        ((*_, cause),) = changes.compare(BEFORE, after).verdicts
        return cause

    assert flip(18 * GIB, 10 * GIB - 1) == "constant"
    assert flip(9 * GIB + 1, 5 * GIB) == "card"
    assert flip(18 * GIB, 5 * GIB) == "not told apart"
    assert flip(int(9.4 * GIB), int(9.6 * GIB)) == "not told apart"  # neither alone, both together


def test_what_a_card_runs_is_compared_too():
    refused = {"refusals": {"inference bf16 vllm": {"small": "no"}}}
    summary, rows = moved(9 * GIB, basis=refused)
    assert only(summary)["examples"] == [("inference bf16 vllm", "small", "fits", "won’t run")] and rows == []
    assert only(summary)["why"] == ["what a card runs"]
    assert summary["underneath"]["support"] == ["inference bf16 vllm: no longer on 1"]
    both = refused | {"capacities": {"small": 10 * GIB, "large": 8 * GIB}}
    assert set(only(moved(9 * GIB, basis=both)[0])["why"]) == {
        "not told apart",
        "capacity of a card",
        "what a card runs",
    }
    old = replace(BEFORE, basis={k: v for k, v in BASIS.items() if k != "refusals"})  # kept before refusals were
    assert changes.compare(old, replace(BEFORE, basis=BASIS | refused)).summary["models"] == []


def test_a_share_that_a_number_moved_by_is_told_in_millionths():
    """Whoever diffs two releases sees no noise of floats."""
    model = only(moved(10 * GIB)[0])
    assert (model["most"], model["least"]) == (0.111111, 0.111111)


def test_cards_that_come_and_go_are_told():
    summary, _rows = moved(9 * GIB, basis={"capacities": {"small": 10 * GIB, "new": 30 * GIB}})
    assert summary["added_gpus"] == ["new"] and summary["removed_gpus"] == ["large"]
    assert summary["models"] == [] and "capacities" not in summary["underneath"]


def test_what_becomes_known_or_unknown_is_no_percentage():
    found = changes.compare(BEFORE, replace(BEFORE, numbers={"b/Two": {"lora bf16 transformers": (GIB, 0.2)}}))
    one, two = sorted(found.summary["models"], key=lambda m: m["model_id"])
    assert (one["unknown"], two["known"], one["most"], two["most"]) == (1, 1, None, None)
    assert [row[:5] for row in found.numbers] == [
        ("a/One", "inference bf16 vllm", 9 * GIB, None, None),
        ("b/Two", "lora bf16 transformers", None, GIB, None),
    ]
    assert (found.summary["newly_known"], found.summary["withdrawn"]) == (["b/Two"], ["a/One"])


def test_no_value_of_a_constant_makes_a_number_unknown():
    after = replace(
        BEFORE,
        numbers={},
        models={"a/One": Seen("r1", "z", "i"), "b/Two": TWO},
        basis=BASIS | {"constants": {"gap": 0.2}},
    )
    assert only(changes.compare(BEFORE, after).summary)["cause"] == "snapshot"
    gone = replace(after, basis=BASIS | {"constants": {}})
    assert only(changes.compare(BEFORE, gone).summary)["cause"] == "not told apart"


@given(st.dictionaries(st.sampled_from(["a/A", "b/B", 'c/"<,']), numbers))
def test_a_digest_comes_back_as_it_was_kept(tmp_path_factory, cells):
    kept = Digest(dict.fromkeys(cells, Seen("r", "h", "k")), {m: c for m, c in cells.items() if c}, BASIS)
    folder = tmp_path_factory.mktemp("digest")
    digest.write(kept, folder)
    assert digest.read(folder) == kept


def test_a_digest_from_before_records_were_kept_is_read(tmp_path):
    (tmp_path / "digest.csv").write_text("model_id,revision,anatomy,p q r\na/One,r1,x,5 0.1\n")
    (tmp_path / "digest.json").write_text(json.dumps(BASIS))
    found = digest.read(tmp_path)
    assert found.models == {"a/One": Seen("r1", "x", "")} and found.numbers == {"a/One": {"p q r": (5, 0.1)}}


@pytest.mark.full
def test_what_cannot_move_a_number_is_in_no_hash(tmp_path):
    for folder, sql, fact, code in (
        ("one", "-- of old\nSELECT 1", "a,note\n1,read here\n", '"""Old."""\nx = 1\n'),
        ("two", "SELECT  1 -- of new", "a,note\n1,read there\n", "x = 1  # new\n"),
        ("three", "SELECT 2", "a,note\n2,read here\n", "x = 2\n"),
    ):
        for name, text in (("sql/a.sql", sql), ("facts/b.csv", fact), ("pipeline/anatomy/c.py", code)):
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).write_text(text)
    tables = build(tmp_path / "tables")
    one, two, three = (
        digest.take(tables, tmp_path / name, VERSIONS, code=tmp_path / name).basis for name in ("one", "two", "three")
    )
    assert one == two
    assert {kind for kind in one if one[kind] != three[kind]} == {"formulas", "facts", "code"}


def test_a_digest_is_kept_whole_or_not_at_all(tmp_path, monkeypatch):
    digest.keep(BEFORE, tmp_path / "release")
    monkeypatch.setattr(
        digest.json, "dumps", lambda *_a, **_k: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space"):
        digest.keep(replace(BEFORE, models={}), tmp_path / "release")
    monkeypatch.undo()
    assert digest.last(tmp_path / "release") == BEFORE
    (tmp_path / "release").rename(
        tmp_path / ".release-previous"
    )  # stopped between two renames, where there is no exchange
    assert digest.last(tmp_path / "release") == BEFORE


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return build(tmp_path_factory.mktemp("tables"))


def page_of(book, found):
    """The page of changes, with links to tables by their name alone."""
    env = environment(book)
    env.globals["table_link"] = lambda name: name
    return env.get_template("changes.html").render(**found)


@pytest.mark.full
def test_without_a_release_the_page_says_so(tables, tmp_path):
    changes.write(tables, tmp_path, VERSIONS, tmp_path / "release")
    assert json.loads((tables / "changes.json").read_text()) == {"since": None}
    book = tables_module.read(tables)
    text = page_of(book, news.page(book, {}))
    assert "first release" in text


@pytest.mark.full
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
    assert "not told apart" in text and "changed_verdicts.csv" in text and "by more than 1 %" in text
    assert "l40s: fits → won’t run" in text.lower() and "What cards run" in text
    with (tables / "changes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 10 and all(int(r["new_bytes"]) == 2 * int(r["old_bytes"]) for r in rows)


def test_the_page_says_what_was_published_although_a_gate_refused_it_and_who_is_known_now(tables):
    book = tables_module.read(tables)
    summary = changes.compare(
        BEFORE, replace(BEFORE, numbers={"b/Two": {"lora bf16 transformers": (GIB, 0.2)}})
    ).summary
    (tables / "changes.json").write_text(json.dumps(summary))
    changes.accept(tables, {"reason": "<b>sold out</b>", "gates": ["rows: fell from 3 to 2"]})
    text = page_of(book, news.page(book, {}))
    assert "&lt;b&gt;sold out" in text and "rows: fell from 3 to 2" in text
    assert "Newly known" in text and "b/Two" in text and "Withdrawn" in text and "a/One" in text


def test_nothing_is_kept_of_a_folder_without_a_build(tmp_path):
    with pytest.raises(FileNotFoundError, match="make publish"):
        changes.keep(tmp_path, tmp_path / "release")


def test_what_is_kept_of_formulas_and_code_is_asked_again_of_others_alone(tmp_path):
    asked = []

    def ask(of: str, packs: Packs | None) -> dict:
        return digest._kept(packs, "promise", of, lambda: asked.append(of) or {"of": of, "kinds": ["BIGINT"]})

    told = [ask(of, Packs(tmp_path)) for of in ("one", "one", "another", "one")]
    assert told == [ask(of, None) for of in ("one", "one", "another", "one")]
    assert asked == ["one", "another", *("one", "one", "another", "one")]
