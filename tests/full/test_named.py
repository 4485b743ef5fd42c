"""The models that tests name are read among themselves as among all of the snapshot: what `make test` asks of them it could ask of the whole book."""

from __future__ import annotations

import polars as pl
import pytest

from tests.named import named as named_ids

pytestmark = pytest.mark.full
# in whose words another may be named: of several that lend one shape the first
WORDS = {"anatomy_note", "config_source", "sources", "anatomy_grade", "model_type", "architecture", "family"}


def _of(frames: dict[str, pl.DataFrame], name: str, ids: list[str]) -> pl.DataFrame:
    return frames[name].filter(pl.col("model_id").is_in(ids))


def test_a_model_that_tests_name_is_read_as_among_all(named, bundled):
    ids = sorted(named_ids())
    assert 300 < len(ids) < len(bundled["model"]) // 4
    for name, frame in bundled.items():
        words = WORDS if name == "model" else ()
        assert _of(named, name, ids).drop(words).equals(_of(frame, name, ids).drop(words)), name
    told = [_of(frames, "model", ids).select("model_id", *sorted(WORDS)).rows() for frames in (named, bundled)]
    assert sum(one != other for one, other in zip(*told, strict=True)) < len(ids) // 50
