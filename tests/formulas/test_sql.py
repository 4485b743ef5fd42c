"""What the formulas' files promise: a header that says what, in which units, from where and what not, a form that is read with ease, and
a language all readers know."""

from __future__ import annotations

import re

import pytest

from pipeline.press.build import SQL, sql_files

FILES = sql_files()
LONGEST_LINE, LONGEST_PIECE = 120, 45
_NO_CODE = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_MACRO = re.compile(
    r"CREATE OR REPLACE MACRO (?P<name>\w+)\((?P<parameters>[^)]*)\) AS(?P<table> TABLE)?(?P<body>.*?);\n", re.DOTALL
)

of_each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SQL).as_posix())


@of_each_file
def test_each_file_opens_with_its_formula_units_source_and_limits(path):
    text = path.read_text(encoding="utf-8")
    header = text[: text.index("\nCREATE")]
    assert header.startswith("-- ")
    if path.stem != "words":
        for word in ("Unit", "Source", "Not covered"):
            assert word in header, f"{path.name} does not say its {word.lower()}"


@of_each_file
def test_no_word_that_older_readers_take_for_syntax(path):
    """`if(...)` is a function since DuckDB 2 and syntax before: macros that hold it cannot be read by DuckDB 1.x."""
    code = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
    assert not re.search(r"(?<![a-z_])if\(", code)


@of_each_file
def test_no_line_is_wider_than_a_screen(path):
    lines = path.read_text(encoding="utf-8").split("\n")
    assert not [f"{path.name}:{n}" for n, line in enumerate(lines, 1) if len(line) > LONGEST_LINE]


@of_each_file
def test_no_letter_stands_for_a_thing(path):
    """A parameter, an alias, a column or a variable of a lambda has a whole word for its name."""
    code = _NO_CODE.sub(" ", path.read_text(encoding="utf-8"))
    assert not re.findall(r"\b[A-Za-z]\b", code)


@of_each_file
def test_no_macro_and_no_step_of_one_is_longer_than_a_reader_holds(path):
    """A macro that answers with a table is a row of steps, each of which is read by itself."""
    long = []
    for found in _MACRO.finditer(path.read_text(encoding="utf-8")):
        pieces = re.split(r"\n(?= *\),?$)", found["body"], flags=re.MULTILINE) if found["table"] else [found["body"]]
        long += [found["name"] for piece in pieces if piece.strip("\n").count("\n") >= LONGEST_PIECE]
    assert not long
