"""What tensor-parallel GPUs of vLLM hold outside PyTorch, which logs say of machines as differently as 0.74 and 2.21 GiB."""

from __future__ import annotations

import pytest

GIB = 2**30
LLAMA = {"model_id": "meta-llama/Llama-3.1-8B-Instruct", "dtype_id": "bf16", "engine_id": "vllm", "gpu_count": 2}


@pytest.fixture(scope="module")
def held(footprints):
    asked = {"alone": {"gpu_count": 1}, "tensors": {}, "stages": {"pipeline_parallel": 2}}
    return {name: footprints([LLAMA | said])[0] for name, said in asked.items()}


def test_the_least_is_counted_and_the_rest_is_in_the_band(held):
    """0.74 GiB on 2 × RTX 3090, up to 2.21 on H100; of stages, which talk less, a log says 0.07."""
    beyond = {name: (row["error_band"] - 0.05) * row["total_bytes"] for name, row in held.items()}
    assert beyond["tensors"] == pytest.approx((2.21 - 0.74) * GIB, rel=0.001)
    first_start = 0.83 * GIB  # (test_servers.py)
    assert beyond["alone"] == beyond["stages"] == pytest.approx(first_start, rel=0.001)
    graphs = 16 * 18_906_382  # of the layers that a stage has not
    assert held["tensors"]["overhead_bytes"] == pytest.approx(held["stages"]["overhead_bytes"] + graphs, rel=0.01)


def test_two_cards_are_told_what_a_log_says_of_them(held):
    """vLLM 0.19.0, 2 × H100, all defaults: 7.51 GiB of weights, 1.89 at the peak, 2.07 outside PyTorch, 0.76 of graphs (1,024 requests,
    where 256 are counted)."""
    row = held["tensors"]
    without_cache = row["total_bytes"] * (1 + row["error_band"]) - row["kv_cache_bytes"] - row["kv_padding_bytes"]
    more_requests = (1024 - 256) * 128_256 * 15.5  # bytes a logit of the sampler in that release
    assert without_cache > (7.51 + 1.89 + 2.07 + 0.76) * GIB - more_requests
