"""Shapes and weights are those that are made anew, whoever's were kept, and are made again of a model of which anything is another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import duckdb
import polars as pl
import pytest

from pipeline.base.caches import cache_folder
from pipeline.book.content import keep_contents
from pipeline.book.packs import Packs
from pipeline.press import blank, kept_shapes
from pipeline.press.anatomise import anatomise
from pipeline.press.work import work_of
from tests.once import bundled_snapshot
from tests.press.small_build import some

# whole experts, and the same of another maker, whose name says no more of them; text; an encoder with a decoder
EXPERTS, COPY = "openai/gpt-oss-20b", "unsloth/gpt-oss-20b"
FEW = {EXPERTS, COPY, "Qwen/Qwen3-0.6B", "openai/whisper-tiny"}

Frames = dict[str, pl.DataFrame]


@contextmanager
def filled(frames: Frames, packs: Packs | None) -> Iterator[duckdb.DuckDBPyConnection]:
    with blank.copied(cache_folder()) as connection:
        blank.fill(connection, frames, packs)
        yield connection


def rows_of(frames: Frames, packs: Packs | None) -> dict[str, list[str]]:
    """The rows of all tables that a file keeps."""
    with filled(frames, packs) as connection:
        keep_contents(connection)  # where nothing is kept they are asked for later
        query = "SELECT table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY 1"
        names = [name for (name,) in connection.execute(query).fetchall()]
        return {name: sorted(map(repr, connection.execute(f'FROM "{name}"').fetchall())) for name in names}


def frames_of(snapshot) -> Frames:
    found = anatomise(snapshot)
    return found | {"work": work_of(found["model"])}


def without(frames: Frames, name: str) -> Frames:
    return {table: frame.filter(pl.col("model_id") != name) for table, frame in frames.items()}


@pytest.fixture(scope="module")
def frames() -> Frames:
    snapshot = bundled_snapshot()
    found = frames_of(replace(snapshot, records=tuple(r for r in snapshot.records if r.model_id in FEW), rejected=()))
    assert set(found["model"]["model_id"]) == FEW
    return found


def is_made(monkeypatch, frames: Frames, packs: Packs) -> list[str]:
    """Whose shapes are made."""
    asked: list[str] = []
    made = kept_shapes._made

    def seen(connection, names, make, models):
        asked.extend(models)
        return made(connection, names, make, models)

    with monkeypatch.context() as patched:
        patched.setattr(kept_shapes, "_made", seen)
        with filled(frames, packs):
            return sorted(asked)


def test_a_model_of_which_anything_is_another_is_made_again_and_no_other(frames, tmp_path, monkeypatch):
    packs = Packs(tmp_path)
    assert is_made(monkeypatch, frames, packs) == sorted(FEW)
    assert is_made(monkeypatch, frames, packs) == []
    weekly = frames["model"].with_columns(downloads_30d=pl.lit(1), likes=pl.lit(2))
    assert is_made(monkeypatch, frames | {"model": weekly}, packs) == []
    is_one = pl.col("model_id") == "Qwen/Qwen3-0.6B"
    changes = {
        "model": pl.when(is_one).then(1024).otherwise("max_context_tokens").alias("max_context_tokens"),
        "tensor": pl.when(is_one).then(pl.col("out_features") + 1).otherwise("out_features").alias("out_features"),
        "attention_layer": pl.when(is_one).then(pl.col("head_count") + 1).otherwise("head_count").alias("head_count"),
    }
    for name, change in changes.items():
        other = frames | {name: frames[name].with_columns(change)}
        assert is_made(monkeypatch, other, packs) == ["Qwen/Qwen3-0.6B"], name
        assert rows_of(other, packs) == rows_of(other, None), name


def test_what_another_model_says_of_one_is_seen(frames, tmp_path):
    """Whether a copy keeps its experts is told by the one that was published so."""
    packs = Packs(tmp_path)
    alone = without(frames, EXPERTS)
    kept = {name: rows_of(found, packs)["weight"] for name, found in (("alone", alone), ("both", frames))}
    assert kept == {"alone": rows_of(alone, None)["weight"], "both": rows_of(frames, None)["weight"]}
    assert not set(kept["alone"]) <= set(kept["both"])


@pytest.mark.full
def test_shapes_and_weights_are_made_of_a_models_own_rows(tmp_path):
    """Those of half of the models are kept where these were alone: what others say of a model would be lost."""
    packs, whole = Packs(tmp_path), some(400)
    half = frames_of(replace(whole, records=whole.records[::2]))
    with filled(half, packs):
        pass
    frames = frames_of(whole)
    assert rows_of(frames, packs) == rows_of(frames, None)
