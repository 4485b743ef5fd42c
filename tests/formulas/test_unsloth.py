"""Unsloth by its versions: what each was read to hold, and what nobody read."""

import pytest

from tests.formulas.program_models import MODEL

MEMORY_DECIDES = {"model_id": "meta-llama/Llama-3.1-8B-Instruct", "program": "unsloth", "phase_id": "qlora"}


@pytest.mark.full
def test_unsloth_packs_routed_experts_and_adapts_them(footprint_of):
    """moe_utils_bnb4bit.py of unsloth_zoo, and the experts' parameters that the usual names of targets reach."""
    row = footprint_of("Qwen/Qwen3-30B-A3B", program="unsloth", phase_id="qlora")
    assert (row["dtype_id"], row["lora_targets"]) == ("nf4-double-experts", "attention-experts")
    assert row["weights_bytes"] < 17e9
    plain = footprint_of(
        "Qwen/Qwen3-30B-A3B", program="unsloth", phase_id="qlora", dtype_id="nf4-double", lora_targets="attention"
    )
    assert plain["weights_bytes"] > 59e9


@pytest.mark.full
def test_unsloth_is_its_own_engine_from_the_version_that_was_read(footprint_of):
    row = footprint_of(MODEL, program="unsloth", phase_id="qlora")
    assert (row["engine_id"], row["dtype_id"], row["loss"]) == ("unsloth", "nf4-double", "fused")
    said = dict(phase_id="qlora", dtype_id="nf4-double", checkpointing="full", precision="amp", context_tokens=2048)
    assert 0 < row["total_bytes"] < footprint_of(MODEL, **said)["total_bytes"] and row["host_bytes"] > 0


def test_unsloth_before_2026_10_needs_no_less_than_after(footprint_of):
    """Chunks of half of what is free: room for all tokens' logits and their gradients in 16 bits, or, where the chunks are rounded up, for what
    the second step holds beyond the first."""
    said = MEMORY_DECIDES | {"sequences": 2, "optimizer_id": "adamw-8bit"}
    newest = footprint_of(**said, program_version="2026.10")
    rounded_up = footprint_of(**said, program_version="2026.8")
    at_once = footprint_of(**said, program_version="2025.12.8")
    assert newest["total_bytes"] < rounded_up["total_bytes"] < at_once["total_bytes"]
    assert at_once["activations_bytes"] >= 2 * 2 * 2 * 2048 * 128256
    # what it then holds more, at most: gradients and two states of the adapters in fp32, and seven hidden states
    more = rounded_up["total_bytes"] - newest["total_bytes"]
    assert more <= 3 * rounded_up["adapters_bytes"] + 7 * 2 * 2 * 2048 * 4096


def test_unsloth_of_july_2025_makes_no_logits_of_many_tokens(footprint_of):
    """Cut cross-entropy from 1,025 tokens on; of fewer the logits, over which their gradient is written."""
    said = MEMORY_DECIDES | {"optimizer_id": "adamw-8bit"}
    held = {
        tokens: footprint_of(**said, program_version="2025.7.5", context_tokens=tokens, sequences=1)[
            "activations_bytes"
        ]
        for tokens in (256, 512, 1024, 1025, 32768)
    }
    assert list(held.values()) == sorted(held.values())
    # what logits of all these tokens would take, in 16 bits and with their gradient
    whole = footprint_of(
        MEMORY_DECIDES["model_id"], phase_id="qlora", engine_id="unsloth", dtype_id="nf4-double", precision="amp",
        checkpointing="full", lora_rank=16, lora_targets="all-linear", context_tokens=32768, loss="full",
    )  # fmt: skip
    assert whole["activations_bytes"] - held[32768] > 2 * 2 * (32768 - 1024) * 128256
    # (of a release whose layers are counted alike)
    by_free = footprint_of(**said, context_tokens=32768, sequences=1, program_version="2026.8")
    assert held[32768] <= by_free["activations_bytes"]


def test_unsloth_of_july_2025_is_read_for_cards_that_its_loss_runs_on(book):
    """Before compute capability 7.5 it makes all logits."""
    asked = "SELECT verdict, unknown_reason FROM fits_on($1, $2, phase_id := 'qlora', program := 'unsloth', program_version := '2025.7')"
    ((verdict, _),) = book.execute(asked, ["t4", MODEL]).fetchall()
    ((older, reason),) = book.execute(asked, ["v100-pcie-16gb", MODEL]).fetchall()
    assert verdict and older is None and "7.5" in reason


def test_a_chunk_that_the_memory_decides_is_never_more_than_its_bound(footprint_of):
    """From 2026.7 on a chunk takes at most 4 GiB, whatever trains."""
    said = MEMORY_DECIDES | {"context_tokens": 131072, "lora_rank": 512}
    more = footprint_of(**said, program_version="2026.9.14")["total_bytes"] - footprint_of(**said)["total_bytes"]
    assert 0 < more < 4 * 2**30


@pytest.mark.parametrize(
    ("version", "asked", "words"),
    [
        ("2026.6", {"context_tokens": 32768}, "one where it would be two"),
        ("2026.6", {"model_id": "google/gemma-2-2b-it"}, "models of type llama, mistral, qwen2, qwen3 alone"),
        ("2026.9", {"model_id": "Qwen/Qwen3-30B-A3B"}, "models of type llama, mistral, qwen2, qwen3 alone"),
        ("2026.9", {"model_id": "Qwen/Qwen3-30B-A3B", "loss": "fused-by-free"}, "qwen2, qwen3 alone"),
        ("2026.9", {"loss": "fused"}, "its own loss alone: loss := fused-by-free"),
        ("2026.9", {"phase_id": "full-finetune"}, "kernels of its own"),
        ("2025.7", {"loss": "fused-at-once"}, "its own loss alone: loss := cut"),
        ("2025.7", {"model_id": "google/gemma-2-2b-it"}, "models of type llama, mistral, qwen2, qwen3 alone"),
        ("2025.8", {}, "is not known (known: 2025.7, 2025.9 to 2026.6, 2026.7 to 2026.9, 2026.10)"),
    ],
)
def test_what_was_not_read_of_unsloth_is_unknown(footprint_of, version, asked, words):
    row = footprint_of(**(MEMORY_DECIDES | asked), program_version=version)
    assert row["total_bytes"] is None and words in row["unknown_reason"]


def test_a_loss_by_free_memory_is_of_unsloth_alone(footprint_of):
    row = footprint_of(MODEL, phase_id="lora", loss="fused-by-free")
    assert row["total_bytes"] is None and "engine_id := unsloth" in row["unknown_reason"]
    capped = footprint_of("google/gemma-2-2b-it", phase_id="lora", engine_id="unsloth", loss="fused-by-free")
    assert capped["total_bytes"] is None and "capped" in capped["unknown_reason"]
    unread = footprint_of("Qwen/Qwen3-30B-A3B", phase_id="lora", engine_id="unsloth", loss="fused-at-once")
    assert unread["total_bytes"] is None and "models of type qwen3_moe" in unread["unknown_reason"]
