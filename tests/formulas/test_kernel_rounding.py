"""What vLLM's kernels add to experts in MXFP4: hidden size and width rounded up, on every GPU."""

from __future__ import annotations

import pytest

MODEL, LAYERS, EXPERTS, SIDE = "openai/gpt-oss-120b", 36, 128, 2880  # as wide as its hidden size


def _experts(hidden, width):
    return LAYERS * EXPERTS * 3 * hidden * width * 4.25 / 8


@pytest.fixture(scope="module")
def held(footprints):
    asked = [
        {"model_id": MODEL, "dtype_id": dtype, "engine_id": engine, "context_tokens": 4096, "gpu_count": count}
        for dtype, engine, count in [
            ("mxfp4", "vllm", 1), ("stored", "vllm", 1), ("mxfp4", "vllm", 8), ("mxfp4", "sglang", 1), ("bf16", "vllm", 1),
        ]
    ]  # fmt: skip
    return footprints(asked)


def test_experts_are_as_large_as_the_kernel_takes_them(held):
    one, _, eight, plain, _ = held
    assert one["weights_bytes"] - plain["weights_bytes"] == pytest.approx(
        _experts(3072, 2944) - _experts(SIDE, SIDE), abs=2
    )
    # an eighth of the width is 360, which is rounded on every GPU
    assert eight["weights_bytes"] > _experts(3072, 384)


def test_a_checkpoint_as_published_needs_what_its_format_needs(held):
    """`stored` is what the repository holds; what the kernels add to it is overhead."""
    one, stored, *_ = held
    assert stored["total_bytes"] == pytest.approx(one["total_bytes"], rel=1e-4)
    assert stored["weights_bytes"] < one["weights_bytes"] - 5e9


def test_cards_whose_kernels_round_further_are_in_the_band_and_what_loading_takes(held):
    """TensorRT-LLM pull 16125 measured 9.3 GiB of temporaries while a layer of this model is laid out anew on an H100."""
    one, *_, unpacked = held
    further = _experts(3072, 3072) - _experts(3072, 2944)
    beyond = (one["error_band"] - unpacked["error_band"]) * one["total_bytes"] - further
    assert beyond / 2**30 == pytest.approx(9.3, abs=0.1)
