"""Counts what one GPU of several holds at the peak of a sharded training step: the truth that the sharding formulas are held to.

    pip install -e '.[oracle]'
    python tests/oracle/count_sharded.py                 # all rows of sharded_peaks.csv that have no peak yet
    python tests/oracle/count_sharded.py --again llama   # the rows of one model anew

As count_training.py, with the real code of PyTorch's FSDP2 (fully_shard) on the first of `gpu_count` ranks of a process group
that sends nothing. The wrapping is data: `accelerate` makes units of the layers, the embedding and the head with the final norm, and
reduces gradients in the compute precision; `torchtitan` leaves embedding and head to the root and reduces in fp32. Rows with loss `tiled` have
TRL's head (TRL=folder of an unpacked wheel), `recomputed-fp32` and `recomputed` the loss of TRL 1.7 and 1.14; a LoRA's base is in fp32 where its row
says so, as TRL loads it, and gathered in 16 bits.
"""

from __future__ import annotations

import argparse
import csv
import gc
import logging
import os
import sys
import warnings
from pathlib import Path

import count_training
import fake_cuda

PEAKS = Path(__file__).with_name("sharded_peaks.csv")


class Silent:
    """A stream or an event: nothing is ever queued on it."""

    def __init__(self, *_args, **_named) -> None:
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_args) -> None:
        pass

    def record_event(self, _event=None):
        return Silent()

    def query(self) -> bool:
        return True

    def _nothing(self, *_args, **_named) -> None:
        pass

    wait_stream = wait_event = synchronize = record = wait = _nothing


def install(gpu_count: int) -> None:
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    fake_cuda.install()
    torch.cuda.Stream = torch.cuda.Event = Silent
    torch.cuda.current_stream = torch.cuda.stream = lambda *_args: Silent()
    torch.cuda.device_count = lambda: 8
    torch.cuda.current_device = lambda: 0
    torch.cuda.set_device = lambda *_args: None
    torch._C._cuda_getCurrentRawStream = lambda _device: 0
    torch.cuda.is_available = torch.cuda.is_initialized = lambda: True
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=gpu_count)


def tracker_of_shards():
    """A tracker that looks inside distributed tensors, and learns when FSDP empties a storage or fills it again."""
    import live_storage
    import torch.distributed.fsdp._fully_shard._fsdp_param as parameters
    from torch.distributed.tensor import DTensor

    class Tracker(live_storage.Tracker):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if any(issubclass(kind, DTensor) for kind in types):
                return NotImplemented
            return super().__torch_dispatch__(func, types, args, kwargs)

        def track(self, tensor) -> None:
            if not isinstance(tensor, DTensor):
                super().track(tensor)

        def resized(self, tensor) -> None:
            self.track(tensor)
            storage = tensor.untyped_storage()
            record = self._alive[storage._cdata]
            held = live_storage._round(storage.nbytes(), live_storage._ROUNDING)
            self.total += held - record[0]
            record[0] = held
            self.peak = max(self.peak, self.total)

    tracker = Tracker()

    def resize(tensor, size: int) -> None:
        if tensor.untyped_storage().size() != size:
            tensor.untyped_storage().resize_(size)
        tracker.resized(tensor)

    parameters.alloc_storage = lambda tensor: resize(tensor, tensor.numel() * tensor.element_size())
    parameters.free_storage = lambda tensor: resize(tensor, 0)
    return tracker


def shard(model, row: dict[str, str], mesh) -> None:
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    is_whole = row["engine_id"] == "torchtitan"
    compute = torch.float32 if row["dtype_id"] == "fp32" and row["precision"] != "amp" else torch.bfloat16
    policy = MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=torch.float32 if is_whole else compute)
    named = {"mesh": mesh, "mp_policy": policy}
    layers = [module for module in model.modules() if type(module).__name__ in (model._no_split_modules or ())]
    for layer in layers:
        fully_shard(layer, **named)
    if not is_whole:
        inner = model.get_base_model() if row["lora_rank"] else model
        body, embedding, head = inner.model, inner.get_input_embeddings(), inner.get_output_embeddings()
        if embedding.weight is head.weight:
            fully_shard([body.norm, embedding, head], reshard_after_forward=False, **named)
        else:
            fully_shard(embedding, **named)
            fully_shard([body.norm, head], reshard_after_forward=False, **named)
    fully_shard(model, **named)


