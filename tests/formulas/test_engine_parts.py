"""What servers leave out of a checkpoint that they load, and towers of which it is not known what they cache."""

from __future__ import annotations

import pytest

OMNI = "Qwen/Qwen3-Omni-30B-A3B-Instruct"


@pytest.mark.parametrize(("engine", "why"), [("vllm", "its tower that hears"), ("sglang", "no class of its own")])
def test_a_tower_that_caches_as_it_hears_has_a_reason_in_servers(footprint_of, engine, why):
    """A log of vLLM 0.17 has 9.58 GiB for 2.54 requests of 8,192 tokens of it; its text alone would take 0.81 each."""
    row = footprint_of("mistralai/Voxtral-Mini-4B-Realtime-2602", dtype_id="bf16", engine_id=engine)
    assert row["total_bytes"] is None and why in row["unknown_reason"]
    # a tower of windows of sound caches nothing, and whoever serves text alone knows it
    assert footprint_of("mistralai/Voxtral-Mini-3B-2507", dtype_id="bf16", engine_id="vllm")["total_bytes"]


def test_servers_load_of_an_omni_model_what_thinks(footprint_of):
    """vLLM 0.25.1 loaded 59.19 GiB of a checkpoint of 65.68; its thinker's 48 layers cache 96 KiB a token, the talker's 20 more."""
    row = footprint_of(OMNI, dtype_id="bf16", engine_id="vllm", context_tokens=8192)
    assert row["weights_bytes"] / 2**30 == pytest.approx(59.19, rel=0.003)
    assert row["kv_cache_bytes"] == 8192 * 96 * 1024
    same = footprint_of(OMNI, dtype_id="bf16", engine_id="sglang", context_tokens=8192)
    assert [same[name] for name in ("weights_bytes", "kv_cache_bytes")] == [
        row[name] for name in ("weights_bytes", "kv_cache_bytes")
    ]
    whole = footprint_of(OMNI, dtype_id="bf16", engine_id="transformers", context_tokens=8192)
    assert whole["weights_bytes"] / 2**30 == pytest.approx(65.68, abs=0.01)
    assert whole["kv_cache_bytes"] >= 8192 * 116 * 1024, "what loads the half that speaks caches for it, too"
    smaller = footprint_of("Qwen/Qwen2.5-Omni-7B", dtype_id="bf16", engine_id="vllm", context_tokens=8192)
    assert smaller["kv_cache_bytes"] == 8192 * 56 * 1024
    # of MiniCPM-o 4.5 the text is a Qwen3 of 36 layers
    minicpm = footprint_of("openbmb/MiniCPM-o-4_5", dtype_id="bf16", engine_id="vllm", context_tokens=8192)
    assert minicpm["kv_cache_bytes"] == 8192 * 36 * 2 * 8 * 128 * 2


def test_what_is_left_out_is_left_out_on_several_cards(footprint_of, book):
    """Tensor parallelism divides the matrices that stay, and no rank holds any of what speaks; stages hold less than all of it."""
    asked = {"dtype_id": "bf16", "engine_id": "vllm", "context_tokens": 8192}
    whole = footprint_of(OMNI, **asked)["weights_bytes"]
    query = "SELECT replicated_bytes - speech_replicated_bytes FROM weight WHERE model_id = $1 AND dtype_id = 'bf16'"
    ((kept,),) = book.execute(query, [OMNI]).fetchall()
    halves = footprint_of(OMNI, **asked, gpu_count=2, tensor_parallel=2)["weights_bytes"]
    assert halves == pytest.approx(kept + (whole - kept) / 2, abs=2)
    stages = footprint_of(OMNI, **asked, gpu_count=2, pipeline_parallel=2)["weights_bytes"]
    both = footprint_of(OMNI, **asked, gpu_count=4, tensor_parallel=2, pipeline_parallel=2)["weights_bytes"]
    assert whole / 2 < stages < 0.6 * whole and both < 0.6 * halves


@pytest.mark.parametrize(
    ("model", "dtype", "loaded_gib"),
    [
        ("Qwen/Qwen2.5-1.5B-Instruct-AWQ", "awq-int4", 1.1018),
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct-AWQ", "awq-int4", 1.1),
        ("Qwen/Qwen2.5-3B-Instruct-AWQ", "awq-int4", 1.95),
        ("Qwen/Qwen2.5-Coder-3B-Instruct-AWQ", "awq-int4", 1.95),
        ("canopylabs/orpheus-3b-0.1-ft", "bf16", 6.18),
    ],
)
def test_servers_load_no_head_that_a_config_ties(footprint_of, model, dtype, loaded_gib):
    """What vLLM printed; Transformers loads the head that is stored, and says so in measured rows."""
    told = {
        engine: footprint_of(model, dtype_id=dtype, engine_id=engine, context_tokens=2048)["weights_bytes"] / 2**30
        for engine in ("vllm", "sglang", "transformers")
    }
    assert 0.965 * loaded_gib <= told["vllm"] <= 1.005 * loaded_gib
    assert told["sglang"] == told["vllm"] < 0.9 * told["transformers"]


def test_a_head_that_nobody_saw_left_out_is_counted(footprint_of):
    """Its total has two heads as well, and no log says what a server loads of it."""
    told = [
        footprint_of("Qwen/Qwen2-1.5B-Instruct-GPTQ-Int4", dtype_id="gptq-int4", engine_id=engine)["weights_bytes"]
        for engine in ("vllm", "transformers")
    ]
    assert told[0] == told[1]
