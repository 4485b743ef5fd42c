"""What is taken where nobody chose anything: one declaration, which pages and calculator open with and the macros agree with."""

import json
from array import array

import pytest

from pipeline.book.facts import read_facts
from pipeline.render.data import openings
from pipeline.render.data.book import UNKNOWN_KIB, Book, Scenario

PHASES = ("inference", "lora", "qlora", "full-finetune", "pretrain")


@pytest.fixture(scope="module")
def declared():
    return openings.read(read_facts()["scenario_set"].to_dicts())


@pytest.mark.some(2)
@pytest.mark.parametrize("phase", PHASES)
def test_the_macros_take_what_pages_open_with_but_for_checkpointing(book, declared, phase):
    row = book.sql(f"from footprint_of('Qwen/Qwen3-8B', phase_id := '{phase}')").pl().to_dicts()[0]
    wanted = declared[phase]
    assert {k: row[k] for k in wanted if k != "checkpointing"} == {
        k: v for k, v in wanted.items() if k != "checkpointing"
    }
    # whoever leaves it out in SQL asks for none, as the README says
    assert (row["checkpointing"], wanted["checkpointing"]) == (
        (None, None) if phase == "inference" else ("none", "full")
    )


def test_every_opening_is_a_scenario_that_is_published(declared):
    """Else a page would open with another one than it says."""
    published = read_facts()["scenario_set"].filter(purpose="lookup").to_dicts()
    for phase, wanted in declared.items():
        asked = {
            "phase_ids": phase,
            "dtype_ids": wanted["dtype_id"],
            "contexts": str(wanted["context_tokens"]),
            "sequence_counts": str(wanted["sequences"]),
        } | (
            {"optimizer_ids": wanted["optimizer_id"], "checkpointings": wanted["checkpointing"]}
            if phase != "inference"
            else {}
        )
        assert any(all(word in (row[k] or "").split() for k, word in asked.items()) for row in published), phase


def test_a_release_without_openings_takes_those_of_the_checkout(declared):
    assert openings.read([]) == declared and json.dumps(declared)


def test_a_model_that_reads_less_opens_with_the_longest_that_is_published():
    assert openings.longest([512, 2048, 8192], 8192, 4000) == 2048
    assert openings.longest([512, 2048, 8192], 8192, None) == 8192
    assert openings.longest([512, 2048], 8192, 100) == 512 and openings.longest([], 8192, 100) is None


def test_what_reads_no_text_has_no_context_that_ends(tmp_path):
    """Such a model is published at one length: its reason there is the reason everywhere."""
    scenarios = [Scenario("inference", "bf16", "transformers", n, 1, None, None) for n in (512, 8192)]
    model = {"model_id": "a/Picture", "anatomy_grade": "exact", "anatomy_note": "", "max_context_tokens": None}
    tables = {"model": [model], "dtype": [{"dtype_id": "bf16", "engine_id": "transformers"}]}
    rows = array("f", [UNKNOWN_KIB, 1, 0, UNKNOWN_KIB, UNKNOWN_KIB, UNKNOWN_KIB])
    book = Book(tmp_path, tables, scenarios, [1], {}, rows, ["it is drawn, not read"])
    assert [book.reason(0, s) for s in scenarios] == ["it is drawn, not read"] * 2
