"""Counts what DistributedDataParallel holds beside a plain training step: where the rows of ddp_buckets.csv come from.

    pip install -e '.[oracle]'
    python tests/oracle/count_ddp.py

A stack of linear layers is trained for three steps on the CPU, alone and wrapped (real code of PyTorch, one process, gloo). Bytes are
those of live storages, at five moments of the last step; `beside_bytes` is what the wrapped model holds more than the plain one.
"""

from __future__ import annotations

import csv
import gc
import weakref
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

FILE = Path(__file__).with_name("ddp_buckets.csv")
MOMENTS = ("start", "forward", "backward", "optimizer", "end")
WIDTH, LAYERS, STEPS = 512, 40, 3


class Tracker(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.total = 0
        self._alive: dict[int, weakref.ref] = {}

    def track(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self._alive:
            self.total += size
            self._alive[key] = weakref.ref(storage, lambda _: self._freed(key, size))

    def _freed(self, key: int, size: int) -> None:
        self.total -= size
        self._alive.pop(key, None)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.track(leaf)
        return result


def held(bucket_view: bool | None) -> tuple[int, dict[str, int]]:
    """Bytes of the parameters, and bytes alive at each moment; no wrapper where bucket_view is None."""
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    tracker, at = Tracker(), {}
    with tracker:
        for parameter in model.parameters():
            tracker.track(parameter)
        trained = model
        if bucket_view is not None:
            trained = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=bucket_view)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
        batch = torch.randn(4, WIDTH)
        for _ in range(STEPS):
            at["start"] = tracker.total
            loss = trained(batch).sum()
            at["forward"] = tracker.total
            loss.backward()
            del loss
            at["backward"] = tracker.total
            optimizer.step()
            at["optimizer"] = tracker.total
            optimizer.zero_grad(set_to_none=True)
            at["end"] = tracker.total
    return sum(p.numel() * p.element_size() for p in model.parameters()), at


def main() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    parameters, plain = held(None)
    rows = []
    for bucket_view in (False, True):
        gc.collect()
        wrapped = held(bucket_view)[1]
        for moment in MOMENTS:
            rows.append(
                {
                    "gradient_as_bucket_view": str(bucket_view).lower(),
                    "moment": moment,
                    "parameter_bytes": parameters,
                    "beside_bytes": wrapped[moment] - plain[moment],
                    "versions": f"torch {torch.__version__}",
                }
            )
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
