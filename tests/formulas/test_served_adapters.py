"""Slots for adapters that vLLM sets aside when it starts (--enable-lora, --max-loras, --max-lora-rank)."""

from __future__ import annotations

import pytest

from pipeline.book.facts import read_facts

NAMED = {"engine_id": "vllm", "dtype_id": "bf16", "context_tokens": 4096}
# what each model's config.json says
SIZES = {
    "Qwen/Qwen3-8B": {"hidden": 4096, "heads": 32, "keys": 8, "dim": 128, "inner": 12288, "layers": 36},
    "meta-llama/Llama-3.2-1B-Instruct": {
        "hidden": 2048,
        "heads": 32,
        "keys": 8,
        "dim": 64,
        "inner": 8192,
        "layers": 16,
    },
    "Qwen/Qwen3-30B-A3B": {
        "hidden": 2048,
        "heads": 32,
        "keys": 4,
        "dim": 128,
        "inner": 768,
        "layers": 48,
        "experts": 128,
    },
    "mistralai/Mistral-7B-Instruct-v0.3": {
        "hidden": 4096,
        "heads": 32,
        "keys": 8,
        "dim": 128,
        "inner": 14336,
        "layers": 32,
    },
    "microsoft/Phi-3-mini-4k-instruct": {
        "hidden": 3072,
        "heads": 32,
        "keys": 32,
        "dim": 96,
        "inner": 8192,
        "layers": 32,
    },
}
VOCABULARIES = {
    "Qwen/Qwen3-8B": 151936,
    "meta-llama/Llama-3.2-1B-Instruct": 128256,
    "Qwen/Qwen3-30B-A3B": 151936,
    "microsoft/Phi-3-mini-4k-instruct": 32064,
}  # of those whose class has embedding_modules (models/llama.py:479, qwen3.py:288, qwen3_moe.py:561; mistral.py:238 has none)
JOINED = {
    "microsoft/Phi-3-mini-4k-instruct"
}  # models/phi3.py:11: one adapter for queries, keys and values, one for gate and up


