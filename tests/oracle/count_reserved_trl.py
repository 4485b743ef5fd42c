"""Counts what the caching allocator holds under steps of TRL's trainers: rows of reserved_trl.csv that have no peak yet.

    python tests/oracle/count_reserved_trl.py trl      # releases as count_preference.py has them

As count_preference.py, with the emulated allocator of count_reserved.py under four steps; a training on text before 1.15 takes its loss from
Transformers, and what is logged of the logits from TRL's own compute_loss. Ten steps that a card ran too (card.csv) were met within 0.8 %
of what it reserved, but for one with layer norms (pythia-1.4b), 1.9 % below.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import allocator
import count_preference
import count_training
import live_storage
import rows

RESERVED = Path(__file__).with_name("reserved_trl.csv")
STEPS = 4


def sft(trl: Path, trainer, has_adapters: bool, sequences: int):
    """SFTTrainer's own text: the class that it stands in is Trainer, which asks the model for its loss."""
    import torch

    if count_preference.has_tiled_head(trl):
        return count_preference.sft(trl, trainer, has_adapters, sequences)

    class Trainer:
        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            outputs = model(**inputs, num_items_in_batch=torch.ones((), device="cuda"))
            return (outputs["loss"], outputs) if return_outputs else outputs["loss"]

    space = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn, "super": Trainer}
    count_preference.functions(trl / "trainer" / "utils.py", {"entropy_from_logits"}, space)
    count_preference.functions(trl / "trainer" / "sft_trainer.py", {"compute_loss"}, space)
    trainer.num_virtual_tokens, trainer.args.loss_type = 0, "nll"

    def loss(model, ids, mask):
        return space["compute_loss"](trainer, model, {"input_ids": ids, "attention_mask": mask, "labels": ids})

    return loss


def count(row: rows.Row, releases: Path) -> rows.Row:
    trackers = []

    class Tracker(allocator.Tracker):
        def __init__(self) -> None:
            super().__init__()
            trackers.append(self)

    live_storage.Tracker, count_preference.STEPS = Tracker, STEPS
    count_preference.OBJECTIVES["sft"] = sft, 1
    with count_training.MODELS.open(encoding="utf-8", newline="") as file:
        models = {model["model"]: model for model in csv.DictReader(file)}
    peak = count_preference.count(models[row["model"]], row, releases / row["trl_version"] / "trl")
    reserved = trackers[-1].allocator.reserved
    print(*row.values(), peak, reserved, sep=",", flush=True)
    return {"peak_bytes": str(peak), "reserved_bytes": str(reserved)}


if __name__ == "__main__":
    releases = Path(sys.argv.pop(1)).resolve()
    rows.count_rows(RESERVED, __doc__, lambda row: row["model"], lambda row: count(row, releases))
