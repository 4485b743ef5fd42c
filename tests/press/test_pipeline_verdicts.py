"""The verdicts of diffusion pipelines as a table: every pipeline, every card, and what pipeline_fits_on says."""

from __future__ import annotations


def test_every_pipeline_has_a_verdict_or_a_reason_on_every_card(book):
    query = """
        SELECT count(*), count(DISTINCT model_id), count(DISTINCT gpu_id), count(*) FILTER (verdict IS NULL AND unknown_reason IS NULL),
            count(*) FILTER (verdict IS NOT NULL AND unknown_reason IS NOT NULL), count(DISTINCT verdict)
        FROM pipeline_compatibility
    """
    ((rows, models, cards, bare, both, verdicts),) = book.execute(query).fetchall()
    ((pipelines, gpus),) = book.execute(
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
