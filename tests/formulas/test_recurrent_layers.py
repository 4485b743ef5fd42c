"""Recurrent layers in Transformers: prefill against real forwards on fake tensors, and which layers are known at all.

Their training steps are rows of training_peaks.csv, held by test_training_oracle.py. tests/oracle/prefill_recurrent.csv holds one
row per run of count_prefill.py: the plain PyTorch code, without the optional kernels.
"""

from __future__ import annotations

import itertools

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.book.facts import read_facts
from tests.formulas import step_account

TOLERANCE, OVER = 0.005, 0.02
REGIMES = {f"{kind}-{precision}" for kind in ("full", "lora", "qlora") for precision in ("16", "32", "amp")} - {
    "qlora-16"
}
HYBRID = "Qwen/Qwen3.5-4B"


@pytest.fixture(scope="module")
def peaks():
    """Rows of prefill_recurrent.csv, each with predicted ÷ counted − 1."""
    return step_account.prefill("prefill_recurrent.csv")


def test_prefill_peaks_are_those_of_the_library(peaks):
    assert len({row["model"] for row in peaks}) > 8
    outside = [
        (*itertools.islice(row.values(), 4), f"{row['error']:+.2%}")
        for row in peaks
        if not -TOLERANCE <= row["error"] <= OVER
    ]
    assert not outside


def test_most_prefill_peaks_are_within_half_a_percent(peaks):
    errors = sorted(abs(row["error"]) for row in peaks)
    assert errors[int(len(errors) * 0.8)] < TOLERANCE


def test_a_recurrence_is_known_for_every_regime_or_not_at_all():
    recurrence = read_facts()["recurrence"]
    for name in recurrence["recurrence"].unique():
        rows = recurrence.filter(pl.col("recurrence") == name)
        for moment in ("kept", "backward"):
            assert set(rows.filter(pl.col("moment") == moment)["regime"]) == REGIMES, (name, moment)
        ran = set(rows.filter(pl.col("moment") == "prefill")["regime"])
        assert ran - {"vllm-16"} == {"prefill-16", "prefill-32"}, (
            name
        )  # (vLLM's kernels were read where they hold more)


@pytest.mark.full
@settings(max_examples=2, deadline=None)
@given(lengths=st.lists(st.integers(1, 20_000), min_size=20, max_size=20, unique=True), sequences=st.integers(1, 8))
def test_more_tokens_never_take_less(footprints, lengths, sequences):
    recipes = (
        {"phase_id": "inference", "engine_id": "transformers", "checkpointing": None},
        {"phase_id": "lora", "engine_id": None, "checkpointing": "none"},
        {"phase_id": "full-finetune", "engine_id": None, "checkpointing": "full"},
    )
    for recipe in recipes:
        asked = [
            {"model_id": HYBRID, "context_tokens": length, "sequences": sequences} | recipe
            for length in sorted(lengths)
        ]
        held = [
            answer["activations_bytes"] for answer in footprints([{k: v for k, v in a.items() if v} for a in asked])
        ]
        assert held[0] > 0
        assert held == sorted(held)


@pytest.mark.full
def test_layers_whose_code_was_not_read_have_a_reason(whole_book):
    """Unknown is null with a reason: in training and in Transformers, not in engines with formulas of their own."""
    unknown = whole_book.execute("""
        SELECT model_id FROM shape
        WHERE recurrences IS NULL AND list_bool_or(list_transform(caches, lambda c: c.mechanism = 'recurrent'))
    """).fetchall()
    for (model_id,) in unknown[:3]:
        reasons = whole_book.execute(
            "SELECT total_bytes, unknown_reason FROM footprint_of($id, engine_id := 'transformers') "
            "UNION ALL SELECT total_bytes, unknown_reason FROM footprint_of($id, phase_id := 'lora')",
            {"id": model_id},
        ).fetchall()
        assert all(total is None and reason for total, reason in reasons)


@pytest.mark.some(1)
@pytest.mark.parametrize(("dtype_id", "bytes_each"), [("bf16", 2), ("fp16", 2), ("fp32", 4)])
def test_recurrent_states_are_fp32_and_convolutions_in_the_precision_of_the_step(
    book, footprint_of, dtype_id, bytes_each
):
    """Mamba and gated delta rules as Transformers allocates them: ssm_states in fp32, conv_states in the model's dtype."""
    layers = book.execute(
        "SELECT layer_count, state_elements, conv_state_elements FROM attention_layer WHERE model_id = ? AND state_elements > 0",
        [HYBRID],
    ).fetchall()
    assert layers and all(conv for _, _, conv in layers)
    expected = 3 * sum(count * (4 * state + bytes_each * conv) for count, state, conv in layers)
    assert footprint_of(HYBRID, dtype_id=dtype_id, engine_id="transformers", sequences=3)["state_bytes"] == expected


def test_kernels_that_a_release_warms_up_are_held_by_it_alone(footprint_of):
    """vLLM 0.17 to 0.19 with a gated delta rule: 3.42 and 3.5 GiB by two reports; neither before, after, nor of plain attention."""

    def overhead(model, version):
        asked = {"program": "vllm", "program_version": version, "dtype_id": "bf16", "context_tokens": 8192}
        return footprint_of(model, **asked)["overhead_bytes"]

    for version in ("0.17.1", "0.18", "0.19"):
        assert overhead("Qwen/Qwen3.5-4B", version) - overhead("Qwen/Qwen3.5-4B", "0.20") == 3_704_346_869
    assert overhead("Qwen/Qwen3-8B", "0.18") == overhead("Qwen/Qwen3-8B", "0.20")
