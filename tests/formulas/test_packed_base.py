"""QLoRA on several GPUs: what bitsandbytes packs is sharded but for its scales, and most programs load it whole on each GPU first."""

from __future__ import annotations

import pytest

GIB = 2**30
SMALL, YI, LARGE, WIDE = (
    "meta-llama/Llama-2-7b-hf",
    "01-ai/Yi-34B",
    "meta-llama/Llama-2-70b-hf",
    "meta-llama/Meta-Llama-3-70B",
)
SHARED = {"phase_id": "qlora", "dtype_id": "nf4", "gpu_count": 2, "sharding": "zero3", "checkpointing": "full"}
LOOP = SHARED | {"engine_id": "pytorch-loop", "precision": "pure", "lora_rank": 64, "context_tokens": 2048}


@pytest.mark.parametrize(
    ("model", "said", "reserved_gib"),
    [
        (SMALL, {"sequences": 1, "context_tokens": 512}, 4.98),
        (SMALL, {"sequences": 1}, 5.21),
        (SMALL, {"sequences": 4}, 11.22),
        (SMALL, {"sequences": 10}, 20.97),
        (SMALL, {"sequences": 12, "offload": "all"}, 22.38),
        (YI, {"sequences": 2}, 23.05),
        (YI, {"sequences": 4, "offload": "all"}, 22.98),
        (LARGE, {"sequences": 2, "offload": "all"}, 14.92),
    ],
)
def test_two_gpus_hold_what_answer_ai_measured(footprint_of, model, said, reserved_gib):
    """Their script loads to the host and runs in 16 bits throughout; FSDP1, of which the root keeps embedding and head besides."""
    told = footprint_of(model, **LOOP | said)["total_bytes"] / GIB
    assert told == pytest.approx(reserved_gib, rel=0.16)


def test_scales_are_whole_on_every_gpu_and_nowhere_else(footprint_of):
    """A scale of 4 bytes for each 64 weights of 68.5 billion, 8 bits and a quarter of that with double quantisation."""
    packed = 80 * (8192 * 8192 * 2 + 2 * 8192 * 1024 + 3 * 8192 * 28672)
    for dtype, each in (("nf4", 4 / 64), ("nf4-double", 1 / 64 + 4 / 64 / 256)):
        held = footprint_of(LARGE, **LOOP | {"offload": "all", "dtype_id": dtype})["weights_bytes"]
        assert held == pytest.approx(packed * each, rel=1e-6), dtype


@pytest.mark.parametrize(
    ("said", "least", "words"),
    [
        ({}, 37.5, "every GPU loading the packed base whole, bnb_4bit_quant_storage set to bfloat16"),
        ({"engine_id": "deepspeed"}, 37.5, ""),
        ({"program": "ms-swift"}, 37.5, "every GPU holding the packed base whole (bnb_4bit_quant_storage is uint8)"),
        ({"program": "llama-factory", "program_version": "0.9.5"}, 37.5, "every GPU loading the packed base whole"),
        ({"program": "llama-factory", "program_version": "0.9.4"}, 12, "with cpu_ram_efficient_loading"),
    ],
)
def test_a_70b_does_not_fit_two_small_gpus(footprint_of, said, least, words):
    """Axolotl's example holds 21 GB on each of two GPUs, loading to the host (examples/llama-3/README.md): 7 GiB were told."""
    told = footprint_of(WIDE, **SHARED | {"offload": "all", "context_tokens": 512, "sequences": 1} | said)
    assert told["total_bytes"] / GIB > least and words in told["holds_for"]


def test_eight_bits_are_not_sharded(footprint_of):
    told = footprint_of(SMALL, **SHARED | {"dtype_id": "int8"})
    assert "to 4 bits" in told["unknown_reason"]
