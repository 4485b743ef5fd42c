"""Mechanism that is rows: what an engine sets aside, what an activation keeps, what a packed kernel takes apart, and that all of it is read."""

from __future__ import annotations

import re

import pytest

from pipeline import ROOT
from pipeline.book.facts import read_facts
from pipeline.press.formulas import sql_files


@pytest.fixture(scope="module")
def facts():
    return {name: frame.to_dicts() for name, frame in read_facts().items()}


def test_every_constant_is_read_by_a_formula_or_by_the_code_beside_it(facts):
    texts = [path.read_text(encoding="utf-8") for path in sql_files()]
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / "pipeline").rglob("*.py")]
    texts += [str(row) for name in ("engine", "engine_memory", "gpu_class") for row in facts[name]]
    words = set(re.findall(r"\w+", "\n".join(texts)))
    unread = {row["constant_id"] for row in facts["constant"]} - words
    assert not unread


def test_kinds_of_cards_name_constants_that_exist_and_every_card_is_of_one(facts):
    known = {row["constant_id"] for row in facts["constant"]}
    for row in facts["gpu_class"]:
        assert {row["ratio_constant"], row["context_constant"] or row["ratio_constant"]} <= known, row
        # what a context takes is counted where CUDA runs
        assert (row["context_constant"] is not None) == (row["vendor"] == "nvidia"), row
    assert {row["vendor"] for row in facts["gpu"]} <= {row["vendor"] for row in facts["gpu_class"]}


def test_what_an_engine_sets_aside_is_named_by_constants_that_exist(facts):
    known = {row["constant_id"] for row in facts["constant"]}
    for row in facts["engine_memory"]:
        assert {row[name] for name in row if name.endswith("_constant")} - {None} <= known, row
        # an engine that runs models says in all points how
        ways = {
            row[name] is None
            for name in (
                "reads_prompt",
                "logits_of",
                "rotations_in",
                "copies_tied_head",
                "inputs_on_host",
                "error_band_constant",
            )
        }
        assert len(ways) == 1, row
        # an engine that uses windows says how much it holds of one
        assert (row["window_use"] == "never") == (row["window_overlap_tokens"] is None), row
        assert (row["window_use"] == "never") == (row["extra_window_cells"] is None), row


def test_every_engine_that_runs_a_format_by_default_has_a_row_and_lists_of_windows_are_of_those_that_ask_for_one(facts):
    use = {row["engine_id"]: row["window_use"] for row in facts["engine_memory"]}
    assert {row["engine_id"] for row in facts["dtype"]} <= set(use)
    assert {row["engine_id"] for row in facts["engine_window"]} == {e for e, how in use.items() if how == "listed"}


def test_a_forward_pass_meets_one_kernel_at_most(facts):
    """Two rows that hold for the same tokens would answer a scenario twice."""
    for one in facts["packed_kernel"]:
        for other in facts["packed_kernel"]:
            if one is not other and one["dtype_id"] == other["dtype_id"]:
                first, last = sorted((one, other), key=lambda row: row["from_tokens"])
                assert first["below_tokens"] is not None and first["below_tokens"] <= last["from_tokens"]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("engine_id", "dtype_id", "cell", "beside", "more"),
    [("vllm", "fp8", 16, 8191, 1), ("llama.cpp", "gguf-q8_0", 256, 512, 0), ("transformers", "nf4", 1, None, 0)],
)
def test_a_window_is_held_with_what_is_read_beside_it_in_whole_cells(
    book, footprint_of, engine_id, dtype_id, cell, beside, more
):
    """Gemma 3 1B: layers of a window of 512, and some that read all."""
    model_id, context = "google/gemma-3-1b-it", 20_000
    layers = book.execute(
        "SELECT layer_count, window_tokens, elements_per_token FROM attention_layer WHERE model_id = ?", [model_id]
    ).fetchall()
    said = footprint_of(model_id, dtype_id=dtype_id, context_tokens=context)
    expected = 0
    rarest = min(count for count, _, _ in layers)
    for count, window, elements in layers:
        if engine_id == "vllm":  # one pool for layers of both kinds, in groups that are padded
            count = -(-count // rarest) * rarest
        is_whole = window is None or beside is None
        tokens = context if is_whole else min(context, window + beside)
        expected += 2 * count * elements * cell * (-(-tokens // cell) + (0 if is_whole else more))
    assert said["engine_id"] == engine_id
    assert said["kv_cache_bytes"] + said["kv_padding_bytes"] == expected
