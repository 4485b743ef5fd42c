"""vLLM's pool, whose pages layers of all kinds share: what a request holds of it, against vLLM's own rule counted page by page.

The rule is that of the source vllm-shared-pages: groups of as many layers as the rarest kind has, a page of attention that holds a state, two pages of
states a request. Gemma 3 27B is also what a start-up log says (70 slots for 62 layers).
"""

from __future__ import annotations

import math

import pytest

GIB = 2**30
BLOCK, WINDOW_TOKENS, BATCHED = 16, 1024, 8192
# layers with tokens, bytes of one token in one of them, layers with states, bytes of a state of one (fp32, and the inputs of a convolution)
HYBRIDS = {
    "Qwen/Qwen3.6-27B": (16, 2 * 4 * 256 * 2, 48, 48 * 128 * 128 * 4 + 10_240 * 4 * 2),
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (6, 2 * 2 * 128 * 2, 23, 64 * 64 * 128 * 4 + 6_144 * 4 * 2),
}


def pages(context_tokens: int, layers: int, token_bytes: int, states: int, state_bytes: int) -> int:
    """Bytes that a request holds, in whole pages of a group's layers."""
    page_tokens = BLOCK * math.ceil(state_bytes / (BLOCK * token_bytes))
    groups = math.ceil(states / layers)
    return (math.ceil(context_tokens / page_tokens) + 2 * groups) * layers * page_tokens * token_bytes


@pytest.fixture(scope="module")
def held(footprints):
    asked = [
        {"model_id": model, "context_tokens": context, "sequences": sequences, "engine_id": engine, "dtype_id": "bf16"}
        for model in HYBRIDS
        for engine in ("vllm", "transformers")
        for context in (8_192, 131_072)
        for sequences in (1, 8)
    ]
    asked += [
        {
            "model_id": "google/gemma-3-27b-it",
            "context_tokens": 4_096,
            "sequences": 1,
            "engine_id": "vllm",
            "dtype_id": "bf16",
        }
    ]
    return [
        (scenario, row["kv_cache_bytes"] + row["kv_padding_bytes"] + row["state_bytes"], row)
        for scenario, row in zip(asked, footprints(asked), strict=True)
    ]


def test_a_hybrid_holds_whole_pages_and_two_of_states(held):
    asked = [each for each in held if each[0]["model_id"] in HYBRIDS and each[0]["engine_id"] == "vllm"]
    assert len(asked) == 8
    for scenario, told, _ in asked:
        layers, token_bytes, _states, state_bytes = shape = HYBRIDS[scenario["model_id"]]
        counted = scenario["sequences"] * pages(scenario["context_tokens"], *shape)
        page = scenario["sequences"] * layers * (math.ceil(state_bytes / token_bytes) + BLOCK) * token_bytes
        assert counted <= told <= counted + page, scenario


def test_an_engine_with_memory_for_each_layer_holds_one_state(held):
    for scenario, _told, row in held:
        if scenario["engine_id"] == "transformers":
            layers, token_bytes, states, state_bytes = HYBRIDS[scenario["model_id"]]
            tokens = scenario["sequences"] * scenario["context_tokens"] * layers * token_bytes
            assert (
                row["kv_cache_bytes"] == tokens and row["state_bytes"] == scenario["sequences"] * states * state_bytes
            )


def test_groups_of_windows_are_padded_to_the_rarest_kind(held):
    [told] = [told for scenario, told, _ in held if scenario["model_id"].startswith("google/")]
    token_bytes = 2 * 16 * 128 * 2
    windows = math.ceil(min(4_096, WINDOW_TOKENS - 1 + BATCHED) / BLOCK) + 1
    assert told == (4_096 * 10 + windows * BLOCK * 60) * token_bytes
    assert told / GIB == pytest.approx(2.195, abs=0.0005)  # of a log of vLLM 0.11: 109.86 GiB for 50.05 requests
