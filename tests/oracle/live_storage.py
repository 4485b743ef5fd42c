"""Counts live storages while real code runs on fake CUDA tensors, and chooses attention kernels as CUDA would.

Every storage counts from its creation to its destruction, rounded to 512 bytes as the caching allocator does. What CUDA kernels
allocate inside themselves is no operator's output and is added from their source.
"""

from __future__ import annotations

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
_DEVICE_OF = torch.ops.prim.device.default
_ROUNDING = 512


def _round(value: int, multiple: int) -> int:
    return (value + multiple - 1) // multiple * multiple


def scratch_bytes(func, args) -> int:
    """Scratch of backward passes: attention kernels (flash_api.cpp mha_bwd; mem_eff_attention, its dQ approximate), softmax (SoftMax.cu).

    The plain softmax multiplies its gradient by its result before it sums; the log-softmax of a loss does not.
    """
    if func is aten._softmax_backward_data.default:
        return args[0].numel() * args[0].element_size()
    if func is aten._scaled_dot_product_flash_attention_backward.default:
        query, key = args[1], args[2]
        batch, heads, tokens, width = query.shape
        statistics = 4 * batch * heads * _round(tokens, 128)
        accumulator = 4 * batch * heads * _round(tokens, 128) * _round(width, 32 if width <= 128 else 64)
        expanded = 2 * query.element_size() * batch * key.shape[2] * heads * width if key.shape[1] != heads else 0
        return statistics + accumulator + expanded
    if func is aten._scaled_dot_product_cudnn_attention_backward.default:
        query = args[1]  # gradients of queries are summed in fp32, with two numbers of each row
        return 4 * query.numel() + 8 * query.shape[0] * query.shape[1] * query.shape[2]
    if func is aten._scaled_dot_product_efficient_attention_backward.default:
        query = args[1]
        batch, heads, tokens, width = query.shape
        accumulator = 0 if query.dtype == torch.float32 else 4 * batch * heads * _round(tokens, 64) * _round(width, 64)
        return 4 * batch * heads * tokens + accumulator
    return 0


def worked_in(read: torch.Tensor, made: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What lies there a second time while cuDNN convolves: its kernels read and write channels last. Of pictures in fp32 one copy of the result
    is counted, as pipelines of diffusers were measured on an A100 (tests/formulas/test_pipelines.py). Held to a card (card.csv): videos in fp32
    take 25 to 31 MiB more than this, pictures in 16 bits 8, sound 9."""
    return (read, made) if made.element_size() == 2 or made.dim() != 4 else (made,)


class Tracker(TorchDispatchMode):
    """`total`: bytes alive now; `peak`: the most since `reset_peak`."""

    def __init__(self) -> None:
        super().__init__()
        self.total = self.peak = 0
        # on around backward(): the engine sums gradients in place where it owns the buffer, and the derivative of a gather writes into its own
        # zeros, but neither does for fake tensors (areAnyTensorSubclassLike)
        self.sums_in_place = False
        self._alive: dict[int, list] = {}

    def reset_peak(self) -> None:
        self.peak = self.total

    def track(self, tensor: torch.Tensor) -> None:
        if tensor.device.type != "cuda":
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
        if func is _DEVICE_OF:
            return func(*args, **kwargs)
        reused = self._reused(func, args, kwargs)
        result = func(*args, **kwargs)
        if reused is not None:
            self.total -= reused[0]
            reused[0] = 0
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.track(leaf)
        self.peak = max(self.peak, self.total + scratch_bytes(func, args))
        return result

    def _reused(self, func, args, kwargs) -> list | None:
        if not self.sums_in_place or kwargs or torch.is_grad_enabled():
            return None
        if func is aten.scatter_add.default:
            return self._owned(args[0])
        if func is not aten.add.Tensor:
            return None
        first, second = args
        if not (isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)):
            return None
        if first.shape != second.shape or first.dtype != second.dtype:
            return None
        return self._owned(first)

    def _owned(self, tensor: torch.Tensor) -> list | None:
        storage = tensor.untyped_storage()
        owned = torch._C._storage_Use_Count(storage._cdata) == 2
        whole = storage.nbytes() == tensor.numel() * tensor.element_size()
        return self._alive.get(storage._cdata) if owned and whole else None


class Attention:
    """scaled_dot_product_attention on sm80 and later: flash, memory-efficient or plain products (select_sdp_backend)."""

    def choose(self, query, key, value, mask, causal, grouped) -> str:
        half = query.dtype in (torch.float16, torch.bfloat16)
        width, same_heads = query.shape[-1], query.shape[1] == key.shape[1] == value.shape[1]
        dense = query.dim() == key.dim() == value.dim() == 4
        dense = dense and all(t.stride(-1) == 1 or t.shape[-1] == 1 for t in (query, key, value))
        square = not (causal and query.shape[2] != key.shape[2])
        if dense and half and mask is None and width == value.shape[-1] <= 256 and square and (same_heads or grouped):
            return "flash"
        multiple = 8 if half else 4
        if dense and same_heads and width % multiple == 0 and value.shape[-1] % multiple == 0:
            return "efficient"
        return "math"

    def __call__(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if query.device.type != "cuda":
            return _on_cpu(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if torch.is_autocast_enabled("cuda"):
            low = torch.get_autocast_dtype("cuda")
            tensors = [
                t.to(low) if t is not None and t.dtype == torch.float32 else t for t in (query, key, value, attn_mask)
            ]
            with torch.autocast("cuda", enabled=False):
                return self(*tensors, dropout_p, is_causal, scale, enable_gqa)
        kernel = self.choose(query, key, value, attn_mask, is_causal, enable_gqa)
        factor = query.shape[-1] ** -0.5 if scale is None else scale
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(
                attn_mask.logical_not(), float("-inf")
            )
        if kernel == "flash":
            missing = -query.shape[-1] % 8
            padded = [torch.nn.functional.pad(t, (0, missing)) if missing else t for t in (query, key, value)]
            output = aten._scaled_dot_product_flash_attention(*padded, dropout_p, is_causal, False, scale=factor)[0]
            return output[..., : query.shape[-1]] if missing else output
        if kernel == "efficient":
            statistics = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
            if attn_mask is not None:
                columns = attn_mask.shape[-1]
                if columns % 16:  # only masks that are not aligned are copied
                    attn_mask = torch.nn.functional.pad(attn_mask, (0, -columns % 16))[..., :columns]
                attn_mask = attn_mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
            return aten._scaled_dot_product_efficient_attention(
                query, key, value, attn_mask, statistics, dropout_p, is_causal, scale=factor
            )[0]
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]


_on_cpu = torch.nn.functional.scaled_dot_product_attention


def install_attention() -> None:
    torch.nn.functional.scaled_dot_product_attention = Attention()
