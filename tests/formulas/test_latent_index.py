"""Latents with an index in vLLM (DeepSeek-V3.2, GLM-5): what its logs say of the cache, and what stands beside it."""

from __future__ import annotations

import pytest

NEWER, OLDER, DEEPSEEK = "zai-org/GLM-5.3", "zai-org/GLM-5", "deepseek-ai/DeepSeek-V3.2"
GIB, LONGEST = 2**30, 1_048_576
PACKED, KEY = 512 + 16 + 64 * 2, 128 + 4  # v1/kv_cache_interface.py, models/deepseek_v2.py


@pytest.fixture(scope="module")
def held(footprints):
    usual = {"model_id": NEWER, "dtype_id": "fp8", "engine_id": "vllm", "context_tokens": 138_496, "gpu_count": 8}
    usual |= {"kv_dtype_id": "fp8", "sequences": 1}
    asked = {
        "log": {},
        "whole": {"context_tokens": LONGEST},
        "sixteen": {"kv_dtype_id": "bf16"},
        "sixteen whole": {"kv_dtype_id": "bf16", "context_tokens": LONGEST},
        "older": {"model_id": OLDER, "context_tokens": 202_752},
        "deepseek": {"model_id": DEEPSEEK, "context_tokens": 131_072, "kv_dtype_id": "bf16"},
        "two": {"gpu_count": 2},
        "sglang": {"engine_id": "sglang", "kv_dtype_id": "bf16"},
    }
    return dict(zip(asked, footprints([usual | scenario for scenario in asked.values()]), strict=True))


def test_a_packed_cache_is_what_was_stored_of_it(held):
    """vllm-project/recipes pull request 893: 59,763,793,920 bytes on 8 ranks, of whole blocks of 64 tokens of a prompt of 138,615."""
    assert 8 * held["log"]["kv_cache_bytes"] == 59_763_793_920 == 8 * 138_496 * (78 * PACKED + 21 * KEY)


def test_of_a_model_whose_layers_all_have_an_index_a_log_says_the_tokens(held):
    """vllm-project/vllm issue 44545: 434,048 tokens in 24.85 GiB."""
    row = held["older"]
    assert 434_048 * row["kv_cache_bytes"] / row["context_tokens"] / GIB == pytest.approx(24.85, abs=0.005)


def test_index_keys_are_in_8_bits_whatever_the_cache_is_in(held):
    assert held["sixteen"]["kv_cache_bytes"] == 138_496 * (78 * 576 * 2 + 21 * KEY)
    assert held["deepseek"]["kv_cache_bytes"] == 131_072 * 61 * (576 * 2 + KEY)
    # (of SGLang nobody read it: as the config says)
    assert held["sglang"]["kv_cache_bytes"] == 138_496 * (78 * 576 + 21 * 128) * 2


def test_what_picks_latents_grows_with_the_context_and_stands_beside_the_cache(held):
    """flashmla_sparse.py: five contexts unpacked, of a packed cache; indexer.py: forty of keys; 512 captured rows of logits."""
    more = LONGEST - 138_496
    grown = lambda a, b: held[a]["overhead_bytes"] - held[b]["overhead_bytes"]  # noqa: E731
    assert grown("whole", "log") == more * (5 * 576 * 2 + 512 * 4)
    assert grown("sixteen whole", "sixteen") == more * (40 * KEY + 512 * 4)


def test_few_heads_keep_copies_of_values(held):
    """vllm-project/vllm pull request 49357: two copies of 64 × 512 × 4 bytes for each token of a step; 64 heads on two GPUs are 32."""
    copies = 2 * 8192 * 64 * 512 * 4
    assert held["log"]["overhead_bytes"] - held["two"]["overhead_bytes"] == copies


def test_eight_cards_hold_beside_the_cache_what_a_log_says(held):
    """recipes pull request 893, 8 × H200, the whole context: 25.94 GiB were left for the cache, of 128.6 if the share was 0.28's own, 0.92."""
    row = held["whole"]
    beside = (row["total_bytes"] - row["kv_cache_bytes"] - row["kv_padding_bytes"]) / GIB
    assert beside == pytest.approx(102.7, rel=0.03)


def test_what_rocm_sets_aside_is_within_the_band(held):
    """vllm-project/vllm issue 55132: 4 bytes for each token of a step and of the context, 32 GiB."""
    row = held["whole"]
    assert row["error_band"] * row["total_bytes"] > 32 * GIB + 0.05 * row["total_bytes"]


@pytest.mark.full
def test_many_images_are_encoded_a_step_at_a_time(footprints):
    """vLLM encodes in one step no more than its profile did, however many requests bring an image."""
    usual = {"model_id": "Qwen/Qwen3-VL-8B-Instruct", "dtype_id": "bf16", "engine_id": "vllm", "context_tokens": 4096}
    one, many = footprints([usual | {"images": 1, "sequences": n} for n in (1, 128)])
    assert one["activations_bytes"] == many["activations_bytes"]
