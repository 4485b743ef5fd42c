"""What the first screen reads of RAM: what the table `cpu_split` has of mixtures, to the byte."""

from __future__ import annotations

import json
import types
from itertools import accumulate

import polars as pl
import pytest

from pipeline.base.failures import Failure
from pipeline.render.data import beside, window
from pipeline.render.data import tables as tables_module
from pipeline.render.pages.models import ModelPages
from tests.render.tiny_models import BLOCKS, MIXTURE
from tests.render.tiny_tables import built


@pytest.fixture(scope="module")
def listed():
    book = tables_module.read(built())
    return book, window.Window(book, ModelPages(book).paths)


def test_each_step_is_that_of_the_table(listed):
    book, window_ = listed
    (name,) = found = beside.files(book, window_)
    data, chat = json.loads(found[name]), json.loads(window_.files()["chat.json"])
    assert name == "chat-ram.json" and [chat["id"][work] for work in data["work"]] == [MIXTURE]
    table = pl.read_parquet(book.folder / "cpu_split.parquet").filter(gpu_layers=BLOCKS + 1).sort("cpu_expert_layers")
    split = data["splits"][data["split"][0]]
    seen = 0
    for (_phase, dtype, _engine), way in zip(chat["columns"], split, strict=True):
        rows = table.filter(model_id=MIXTURE, dtype_id=dtype)
        assert (way is None) == rows.is_empty()
        if way is None:
            continue
        held, brought, *runs = way
        sizes = [size for size, layers in zip(runs[::2], runs[1::2], strict=True) for _ in range(layers)]
        moved = [0, *accumulate(sizes)]
        assert rows["host_bytes"].to_list() == [held + each for each in moved]
        whole = rows["gpu_bytes"][0]
        assert rows["gpu_bytes"].to_list() == [whole - each + (brought if each else 0) for each in moved]
        seen += 1
    assert seen == 5


def test_a_release_without_the_table_has_no_such_file(listed, tmp_path):
    _, window_ = listed
    assert beside.files(types.SimpleNamespace(folder=tmp_path, models=(), constant=()), window_) == {}


def test_what_does_not_add_up_stops_the_build():
    """The card's bytes at other contexts are worked out from it."""
    assert beside._steps("a/b", [100, 95, 85], [10, 20, 30]) == [10, 5, 10, 2]
    with pytest.raises(Failure, match="a/b"):
        beside._steps("a/b", [100, 95, 84], [10, 20, 30])
