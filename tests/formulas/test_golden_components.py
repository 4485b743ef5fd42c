"""The formulas' own figures, number by number (tests/golden/components.csv): no constant changes without a line of that file."""

from __future__ import annotations

import pytest

from pipeline.book.facts import read_facts
from pipeline.book.scenario import TYPES
from tests.golden import code_mutants, components, drawn, mutants


@pytest.fixture(scope="module")
def rows():
    return components.read()


def test_every_figure_is_the_one_of_the_file(book, rows):
    changed = components.differences(rows, components.ask(book, rows))
    assert not changed, "\n".join(
        [
            f"{len(changed)} figures changed; where that is meant, `python -m tests.golden.components` writes them anew",
            *changed[:20],
        ]
    )


def test_what_is_said_of_drawn_scenarios_is_as_the_file_has_it(book):
    changed = drawn.differences(drawn.read(), drawn.digests(book))
    meant = f"{len(changed)} models changed; where that is meant, `python -m tests.golden.drawn` writes them anew; `--of` tells each scenario"
    assert not changed, "\n".join([meant, *changed[:20]])


def test_scenarios_are_drawn_of_every_argument_and_engine():
    rows = drawn.scenarios()
    said = {name for row in rows for name, value in row.items() if value is not None}
    assert said == TYPES.keys() - {"program_version"}  # which programs.sql asks
    engines = {row["engine_id"] for row in read_facts()["engine"].to_dicts()}
    assert {row["engine_id"] for row in rows} - {None} == engines


def test_the_figures_reach_every_phase_engine_and_way_to_share(rows):
    asked = {
        name: {row.get(name) for row in rows}
        for name in ("phase_id", "engine_id", "sharding", "checkpointing", "optimizer_id", "loss")
    }
    assert {"inference", "pretrain", "full-finetune", "lora", "qlora"} == asked["phase_id"]
    assert {
        "vllm",
        "vllm-0.8",
        "sglang",
        "transformers",
        "transformers-4.44",
        "torchtune",
        "megatron",
        "deepspeed",
    } <= asked["engine_id"]
    assert {"pp", "ddp", "zero1", "zero2"} <= asked["sharding"]
    assert {"full", "selective"} <= asked["checkpointing"]
    assert len({row["model_id"] for row in rows}) > 60


def test_a_constant_inside_a_formula_is_found_and_changed_but_not_a_comment_or_a_name():
    text = "-- 2 of them\nSELECT 2 * m.head_16 + 0.5 || ' 7 ' -- 3\n"
    found = [(place.text, place.line, place.other) for place in mutants.places(text)]
    assert found == [("2", 2, "3"), ("*", 2, "/"), ("+", 2, "-"), ("0.5", 2, "0.55")]
    first = mutants.places(text)[0]
    assert mutants.mutated(text, first) == "-- 2 of them\nSELECT 3 * m.head_16 + 0.5 || ' 7 ' -- 3\n"


def test_operators_are_changed_but_no_star_of_columns_no_sign_and_no_end_of_a_range():
    text = "CREATE OR REPLACE VIEW v AS SELECT *, count(*), t.*, least(a, -1) // b FROM t WHERE a <= 4 AND b BETWEEN 1 AND 2 OR c = 'x <> y' AND f(n := -b, k -> k > 1)"
    found = [(place.text, place.other) for place in mutants.places(text) if not place.text[0].isdigit()]
    assert found == [
        ("least", "greatest"), ("//", "*"), ("<=", "<"), ("AND", "OR"), ("OR", "AND"), ("=", "<>"), ("AND", "OR"), (">", ">="),
    ]  # fmt: skip


def test_a_place_that_cannot_be_felt_is_still_there_and_has_its_reason():
    for (name, line, text), reason in mutants.equal().items():
        lines = (mutants.formulas.SQL / name).read_text(encoding="utf-8").splitlines()
        assert any(line == one.strip() and text in one for one in lines), (name, line)
        assert len(reason) > 20, name
    for name, line, text in code_mutants.equal():
        lines = (code_mutants.ROOT / name).read_text(encoding="utf-8").splitlines()
        assert any(line == one.strip() and text in one for one in lines), (name, line)
