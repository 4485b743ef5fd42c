"""What readers make of one model of each kind, table by table (tests/golden/anatomy.csv): no number and no branch changes unseen."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.confirm.grade import OWN_CONFIG
from tests.golden import anatomy
from tests.once import bundled_snapshot


def expected(frames):
    """Of the file what a book has: all of it, or of the models that tests name those with a config of their own, to which no other adds a word."""
    models = frames["model"]
    is_whole = len(models) == len(bundled_snapshot().records)
    there = models if is_whole else models.filter(pl.col("config_kind").is_in(OWN_CONFIG))
    rows = anatomy.read()
    return rows if is_whole else {i: rows[i] for i in there["model_id"] if i in rows}


def test_every_anatomy_is_the_one_of_the_file(anatomies):
    held = expected(anatomies)
    assert len(held) > 100
    changed = anatomy.differences(held, anatomy.digests(anatomies))
    assert not changed, "\n".join(
        [
            f"{len(changed)} models; where that is meant, `python -m tests.golden.anatomy` writes them anew",
            *changed[:20],
        ]
    )


@pytest.mark.full
def test_a_number_that_changes_is_named_by_model_and_table(named):
    frame = named["model"]
    model_id = frame.filter(frame["layer_count"] > 0, pl.col("model_id").is_in(list(anatomy.read())))["model_id"][0]
    changed = named | {"model": frame.with_columns(layer_count=frame["layer_count"] + (frame["model_id"] == model_id))}
    said = anatomy.digests(changed)
    assert said.keys() == anatomy.digests(named).keys()
    assert anatomy.differences(anatomy.digests(named), said) == [f"{model_id}: model"]
    assert anatomy.differences({"no/such": ("",)}, said) == ["no/such: is not there"]
