"""Counts what ExLlamaV3 of 2025 holds of a converted model, while it loads and at the peak of a prompt's chunk: the truth for its engine's formulas.

    git -C exllamav3 archive v0.0.3 exllamav3 | tar x -C folder      # https://github.com/turboderp-org/exllamav3
    PYTHONPATH=folder python tests/oracle/count_exllamav3_first.py       # rows of exllamav3_first.csv of this release that have no peak yet

As count_exllamav3.py, whose stand-ins and files of holes it takes, over the classes of a release's own source. These loaded each module and read a
chunk with it at once, without a cache, under a limit of what PyTorch may take (`_load_autosplit`); attention was flash-attn's, which makes its
result and a sum for each token and head. `loaded_bytes` is the most that is alive while it loads, `peak_bytes` while the last chunk of a prompt is read;
`reserved_bytes` the least that an emulated allocator has to be let for both, which gives back what lies free as a whole before it gives up.
"""

from __future__ import annotations

import gc
import json
import math
import runpy
import sys
import tempfile
import types
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import allocator
import count_exllamav3 as later
import rows

COUNTED = Path(__file__).with_name("exllamav3_first.csv")


def release() -> str:
    return runpy.run_path(str(Path(find_spec("exllamav3").origin).with_name("version.py")))["__version__"]


class Limited(allocator.Allocator):
    """Under a limit: what lies free as a whole goes back to the driver before more is refused (release_cached_blocks)."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit, self._taken = limit, 0

    def _segment(self, wanted: int, is_small: bool) -> allocator.Block:
        block = super()._segment(wanted, is_small)
        self._taken += block.bytes  # (each lies below all before it, given back or not)
        block.address = allocator._ABOVE - self._taken
        if self.reserved > self._limit:
            self.empty()
            if self.reserved > self._limit:
                raise MemoryError
        return block

    def empty(self) -> None:
        for free in self._free.values():
            whole = [entry for entry in free if entry[2].before is None and entry[2].behind is None]
            for entry in whole:
                free.remove(entry)
                self.reserved -= entry[0]


class Recorded(allocator.Allocator):
    """As its parent, and what was asked of it, to be asked again under a limit."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[int, int | None]] = []  # a block's number, and its bytes where it is taken

    def take(self, wanted: int) -> allocator.Block:
        block = super().take(wanted)
        self.asked.append((id(block), wanted))
        block.kept = block  # (or another would have its number)
        return block

    def give(self, block: allocator.Block) -> None:
        self.asked.append((id(block), None))
        super().give(block)

    def passes(self, limit: int) -> bool:
        limited, blocks = Limited(limit), {}
        try:
            for number, wanted in self.asked:
                if wanted is None:
                    limited.give(blocks.pop(number))
                elif wanted:
                    blocks[number] = limited.take(wanted)
                else:
                    limited.empty()
        except MemoryError:
            return False
        return True

    def least(self) -> int:
        """To 2 MiB, of which all that it takes is a multiple."""
        step = 2 * allocator.MIB
        below, enough = 0, -(-self.reserved // step)
        while not self.passes(enough * step):  # (what is given back may come to lie worse)
            below, enough = enough, enough + 16
        while enough - below > 1:
            middle = (below + enough) // 2
            below, enough = (below, middle) if self.passes(middle * step) else (middle, enough)
        return enough * step


def attend() -> None:
    """flash-attn 2.7: interface `flash_attn_func` and `flash_attn_with_kvcache` (csrc/flash_attn/flash_api.cpp makes `out` and `softmax_lse`)."""
    import torch

    def attention(q, *_args, **_named):
        out = torch.empty_like(q)
        torch.empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float, device=q.device)
        return out

    module = types.ModuleType("flash_attn")
    module.flash_attn_func = module.flash_attn_with_kvcache = attention
    sys.modules["flash_attn"] = module


