"""Runs real model code whose large tensors hold nothing: shapes, storages and small integers are real, products are not computed.

Fake tensors cannot answer what towers ask of their inputs (how many patches an image has, where its tokens stand). Here tensors
live on the CPU without ever being written: large floating results are empty storages of the shape that the meta device gives,
everything small or made of integers is computed. Storages are counted as live_storage.Tracker counts them, on this device, and
attention runs the kernel that CUDA would choose.
"""

from __future__ import annotations

import weakref

import torch
from live_storage import Attention, _round, aten, worked_in
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

SMALL = 1 << 16  # elements that are worth computing
COMPARISONS = ("aten::eq", "aten::ne", "aten::gt", "aten::lt")  # a model chooses by them
TURNED = ("aten::transpose_", "aten::t_", "aten::squeeze_", "aten::unsqueeze_", "aten::as_strided_")  # views, in place
_ROUNDING = 512


class Hollow(TorchDispatchMode):
    """`total`: bytes alive now; `peak`: the most since `reset_peak`; `at`: the operator and shape that made it."""

    def __init__(self) -> None:
        super().__init__()
        self.total = self.peak = 0
        self.at = ""
        self._alive: dict[int, list] = {}

    def reset_peak(self) -> None:
        self.peak, self.at = self.total, ""

    def track(self, tensor: torch.Tensor) -> None:
        if tensor.device.type != "cpu":
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._alive:
            return
        record: list = [_round(storage.nbytes(), _ROUNDING)]
        self._alive[key] = record
        self.total += record[0]
        record.append(weakref.ref(storage, lambda _, key=key, record=record: self._freed(key, record)))

    def _freed(self, key: int, record: list) -> None:
        self.total -= record[0]
        if self._alive.get(key) is record:
            del self._alive[key]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = self._run(func, args, kwargs)
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.track(leaf)
        if self.total > self.peak:
            self.peak = self.total
            shapes = [tuple(leaf.shape) for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
            self.at = f"{func} {shapes}"
        return result

    def _run(self, func, args, kwargs):
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        large = any(t.numel() > SMALL for t in tensors)
        floating = any(t.is_floating_point() or t.is_complex() for t in tensors)
        aliases = any(r.alias_info is not None for r in func._schema.returns)
        is_view = (aliases and not func._schema.is_mutable) or func._schema.name in TURNED
        if is_view or func is aten._unsafe_view.default:
            return func(
                *args, **kwargs
            )  # a view costs nothing, also that of a product, which its schema does not call one
        if not tensors:
            return func(*args, **kwargs)
        if "attention" in func._schema.name:
            return self._like_meta(func, args, kwargs)
        if not floating or not large or func._schema.name in COMPARISONS:
            return func(*args, **kwargs)
        if func._schema.is_mutable:
            if func._schema.name.endswith("_"):
                return args[0]
            return kwargs.get("out", args[0])
        try:
            return self._like_meta(func, args, kwargs)
        except (NotImplementedError, RuntimeError):
            return func(*args, **kwargs)  # a choice by values

    def _like_meta(self, func, args, kwargs):
        def bare(value):
            if isinstance(value, torch.Tensor):
                return value.to("meta") if value.device.type != "meta" else value
            return torch.device("meta") if isinstance(value, torch.device) else value

        shaped = func(*tree_map(bare, args), **tree_map(bare, kwargs))

        def solid(value):
            if not isinstance(value, torch.Tensor):
                return value
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)

        return tree_map(solid, shaped)


class Convolving(Hollow):
    """Counts what cuDNN works in besides (live_storage.worked_in)."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if "convolution" in func._schema.name:
            working = self.total + sum(_round(tensor.nbytes, _ROUNDING) for tensor in worked_in(args[0], result))
            if working > self.peak:
                self.peak, self.at = working, f"{func} and its work space {tuple(result.shape)}"
        return result


class Kernels(Attention):
    """The attention kernel that a GPU of sm80 and later would run, for tensors that hold nothing."""

    def __call__(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        kernel = self.choose(query, key, value, attn_mask, is_causal, enable_gqa)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(
                attn_mask.logical_not(), float("-inf")
            )
        if kernel == "flash":
            missing = -query.shape[-1] % 8
            padded = [torch.nn.functional.pad(t, (0, missing)) if missing else t for t in (query, key, value)]
            output = aten._scaled_dot_product_flash_attention(*padded, 0.0, is_causal, False, scale=scale)[0]
            return output[..., : query.shape[-1]] if missing else output
        if kernel == "efficient":
            if attn_mask is not None:
                columns = attn_mask.shape[-1]
                if columns % 8:  # rows of the mask must be aligned
                    attn_mask = torch.nn.functional.pad(attn_mask, (0, -columns % 8))[..., :columns]
                attn_mask = attn_mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
            return aten._scaled_dot_product_efficient_attention(
                query, key, value, attn_mask, False, 0.0, is_causal, scale=scale
            )[0]
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, 0.0, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]


def install_attention() -> None:
    torch.nn.functional.scaled_dot_product_attention = Kernels()
