"""LitGPT's engines against their own steps that were really run: LoRA, QLoRA, full fine-tuning, prompts (tests/oracle/litgpt_peaks.csv)."""

from __future__ import annotations

import re

import pytest

from tests.formulas import step_account

UNDER, OVER = -0.002, 0.004
ASKED = {
    "model_id": "meta-llama/Llama-3.1-8B", "phase_id": "lora", "engine_id": "litgpt", "precision": "pure",
    "checkpointing": "none", "loss": "chunked", "lora_targets": "query-value", "context_tokens": 512, "dtype_id": "bf16", "gpu_count": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def judged():
    return step_account.judged("litgpt_peaks.csv")


def test_peaks_are_those_of_its_steps(judged):
    assert len(judged) >= 91
    assert not [(step_account.said(row), row["reason"]) for row in judged if row["error"] is None]
    outside = [f"{step_account.said(row)}: {row['error']:+.2%}" for row in judged if not UNDER <= row["error"] <= OVER]
    assert not outside


def test_adapters_have_as_many_parameters_as_it_gives_them(judged):
    # in the dtype of the weights, 2 bytes
    assert not [step_account.said(row) for row in judged if row["adapters_bytes"] != 2 * int(row["adapter_parameters"])]


@pytest.mark.full
def test_what_was_not_counted_in_its_code_has_a_reason(footprints):
    """Other models, recipes and phases than those of litgpt_peaks.csv; the first is one of them."""
    others = [
        {}, {"precision": "mixed"}, {"loss": "full"}, {"checkpointing": "full"},
        {"phase_id": "qlora", "dtype_id": "int8"}, {"gpu_count": 2}, {"phase_id": "pretrain", "lora_targets": None},
        {"model_id": "bigscience/bloom-560m"}, {"model_id": "mistralai/Mistral-7B-v0.1"},
    ]  # fmt: skip
    known, *unknown = footprints([ASKED | other for other in others])
    assert known["total_bytes"] > 0 and known["unknown_reason"] is None
    assert [row["total_bytes"] for row in unknown] == [None] * len(unknown)
    reasons = [row["unknown_reason"] for row in unknown]
    assert [reason.startswith("litgpt is answered for in pure 16 bits") for reason in reasons[:3]] == [True] * 3
    assert all("litgpt" in reason for reason in reasons)


@pytest.mark.full
def test_prompts_are_adapters_of_litgpt_alone(footprints):
    """LLaMA-Adapter: its elements do not depend on a rank, and what was not counted has a reason."""
    prompted = ASKED | {"adapter": "llama-adapter", "lora_rank": 16}
    others = [
        {}, {"lora_rank": 64}, {"adapter": "llama-adapter-v2"}, {"model_id": "google/gemma-2b"}, {"engine_id": "transformers"},
        {"adapter": "llama-adapter-v2", "engine_id": "litgpt-0.4"},
    ]  # fmt: skip
    known, ranked, scaled, *unknown = footprints([prompted | other for other in others])
    assert known["adapters_bytes"] == ranked["adapters_bytes"] == 2 * 30 * (10 * 4096 + 32)
    assert scaled["total_bytes"] > known["total_bytes"] > 0
    assert [row["total_bytes"] for row in unknown] == [None] * 3
    assert all("litgpt" in row["unknown_reason"] for row in unknown)


def test_a_prompt_is_met_closer_than_a_step(judged):
    """Nothing but what is there at once: the cache of all heads, the mask, logits in fp32, a matrix that is taken apart."""
    read = [row for row in judged if row["phase_id"] == "inference"]
    assert {row["engine_id"] for row in read} == {"litgpt", "litgpt-0.4"} and len(read) >= 22
    assert not [step_account.said(row) for row in read if not -0.0005 <= row["error"] <= 0.0005]


def test_what_was_not_read_of_its_generation_has_a_reason(footprints):
    generated = {
        "model_id": "meta-llama/Llama-3.1-8B",
        "phase_id": "inference",
        "engine_id": "litgpt",
        "dtype_id": "bf16",
    }
    generated |= {"context_tokens": 512, "gpu_count": 1, "attention": "flash"}
    others = [
        {}, {"dtype_id": "gguf-q4_k_m"}, {"gpu_count": 2}, {"model_id": "bigscience/bloom-560m"},
        {"model_id": "mistralai/Mistral-7B-v0.1"}, {"attention": "masked"}, {"engine_id": "autoawq-0.1.6"},
    ]  # fmt: skip
    known, *unknown = footprints([generated | other for other in others])
    assert known["unknown_reason"] is None
    assert [row["total_bytes"] for row in unknown] == [None] * len(unknown)
    assert all(re.search("litgpt|autoawq", row["unknown_reason"]) for row in unknown)


@pytest.mark.full
def test_a_qlora_has_a_verdict_where_its_kernels_run(book):
    """Neither release of bitsandbytes that was read has kernels for a card of compute capability 12.0."""
    query = """SELECT said.card, verdict FROM (SELECT unnest(['rtx-4090', 'h100-sxm', 'rtx-5090']) AS card) AS said, LATERAL (FROM fits_on(
        said.card, 'meta-llama/Llama-3.1-8B', phase_id := 'qlora', program := 'litgpt', program_version := $1))"""
    for release in ("0.4", "0.5.13"):
        verdicts = dict(book.execute(query, [release]).fetchall())
        assert verdicts.pop("rtx-4090") is not None and verdicts == {"h100-sxm": "fits", "rtx-5090": None}
