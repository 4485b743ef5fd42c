"""Counts what the caching allocator holds beyond the live tensors of a training step: what tables/sql/overhead/unused.sql is held to.

    pip install -e '.[oracle]'
    python tests/oracle/count_reserved.py                 # all rows of reserved.csv that have no peak yet

As count_training.py, with an emulated allocator (allocator.py) under three steps of the same length, after the second of which nothing more is reserved. `standing_bytes` are parameters,
buffers and optimizer states; what a step makes anew is peak_bytes - standing_bytes.
"""

from __future__ import annotations

from pathlib import Path

import count_training
import rows

RESERVED = Path(__file__).with_name("reserved.csv")


def count(row: rows.Row) -> rows.Row:
    import allocator
    import live_storage
    import peft
    import torch
    import transformers

    trackers = []

    class Tracker(allocator.Tracker):
        def __init__(self) -> None:
            super().__init__()
            trackers.append(self)
            self.least = 0

        def reset_peak(self) -> None:
            # between two steps: the gradients are gone
            super().reset_peak()
            self.least = self.total

    live_storage.Tracker = Tracker
    count_training.STEPS = 3
    models = {model["model"]: model for model in _read(count_training.MODELS)}
    peak, _ = count_training.count(models[row["model"]], row)
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, peft {peft.__version__}"
    tracker = trackers[-1]
    print(row["model"], row["attention"], peak, tracker.allocator.reserved, tracker.expandable.reserved, flush=True)
    return {
        "peak_bytes": str(peak),
        "standing_bytes": str(tracker.least),
        "reserved_bytes": str(tracker.allocator.reserved),
        "expandable_bytes": str(tracker.expandable.reserved),
        "versions": versions,
    }


def _read(path: Path) -> list[rows.Row]:
    import csv

    with path.open(newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    rows.count_rows(RESERVED, __doc__, lambda row: row["model"], count)
