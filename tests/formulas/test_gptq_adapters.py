"""A QLoRA over AutoGPTQ under DeepSpeed: what a layer keeps of matrices that it takes apart, and what ZeRO-2 holds of adapters."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

MODEL = "Qwen/Qwen-7B-Chat"
ORACLE = Path(__file__).parents[1] / "oracle" / "gptq_layers.csv"
ASKED = {
    "phase_id": "qlora",
    "engine_id": "autogptq-0.5",
    "dtype_id": "gptq-int4",
    "precision": "pure",
    "checkpointing": "full",
    "optimizer_id": "adamw-master",
    "lora_rank": 64,
    "lora_targets": "all-linear",
    "reduce_bucket_elements": 200_000_000,
    "adapter": "lora",
    "gpu_count": 1,
}
LINEAR = 4096 * (3 * 4096 + 4096 + 3 * 11008)  # a layer's queries, keys and values, projection, and feed-forward block
ADAPTER = 64 * 32 * (4096 + 3 * 4096 + 2 * 4096 + 3 * (4096 + 11008))


def test_the_class_keeps_two_bytes_of_each_weight_and_needs_five():
    rows = [
        {name: int(value) for name, value in row.items()} for row in csv.DictReader(ORACLE.read_text().splitlines())
    ]
    assert len(rows) == 8
    for row in rows:
        weights = row["inputs"] * row["outputs"]
        assert row["kept_bytes"] == 2 * weights
        # (zeros and scales beside it; a long input's product and its sum with the bias may take more)
        assert row["peak_bytes"] == pytest.approx(
            max(5 * weights, 2 * weights + 4 * row["tokens"] * row["outputs"]), rel=0.01
        )


REFUSED = (
    {"dtype_id": "nf4"},
    {"precision": "mixed"},
    {"checkpointing": "none"},
    {"gpu_count": 2},
    {"phase_id": "lora", "dtype_id": "bf16"},
    {"adapter": "dora"},
)
WHOLE = dict.fromkeys(ASKED) | {
    "phase_id": "full-finetune",
    "engine_id": "transformers",
    "dtype_id": "bf16",
    "checkpointing": "full",
    "optimizer_id": "adamw-master",
    "gpu_count": 1,
}


@pytest.fixture(scope="module")
def answers(footprints):
    """All that is asked here, in one query."""
    asked = [
        *(ASKED | {"model_id": MODEL, "context_tokens": tokens} for tokens in (16, 32)),
        ASKED | {"model_id": "Qwen/Qwen-72B-Chat", "context_tokens": 16},
        *(
            WHOLE | {"model_id": MODEL, "context_tokens": 256, "precision": precision}
            for precision in ("mixed", "pure")
        ),
        *(ASKED | {"model_id": MODEL, "context_tokens": 256} | more for more in REFUSED),
    ]
    return footprints(asked)


def test_adapters_gradients_and_states_are_those_of_zero_2_in_16_bits(answers):
    assert answers[0]["adapters_bytes"] == answers[0]["gradients_bytes"] == 2 * ADAPTER
    assert answers[0]["optimizer_bytes"] == 12 * ADAPTER


def test_a_short_step_is_worst_while_the_last_matrix_of_a_layer_is_taken_apart(answers):
    """Beside two buckets; a longer one where its gradients take more than that matrix, or at its loss."""
    short, longer = answers[:2]
    assert short["peak_moment"] == longer["peak_moment"] == "backward"
    each = longer["activations_bytes"] - short["activations_bytes"]
    assert short["activations_bytes"] - each == 2 * 2 * 200_000_000 + 2 * LINEAR + 3 * 4096 * 11008


def test_the_step_of_many_adapters_is_worst_where_little_is_read(answers):
    """A flat copy of the gradients and its fp32, beside the gradients (stage_1_and_2.py, step)."""
    assert answers[2]["peak_moment"] == "optimizer"
    assert answers[2]["activations_bytes"] == 3 * answers[2]["gradients_bytes"]


def test_master_weights_in_an_optimizer_belong_to_weights_in_16_bits(answers):
    mixed, pure = answers[3:5]
    assert "precision := pure" in mixed["unknown_reason"] and pure["unknown_reason"] is None


def test_what_was_not_read_has_a_reason(answers):
    for row in answers[5:]:
        assert row["total_bytes"] is None and "as it was read" in row["unknown_reason"], row["unknown_reason"]