def packed(model, tensors: dict, bits: float, head_bits: int) -> dict:
    """What its converter makes of the tensors: block by block, what one leaves of its bits the next may take."""
    from exllamav3.modules import Linear

    left, strategy = 0, {}
    for module in model.modules:
        given, left = module.allocate_q({"bits": bits, "head_bits": head_bits}, left)
        strategy |= given
    kept, made = dict(tensors), {}
    for module in model:
        if not isinstance(module, Linear) or module.key not in strategy:
            continue
        wide = (module.in_features // 16, module.out_features // 16, 16 * strategy[module.key])
        made[f"{module.key}.trellis"] = ("I16", wide)
        made[f"{module.key}.suh"] = ("F16", (module.in_features,))
        made[f"{module.key}.svh"] = ("F16", (module.out_features,))
        for name in filter(None, (module.key, module.alt_key, module.fkey)):
            if f"{name}.bias" in tensors:
                made[f"{module.key}.bias"] = ("F16", (module.out_features,))
            if "embed" not in name:
                kept.pop(f"{name}.weight", None)
                kept.pop(f"{name}.bias", None)
    return {**kept, **made}


def count(row: rows.Row) -> rows.Row:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    if row["release"] != release():
        return {}
    later.stand_in()
    attend()
    from exllamav3 import Cache, Config, Model
    from exllamav3.cache import CacheLayer_fp16, CacheLayer_quant
    from exllamav3.constants import PAGE_SIZE
    from exllamav3.models import model as loading
    from exllamav3.modules import module as modules_module
    from exllamav3.util import tensor as util_tensor

    for name in ("set_memory_fraction_reserve", "set_memory_fraction_use", "unset_memory_fraction"):
        setattr(loading, name, lambda *_args: None)
    # (three tables of pointers)
    sys.modules["exllamav3.modules.attn"].MultiLinear = later.Idle
    modules_module.Module.prepare_for_device = lambda self, x, params: later.moved(x, self.device)
    for_device = lambda params, key, device, default=None: (  # noqa: E731
        None if params.get(key, default) is None else later.moved(params[key], device)
    )
    for module in (util_tensor, sys.modules["exllamav3.modules.attn"]):
        module.get_for_device = for_device
    bits, context, at = float(row["bits"]), int(row["cache_tokens"]), int(row["chunk_tokens"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own:
            config_dict, tensors = own.submit(later.published, CONFIGS[row["model"]]).result()
        (folder / "config.json").write_text(json.dumps(config_dict))
        kind = later.PROCESSORS.get(config_dict["model_type"])
        (folder / "preprocessor_config.json").write_text(json.dumps(later.PICTURES | {"image_processor_type": kind}))
        later.write_holes(folder, tensors)
        model = Model.from_config(Config.from_directory(str(folder)))
        tensors = packed(model, tensors, bits, int(row["head_bits"]))
        later.write_holes(folder, tensors)
        tracker = allocator.Tracker()
        tracker.allocator, _ = tracker._allocators = recorded, _other = (
            Recorded(),
            allocator.Allocator(is_expandable=True),
        )
        torch.cuda.empty_cache = lambda: recorded.asked.append((0, 0))
        with FakeTensorMode(allow_non_fake_inputs=True), torch.inference_mode(), tracker:
            model = Model.from_config(Config.from_directory(str(folder)))
            kind, told = (CacheLayer_fp16, {}) if row["kv_bits"] == "fp16" else (
                CacheLayer_quant, {"k_bits": int(row["kv_bits"]), "v_bits": int(row["kv_bits"])})  # fmt: skip
            cache = Cache(model, max_num_tokens=context, layer_type=kind, **told)
            model.load(reserve_per_device=[0.25], max_chunk_size=at)
            gc.collect()
            loaded, standing = tracker.peak, tracker.total
            held = sum(t.numel() * t.element_size() for layer in cache.layers for t in vars(layer).values()
                       if isinstance(t, torch.Tensor))  # fmt: skip
            pages = context // PAGE_SIZE
            params = {
                "attn_mode": "flash_attn", "cache": cache,
                "block_table": later.real(torch.arange, pages).view(1, pages).int(),
                "cache_seqlens": later.real(torch.full, (1,), max(0, context - at)).int(),
            }  # fmt: skip
            tracker.reset_peak()
            model.prefill(torch.zeros((1, at), dtype=torch.long), dict(params))
            gc.collect()
            peak = tracker.peak
            tracker.reset_peak()
            model.forward(torch.zeros((1, 1), dtype=torch.long), dict(params))
            step = tracker.peak
    on_card = {k: v for k, v in tensors.items() if not later.LEFT.search(k)}
    return {
        "weights_bytes": str(sum(later.NAMES[kind] * math.prod(shape) for kind, shape in on_card.values())),
        "cache_bytes": str(held),
        "standing_bytes": str(standing),
        "loaded_bytes": str(loaded),
        "peak_bytes": str(peak),
        "step_bytes": str(step),
        "reserved_bytes": str(recorded.least()),
        "versions": f"torch {torch.__version__}, exllamav3 {release()}",
    }


if __name__ == "__main__":
    CONFIGS = rows.configs()
    rows.count_rows(COUNTED, __doc__, lambda row: row["model"], count)
