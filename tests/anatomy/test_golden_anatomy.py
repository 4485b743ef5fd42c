"""What readers make of one model of each kind, table by table (tests/golden/anatomy.csv): no number and no branch changes unseen."""

from __future__ import annotations

import polars as pl

from tests.golden import anatomy


def test_every_anatomy_is_the_one_of_the_file(bundled):
    changed = anatomy.differences(anatomy.read(), anatomy.digests(bundled))
    assert not changed, "\n".join(
        [
            f"{len(changed)} models; where that is meant, `python -m tests.golden.anatomy` writes them anew",
            *changed[:20],
        ]
    )


def test_a_number_that_changes_is_named_by_model_and_table(bundled):
    frame = bundled["model"]
    model_id = frame.filter(frame["layer_count"] > 0, pl.col("model_id").is_in(list(anatomy.read())))["model_id"][0]
    changed = bundled | {
        "model": frame.with_columns(layer_count=frame["layer_count"] + (frame["model_id"] == model_id))
    }
    said = anatomy.digests(changed)
    assert said.keys() == anatomy.digests(bundled).keys()
    assert anatomy.differences(anatomy.digests(bundled), said) == [f"{model_id}: model"]
    assert anatomy.differences({"no/such": ("",)}, said) == ["no/such: is not there"]
