"""The models that tests name are read among themselves as among all of the snapshot: what `make test` asks of them it could ask of the whole book."""

from __future__ import annotations

import polars as pl
import pytest

from tests.named import named as named_ids

pytestmark = pytest.mark.full
# in words another may be named, of several that lend one shape the first that is there
WORDS = {"anatomy_note", "config_source", "sources", "anatomy_grade"}
OTHERWISE = {"Xenova/bge-m3"}  # a head of 1,025 elements that only another copy has


def _rows(frames: dict[str, pl.DataFrame], name: str, ids: list[str]) -> set[tuple]:
    rows = frames[name].filter(pl.col("model_id").is_in(ids))
    return set(rows.select("model_id", pl.exclude("model_id", *WORDS if name == "model" else ())).rows())


def test_a_model_that_tests_name_is_read_as_among_all(named, bundled):
    """But for its words, which tell of others, and for one."""
    ids = sorted(named_ids())
    assert 300 < len(ids) < len(bundled["model"]) // 3
    for name in bundled:
        changed = {row[0] for row in _rows(named, name, ids) ^ _rows(bundled, name, ids)}
        assert changed <= OTHERWISE, name
    told = [
        frames["model"].filter(pl.col("model_id").is_in(ids)).select(sorted(WORDS)).rows()
        for frames in (named, bundled)
    ]
    assert sum(one != other for one, other in zip(*told, strict=True)) < len(ids) // 50
