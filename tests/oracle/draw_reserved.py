"""Draws steps of adapters that wait to be counted, and adds them to reserved.csv: so that nobody chooses the rows that a rule is held to.

    python tests/oracle/draw_reserved.py 120        # so many of all that MODELS and the sizes below give, those that are there left out
    python tests/oracle/count_reserved.py

The same number gives the same rows; a larger one adds to them.
"""

from __future__ import annotations

import csv
import itertools
import random
import sys
from pathlib import Path

RESERVED = Path(__file__).with_name("reserved.csv")
FALCON = "tiiuae/falcon-7b"
# whole models of training_models.csv that one GPU trains adapters of, of 0.1 to 8 billion weights and vocabularies of 32 to 256 thousand
MODELS = (
    "meta-llama/Llama-3.2-1B", "Qwen/Qwen2.5-0.5B", "Qwen/Qwen3-0.6B", "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "meta-llama/Llama-2-7b-hf", "meta-llama/Llama-3.1-8B", "microsoft/phi-2", "stabilityai/stablelm-2-1_6b",
    "google/gemma-2b", "microsoft/Phi-3-mini-4k-instruct", "EleutherAI/pythia-1.4b", FALCON,
)  # fmt: skip
WAYS = (("lora", "bf16", "mixed"), ("qlora", "nf4", "amp"))
SIZES = (
    (512, 1), (1024, 1), (2048, 1), (4096, 1), (8192, 1), (512, 2), (1024, 2), (2048, 2), (4096, 2),
    (512, 4), (1024, 4), (2048, 4), (256, 8), (512, 8), (1024, 8),
)  # fmt: skip
LONGEST = {"TinyLlama/TinyLlama-1.1B-Chat-v1.0": 2048, "microsoft/phi-2": 2048, "EleutherAI/pythia-1.4b": 2048}
KEEPS_ALL_UP_TO = 4096  # tokens of a step that recomputes nothing


def steps() -> list[dict[str, str]]:
    found = []
    kinds = itertools.product(MODELS, WAYS, SIZES, ("full", "none"), ("attention", "all-linear"))
    for model, (phase, dtype, precision), (context, sequences), checkpointing, targets in kinds:
        if context > LONGEST.get(model, context):
            continue
        if checkpointing == "none" and context * sequences > KEEPS_ALL_UP_TO:
            continue
        found.append({
            "model": model, "phase_id": phase, "dtype_id": dtype, "context_tokens": str(context),
            "sequences": str(sequences), "optimizer_id": "adamw", "precision": precision,
            "checkpointing": checkpointing, "lora_rank": "16", "lora_targets": targets, "attention": "flash",
            "loss": "full", "gradient_accumulation": "1", "engine_id": "transformers",
        })  # fmt: skip
    random.Random("adapters").shuffle(found)
    # Falcon's layers are of a class of its own, which Transformers does not pack (integrations/bitsandbytes.py takes torch.nn.Linear alone) and
    # whose recomputation fails on fake tensors
    return [
        step
        for step in found
        if step["model"] != FALCON or (step["phase_id"], step["checkpointing"]) == ("lora", "none")
    ]


def main(count: int) -> None:
    with RESERVED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    drawn = steps()
    there = [tuple(row[name] for name in drawn[0]) for row in rows]
    added = [step for step in drawn[:count] if tuple(step.values()) not in there]
    with RESERVED.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows([*rows, *added])
    print(f"{len(added)} of {len(drawn)} steps added")


if __name__ == "__main__":
    main(int(sys.argv[1]))
