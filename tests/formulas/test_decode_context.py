"""Decode context parallelism of vLLM: copies of a cache among tensor-parallel ranks are dealt out, and nothing else is."""

from __future__ import annotations

import pytest

V3, V32, QWEN, GEMMA = (
    "deepseek-ai/DeepSeek-V3",
    "deepseek-ai/DeepSeek-V3.2",
    "Qwen/Qwen3-235B-A22B",
    "google/gemma-3-27b-it",
)
NAMED = {"engine_id": "vllm", "gpu_count": 8}
OTHERS = ("weights_bytes", "activations_bytes", "state_bytes")


def held(row):
    return row["kv_cache_bytes"] + row["kv_padding_bytes"]


@pytest.mark.some(1)
@pytest.mark.parametrize("degree", [2, 8])
def test_a_rank_holds_whole_blocks_of_its_share_of_a_latent(footprint_of, degree):
    tokens = 100_001
    asked = NAMED | {"dtype_id": "fp8", "context_tokens": tokens, "sequences": 3}
    row, alone = footprint_of(V3, **asked, decode_context_parallel=degree), footprint_of(V3, **asked)
    blocks = -(-tokens // (16 * degree))
    assert held(row) == pytest.approx(3 * blocks * 16 * 61 * 576 * 2, abs=2)
    assert row["kv_cache_bytes"] == pytest.approx(alone["kv_cache_bytes"] / degree, abs=1)
    assert [row[name] for name in OTHERS] == [alone[name] for name in OTHERS]
    # a communicator of its own
    assert row["overhead_bytes"] > alone["overhead_bytes"]


@pytest.mark.full
def test_of_keys_and_values_it_divides_copies_alone(footprint_of):
    """Four KV heads on eight cards are two copies."""
    asked = NAMED | {"context_tokens": 32768}
    row, alone = footprint_of(QWEN, **asked, decode_context_parallel=2), footprint_of(QWEN, **asked)
    assert held(row) == held(alone) / 2
    assert footprint_of(QWEN, **asked, decode_context_parallel=1) == alone


@pytest.mark.full
def test_it_goes_together_with_data_parallel_ranks(footprint_of):
    asked = {"engine_id": "vllm", "dtype_id": "fp8", "context_tokens": 32768, "sequences": 8, "data_parallel": 2}
    ranks = asked | {"tensor_parallel": 4, "expert_parallel": 8}
    assert held(footprint_of(V3, **ranks, decode_context_parallel=4)) == held(footprint_of(V3, **ranks)) / 4


@pytest.mark.full
def test_the_engine_is_told_and_the_versions_are_those_that_were_read(book):
    query = f"""SELECT engine_setting, holds_for FROM fits_on('h200-sxm', '{V3}', dtype_id := 'fp8', engine_id := 'vllm', gpu_count := 8,
        context_tokens := 8192, decode_context_parallel := 8)"""
    assert book.execute(query).fetchall() == [("--decode-context-parallel-size 8", "vLLM 0.20 to 0.33")]


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("model", "scenario", "reason"),
    [
        (V3, {"decode_context_parallel": 3}, "tensor_parallel 8 is no multiple of decode_context_parallel 3"),
        (V3, {"decode_context_parallel": 0}, "start at 1"),
        (V3, {"decode_context_parallel": 2, "engine_id": "sglang"}, "engine_id := vllm"),
        (V3, {"decode_context_parallel": 2, "program": "vLLM", "program_version": "0.19.1"}, "program_version := 0.20"),
        (V3, {"decode_context_parallel": 2, "phase_id": "pretrain", "engine_id": None}, "belongs to the phases of inference"),
        (V32, {"decode_context_parallel": 2}, "attention that picks its tokens was not read"),
        (QWEN, {"decode_context_parallel": 4}, "with 4 KV heads needs tensor_parallel 16 or more"),
        (GEMMA, {"decode_context_parallel": 2}, "every layer keeps the whole context"),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", {"decode_context_parallel": 2}, "every layer keeps the whole context"),
    ],
)  # fmt: skip
def test_what_cannot_be_says_why(footprint_of, model, scenario, reason):
    row = footprint_of(model, **(NAMED | {"dtype_id": "bf16"} | scenario))
    assert reason in row["unknown_reason"]
    assert row["total_bytes"] is None
