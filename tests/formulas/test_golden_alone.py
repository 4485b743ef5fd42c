"""What each formula that makes one value says by itself (tests/golden/alone.csv): no number and no branch of it changes unseen."""

from __future__ import annotations

import pytest

from tests.golden import alone


@pytest.fixture(scope="module")
def said(book):
    return alone.digests(book)


@pytest.mark.full
def test_every_macro_says_what_the_file_has(book):
    said = alone.digests(book)
    changed = [name for name, digest in alone.read().items() if said.get(name) != digest]
    assert not changed, f"where that is meant, `python -m tests.golden.alone` writes them anew: {', '.join(changed)}"


@pytest.fixture(scope="module")
def macros(book):
    return alone.Alone(book)


def test_the_file_has_every_macro(macros):
    assert set(macros.names) == alone.read().keys()
    assert len(macros.names) > 600


def test_what_is_passed_over_is_there(macros):
    assert macros.macros.keys() >= alone.PASSED_OVER


@pytest.mark.full
def test_a_number_and_a_branch_of_one_macro_are_felt(book):
    book.execute("BEGIN")
    try:
        made = "CREATE OR REPLACE MACRO logit_width(model, scenario) AS logit_columns(model, scenario) / {}scenario.tensor_parallel"
        told = []
        for other in ("", "1.1 * "):
            book.execute(made.format(other))
            changed = alone.Alone(book)
            told.append(
                {
                    name: alone.said(book, changed.query(name))
                    for name in ("logit_width", "loss_width", "step_tokens")
                    if name in alone.read()
                }
            )
    finally:
        book.execute("ROLLBACK")
    before, after = told
    assert before["logit_width"] == alone.read()["logit_width"] != after["logit_width"]
    assert before["step_tokens"] == after["step_tokens"]


def test_fields_are_read_off_the_text_and_those_that_are_called(macros):
    layer = macros.macros["with_kernels"].reads["model"].fields["mixers"].element
    assert {
        "mechanism",
        "head_count",
        "query_width",
    } <= layer.fields.keys()  # the last by attention_kernel, which it calls
    assert "compute_bytes" in macros.macros["with_kernels"].reads["scenario"].fields


def test_what_is_compared_with_is_drawn():
    words, limits = alone.compared(
        "CASE WHEN ((x.phase_id = 'lora') OR (rule.kind IN ('a', 'b')) AND (m.layer_count > 3)) THEN (1)"
    )
    assert words == {"phase_id": {"lora"}, "kind": {"a", "b"}}
    assert limits == {"layer_count": {3}}


def test_arguments_are_split_where_their_call_splits_them():
    assert alone.arguments("f(a, g(b, c), [d, e]), h", 2) == ["a", "g(b, c)", "[d, e]"]
