"""What the browser is told of cards that do not run a scenario is what the table says."""

from __future__ import annotations

import copy
import dataclasses
import shutil
from array import array

import polars as pl
import pytest

from pipeline.render import words
from pipeline.render.data import book as books
from pipeline.render.data import tables
from pipeline.render.data.support import Refusal, Support
from tests.render.tiny_models import REFUSED
from tests.render.tiny_tables import built


@pytest.fixture(scope="module")
def book():
    return tables.read(built())


def test_every_card_is_told_as_the_table_has_it(book):
    kinds, coded = Support(book).coded
    assert len(set(kinds.values())) == 3, "Apple's card, AMD's card, and the rest"
    for row in book["runs_on"]:
        key = " ".join((row["engine_id"], row["running_id"], row["phase_id"], row["attention"]))
        for gpu_id in row["gpu_ids"]:
            code = ord(coded["runs"][key][kinds[gpu_id]]) - ord("0")
            if row["runs"]:
                assert code == 0
            else:
                assert coded["refusals"][code - 1] == [row["runs"] is False, row["how"]]
    assert len(coded["refusals"]) == len(REFUSED)


def test_a_checkpoint_as_published_runs_where_its_own_format_does(book):
    support = Support(book)
    scenario = next(s for s in book.scenarios if s.dtype_id == "stored")
    known = next(i for i, m in enumerate(book.models) if m["stored_format"])
    unknown = next(i for i, m in enumerate(book.models) if not m["stored_format"])
    assert support.format(scenario, known) == "bf16"
    assert support.refusal(scenario, support.format(scenario, known), "rtx-4090") is None
    assert support.refusal(scenario, support.format(scenario, unknown), "rtx-4090") is not None


def test_what_never_runs_is_said_where_the_total_is_unknown_too(book):
    totals, certain, untold = [books.UNKNOWN_KIB] * book.width, Refusal(True, "no kernels"), Refusal(False, "not told")
    cell = words.verdict_cell(totals, book.counts, 1, "not counted yet", certain)
    assert "won’t run" in cell and "no kernels" in cell
    cell = words.verdict_cell(totals, book.counts, 1, "not counted yet", untold)
    assert ">unknown<" in cell and "not counted yet" in cell


def test_contexts_of_a_few_models_are_no_question_for_all(book):
    numbers = copy.copy(book.array)
    for place, scenario in enumerate(book.scenarios):
        if scenario.context_tokens == 512:
            for model in range(len(book.models)):
                at = (model * len(book.scenarios) + place) * book.width
                numbers[at : at + book.width] = array("f", [books.UNKNOWN_KIB] * book.width)
    few = dataclasses.replace(book, array=numbers)
    everywhere = book.axis({"inference"}, "context_tokens")
    assert book.common_contexts({"inference"}) == everywhere
    assert few.common_contexts({"inference"}) == [c for c in everywhere if c != 512]


def test_models_that_share_their_totals_are_told_as_they_are_alone(tmp_path, monkeypatch):
    folder = shutil.copytree(built(), tmp_path / "tables")
    rows = pl.read_parquet(folder / "footprint.parquet")
    first, second = sorted(rows["model_id"].unique())[:2]
    copied = rows.filter(model_id=first).with_columns(model_id=pl.lit(second))
    pl.concat([rows.filter(pl.col("model_id") != second), copied]).write_parquet(folder / "footprint.parquet")
    alone = tables.read(folder)
    monkeypatch.setattr(tables, "contents", lambda _database: {first: "the same", second: "the same"})
    shared, models = tables.read(folder), range(len(alone.models))
    assert len(shared.array) == len(alone.array) - len(alone.scenarios) * alone.width
    assert list(map(bytes, shared.model_rows(models))) == list(map(bytes, alone.model_rows(models)))
    for place, scenario in enumerate(alone.scenarios):
        assert all(shared.totals(n, place) == alone.totals(n, place) for n in models), scenario
    for name in ("scenarios", "counts", "counts_of", "reasons"):
        assert getattr(shared, name) == getattr(alone, name)
    assert shared.common_contexts({"inference"}) == alone.common_contexts({"inference"})