def add_tiled_head(model) -> None:
    """TRL's head in tiles, of a wheel that is unpacked in the folder TRL."""
    import count_preference
    import trl_kernels

    count_preference.behave_as_a_whole_batch()
    trl = Path(os.environ["TRL"]) / "trl"
    trl_kernels.add_tiled_head(trl, count_preference.functions, model, ("log_probs", "entropy", "is_top1"))


def add_recomputed_head(model, token_count: int) -> None:
    """The loss by parts of TRL 1.7 to 1.14 (chunked_nll), of a wheel that is unpacked in the folder TRL."""
    import inspect
    import re
    import types

    import count_preference
    import torch
    import transformers
    import trl_kernels
    from packaging.version import Version

    count_preference.behave_as_a_whole_batch()
    trainer = Path(os.environ["TRL"]) / "trl" / "trainer" / "sft_trainer.py"
    (tokens,) = re.findall(r"^_CHUNKED_LM_HEAD_CHUNK_SIZE = (\d+)", trainer.read_text(), re.MULTILINE)
    space = {
        "torch": torch, "F": torch.nn.functional, "inspect": inspect, "types": types, "Version": Version, "transformers": transformers,
        "maybe_gather_lm_head_ctx": trl_kernels.as_it_is, "_maybe_gather_lm_head_ctx": trl_kernels.as_it_is,
        "CausalLMOutputWithPast": None, "_ChunkedCELMHeadOutput": types.SimpleNamespace,
        # (how many tokens count is a value, which fake tensors have not: all)
        "range": lambda start, _end, step: range(start, token_count, step),
    }  # fmt: skip
    names = {"_chunk", "_chunked_cross_entropy_loss", "_patch_chunked_ce_lm_head"}
    count_preference.functions(trainer, names, space)
    space["_patch_chunked_ce_lm_head"](model, int(tokens))


def count(model_row: dict[str, str], row: dict[str, str]) -> int:
    import live_storage
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed.device_mesh import init_device_mesh

    row = {**count_training.DEFAULTS, **row}
    install(int(row["gpu_count"]))
    live_storage.install_attention()
    # shards are fp32 where a policy gathers them in 16 bits
    held = row | ({"dtype_id": "fp32"} if row["precision"] == "mixed" else {})
    model = count_training.build(model_row, held)
    tracker = tracker_of_shards()
    tokens = (int(row["sequences"]), int(row["context_tokens"]))
    mesh = init_device_mesh("cuda", (int(row["gpu_count"]),))
    if row["loss"] == "tiled":
        add_tiled_head(model.get_base_model() if row["lora_rank"] else model)
    elif row["loss"].startswith("recomputed"):
        add_recomputed_head(model.get_base_model() if row["lora_rank"] else model, tokens[0] * (tokens[1] - 1))
    with FakeTensorMode(allow_non_fake_inputs=True):
        count_training.to_fake(model)
        count_training.behave_as_with_values()
        shard(model, row, mesh)
        gc.collect()
        with tracker:
            for parameter in model.parameters():
                tracker.track(getattr(parameter, "_local_tensor", parameter))
            for buffer in model.buffers():
                tracker.track(buffer)
            ids = torch.randint(0, 100, tokens, device="cuda")
            return count_training.train(model, ids, row, tracker)


def main() -> None:
    import torch
    import transformers

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", default=None, help="model whose rows are counted anew")
    parser.add_argument(
        "--row", type=int, default=None, help="count one row and print it (a process group is set up once a process)"
    )
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    with count_training.MODELS.open(newline="") as file:
        models = {r["model"]: r for r in csv.DictReader(file)}
    with PEAKS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if asked.row is not None:
        print(count(models[rows[asked.row]["model"]], rows[asked.row]))
        return
    import subprocess

    for number, row in enumerate(rows):
        if row["peak_bytes"] and row["model"] != asked.again:
            continue
        done = subprocess.run([sys.executable, __file__, "--row", str(number)], capture_output=True, text=True)
        if done.returncode:
            print(f"{row['model']}: {done.stderr.strip().splitlines()[-1][:200]}", file=sys.stderr)
            continue
        row["peak_bytes"] = done.stdout.split()[-1]
        row["versions"] = f"torch {torch.__version__}, transformers {transformers.__version__}"
        print(*(row[name] for name in list(rows[0])[:-1]))
        with PEAKS.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
