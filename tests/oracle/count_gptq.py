"""Counts what AutoGPTQ's linear layer holds where gradients flow through it: its own class, on fake CUDA tensors.

    python tests/oracle/count_gptq.py auto_gptq-0.5.1-….whl > tests/oracle/gptq_layers.csv

The class (qlinear_cuda_old, which a base without act-order gets where ExLlama is off) is read from the wheel. It multiplies by a
kernel of its own below 128 rows, and above takes the matrix apart in PyTorch, as it does where its extension is not installed.
"""

from __future__ import annotations

import csv
import sys
import types
import zipfile
from pathlib import Path

import fake_cuda
import live_storage
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

LAYER = "auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py"
SHAPES = ((4096, 12288), (4096, 11008), (11008, 4096), (8192, 24576))


def layer_class(wheel: Path) -> type:
    lines = zipfile.ZipFile(wheel).read(LAYER).decode().splitlines()
    # what it imports beside torch is of no use here
    kept = (line for line in lines if not line.startswith(("import transformers", "from auto_gptq")))
    module = types.ModuleType("qlinear")
    exec(compile("\n".join(kept), LAYER, "exec"), module.__dict__)
    return module.__dict__["QuantLinear"]


def counted(kind: type, inputs: int, outputs: int, tokens: int) -> tuple[int, int]:
    """Bytes at the peak of a forward pass, and those that stay for the backward pass, beside input and result."""
    fake_cuda.install()
    with FakeTensorMode(allow_non_fake_inputs=True):
        layer = kind(4, 128, inputs, outputs, True).to("cuda")
        layer.wf = layer.wf.to("cuda")
        layer.autogptq_cuda_available = False
        tracker = live_storage.Tracker()
        with tracker:
            read = torch.empty(tokens, inputs, dtype=torch.float16, device="cuda", requires_grad=True)
            for held in (*layer.buffers(), layer.wf):
                tracker.track(held)
            before = tracker.total
            tracker.reset_peak()
            result = layer(read)
            own = tokens * outputs * result.element_size()
            return tracker.peak - before, tracker.total - before - own


def main(wheel: str) -> None:
    kind = layer_class(Path(wheel))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("inputs", "outputs", "tokens", "peak_bytes", "kept_bytes"))
    for inputs, outputs in SHAPES:
        for tokens in (256, 4096):
            writer.writerow((inputs, outputs, tokens, *counted(kind, inputs, outputs, tokens)))


if __name__ == "__main__":
    main(*sys.argv[1:])
