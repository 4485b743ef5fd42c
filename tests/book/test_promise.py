"""The promise: what is stable is written down, and nothing of it breaks without a version that says so."""

from __future__ import annotations

import copy
import json

import pytest

from pipeline.base.failures import Failure
from pipeline.base.readonly import reading
from pipeline.book import promise, schema
from pipeline.book.columns import COLUMNS
from pipeline.press import build
from tests import few

NOW = promise.describe()


@pytest.fixture(scope="module")
def described():
    """What a published file answers: the promise is of that, and not of the workshop that it is made in."""
    with reading(few.written() / build.DATABASE) as connection:
        return promise.describe(connection)


def test_what_is_written_down_is_what_there_is(described):
    """After a change of tables, columns or macros: `make publish promise`, and its diff belongs into the same commit."""
    written = promise.promised()
    differences = [change.what for change in promise.changes(written, described)]
    assert differences == [] and {k: v for k, v in written.items() if k != "is_released"} == described


def test_all_that_people_may_call_is_promised_and_nothing_else_is(described):
    """What the published file shows without its `internal`: the tables of the dictionary and these macros."""
    assert set(described["macros"]) == set(schema.MACROS) and len(promise.macros()) == len(schema.MACROS)
    assert set(described["tables"]) == set(schema.PUBLISHED)
    assert all(macro.get("answers") for macro in described["macros"].values())


def test_what_was_released_is_not_broken_silently(described):
    written = promise.promised()
    assert not written["is_released"] or promise.broken(written, described) == []


def changed(how):
    other = copy.deepcopy(NOW)
    how(other)
    return other


def column(table, name):
    return lambda d: d["tables"][table]["columns"][name]


@pytest.mark.parametrize(
    ("how", "least"),
    [
        (lambda d: d["tables"].pop("gpu"), "major"),
        (lambda d: d["tables"]["gpu"]["columns"].pop("name"), "major"),
        (
            lambda d: d["tables"]["gpu"]["columns"].update(title=d["tables"]["gpu"]["columns"].pop("name")),
            "major",
        ),  # renamed
        (lambda d: column("gpu", "capacity_bytes")(d).update(type="number"), "major"),
        (lambda d: column("gpu", "capacity_bytes")(d).update(unit="KiB"), "major"),
        (lambda d: column("gpu", "capacity_bytes")(d).update(meaning="0"), "major"),
        (lambda d: column("gpu", "capacity_bytes")(d).update(may_be_null=True), "major"),
        (lambda d: column("gpu", "note")(d).update(may_be_null=False), "minor"),
        (lambda d: d["tables"]["gpu"].update(key=["name"]), "major"),
        (lambda d: d["tables"].update(price={"key": [], "columns": {}}), "minor"),
        (lambda d: d["tables"]["gpu"]["columns"].update(price_usd=column("gpu", "msrp_usd")(d)), "minor"),
        (lambda d: d["values"]["verdict"].remove("tight"), "major"),
        (lambda d: d["values"]["verdict"].append("maybe"), "minor"),
        (lambda d: d["macros"].pop("fits_on"), "major"),
        (lambda d: d["macros"].update(more={"arguments": []}), "minor"),
        (lambda d: d["macros"]["fits_on"]["arguments"].pop(), "major"),
        (lambda d: d["macros"]["fits_on"]["arguments"].append(["price", "NULL"]), "minor"),
        (lambda d: d["macros"]["fits_on"]["arguments"].append(["price", None]), "major"),
        (lambda d: d["macros"]["fits_on"]["arguments"].__setitem__(5, ["sequences", "8"]), "major"),
        (lambda d: d["macros"]["fits_on"]["arguments"].insert(0, d["macros"]["fits_on"]["arguments"].pop(1)), "major"),
    ],
)
def test_each_change_needs_its_version(how, least):
    other = changed(how)
    assert promise.broken(NOW, other, frozenset())
    assert bool(promise.broken(NOW, other | {"schema_version": "1.1.0"}, frozenset())) == (least == "major")
    assert promise.broken(NOW, other | {"schema_version": "2.0.0"}, frozenset()) == []


def test_what_macros_answer_is_promised_too(described):
    other = copy.deepcopy(described)
    other["macros"]["fits_on"]["answers"]["verdict"] = "INTEGER"
    del other["macros"]["what_fits"]["answers"]["model_id"]
    assert len(promise.broken(described, other, frozenset())) == 2


def test_other_words_for_the_same_are_no_break(tmp_path):
    words = "What the card really gives to one process."
    (tmp_path / "reworded.csv").write_text(f"table,column,meaning,reason\ngpu,capacity_bytes,{words},clearer\n")
    other = changed(lambda d: column("gpu", "capacity_bytes")(d).update(meaning=promise._short(words)))
    assert promise.broken(NOW, other, promise.reworded(tmp_path / "reworded.csv")) == []
    assert promise.broken(NOW, other, frozenset())


def test_every_reworded_meaning_is_the_one_that_stands():
    for row in promise._rows(promise.REWORDED):
        assert COLUMNS.of(row["column"], row["table"]).meaning == row["meaning"] and row["reason"]


def test_a_promised_macro_that_no_file_makes_is_an_error(tmp_path):
    (tmp_path / "macro.csv").write_text("macro,meaning\nfits_on,x\nnowhere,x\n")
    with pytest.raises(Failure, match="tables/sql does not make: nowhere"):
        promise.macros(tmp_path / "macro.csv")


def test_a_promise_that_did_not_change_is_written_as_it_stands(tmp_path):
    """So that the diff of a commit is what changed."""
    written, file = promise.promised(), tmp_path / "promise.json"
    is_released = written.pop("is_released")
    assert promise.promise(written, file, is_released) == []
    assert file.read_bytes() == promise.PROMISED.read_bytes()


def test_a_promise_is_written_anew_only_where_it_is_kept(tmp_path):
    file = tmp_path / "promise.json"
    assert promise.promise(NOW, file) == [] and json.loads(file.read_text())["is_released"] is False
    without = changed(lambda d: d["tables"].pop("gpu"))
    assert promise.promise(without, file) == []  # not released yet: nobody relies on it
    assert promise.promise(NOW, file, is_release=True) == []
    before = file.read_bytes()
    assert promise.promise(without, file) == ["table gpu is gone: a major version"] and file.read_bytes() == before
    assert promise.promise(without | {"schema_version": "2.0.0"}, file) == []
    assert json.loads(file.read_text())["is_released"] is True
