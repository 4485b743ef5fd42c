"""Counts what one of Unsloth's own layers holds while it is differentiated: rows of unsloth_blocks.csv.

    pip install torch==2.11.0 numpy                # with Triton 3.6, which comes along; g++, x86-64, no GPU
    pip install --no-deps unsloth==2026.10.9       # only its kernels are imported (unsloth_layer.py)
    python tests/oracle/count_unsloth_blocks.py                               # rows that have no count yet
    python tests/oracle/count_unsloth_blocks.py --again                       # all of them

A row is a layer (widths in elements), its base (bf16, or packed in four bits) and tokens of a micro-batch. The layer is run by the installed
package's functions (LoRA_QKV, LoRA_W, LoRA_MLP and its norms and rotations; unsloth_layer.py) as one region that PyTorch compiles
(fake_inductor.py), and once more without the compiler. Written are the most bytes alive in a step beside weights, adapters and
rotations, with the layer's input and the gradient that it is given: `compiled_bytes`, `eager_bytes` (the place of an unpacked matrix is in the
latter). Storages are rounded to 512 bytes; what Triton's kernels or cuBLAS take inside is not there, of cuDNN's backward pass the sum in fp32.

`looked_at` is true of the shapes that the formula (own_blocks.sql) was made with. The others were counted when it stood.
"""

from __future__ import annotations

import argparse
import csv
import gc
import sys
from pathlib import Path

import fake_inductor
import live_storage
import torch

ROWS = Path(__file__).with_name("unsloth_blocks.csv")
RANK = 16
ROTATIONS = 32768


class Tracker(live_storage.Tracker):
    """Counts inside of compiled code too."""

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True


def step(run: object, layer: torch.nn.Module, read: torch.Tensor, *rotations: torch.Tensor) -> None:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        given = torch.empty_like(read)
        made = run(read.detach().requires_grad_(), *rotations)
        torch.autograd.backward(made, given)
    layer.zero_grad()


def counted(layer: torch.nn.Module, tokens: int, sequences: int, compiled: bool) -> int:
    """The most bytes that a second step holds beside weights, adapters and rotations."""
    shape = layer.shape
    torch._dynamo.reset()
    read = torch.empty((sequences, tokens, shape.hidden), dtype=torch.bfloat16, device="cuda")
    rotations = [torch.empty((ROTATIONS, shape.head_dim), dtype=torch.bfloat16, device="cuda") for _ in "cs"]
    run = layer.forward
    if compiled:
        torch._dynamo.maybe_mark_dynamic(read, 1)
        if sequences > 1:
            torch._dynamo.maybe_mark_dynamic(read, 0)
        run = torch.compile(layer.forward)
    step(run, layer, read, *rotations)
    gc.collect()
    tracker = Tracker()
    with tracker:
        for held in (*layer.parameters(), *rotations):
            tracker.track(held.data)
        before = tracker.total
        tracker.track(read)
        tracker.reset_peak()
        step(run, layer, read, *rotations)
    return tracker.peak - before


def count(row: dict[str, str], own: object) -> dict[str, str]:
    import unsloth_layer
    from torch._subclasses.fake_tensor import FakeTensorMode

    widths = (int(row[name]) for name in ("hidden", "intermediate", "heads", "kv_heads", "head_dim"))
    shape = unsloth_layer.Shape(*widths, row["qk_norm"] == "true", row["attention"])
    with FakeTensorMode(allow_non_fake_inputs=True):
        layer = unsloth_layer.Layer(own, shape, row["base"] == "packed", RANK)
        asked = layer, int(row["tokens"]), int(row["sequences"])
        row["compiled_bytes"] = str(counted(*asked, compiled=True))
        unsloth_layer.forget_place()
        row["eager_bytes"] = str(counted(*asked, compiled=False))
        unsloth_layer.forget_place()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="count all rows anew")
    again = parser.parse_args().again
    fake_inductor.install()
    import unsloth_layer

    own = unsloth_layer.kernels()
    rows = list(csv.DictReader(ROWS.read_text().splitlines()))
    for row in rows:
        if again or not row["compiled_bytes"]:
            count(row, own)
            print(*row.values(), file=sys.stderr, flush=True)
            with ROWS.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main()
