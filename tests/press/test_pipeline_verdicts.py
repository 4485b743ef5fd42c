"""The verdicts of diffusion pipelines as a table: every pipeline, every card, and what pipeline_fits_on says."""

from __future__ import annotations

import pytest


def test_every_pipeline_has_a_verdict_or_a_reason_on_every_card(any_book):
    query = """
        SELECT count(*), count(DISTINCT model_id), count(DISTINCT gpu_id), count(*) FILTER (verdict IS NULL AND unknown_reason IS NULL),
            count(*) FILTER (verdict IS NOT NULL AND unknown_reason IS NOT NULL), count(DISTINCT verdict)
        FROM pipeline_compatibility
    """
    ((rows, models, cards, bare, both, verdicts),) = any_book.execute(query).fetchall()
    ((pipelines, gpus),) = any_book.execute(
        "SELECT (SELECT count(DISTINCT model_id) FROM component), (SELECT count(*) FROM gpu)"
    ).fetchall()
    assert rows > 100_000 and (models, cards) == (pipelines, gpus) and (bare, both, verdicts) == (0, 0, 3)


def test_the_table_says_what_the_macro_says(book):
    asked = {
        "picture-fp8": ("black-forest-labs/FLUX.1-dev", "denoiser_dtype_id := 'fp8'"),
        "video-tiled-nf4": (
            "Wan-AI/Wan2.2-T2V-A14B-Diffusers",
            "width := 832, height := 480, frames := 81, is_tiled := true, denoiser_dtype_id := 'nf4'",
        ),
    }
    for name, (model, scenario) in asked.items():
        told = book.execute(
            f"SELECT placement, total_bytes, verdict FROM pipeline_fits_on('rtx-3090', $1, {scenario}) ORDER BY 1",
            [model],
        ).fetchall()
        table = book.execute(
            "SELECT placement, total_bytes, verdict FROM pipeline_compatibility WHERE gpu_id = 'rtx-3090' AND model_id = $1 "
            "AND pipeline_set_id = $2 ORDER BY 1",
            [model, name],
        ).fetchall()
        assert table == told and len(told) == 4


@pytest.mark.full
def test_many_questions_at_once_are_answered_as_each_alone(book):
    """Columns that a relation leaves out are the defaults; a question that cannot be answered has its reason beside the others."""
    flux, sdxl = "black-forest-labs/FLUX.1-dev", "stabilityai/stable-diffusion-xl-base-1.0"
    asked = [
        (flux, "bf16", 1024, None),
        (flux, "bf16", 1024, "nf4"),
        (sdxl.upper(), "fp16", 512, None),
        (sdxl, None, 1000, "fp8"),
        ("nobody/nothing", "bf16", None, None),
    ]
    book.execute(
        "CREATE OR REPLACE TEMP TABLE wished (model_id VARCHAR, dtype_id VARCHAR, width BIGINT, denoiser_dtype_id VARCHAR)"
    )
    book.executemany("INSERT INTO wished VALUES (?, ?, ?, ?)", asked)
    told = book.execute("FROM pipeline_fits_in('wished', 'RTX-3090')").fetchall()
    for number, (model, dtype, width, denoiser) in enumerate(asked, 1):
        query = "FROM pipeline_fits_on('RTX-3090', $1, dtype_id := $2, width := $3, denoiser_dtype_id := $4)"
        alone = book.execute(query, [model, dtype, width, denoiser]).fetchall()
        assert sorted(map(str, alone)) == sorted(str(row[1:]) for row in told if row[0] == number) and len(alone) == 4
    assert len(told) == 4 * len(asked)
