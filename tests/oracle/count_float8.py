"""Counts what a step of fp8 linear layers holds at its peak, beside the same step in bf16: torchao over real code on fake tensors.

    pip install torchao                      # beside the packages of count_training.py
    python tests/oracle/count_float8.py      # all rows of float8_peaks.csv that have no peak yet

torchao's Float8Linear saves its 16-bit input and weight for the backward pass (float8_linear.py: save_for_backward(input_hp, weight_hp_t)) and
casts what it multiplies anew each time. Run as written, without torch.compile, whose fused casts hold less.
"""

from __future__ import annotations

import csv
from pathlib import Path

import count_training
import rows

PEAKS = Path(__file__).with_name("float8_peaks.csv")
FIXED = {
    "phase_id": "full-finetune", "dtype_id": "bf16", "optimizer_id": "adamw", "precision": "pure", "lora_rank": "", "lora_targets": "",
    "attention": "flash",
}  # fmt: skip


def count(row: rows.Row) -> rows.Row:
    import torch
    import torchao
    import transformers
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training

    with count_training.MODELS.open(newline="") as file:
        models = {r["model"]: r for r in csv.DictReader(file)}
    as_it_is = count_training.build

    def build(model_row: rows.Row, scenario: rows.Row):
        model = as_it_is(model_row, scenario)
        if row["recipe"] != "bf16":
            settings = Float8LinearConfig.from_recipe_name(row["recipe"])
            convert_to_float8_training(model, config=settings, module_filter_fn=lambda _, name: "lm_head" not in name)
        return model

    count_training.build = build
    try:
        peak, _ = count_training.count(models[row["model"]], row | FIXED)
    finally:
        count_training.build = as_it_is
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, torchao {torchao.__version__}"
    return {"peak_bytes": str(peak), "versions": versions}


if __name__ == "__main__":
    rows.count_rows(PEAKS, __doc__, lambda row: row["model"], count)
