"""What the formulas' files promise: a header that says what, in which units, from where and what not, and a language all readers know."""

from __future__ import annotations

import re

import pytest

from pipeline.press.build import SQL, sql_files

FILES = sql_files()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SQL).as_posix())
def test_each_file_opens_with_its_formula_units_source_and_limits(path):
    text = path.read_text(encoding="utf-8")
    header = text[: text.index("\nCREATE")]
    assert header.startswith("-- ")
    if path.stem != "words":
        for word in ("Unit", "Source"):
            assert word in header, f"{path.name} does not say its {word.lower()}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SQL).as_posix())
def test_no_word_that_older_readers_take_for_syntax(path):
    """`if(...)` is a function since DuckDB 2 and syntax before: macros that hold it cannot be read by DuckDB 1.x."""
    code = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
    assert not re.search(r"(?<![a-z_])if\(", code)
