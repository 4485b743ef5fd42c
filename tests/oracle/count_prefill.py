"""Counts what reading a prompt holds at its peak: the truth that the prefill of recurrent and of windowed layers is held to.

    pip install -e '.[oracle]'
    python tests/oracle/count_prefill.py    # all rows of the files prefill_*.csv named below that lack a count

Models of training_models.csv read prompts on fake CUDA tensors (real shapes, no data, no GPU) and ask for the last token's logits.
The optional kernels (causal-conv1d, mamba-ssm, flash-linear-attention) are not installed: the plain PyTorch code runs. `reserved_bytes` is what an emulated
allocator (allocator.py) has taken after the second of two such prompts.
"""

from __future__ import annotations

import csv
import gc
import logging
import sys
import warnings
from pathlib import Path

import count_training
import fake_cuda

KINDS = ("recurrent", "windowed", "eager", "boundary", "activations")
FILES = [Path(__file__).with_name(f"prefill_{kind}.csv") for kind in KINDS]
PLAIN = {"phase_id": "inference", "lora_rank": "", "lora_targets": "", "checkpointing": "none", "attention": "flash"}


def count(model_row: dict[str, str], row: dict[str, str]) -> dict[str, str]:
    import allocator
    import live_storage
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    fake_cuda.install()
    live_storage.install_attention()
    model = count_training.build(model_row, {**PLAIN, **row}).eval()
    tracker, peaks = allocator.Tracker(), []
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        count_training.to_fake(model)
        count_training.behave_as_with_values()
        with tracker:
            for tensor in (*model.parameters(), *model.buffers()):
                tracker.track(tensor)
            ids = torch.randint(0, 100, (int(row["sequences"]), int(row["context_tokens"])), device="cuda")
            for _ in range(2):
                gc.collect()
                tracker.reset_peak()
                output = model(input_ids=ids, use_cache=True, logits_to_keep=1)
                peaks.append(tracker.peak)
                del output
    del model, ids
    gc.collect()
    return {"peak_bytes": str(peaks[0]), "reserved_bytes": str(tracker.allocator.reserved)}


def main() -> None:
    import torch
    import transformers

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    with count_training.MODELS.open(newline="") as file:
        models = {r["model"]: r for r in csv.DictReader(file)}
    for file in FILES:
        fill(file, models, f"torch {torch.__version__}, transformers {transformers.__version__}")


def fill(path: Path, models: dict[str, dict[str, str]], versions: str) -> None:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["peak_bytes"] and row["reserved_bytes"]:
            continue
        known = row["peak_bytes"]
        try:
            row |= count(models[row["model"]], row)
        except Exception as error:
            print(f"{row['model']}: {type(error).__name__}: {str(error)[:160]}", file=sys.stderr)
            continue
        row["versions"] = versions
        changed = f" (was {known})" if known not in ("", row["peak_bytes"]) else ""
        print(row["model"], row["peak_bytes"] + changed, row["reserved_bytes"], flush=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
