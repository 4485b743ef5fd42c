"""Files of Ollama's library, whose sizes it lists, against the weights of what each is a tag of."""

from __future__ import annotations

import pytest

HALF_A_DIGIT = 0.05  # of two digits, the least that a size is listed with: 1.1 GB is 1.05 to 1.15


def test_the_file_of_a_tag_is_as_large_as_the_weights_in_its_format(any_book):
    """The format of a row was chosen by this size, of four that Ollama publishes in; that one of them comes as near as this is what is held."""
    rows = any_book.execute(
        """
        SELECT ollama_name || ':' || ollama_size, weights_bytes / tag.file_bytes - 1
        FROM ollama_tag AS tag JOIN plain_model AS plain ON plain.name = plain_name(tag.base_name)
        JOIN weight ON weight.model_id = plain.model_id AND weight.dtype_id = tag.dtype_id
        WHERE weights_bytes IS NOT NULL
        """
    ).fetchall()
    errors = sorted(abs(error) for _, error in rows)
    assert len(errors) > 60
    assert errors[len(errors) // 2] < 0.008
    assert not [(tag, error) for tag, error in rows if abs(error) > 0.03 + HALF_A_DIGIT]


@pytest.mark.full
def test_no_tag_is_told_with_less_than_its_file_is_listed_with(whole_book):
    """Whatever mix Ollama chose: the weights of the format that it is counted in, and what the file holds beyond, are at least what is listed."""
    tags = whole_book.execute(
        """
        SELECT asked.place, weights_bytes + coalesce(beyond_bytes, 0), file_bytes, listed_error_bytes(file_bytes)
        FROM (SELECT *, 'ollama run ' || ollama_name || ':' || ollama_size AS place FROM ollama_tag) AS asked,
            LATERAL (FROM repository_of(asked.place)) AS said
        LEFT JOIN weight ON weight.model_id = said.model_id AND weight.dtype_id = said.dtype_id
        """
    ).fetchall()
    assert (
        len(tags)
        == len({place for place, *_ in tags})
        == whole_book.execute("SELECT count(*) FROM ollama_tag").fetchall()[0][0]
    )
    counted = [tag for tag in tags if tag[1] is not None]
    assert len(counted) > 160
    assert not [tag for tag in counted if tag[1] < tag[2] - tag[3]]


def test_a_name_has_one_tag_that_it_takes_alone(book):
    rows = book.execute(
        "SELECT ollama_name FROM ollama_tag GROUP BY 1 HAVING count(*) FILTER (is_latest) > 1"
    ).fetchall()
    assert not rows
