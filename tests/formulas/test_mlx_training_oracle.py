"""MLX LM's training against its own steps, planned for a Mac's GPU (tests/oracle/mlx_training.csv)."""

from __future__ import annotations

import pytest

from tests.formulas import step_account

# Small models at short rows are told too much: what waits for the GPU is then a large share
UNDER, OVER = -0.04, 0.17
USUAL_OVER = 0.07
ASKED = {
    "model_id": "meta-llama/Llama-3.1-8B", "phase_id": "qlora", "engine_id": "mlx-lm", "dtype_id": "mlx-4bit", "precision": "mixed",
    "checkpointing": "none", "loss": "full", "lora_targets": "all-linear", "lora_rank": 8, "context_tokens": 512, "sequences": 4, "gpu_count": 1,
    "adapter": "lora", "lora_dropout": 0.0, "optimizer_id": "adamw", "program": None, "program_version": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def judged():
    """Rows of its own 16 layers are asked of the program, those of all layers of the engine."""
    rows = [row for row in step_account.read("mlx_training.csv") if row["peak_bytes"]]
    with step_account.book() as connection:
        own = step_account.answered(connection, [row for row in rows if row["program"]], {"program": "mlx-lm"})
        return own + step_account.answered(connection, [row for row in rows if not row["program"]])


def test_peaks_are_those_of_its_steps(judged):
    assert len(judged) >= 85
    assert not [(step_account.said(row), row["reason"]) for row in judged if row["error"] is None]
    outside = [f"{step_account.said(row)}: {row['error']:+.2%}" for row in judged if not UNDER <= row["error"] <= OVER]
    assert not outside


def test_no_step_needs_more_than_is_told_with_its_band(judged):
    assert not [step_account.said(row) for row in judged if (1 + row["error"]) * (1 + row["error_band"]) < 1]


def test_models_that_people_train_are_told_closely(judged):
    """From seven billion parameters on."""
    large = [row for row in judged if any(name in row["model"] for name in ("-7b", "-8B", "-14B", "-34B", "-70B"))]
    outside = [
        f"{step_account.said(row)}: {row['error']:+.2%}" for row in large if not UNDER <= row["error"] <= USUAL_OVER
    ]
    assert len(large) >= 45 and not outside


def test_adapters_have_as_many_parameters_as_it_gives_them(judged):
    # in fp32; the last 16 layers, or all
    adapted = [row for row in judged if row["phase_id"] != "full-finetune"]
    assert not [
        step_account.said(row) for row in adapted if row["adapters_bytes"] != 4 * int(row["trained_parameters"])
    ]


@pytest.mark.full
def test_what_was_not_counted_in_its_code_has_a_reason(footprints):
    """Other models, recipes and phases than those of mlx_training.csv; the first is one of them."""
    others = [
        {}, {"precision": "pure"}, {"loss": "fused"}, {"checkpointing": "selective"}, {"dtype_id": "nf4"}, {"gpu_count": 2},
        {"phase_id": "pretrain", "lora_targets": None, "lora_rank": None, "dtype_id": "bf16", "adapter": None, "lora_dropout": None}, {"adapter": "dora"},
        {"lora_dropout": 0.05}, {"optimizer_id": "sgd"}, {"model_id": "Qwen/Qwen3-30B-A3B"}, {"model_id": "google/gemma-2b"},
        {"model_id": "Qwen/Qwen3-Embedding-8B"},
    ]  # fmt: skip
    known, *unknown = footprints([ASKED | other for other in others])
    assert known["total_bytes"] > 0 and known["unknown_reason"] is None
    assert [row["total_bytes"] for row in unknown] == [None] * len(unknown)
    assert all("mlx-lm" in row["unknown_reason"] for row in unknown)


def test_the_program_trains_sixteen_layers_and_says_so(footprints):
    own, all_layers, old = footprints([
        ASKED | {"program": "mlx-lm"}, ASKED, ASKED | {"program": "mlx-lm", "program_version": "0.28", "engine_id": "mlx-lm"},
    ])  # fmt: skip
    assert own["adapters_bytes"] * 2 == all_layers["adapters_bytes"]
    assert own["total_bytes"] < all_layers["total_bytes"] and old["total_bytes"] is None
    assert "last 16 layers" in own["holds_for"] and "--num-layers -1" in all_layers["holds_for"]
