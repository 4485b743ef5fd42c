"""A server that is told to capture no graphs (--enforce-eager of vLLM, --disable-cuda-graph of SGLang)."""

from __future__ import annotations

import pytest

DENSE, LATENT, EXPERTS = "Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-30B-A3B"
NAMED = {"dtype_id": "bf16", "context_tokens": 8192}


def test_no_graphs_are_held(book, footprint_of):
    """Everything else is what it was: in vLLM 0.45 GiB and a part for each layer go, of experts half a GiB more."""
    layer, whole, experts = (
        book.execute("SELECT value FROM constant WHERE constant_id = $1", [name]).fetchall()[0][0]
        for name in ("vllm_graphs_bytes_per_layer", "vllm_graphs_bytes", "vllm_graphs_experts_bytes")
    )
    for model, graphs in ((DENSE, whole + 36 * layer), (EXPERTS, whole + 48 * layer + experts)):
        usual, eager = (
            footprint_of(model, engine_id="vllm", **NAMED, **said) for said in ({}, {"enforce_eager": True})
        )
        assert usual["total_bytes"] - eager["total_bytes"] == pytest.approx(graphs, abs=2)
        assert usual["overhead_bytes"] - eager["overhead_bytes"] == usual["total_bytes"] - eager["total_bytes"]


def test_nothing_compiles_so_that_a_first_start_lacks_nothing(footprint_of):
    usual, eager = (footprint_of(DENSE, engine_id="vllm", **NAMED, **said) for said in ({}, {"enforce_eager": True}))
    assert usual["error_band"] > eager["error_band"] == pytest.approx(0.05)


def test_sglang_and_the_first_engine_of_vllm_hold_none_either(footprint_of):
    for model, engine, mib, more in (
        (DENSE, "sglang", 976, {}),
        (LATENT, "sglang", 976 + 512 + 1072, {"gpu_count": 8, "dtype_id": "fp8"}),
        (DENSE, "vllm-0.8", 614.4, {}),
    ):
        said = {**NAMED, "engine_id": engine, **more}
        usual, eager = (footprint_of(model, **said, **eagerly) for eagerly in ({}, {"enforce_eager": True}))
        assert usual["overhead_bytes"] - eager["overhead_bytes"] == pytest.approx(mib * 2**20, abs=2)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"engine_id": "llama.cpp", "dtype_id": "gguf-q4_k_m"}, "enforce_eager is of vLLM and SGLang"),
        ({"engine_id": "transformers"}, "enforce_eager is of vLLM and SGLang"),
        ({"phase_id": "lora"}, "enforce_eager"),
    ],
)
def test_others_have_no_such_setting(footprint_of, said, reason):
    asked = footprint_of(DENSE, **({"context_tokens": 2048} | said), enforce_eager=True)
    assert asked["total_bytes"] is None and reason in asked["unknown_reason"]
    assert footprint_of(DENSE, **({"context_tokens": 2048} | said), enforce_eager=False)["total_bytes"]
