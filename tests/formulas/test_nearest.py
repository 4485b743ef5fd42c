"""Ids that the book does not hold: whoever asks by half a name is told the whole one."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.book.schema import PUBLISHED
from tests.formulas.at_once import at_once, one_each

CARDS = {"4090": "rtx-4090", "RTX 4090": "rtx-4090", "a6000": "rtx-a6000", "h100": "h100-sxm", "mi300": "mi300x"}
NAMES = {"Qwen3-8B": "Qwen/Qwen3-8B", "gpt oss": "openai/gpt-oss-20b"}


@pytest.fixture(scope="module")
def judged(book):
    """fits_on of each half of a name."""
    cases = {name: {"gpu_id": name, "model_id": "Qwen/Qwen3-8B"} for name in CARDS}
    cases |= {name: {"gpu_id": "rtx-4090", "model_id": name} for name in NAMES}
    return one_each(book, "fits_on", ("gpu_id", "model_id"), cases)


@pytest.mark.parametrize(("asked", "meant"), CARDS.items())
def test_half_a_card_finds_the_card(judged, asked, meant):
    row = judged[asked]
    assert row["verdict"] is None
    assert row["unknown_reason"].startswith(f"no such GPU: {asked} (nearest: ") and meant in row["unknown_reason"]


@pytest.mark.some(1)
@pytest.mark.parametrize(("asked", "meant"), NAMES.items())
def test_half_a_model_finds_the_model(book, judged, asked, meant):
    (alone,) = book.execute("SELECT unknown_reason FROM footprint_of($asked)", {"asked": asked}).fetchall()
    for reason in (judged[asked]["unknown_reason"], *alone):
        assert reason.startswith(f"no such model in this snapshot (nearest: {meant}")


@pytest.mark.some(1)
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


@pytest.mark.full
@pytest.mark.parametrize("macro", ["layers_that_fit", "on_several_gpus", "plans_for"])
def test_every_macro_of_a_card_tells_the_nearest(book, macro):
    asked = (
        ("4090", "Qwen/Qwen3-8B", "no such GPU: 4090 (nearest: rtx-4090"),
        ("rtx-4090", "Qwen3-8B", "no such model in this snapshot (nearest: Qwen/Qwen3-8B"),
    )
    cases = [{"gpu_id": gpu, "model_id": model} for gpu, model, _said in asked]
    for rows, (*_case, said) in zip(at_once(book, macro, ("gpu_id", "model_id"), cases), asked, strict=True):
        assert rows and all(row["unknown_reason"].startswith(said) for row in rows)


@pytest.mark.full
def test_a_list_for_no_card_is_an_error_and_not_an_empty_list(book):
    columns = ", ".join(PUBLISHED["footprint"].column_names)
    book.execute(f"BEGIN; INSERT INTO footprint BY NAME SELECT {columns} FROM footprint_of('Qwen/Qwen3-8B')")
    try:
        assert book.execute("SELECT count(*) FROM what_fits('rtx-4090')").fetchall() == [(1,)]
        with pytest.raises(duckdb.Error, match=r"no such GPU: 4090 \(nearest: rtx-4090"):
            book.execute("FROM what_fits('4090')").fetchall()
    finally:
        book.execute("ROLLBACK")


@pytest.mark.some(1)
@pytest.mark.parametrize("scenario", ["dtype_id := 'q4'", "phase_id := 'serving'"])
def test_a_list_for_no_format_is_an_error_too(book, scenario):
    columns = ", ".join(PUBLISHED["footprint"].column_names)
    book.execute(f"BEGIN; INSERT INTO footprint BY NAME SELECT {columns} FROM footprint_of('Qwen/Qwen3-8B')")
    try:
        with pytest.raises(duckdb.Error, match=r"no such (dtype: q4|phase: serving)"):
            book.execute(f"FROM what_fits('rtx-4090', {scenario})").fetchall()
    finally:
        book.execute("ROLLBACK")
