"""Repositories of single files: what their listings say is what we count of the models whose parts they hold."""

from __future__ import annotations

ROUNDED = 0.006  # three digits of a listing, and a file's header

COPIES = """
    SELECT file.model_id, file.file_name, file.file_bytes, dtype.bits_per_weight,
        coalesce(
            sum(part.parameter_count) FILTER (file.file_part = 'whole'),
            any_value(model.parameter_count + coalesce(model.predicting_parameter_count, 0))
        ) AS elements
    FROM repository_file AS file
    JOIN dtype USING (dtype_id)
    JOIN model ON model.model_id = file.of_model_id
    LEFT JOIN component AS part ON part.model_id = model.model_id
    WHERE file.file_bytes IS NOT NULL AND file.file_part NOT IN ('adapter', 'controlnet') AND model.anatomy_grade <> 'unknown'
    GROUP BY ALL
"""


def test_files_are_as_large_as_what_they_hold(any_book):
    rows = any_book.execute(COPIES).fetchall()
    assert len(rows) > 8
    for repository, file, listed, bits, elements in rows:
        assert abs(elements * bits / 8 / listed - 1) < ROUNDED, (repository, file, elements, listed)


def test_every_file_can_be_answered_for(any_book):
    """By its listed size, or by the model that it is a copy of in a format of ours."""
    query = """
        SELECT file_name FROM repository_file AS file LEFT JOIN model ON model.model_id = file.of_model_id
        WHERE file_bytes IS NULL AND (dtype_id IS NULL OR model.parameter_count IS NULL)
    """
    assert any_book.execute(query).fetchall() == []
    missing = "SELECT DISTINCT model_id FROM repository_file WHERE model_id NOT IN (SELECT model_id FROM model)"
    assert any_book.execute(missing).fetchall() == []


def test_what_holds_no_single_model_says_what_it_holds(any_book):
    unknown = any_book.execute(
        "SELECT count(*) FROM model WHERE holds IS NOT NULL AND anatomy_grade <> 'unknown'"
    ).fetchall()
    assert unknown == [(0,)]
    assert (
        any_book.execute("SELECT holds FROM model WHERE model_id = 'Qdrant/bm25'")
        .fetchall()[0][0]
        .startswith("it holds")
    )
