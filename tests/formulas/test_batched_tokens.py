"""How many tokens vLLM reads in a step (--max-num-batched-tokens), and of how many requests (--max-num-seqs): figures are of what it is told."""

from __future__ import annotations

import pytest

EXPERTS, WINDOWED, SEEING = "Qwen/Qwen3-30B-A3B", "google/gemma-3-27b-it", "Qwen/Qwen2.5-VL-7B-Instruct"
HYBRID = "Qwen/Qwen3.8-27B-FP8"
NAMED = {"engine_id": "vllm", "dtype_id": "bf16", "context_tokens": 32768}


def test_the_work_space_of_experts_is_of_the_tokens_of_a_step(footprint_of):
    """Nobody said is 8,192. A quarter of it is a quarter of what experts work in; logits of 256 requests stay."""
    usual, small, least = (footprint_of(EXPERTS, **NAMED, **said)["activations_bytes"] for said in ({}, *TOLD))
    assert footprint_of(EXPERTS, **NAMED, batched_tokens=8192)["activations_bytes"] == usual
    # 8 experts of 768 for each token: twice the hidden size or what is inside, whichever is wider, in 16 bits
    assert usual - small == pytest.approx(6144 * 8 * (2048 + 2048) * 2, abs=2)
    assert small - least == pytest.approx(1024 * 8 * (2048 + 2048) * 2, abs=2)


TOLD = ({"batched_tokens": 2048}, {"batched_tokens": 1024})


def test_a_window_holds_the_tokens_of_two_steps(footprint_of):
    """As vLLM keeps them from 0.26 on, so that half of 8,192 is what figures count where nobody says."""
    usual, half, whole = (
        footprint_of(WINDOWED, **NAMED, **said) for said in ({}, {"batched_tokens": 4096}, {"batched_tokens": 8192})
    )
    assert half["kv_padding_bytes"] == usual["kv_padding_bytes"] < whole["kv_padding_bytes"]
    layers, bytes_each = 60, 2 * 16 * 128 * 2  # 52 of a window, in groups of the ten that read all
    assert whole["kv_padding_bytes"] - half["kv_padding_bytes"] == 8192 * layers * bytes_each


def test_a_window_held_the_tokens_of_one_step_before(footprint_of):
    """Up to 0.25. A report of 0.24 with 4,096 runs where a second step would not have had room (club-3090-benchmarks-md-4)."""
    asked = NAMED | {"program": "vllm", "batched_tokens": 4096}
    old, new, newest = (
        footprint_of(WINDOWED, **asked, **said)["kv_padding_bytes"]
        for said in ({"program_version": "0.25"}, {"program_version": "0.26"}, {})
    )
    assert new - old == 4096 * 60 * 2 * 16 * 128 * 2 and new == newest


def test_few_requests_set_few_logits_aside_and_capture_fewer_graphs(book, footprint_of):
    """Qwen3.8-27B in FP8 on an L40S kept 9.75 GiB for its cache at 16 requests, 8.82 at 256 (vllm-few-requests): both are held."""
    named = {"program": "vllm", "dtype_id": "fp8", "context_tokens": 131072, "images": 1, "program_version": "0.26"}
    context, logit = book.execute(
        "SELECT process_context_bytes, vllm_sampler_bytes_per_logit FROM constants"
    ).fetchall()[0]
    usual, few = (footprint_of(HYBRID, **named, **said) for said in ({}, {"max_num_seqs": 16}))
    for row, kept in ((usual, 8.82), (few, 9.75)):
        beside = row["activations_bytes"] + row["overhead_bytes"] - context
        assert beside >= (0.9 * 44.39 - 28.51 - kept) * 2**30
    assert usual["overhead_bytes"] - few["overhead_bytes"] > 0.7 * 2**30
    text = NAMED | {"context_tokens": 4096}
    logits = [footprint_of(HYBRID, **text, max_num_seqs=n)["activations_bytes"] for n in (512, 1024)]
    assert logits[1] - logits[0] == pytest.approx(512 * 248320 * logit, rel=1e-6)


def test_a_tower_whose_queries_a_kernel_rotates_has_no_copies_of_them_in_fp32(footprint_of):
    """From 0.17 on. Its widest moment then is the feed-forward block: of 65,536 patches three of it, four hidden tensors, tables and pixels."""
    named = NAMED | {"program": "vllm", "images": 1}
    old, new = (footprint_of(SEEING, **named, program_version=v)["activations_bytes"] for v in ("0.16", "0.17"))
    assert new == 2 * 65536 * (3 * 3420 + 4 * 1280 + 328 + 1176) < old == 2 * 65536 * (17 * 1280 + 328 + 1176)


@pytest.mark.full
def test_an_image_larger_than_a_step_is_profiled_alone(footprint_of):
    images = NAMED | {"images": 1}
    usual = footprint_of(SEEING, **images)
    assert footprint_of(SEEING, **images, batched_tokens=2048)["activations_bytes"] == usual["activations_bytes"]
    assert footprint_of(SEEING, **images, batched_tokens=32768)["activations_bytes"] > usual["activations_bytes"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"max_num_seqs": 4, "sequences": 5}, "max_num_seqs := 5 or more"),
        ({"max_num_seqs": 4, "engine_id": "sglang"}, "max_num_seqs is of vLLM from 0.11 on"),
        ({"batched_tokens": 127, "max_num_seqs": 128}, "batched_tokens := 128 or more"),
        ({"batched_tokens": 255}, "batched_tokens := 256 or more"),
        ({"batched_tokens": 512, "sequences": 600}, "batched_tokens := 600 or more"),
        ({"batched_tokens": 2048, "engine_id": "sglang"}, "batched_tokens is of vLLM from 0.11 on"),
        ({"batched_tokens": 2048, "engine_id": "vllm-0.8"}, "batched_tokens is of vLLM from 0.11 on"),
    ],
)
def test_what_it_does_not_start_with_has_a_reason(footprint_of, said, why):
    row = footprint_of(EXPERTS, **NAMED | said)
    assert row["total_bytes"] is None and why in row["unknown_reason"]


def test_a_training_reads_no_steps(footprint_of):
    row = footprint_of(EXPERTS, phase_id="lora", batched_tokens=2048)
    assert "batched_tokens belongs to the phases of inference" in row["unknown_reason"]
