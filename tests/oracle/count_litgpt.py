"""Counts what LoRA steps of LitGPT hold at their peak: the truth that its engine's formulas are held to.

    pip install --no-deps litgpt==0.5.13 lightning lightning-utilities torchmetrics jsonargparse docstring_parser
    python tests/oracle/count_litgpt.py              # rows of litgpt_peaks.csv that have no peak yet

As count_training.py, with LitGPT's own model, adapters and loss, under bf16-true on one GPU: the loop of finetune/lora.py, which holds the
logits and the loss of a step until the next has made its own, and Lightning's wrapper, which hands the logits over in fp32.
"""

from __future__ import annotations

import gc
from importlib.metadata import version
from pathlib import Path

import count_training
import fake_cuda
import rows

PEAKS = Path(__file__).with_name("litgpt_peaks.csv")
TARGETS = {
    "query-value": ("query", "value"),
    "attention": ("query", "key", "value", "projection"),
    "all-linear": ("query", "key", "value", "projection", "mlp"),
}
# finetune/lora.py: model(input_ids, lm_head_chunk_size=128)
CHUNK_TOKENS = 128


def build(row: rows.Row):
    import torch
    from litgpt.lora import GPT, Config, mark_only_lora_as_trainable

    adapted = {f"lora_{name}": True for name in TARGETS[row["lora_targets"]]}
    config = Config.from_name(
        row["model"].split("/")[1],
        lora_r=int(row["lora_rank"]),
        lora_alpha=16,
        lora_dropout=float(row["lora_dropout"]),
        **adapted,
    )
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = GPT(config)
    torch.set_default_dtype(torch.float32)
    mark_only_lora_as_trainable(model)
    return model.train()


def wrapped(model):
    """The model as Fabric calls it on one device."""
    import torch
    from lightning.fabric.plugins.precision.half import HalfPrecision
    from lightning.fabric.strategies import SingleDeviceStrategy
    from lightning.fabric.wrappers import _FabricModule

    module = _FabricModule(model, SingleDeviceStrategy(torch.device("cpu"), precision=HalfPrecision("bf16-true")))
    module._register_backward_hook = lambda tensor: tensor  # (warns of a backward pass that is not Fabric's)
    return module


def train(model, tokens: tuple[int, int], accumulated: int, tracker) -> int:
    import torch
    from litgpt.utils import chunked_cross_entropy

    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], fused=True)
    ids, targets = (torch.empty(tokens, dtype=torch.long, device="cuda") for _ in range(2))
    peak = 0
    for _ in range(count_training.STEPS):
        gc.collect()
        tracker.reset_peak()
        for _ in range(accumulated):
            logits = model(ids, lm_head_chunk_size=CHUNK_TOKENS)
            logits[-1] = logits[-1][..., :-1, :]
            loss = chunked_cross_entropy(logits, targets[..., 1:])
            gc.collect()
            tracker.sums_in_place = True
            (loss / accumulated).backward()
            tracker.sums_in_place = False
            gc.collect()
        optimizer.step()
        gc.collect()
        peak = tracker.peak
        optimizer.zero_grad(set_to_none=True)
    return peak


def count(row: rows.Row) -> rows.Row:
    import live_storage
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    fake_cuda.install()
    live_storage.install_attention()
    model, tracker = build(row), live_storage.Tracker()
    adapters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    tokens = (int(row["sequences"]), int(row["context_tokens"]))
    with FakeTensorMode(allow_non_fake_inputs=True):
        count_training.to_fake(model)
        count_training.behave_as_with_values()
        # fit() shortens the tables of rotations to the longest sequence, outside of the model's precision
        model._max_seq_length = tokens[1]
        for name in ("cos", "sin"):
            table = getattr(model, name)
            setattr(model, name, torch.empty(tokens[1], *table.shape[1:], device="cuda"))
        with tracker:
            for tensor in (*model.parameters(), *model.buffers()):
                tracker.track(tensor)
            peak = train(wrapped(model), tokens, int(row["gradient_accumulation"]), tracker)
    versions = f"torch {torch.__version__}, litgpt {version('litgpt')}, lightning {version('lightning')}"
    return {"peak_bytes": str(peak), "adapter_parameters": str(adapters), "versions": versions}


if __name__ == "__main__":
    rows.count_rows(PEAKS, __doc__, lambda row: row["model"], count)
