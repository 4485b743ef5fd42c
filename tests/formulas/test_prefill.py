"""Prefill in Transformers: peaks of the real library under fake tensors (source transformers-step-oracle), weights included.

tests/oracle/prefill.csv holds one row per run: a prompt's forward that asks for the last token's logits, encoders for all.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.formulas import step_account

ROWS = list(
    csv.DictReader((Path(__file__).parents[1] / "oracle" / "prefill.csv").read_text(encoding="utf-8").splitlines())
)
TOLERANCE = 0.005
MIB = 1 << 20


@pytest.fixture(scope="module")
def answers(footprints):
    scenarios = [
        {name: row[name] for name in ("model_id", "dtype_id", "attention")}
        | {name: int(row[name]) for name in ("context_tokens", "sequences")}
        | {"engine_id": "transformers", "max_context_tokens": int(row["context_tokens"])}
        for row in ROWS
    ]
    # fake tensors run beyond learned positions, which a real step cannot
    both = [
        (row, answer)
        for row, answer in zip(ROWS, footprints(scenarios), strict=True)
        if "positions that this model has learned" not in (answer["unknown_reason"] or "")
    ]
    assert len(both) > 0.8 * len(ROWS)
    return both


def test_peaks_of_prefill_are_those_of_the_library(answers):
    outside = []
    for row, answer in answers:
        peak, predicted = int(row["peak_bytes"]), answer["total_bytes"] - answer["overhead_bytes"]
        if abs(predicted / peak - 1) > TOLERANCE:
            outside.append(
                (row["model_id"], row["dtype_id"], row["attention"], row["context_tokens"], predicted / peak - 1)
            )
    assert not outside


def test_half_of_the_activations_are_within_a_thousandth_of_the_peak(answers):
    """Weights hide what is wrong with activations; most rows must be far better than the tolerance."""
    errors = sorted(
        abs((answer["total_bytes"] - answer["overhead_bytes"]) / int(row["peak_bytes"]) - 1) for row, answer in answers
    )
    assert errors[len(errors) // 2] < 0.0002
    assert errors[int(len(errors) * 0.9)] < 0.002


@pytest.mark.full
def test_prompts_beyond_a_window_have_their_mask():
    """prefill_windowed.csv: models with sliding windows, embeddings per layer and routers with scales, by count_prefill.py."""
    rows = step_account.prefill("prefill_windowed.csv")
    assert len(rows) > 20
    outside = [
        (row["model"], row["context_tokens"], f"{row['error']:+.2%}")
        for row in rows
        if not -0.005 <= row["error"] <= 0.06
    ]
    assert not outside
    assert sorted(abs(row["error"]) for row in rows)[len(rows) // 2] < 0.01


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("kind", "least", "most_beyond"),
    [("windowed", 24, 0), ("recurrent", 39, 0), ("boundary", 60, 0), ("eager", 55, 4 * MIB), ("activations", 132, 0)],
)
def test_no_prompt_reserves_more_than_is_told_with_its_band(kind, least, most_beyond):
    """By the emulated allocator; `most_beyond` is of prompts below 100 MiB: Gemma 2 with 127 tokens, which take 9 MiB, reserves 3 MiB more."""
    rows = step_account.prefill(f"prefill_{kind}.csv")
    assert len(rows) >= least
    assert all(int(row["peak_bytes"]) <= int(row["reserved_bytes"]) for row in rows)
    assert max(row["beyond"] for row in rows if row["activations_bytes"] >= 100 * MIB) <= 0
    assert max(row["beyond"] for row in rows) <= most_beyond


@pytest.mark.full
def test_packed_weights_are_unpacked_beside_what_the_block_has_put_out(footprints):
    """AutoAWQ from 1024 tokens on and AutoGPTQ's 8-bit kernels take a matrix apart for its product, 4-bit GPTQ into a buffer that stays."""
    model_id, hidden, wide, layers = "Qwen/Qwen2.5-7B-Instruct", 3584, 18944, 28
    matrix = hidden * wide

    def activations(dtype_id, tokens, **asked):
        scenario = {
            "model_id": model_id,
            "dtype_id": dtype_id,
            "engine_id": "transformers",
            "context_tokens": tokens,
        } | asked
        return footprints([scenario])[0]["activations_bytes"]

    assert activations("gptq-int4", 1) - activations("bf16", 1) == 2 * matrix
    assert activations("gptq-int4", 8192) - activations("bf16", 8192) == 2 * matrix
    # a prompt shorter than the residual stream is wide: the unpacked matrix counts; a longer one: gate, up and product
    assert activations("awq-int4", 1024) >= 2 * matrix + 1024 * 2 * 2 * wide > activations("bf16", 1024)
    assert activations("awq-int4", 8192) == activations("bf16", 8192)
    assert activations("awq-int4", 1023) >= 1023 * 2 * 10 * wide  # 8 partial sums, their sum and the gate
    assert activations("gptq-int8", 128) >= 6 * matrix > activations("gptq-int8", 127)
    tables = layers * 32768 * 2 * 128 * 2
    assert activations("bf16", 1, engine_id="transformers-4.44", model_id="Qwen/Qwen2-7B-Instruct") >= tables


def test_rotations_of_a_context_that_nobody_knows_have_no_answer(book, footprints):
    (model,) = book.execute(
        "SELECT model_id FROM model WHERE max_context_tokens IS NULL AND model_type = 'llama' AND anatomy_grade = 'matched' "
        "ORDER BY downloads_30d DESC, model_id LIMIT 1"
    ).fetchall()[0]
    asked = {"dtype_id": "bf16", "context_tokens": 1024, "model_id": model}
    old, new = footprints([asked | {"engine_id": name} for name in ("transformers-4.44", "transformers")])
    assert new["total_bytes"] and old["total_bytes"] is None
    assert "how many this one has is not known" in old["unknown_reason"]


def test_logits_of_a_whole_prompt_leave_no_share_of_themselves_unused(footprints):
    """They are two blocks of their own; what lies unused beside them was a layer's, however long the vocabulary is."""
    asked = {"model_id": "Qwen/Qwen2-7B-Instruct", "dtype_id": "bf16", "context_tokens": 30720}
    old, new = footprints([asked | {"engine_id": name} for name in ("transformers-4.44", "transformers")])
    assert old["activations_bytes"] > 5 * new["activations_bytes"]
    unused_new = new["activations_bytes"] / 2
    assert unused_new < old["overhead_bytes"] < 4 * unused_new
    # what is not known is a share of a layer's too
    assert (old["error_band"] - 0.03) * old["total_bytes"] < new["activations_bytes"] < old["activations_bytes"] / 5


@pytest.mark.full
def test_every_activation_function_and_all_that_written_out_attention_names_is_counted():
    """prefill_activations.csv: GPT-2's kin and others whose code keeps results by name, in both precisions, by count_prefill.py."""
    rows = step_account.prefill("prefill_activations.csv")
    assert len(rows) > 90
    assert {"bloom", "gptj", "codegen", "gpt_neo", "mpt", "xglm", "apertus", "nemotron"} <= {
        row["model"] for row in rows
    }
    outside = [
        (row["model"], row["dtype_id"], row["context_tokens"], row["sequences"], f"{row['error']:+.2%}")
        for row in rows
        if not -0.014 < row["error"] < 0.05
    ]
    assert not outside
    errors = sorted(abs(row["error"]) for row in rows)
    assert errors[len(errors) // 2] < 0.002
