"""Verdicts: the view and the file say the same, and `fits` means that total and error band are below what the card gives."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline import build
from pipeline.compatibility import write_compatibility
from pipeline.facts import read_facts
from pipeline.schema import PUBLISHED

MODELS = ["Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-20b"]


@pytest.fixture(scope="module")
def small(book):
    """The book with the default lookup of four models, from a fraction of a card to several nodes."""
    cursor = book.cursor()
    cursor.execute("DELETE FROM footprint")
    build.fill_footprints(cursor, read_facts()["scenario_set"], models=MODELS)
    yield cursor
    cursor.execute("DELETE FROM footprint")
    cursor.close()


def test_the_file_is_the_view(small, tmp_path):
    rows = write_compatibility(small, tmp_path / "compatibility.parquet")
    file = pl.read_parquet(tmp_path / "compatibility.parquet")
    assert file.height == rows == small.execute("SELECT count(*) FROM compatibility").fetchall()[0][0]
    assert tuple(file.columns) == PUBLISHED["compatibility"].column_names
    small.register("written", file.to_arrow())
    for one, other in (("written", "compatibility"), ("compatibility", "written")):
        assert small.execute(f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})").fetchall()[0][0] == 0
    small.unregister("written")


def test_fits_includes_the_error_band(small):
    wrong = small.execute(
        """
        SELECT count(*) FROM compatibility AS c JOIN gpu USING (gpu_id)
        JOIN footprint AS f ON f.gpu_count = c.gpu_count_needed
            AND (f.model_id, f.dtype_id, f.phase_id, f.engine_id, f.context_tokens, f.sequences)
                = (c.model_id, c.dtype_id, c.phase_id, c.engine_id, c.context_tokens, c.sequences)
            AND f.optimizer_id IS NOT DISTINCT FROM c.optimizer_id AND f.checkpointing IS NOT DISTINCT FROM c.checkpointing
        WHERE c.verdict IN ('fits', 'multi-gpu') AND f.total_bytes * (1 + f.error_band) > capacity_bytes
            OR c.verdict = 'tight' AND (f.total_bytes > capacity_bytes OR f.total_bytes * (1 + f.error_band) <= capacity_bytes)
            OR c.verdict = 'fits' AND c.gpu_count_needed <> 1
            OR c.verdict = 'multi-gpu' AND c.gpu_count_needed < 2
        """
    ).fetchall()[0][0]
    assert wrong == 0


def test_every_verdict_occurs_and_unknown_has_none(small):
    verdicts = dict(small.execute("SELECT verdict, count(*) FROM compatibility GROUP BY ALL").fetchall())
    assert set(verdicts) == {"fits", "tight", "multi-gpu", "no", None}
    assert small.execute(
        "SELECT count(*) FROM compatibility WHERE (verdict IS NULL) <> (unknown_reason IS NOT NULL)"
    ).fetchall() == [(0,)]


def test_a_larger_card_of_the_same_kind_never_needs_more_gpus(small):
    assert (
        small.execute(
            """
            SELECT count(*) FROM compatibility AS less JOIN compatibility AS more
                ON (less.model_id, less.dtype_id, less.phase_id, less.engine_id, less.context_tokens, less.sequences)
                    = (more.model_id, more.dtype_id, more.phase_id, more.engine_id, more.context_tokens, more.sequences)
                AND less.optimizer_id IS NOT DISTINCT FROM more.optimizer_id
                AND less.checkpointing IS NOT DISTINCT FROM more.checkpointing
            WHERE less.gpu_id = 'rtx-4090' AND more.gpu_id = 'h200-sxm'
                AND more.gpu_count_needed > less.gpu_count_needed
            """
        ).fetchall()[0][0]
        == 0
    )


def test_fits_on_and_what_fits_answer_by_card(small):
    verdict = small.execute(
        "SELECT verdict FROM fits_on('rtx-4090', 'meta-llama/Llama-3.1-8B-Instruct', dtype_id := 'gguf-q4_k_m')"
    ).fetchall()
    assert verdict == [("fits",)]
    models = small.execute("SELECT DISTINCT model_id FROM what_fits('rtx-3060-12gb', dtype_id := 'bf16')").fetchall()
    assert ("Qwen/Qwen3-0.6B",) in models
    assert ("deepseek-ai/DeepSeek-V3",) not in models
