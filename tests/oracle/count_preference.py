"""Counts what a step of TRL's DPO holds at its peak: the truth that preference_of is held to.

    pip download --no-deps trl==1.0.0 && unzip trl-1.0.0-py3-none-any.whl -d trl
    python tests/oracle/count_preference.py trl/trl          # rows of preference.csv that have no peak yet

The loss is TRL's own text (DPOTrainer._compute_loss and what it calls), taken out of its files: the package itself asks for data sets and
more. Models are those of count_training.py, on fake CUDA tensors. Accelerate wraps the forward pass so that its outputs are fp32
(convert_outputs_to_fp32), which is done here too; every token counts as one of a completion, so that a mask takes all rows. The peak is
that of the second step in bytes of live storage.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import csv
import gc
import sys
import types
from pathlib import Path

import count_training
import fake_cuda

ROWS = Path(__file__).with_name("preference.csv")
STEPS = 2


def functions(path: Path, names: set[str], space: dict) -> None:
    """Functions of a file into a space of names, without decorators and types."""
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    found = [node for node in found if node.name in names]
    for node in found:
        node.decorator_list, node.returns = [], None
        for argument in node.args.args:
            argument.annotation = None
    exec(compile(ast.Module(found, type_ignores=[]), str(path), "exec"), space)


def loss_of(trl: Path, trainer, has_adapters: bool):
    import torch

    @contextlib.contextmanager
    def as_it_is(*_arguments):
        yield

    @contextlib.contextmanager
    def switched_off(model, adapter_name=None):
        with model.disable_adapter():
            yield

    space = {"torch": torch, "F": torch.nn.functional, "is_peft_model": lambda _model: has_adapters}
    space |= {"use_adapter": switched_off, "disable_gradient_checkpointing": as_it_is}
    functions(trl / "trainer" / "utils.py", {"selective_log_softmax", "entropy_from_logits"}, space)
    functions(trl / "trainer" / "dpo_trainer.py", {"_compute_loss"}, space)
    return lambda model, inputs: space["_compute_loss"](trainer, model, inputs, False)


def wrapped(model) -> None:
    """As accelerate wraps it under bf16: autocast around the forward pass alone, and outputs in fp32."""
    import torch

    call = model.forward

    def forward(**named):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            outputs = call(**named)
        outputs["logits"] = outputs["logits"].float()
        return outputs

    model.forward = forward
    model.config.use_cache = False


def behave_as_a_whole_batch() -> None:
    """Fake tensors have no values: what is read of one is 0, a comparison is true, and a mask takes all that there is."""
    import torch

    get, put = torch.Tensor.__getitem__, torch.Tensor.__setitem__

    def is_mask(key):
        return isinstance(key, torch.Tensor) and key.dtype == torch.bool

    def taken(self, key):
        return self.reshape(-1, *self.shape[key.dim() :]).clone() if is_mask(key) else get(self, key)

    torch.Tensor.item = lambda self: 0.0
    torch.Tensor.__bool__ = lambda self: True
    torch.Tensor.__getitem__ = taken
    torch.Tensor.__setitem__ = lambda self, key, value: self.mul_(1) if is_mask(key) else put(self, key, value)


def count(model_row: dict[str, str], row: dict[str, str], trl: Path) -> int:
    import live_storage
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    row = row | {name: row.get(name) or value for name, value in count_training.DEFAULTS.items()}
    row |= {"sequences": str(2 * int(row["pairs"])), "precision": "amp", "optimizer_id": "adamw", "attention": "flash"}
    fake_cuda.install()
    live_storage.install_attention()
    model, reference = count_training.build(model_row, row), None
    if not row["lora_rank"]:
        reference = count_training.build(model_row, row | {"checkpointing": "none"}).eval()
    trainer = types.SimpleNamespace(
        model=model, ref_model=reference, ld_alpha=None, precompute_ref_logps=False, f_divergence_type="reverse_kl", loss_types=["sigmoid"],
        loss_weights=[1.0], beta=0.1, label_smoothing=0.0, use_weighting=False, _total_train_tokens=0,
        args=types.SimpleNamespace(gradient_checkpointing_kwargs=None), _metrics={"train": collections.defaultdict(list)},
        accelerator=types.SimpleNamespace(gather=lambda x: x, gather_for_metrics=lambda x: x, unwrap_model=lambda m: m, device="cuda"),
    )  # fmt: skip
    loss, models = loss_of(trl, trainer, reference is None), [each for each in (model, reference) if each is not None]
    tracker, peak = live_storage.Tracker(), 0
    with FakeTensorMode(allow_non_fake_inputs=True):
        for each in models:
            count_training.to_fake(each)
        count_training.behave_as_with_values()
        behave_as_a_whole_batch()
        with tracker:
            for each in models:
                for tensor in (*each.parameters(), *each.buffers()):
                    tracker.track(tensor)
                wrapped(each)
            ids = torch.randint(0, 100, (int(row["sequences"]), int(row["context_tokens"])), device="cuda")
            mask = torch.ones_like(ids)
            optimizer = count_training.optimizer_of(model, "adamw")
            for _ in range(STEPS):
                gc.collect()
                tracker.reset_peak()
                kept = loss(model, {"input_ids": ids, "attention_mask": mask, "completion_mask": mask})
                gc.collect()
                tracker.sums_in_place = True
                kept.backward()
                tracker.sums_in_place = False
                del kept
                gc.collect()
                optimizer.step()
                gc.collect()
                peak = tracker.peak
                optimizer.zero_grad(set_to_none=True)
    return peak


def main() -> None:
    (trl,) = map(Path, sys.argv[1:])
    with count_training.MODELS.open(encoding="utf-8", newline="") as file:
        models = {row["model"]: row for row in csv.DictReader(file)}
    with ROWS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if not row["peak_bytes"]:
            row["peak_bytes"] = str(count(models[row["model"]], row, trl))
            print(*row.values(), sep=",", flush=True)
    with ROWS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
