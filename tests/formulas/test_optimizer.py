"""What an optimizer holds, worked out here tensor by tensor from the census as its library does, and not by the formula's sums."""

from __future__ import annotations

import pytest

MODEL = "Qwen/Qwen3-0.6B"
RANK = 8


@pytest.fixture(scope="module")
def tensors(book):
    """(role, how many, rows, columns) of every trained tensor; vectors have one column."""
    rows = book.execute(
        "SELECT role, operator, layer_count * per_layer_count, out_features, coalesce(in_features, 1) FROM tensor WHERE model_id = ?",
        [MODEL],
    ).fetchall()
    assert sum(count * rows_ * columns for _, _, count, rows_, columns in rows) == 596_049_920
    return rows


BASE = {
    "model_id": MODEL, "phase_id": "full-finetune", "dtype_id": "bf16", "precision": "pure", "optimizer_id": "adamw", "ema": False,
    "lora_rank": None, "lora_targets": None, "optimizer_rank": 32, "gradient_accumulation": 1,
}  # fmt: skip
OPTIMIZERS = ("adamw-8bit", "lion-8bit", "adafactor", "muon", "galore-adamw")
ADAPTER = {
    "phase_id": "lora",
    "precision": "mixed",
    "lora_rank": RANK,
    "lora_targets": "all-linear",
    "optimizer_id": "adafactor",
}
AVERAGED = [
    {"phase_id": phase, "precision": precision, "ema": ema, "gradient_accumulation": 2}
    for phase in ("full-finetune", "pretrain")
    for precision in ("mixed", "amp", "pure")
    for ema in (False, True)
]


@pytest.fixture(scope="module")
def footprint(footprints):
    """footprint(optimizer_id="muon", ...): BASE with that changed. All are asked in one query, which plans once."""
    scenarios = [BASE | more for more in [*({"optimizer_id": name} for name in OPTIMIZERS), ADAPTER, *AVERAGED]]
    answers = footprints(scenarios)

    def of(**more):
        row = answers[scenarios.index(BASE | more)]
        assert row["unknown_reason"] is None
        return row

    return of


@pytest.mark.parametrize(("optimizer_id", "moments"), [("adamw-8bit", 2), ("lion-8bit", 1)])
def test_8_bit_states_are_fp32_for_tensors_below_4096_elements(tensors, footprint, optimizer_id, moments):
    """bitsandbytes: min_8bit_size 4096; above it a byte an element and an fp32 scale for each block of 256."""
    expected = sum(
        count * moments * (size * 4 if size < 4096 else size + 4 * size / 256)
        for _, _, count, rows, columns in tensors
        for size in [rows * columns]
    )
    assert any(rows * columns < 4096 for _, _, _, rows, columns in tensors)
    assert footprint(optimizer_id=optimizer_id)["optimizer_bytes"] == pytest.approx(expected, abs=1)


def test_adafactor_keeps_a_row_and_a_column_of_fp32_for_each_matrix(tensors, footprint):
    expected = sum(4 * count * (rows + columns if columns > 1 else rows) for _, _, count, rows, columns in tensors)
    assert footprint(optimizer_id="adafactor")["optimizer_bytes"] == expected


def test_adafactor_of_adapters_keeps_a_row_and_a_column_of_both_their_matrices(tensors, footprint):
    """An adapter of a linear layer is rank × in and out × rank: rows and columns are in + out + 2 × rank."""
    linear = [
        (count, rows, columns)
        for role, operator, count, rows, columns in tensors
        if operator == "linear" and role != "head"
    ]
    expected = 4 * sum(count * (rows + columns + 2 * RANK) for count, rows, columns in linear)
    assert footprint(**ADAPTER)["optimizer_bytes"] == expected


def test_muon_keeps_one_momentum_for_matrices_and_two_for_all_else(tensors, footprint):
    expected = sum(
        2 * count * rows * columns * (1 if operator == "linear" and role != "head" else 2)
        for role, operator, count, rows, columns in tensors
    )
    assert footprint(optimizer_id="muon")["optimizer_bytes"] == expected


def test_galore_keeps_two_moments_of_low_rank_and_the_projection(tensors, footprint):
    rank, expected = BASE["optimizer_rank"], 0
    for role, operator, count, rows, columns in tensors:
        if operator == "linear" and role != "head":
            expected += 2 * count * rank * (2 * max(rows, columns) + min(rows, columns))
        else:
            expected += 2 * count * 2 * rows * columns
    assert footprint(optimizer_id="galore-adamw")["optimizer_bytes"] == expected


@pytest.mark.parametrize(("precision", "each"), [("mixed", 4), ("amp", 4), ("pure", 2)])
@pytest.mark.parametrize("phase_id", ["full-finetune", "pretrain"])
def test_an_average_of_the_weights_is_in_fp32_but_where_all_is_in_16_bits(footprint, precision, each, phase_id):
    """The average is of what the optimizer updates: the fp32 masters where there are any, else the weights themselves."""
    without, averaged = (
        footprint(phase_id=phase_id, precision=precision, ema=ema, gradient_accumulation=2) for ema in (False, True)
    )
    assert averaged["optimizer_bytes"] - without["optimizer_bytes"] == 596_049_920 * each


@pytest.mark.parametrize(
    ("precision", "weights", "gradients", "states"), [("mixed", 2, 2, 12), ("amp", 4, 4, 8), ("pure", 2, 2, 4)]
)
def test_what_a_parameter_takes_in_each_precision(footprint, precision, weights, gradients, states):
    """The ZeRO paper's account (arXiv 1910.02054, section 3.1): 2 + 2 + 12 bytes with AdamW in mixed precision."""
    row = footprint(precision=precision, ema=False, phase_id="full-finetune", gradient_accumulation=2)
    assert row["weights_bytes"] == pytest.approx(596_049_920 * weights, rel=1e-6)
    assert row["optimizer_bytes"] == 596_049_920 * states
    assert row["gradients_bytes"] == 596_049_920 * gradients
