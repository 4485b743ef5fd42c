"""Ids that the book does not hold: whoever asks by half a name is told the whole one."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.book.schema import PUBLISHED


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("asked", "meant"),
    [("4090", "rtx-4090"), ("RTX 4090", "rtx-4090"), ("a6000", "rtx-a6000"), ("h100", "h100-sxm"), ("mi300", "mi300x")],
)
def test_half_a_card_finds_the_card(book, asked, meant):
    query = "SELECT verdict, unknown_reason FROM fits_on($asked, 'Qwen/Qwen3-8B')"
    verdict, reason = book.execute(query, {"asked": asked}).fetchall()[0]
    assert verdict is None
    assert reason.startswith(f"no such GPU: {asked} (nearest: ") and meant in reason


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("asked", "meant"),
    [("Qwen3-8B", "Qwen/Qwen3-8B"), ("gpt oss", "openai/gpt-oss-20b")],
)
def test_half_a_model_finds_the_model(book, asked, meant):
    for query in ("footprint_of($asked)", "fits_on('rtx-4090', $asked)"):
        reason = book.execute(f"SELECT unknown_reason FROM {query}", {"asked": asked}).fetchall()[0][0]
        assert reason.startswith(f"no such model in this snapshot (nearest: {meant}")


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("dtype_id := 'q4'", "no such dtype: q4 (nearest: gguf-q4_0"),
        ("phase_id := 'finetune'", "no such phase: finetune (nearest: full-finetune"),
        ("engine_id := 'llamacpp'", "no such engine: llamacpp (nearest: llama.cpp"),
        ("phase_id := 'lora', optimizer_id := 'adam'", "no such optimizer: adam (nearest: adamw"),
        ("kv_dtype_id := 'q8'", "no such KV dtype: q8 (nearest: q8_0"),
    ],
)
def test_every_id_that_is_not_there_is_told_its_nearest(book, asked, said):
    for query in ("footprint_of('Qwen/Qwen3-8B', {})", "limits_on('rtx-4090', 'Qwen/Qwen3-8B', {})"):
        assert book.execute(f"SELECT unknown_reason FROM {query.format(asked)}").fetchall()[0][0].startswith(said)


@pytest.mark.some(1)
@pytest.mark.parametrize("macro", ["layers_that_fit", "on_several_gpus", "plans_for"])
def test_every_macro_of_a_card_tells_the_nearest(book, macro):
    for gpu_id, model_id, said in (
        ("4090", "Qwen/Qwen3-8B", "no such GPU: 4090 (nearest: rtx-4090"),
        ("rtx-4090", "Qwen3-8B", "no such model in this snapshot (nearest: Qwen/Qwen3-8B"),
    ):
        query = f"SELECT unknown_reason FROM {macro}($gpu_id, $model_id) LIMIT 1"
        reason = book.execute(query, {"gpu_id": gpu_id, "model_id": model_id}).fetchall()[0][0]
        assert reason.startswith(said)


def test_a_list_for_no_card_is_an_error_and_not_an_empty_list(book):
    columns = ", ".join(PUBLISHED["footprint"].column_names)
    book.execute(f"BEGIN; INSERT INTO footprint BY NAME SELECT {columns} FROM footprint_of('Qwen/Qwen3-8B')")
    try:
        assert book.execute("SELECT count(*) FROM what_fits('rtx-4090')").fetchall() == [(1,)]
        with pytest.raises(duckdb.Error, match=r"no such GPU: 4090 \(nearest: rtx-4090"):
            book.execute("FROM what_fits('4090')").fetchall()
    finally:
        book.execute("ROLLBACK")


@pytest.mark.parametrize("scenario", ["dtype_id := 'q4'", "phase_id := 'serving'"])
def test_a_list_for_no_format_is_an_error_too(book, scenario):
    columns = ", ".join(PUBLISHED["footprint"].column_names)
    book.execute(f"BEGIN; INSERT INTO footprint BY NAME SELECT {columns} FROM footprint_of('Qwen/Qwen3-8B')")
    try:
        with pytest.raises(duckdb.Error, match=r"no such (dtype: q4|phase: serving)"):
            book.execute(f"FROM what_fits('rtx-4090', {scenario})").fetchall()
    finally:
        book.execute("ROLLBACK")
