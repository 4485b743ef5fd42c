"""Numbers and names as text."""

import re

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline import ROOT
from pipeline.render import words
from pipeline.render.environment import cited, short_name
from pipeline.render.pages import method


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "unknown"),
        (0, "0.000"),
        (512 * 1024**2, "0.50"),
        (1024**3, "1.0"),
        (17_716_740_096, "16.5"),
        (10**12, "931"),
    ],
)
def test_gib(number, text):
    assert words.gib(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "unknown"),
        (999, "999"),
        (999_885_952, "1B"),
        (12_345, "12.3k"),
        (7_000_000_000, "7B"),
        (671_026_419_200, "671B"),
        (1.04e12, "1.04T"),
    ],
)
def test_count(number, text):
    assert words.count(number) == text


def test_tokens():
    assert [words.tokens(n) for n in (512, 2048, 131_072, 40_000)] == ["512", "2k", "128k", "40,000"]


@given(st.text(min_size=1))
def test_a_slug_is_two_safe_segments(identifier):
    path = words.slug(identifier)
    assert re.fullmatch(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*/[A-Za-z0-9_~-][A-Za-z0-9._~-]*", path)


@given(st.text(), st.text())
@example("", "/")
@example("gpt2", "/gpt2")
def test_slugs_of_two_ids_differ(one, other):
    assert (words.slug(one) == words.slug(other)) == (one == other)


def test_a_slug_keeps_what_the_hub_allows():
    assert words.slug("Qwen/Qwen2.5-7B_v1") == "Qwen/Qwen2.5-7B_v1"
    assert words.slug("../../etc/passwd").count("..") == 0


@given(st.text())
def test_shown_text_has_no_control_or_direction_character(text):
    assert not re.search(r"[\u0000-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069]", words.shown(text))


def test_sql_literals_are_closed():
    assert words.sql_text("it's") == "'it''s'"


def test_sql_literals_spell_what_cannot_be_seen():
    assert "chr(8238)" in words.sql_text("a\u202eb")


@pytest.fixture(scope="module")
def sql():
    with duckdb.connect() as connection:
        yield connection


@given(text=st.text())
def test_sql_literals_give_the_text_back(sql, text):
    assert sql.execute(f"select {words.sql_text(text)}").fetchall()[0][0] == text


def test_short_names_drop_maker_and_brand():
    assert short_name("GeForce RTX 4090") == "RTX 4090"
    assert short_name("Instinct MI300X") == "MI300X"


def test_sources_become_titles_with_addresses():
    sources = {
        "a": {"title": "A", "publisher": None, "locator": "https://example.org/a"},
        "b": {"title": "B", "publisher": "P", "locator": "arXiv:1"},
    }
    assert cited("a;b;c", sources) == [
        {"title": "A", "address": "https://example.org/a", "where": ""},
        {"title": "P: B", "address": None, "where": "arXiv:1"},
        {"title": "c", "address": None, "where": ""},
    ]


def test_the_opening_note_of_a_formula_file():
    note = method.opening(
        "-- What it is.\n--\n--   a = b × c\n--\n-- Units: bytes,\n--   per GPU.\n-- Not covered: d.\nSELECT 1;\n"
    )["note"]
    assert note == [
        ("prose", "What it is."),
        ("formula", "a = b × c"),
        ("prose", "Units: bytes, per GPU."),
        ("prose", "Not covered: d."),
    ]


def test_every_file_of_the_formulas_is_shown_on_a_page_and_every_page_shows_some():
    from pipeline.press.formulas import sql_files
    from pipeline.render.pages.prose import SQL

    asked = re.findall(
        r"<!--almanac:sql (\S+)-->",
        "".join(p.read_text("utf-8") for p in (ROOT / "site" / "docs" / "method").glob("*.md")),
    )
    shown = [file["name"] for component in asked for file in method.files(component, SQL)]
    assert sorted(shown) == sorted(path.relative_to(SQL).as_posix() for path in sql_files())
    assert all(method.files(component, SQL) for component in asked)


@pytest.mark.parametrize(
    ("share", "text"), [(None, "–"), (-0.00001, "0.0 %"), (0.051, "+5.1 %"), (-0.5, "−50.0 %"), (0.0, "0.0 %")]
)
def test_nought_per_cent_has_no_sign(share, text):
    assert words.percent(share, True) == text


def test_a_size_is_not_rounded_twice():
    """What a page says of a model is what lists say, which are told millions."""
    for size in (
        109_482_240,
        110_106_428,
        8_190_735_360,
        1_544_999_999,
        999_499_999,
        67_000_001,
        9_995_000,
        123_450_000,
        9_174_964_736,
        23_949_999,
    ):
        assert words.count(words.millions(size) * 1e6) == words.count(size), size
    assert words.millions(8_190_735_360) == 8191 and words.millions(None) is None