def allocated(model_id: str, ranks: int, slots: int, rank: int) -> int:
    """Elements of every tensor that vLLM 0.33.0 allocates, layer by layer as its classes do; files are those of vllm/lora/layers."""
    of = SIZES[model_id]
    heads, inner = of["heads"] // ranks * of["dim"], of["inner"] // ranks
    keys = max(1, of["keys"] // ranks) * of["dim"]  # column_parallel_linear.py: MergedQKVParallelLinearWithLoRA

    def by_columns(inputs: int, *slices: int) -> int:  # column_parallel_linear.py:224-245: A and B of each slice
        return sum(slots * rank * inputs + slots * width * rank for width in slices)

    def by_rows(inputs: int, outputs: int) -> int:  # row_parallel_linear.py:27, base_linear.py:133-154
        return slots * rank * (inputs // ranks) + slots * outputs * rank

    if model_id in JOINED:
        layer = by_columns(of["hidden"], heads + 2 * keys) + by_columns(of["hidden"], 2 * inner)
    else:
        layer = by_columns(of["hidden"], heads, keys, keys)
        layer += 0 if "experts" in of else by_columns(of["hidden"], inner, inner)
    layer += by_rows(of["heads"] * of["dim"], of["hidden"])
    if "experts" in of:  # fused_moe.py:177-230; the router is a ReplicatedLinear
        each = slots * of["experts"]
        layer += (
            2 * each * rank * of["hidden"] + each * rank * inner + 2 * each * inner * rank + each * of["hidden"] * rank
        )
        layer += slots * rank * (of["hidden"] + of["experts"])
    else:
        layer += by_rows(of["inner"], of["hidden"])
    # vocab_parallel_embedding.py:31-50, logits_processor.py:93-112: whole on every rank, a tied head too
    tables = 2 * slots * rank * (VOCABULARIES[model_id] + of["hidden"]) if model_id in VOCABULARIES else 0
    return of["layers"] * layer + tables


@pytest.mark.some(5)
@pytest.mark.parametrize("ranks", [1, 4, 8])
@pytest.mark.parametrize("model_id", SIZES)
def test_slots_are_what_its_classes_allocate(footprint_of, model_id, ranks):
    asked = footprint_of(model_id, **NAMED, gpu_count=ranks, max_loras=4, max_lora_rank=32)
    assert asked["adapters_bytes"] == 2 * allocated(model_id, ranks, 4, 32)


def test_graphs_are_captured_twice_and_a_step_takes_little(book, footprint_of):
    plain, served, eager, run_eagerly = (
        footprint_of("Qwen/Qwen3-8B", **NAMED, **said)
        for said in ({}, {"max_loras": 1}, {"max_loras": 1, "enforce_eager": True}, {"enforce_eager": True})
    )
    graphs = plain["overhead_bytes"] - run_eagerly["overhead_bytes"]
    assert served["overhead_bytes"] - plain["overhead_bytes"] == pytest.approx(graphs, abs=2)
    assert eager["overhead_bytes"] == run_eagerly["overhead_bytes"]
    # 8192 tokens: fp32 of rank 16 for three matrices, 48 bytes of indices
    assert served["activations_bytes"] - plain["activations_bytes"] == 8192 * (3 * 4 * 16 + 48)
    # (what a first start holds besides is as large with adapters)
    assert served["error_band"] * served["total_bytes"] == pytest.approx(
        plain["error_band"] * plain["total_bytes"] + 0.05 * (served["total_bytes"] - plain["total_bytes"]), rel=1e-6
    )
    parts = ("weights", "kv_cache", "kv_padding", "state", "activations", "adapters", "overhead")
    assert served["total_bytes"] == sum(served[f"{part}_bytes"] for part in parts)


def test_what_is_left_unsaid_is_as_vllm_has_it(footprint_of):
    slots, rank = (footprint_of("Qwen/Qwen3-8B", **NAMED, **said) for said in ({"max_loras": 1}, {"max_lora_rank": 16}))
    assert slots["adapters_bytes"] == rank["adapters_bytes"] and slots["max_lora_rank"] == 16 and rank["max_loras"] == 1
    assert footprint_of("Qwen/Qwen3-8B", **NAMED)["adapters_bytes"] == 0


@pytest.mark.some(5)
@pytest.mark.parametrize(
    ("model_id", "said", "reason"),
    [
        ("Qwen/Qwen3-8B", {"max_loras": 0}, "max_loras starts at 1"),
        ("Qwen/Qwen3-8B", {"max_lora_rank": 24}, "vLLM takes a max_lora_rank of 1, 8, 16"),
        ("Qwen/Qwen3-8B", {"engine_id": "sglang", "max_loras": 1}, "are of vLLM (--enable-lora"),
        ("Qwen/Qwen3-8B", {"engine_id": "vllm-0.8", "max_loras": 1}, "are of vLLM (--enable-lora"),
        ("Qwen/Qwen3-8B", {"engine_id": "llama.cpp", "dtype_id": "gguf-q4_k_m", "max_loras": 1}, "are of vLLM"),
        (
            "Qwen/Qwen3-8B",
            {"engine_id": None, "phase_id": "lora", "max_loras": 1},
            "an adapter that is trained has lora_rank",
        ),
        ("Qwen/Qwen3-8B", {"max_loras": 1, "gpu_count": 2, "pipeline_parallel": 2}, "in tensor parallelism"),
        ("Qwen/Qwen3-8B", {"max_loras": 1, "program": "vllm", "program_version": "0.32"}, "known from 0.33 on"),
        (
            "mistralai/Mistral-7B-Instruct-v0.3",
            {"max_loras": 1, "program": "vllm", "program_version": "0.19"},
            "known from 0.20 on",
        ),
        ("deepseek-ai/DeepSeek-V3", {"max_loras": 1}, "not described for models of type deepseek_v3"),
        ("Qwen/Qwen3-30B-A3B", {"max_loras": 1, "dtype_id": "fp8"}, "adapters of packed routed experts"),
    ],
)
def test_what_was_not_read_has_a_reason(footprint_of, model_id, said, reason):
    asked = footprint_of(model_id, **{name: value for name, value in (NAMED | said).items() if value is not None})
    assert asked["total_bytes"] is None and reason in asked["unknown_reason"], asked["unknown_reason"]


def test_versions_that_were_read_are_told(footprint_of):
    for model_id, versions in (
        ("Qwen/Qwen3-8B", "vLLM 0.33"),
        ("microsoft/Phi-3-mini-4k-instruct", "vLLM 0.20 to 0.33"),
    ):
        assert footprint_of(model_id, **NAMED, max_loras=2)["holds_for"] == versions


def test_a_type_is_in_one_row():
    types = " ".join(read_facts()["served_adapter"]["model_types"]).split()
    assert len(types) == len(set(types))
