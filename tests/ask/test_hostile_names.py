"""What people may paste in the place of a name: a sentence says that there is none, and nothing breaks."""

from __future__ import annotations

import pytest

from pipeline.ask import own
from pipeline.base.bounds import in_words, visible


@pytest.mark.parametrize(
    "asked", ["~nobody-of-that-name/x", "A" * 100_000, "a" * 300 + "/b", "org/model", "\0", "../../etc/passwd\n"]
)
def test_what_no_file_can_be_called_is_a_name_of_a_model(asked):
    assert own.path_of(asked) is None


def test_a_name_is_told_in_a_few_lines():
    assert in_words("org/model") == "org/model"
    assert in_words("x" * 200) == "x" * 200 and in_words("x" * 201) == "x" * 200 + "…"
    assert in_words("\u202egpj" + "x" * 1000).startswith("\\u202egpj")


@pytest.mark.parametrize("mark", "\u061c\u200e\u202e\u2066\u2028\x1b")
def test_marks_that_turn_or_break_a_line_are_told_by_number(mark):
    assert visible(f"a{mark}b") == f"a\\u{ord(mark):04x}b"
