"""A layer of Unsloth's own classes on fake CUDA tensors: its installed kernels, which launch nothing here. Used by count_unsloth_blocks.py.

Of the installed package only the modules of these kernels are imported, without its first one, which wants a GPU; what they import of others
(formats in 8 bits, Transformers) is absent. In place of bitsandbytes' matrix one of its size is unpacked, and attention is cuDNN's, padded as
attention_dispatch.py does it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from dataclasses import dataclass

import torch

BF16 = torch.bfloat16
PADDED_ROWS = 128  # _CUDNN_LENGTH_BUCKET


class _Absent(types.ModuleType):
    """A module of which every name is a class of its own, of which nothing is an instance."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def kernels() -> types.SimpleNamespace:
    """The modules of unsloth/kernels that a layer runs, with an unpacked matrix of their own making."""
    os.environ["UNSLOTH_TRITON_FAST_LAUNCH"] = "0"
    folder = importlib.util.find_spec("unsloth").submodule_search_locations[0]
    for name, below in (("unsloth", ""), ("unsloth.kernels", "/kernels")):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [folder + below]
    for name in ("fp8", "nvfp4", "int4_packed"):
        sys.modules[f"unsloth.kernels.{name}"] = _Absent(name)
    sys.modules["transformers.models.llama.modeling_llama"] = _Absent("modeling_llama")
    sys.modules["unsloth_zoo.utils"] = types.SimpleNamespace(Version=torch.torch_version.TorchVersion)
    sys.modules["unsloth.bnb_availability"] = types.SimpleNamespace(native_kernels_ready=lambda *_args: False)
    sys.modules["unsloth.device_type"] = types.SimpleNamespace(
        is_hip=lambda: False, get_device_type=lambda: "cuda", DEVICE_TYPE="cuda", DEVICE_TYPE_TORCH="cuda", DEVICE_COUNT=1,
        ALLOW_PREQUANTIZED_MODELS=True,
    )  # fmt: skip
    names = ("utils", "fast_lora", "swiglu", "rms_layernorm", "rope_embedding", "qk_norm_rope")
    loaded = types.SimpleNamespace(**{name: importlib.import_module(f"unsloth.kernels.{name}") for name in names})
    loaded.utils.fast_dequantize = loaded.fast_lora.fast_dequantize = _unpacked
    return loaded


@torch.library.custom_op("counted::unpack", mutates_args=())
def _unpack(packed: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    raise NotImplementedError("fake tensors only")


@_unpack.register_fake
def _(packed: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    return packed.new_empty((rows, columns), dtype=BF16)


_place: dict[str, torch.Tensor] = {}


def forget_place() -> None:
    _place.clear()


def _unpacked(W, quant_state=None, out=None, use_global_buffer=False, dtype=None):
    """A matrix in 16 bits of a packed one (its shape is its state here): in one place that stays where it is not compiled, as in Unsloth."""
    if quant_state is None:
        return W
    rows, columns = quant_state
    if use_global_buffer and not torch.compiler.is_compiling():
        place = _place.get("any")
        if place is None or place.numel() < rows * columns:
            place = _place["any"] = torch.empty(rows * columns, dtype=BF16, device="cuda")
        whole = place[: rows * columns].view(rows, columns)
    else:
        whole = _unpack(W, rows, columns)
    return whole.t() if W.shape[0] == 1 else whole


@dataclass(frozen=True)
class Shape:
    """Widths of a layer, in elements."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    qk_norm: bool
    attention: str  # cudnn, which is padded, or flash

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        query, key = self.heads * self.head_dim, self.kv_heads * self.head_dim
        wide, up = (query, self.hidden), (self.intermediate, self.hidden)
        return {
            "q": wide,
            "k": (key, self.hidden),
            "v": (key, self.hidden),
            "o": wide[::-1],
            "gate": up,
            "up": up,
            "down": up[::-1],
        }


def attended(shape: Shape, *parts: torch.Tensor) -> torch.Tensor:
    scale = shape.head_dim**-0.5
    if shape.attention == "flash":
        return torch.ops.aten._scaled_dot_product_flash_attention(*parts, 0.0, True, False, scale=scale)[0]
    tokens = parts[0].shape[2]
    missing = PADDED_ROWS - tokens % PADDED_ROWS
    padded = (torch.nn.functional.pad(part, (0, 0, 0, missing)) for part in parts)
    attend = torch.ops.aten._scaled_dot_product_cudnn_attention
    return attend(*padded, None, True, 0.0, True, False, scale=scale)[0][..., :tokens, :]


class Norm(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(width, dtype=BF16, device="cuda"), requires_grad=False)
        self.variance_epsilon = 1e-6


class Layer(torch.nn.Module):
    """Adapters in fp32 over all matrices of a base in 16 bits, or packed in four."""

    def __init__(self, own: types.SimpleNamespace, shape: Shape, packed: bool, rank: int) -> None:
        super().__init__()
        self.own, self.shape, self.packed = own, shape, packed
        for name, (rows, columns) in shape.matrices.items():
            size, kind = ((rows * columns // 2, 1), torch.uint8) if packed else ((rows, columns), BF16)
            base = torch.empty(size, dtype=kind, device="cuda")
            self.register_parameter(f"base_{name}", torch.nn.Parameter(base, requires_grad=False))
            self.register_parameter(f"a_{name}", torch.nn.Parameter(torch.empty((rank, columns), device="cuda")))
            self.register_parameter(f"b_{name}", torch.nn.Parameter(torch.empty((rows, rank), device="cuda")))
        self.before, self.between = Norm(shape.hidden), Norm(shape.hidden)
        self.query_norm, self.key_norm = Norm(shape.head_dim), Norm(shape.head_dim)

    def linear(self, name: str) -> tuple:
        parts = (getattr(self, f"{part}_{name}") for part in ("base", "a", "b"))
        base, a, b = parts
        return base, self.shape.matrices[name] if self.packed else None, a, b, 1.0

    def attention(self, read: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        shape, lora = self.shape, self.own.fast_lora
        batch, tokens, _ = read.size()
        made = lora.LoRA_QKV.apply(read, *self.linear("q"), *self.linear("k"), *self.linear("v"), True)
        query, key, value = (
            part.view(batch, tokens, heads, shape.head_dim)
            for part, heads in zip(made, (shape.heads, shape.kv_heads, shape.kv_heads), strict=True)
        )
        if shape.qk_norm:
            query, key = self.own.qk_norm_rope.fast_qk_norm_rope(self.query_norm, self.key_norm, query, key, cos, sin)
        else:
            query, key = self.own.rope_embedding.fast_rope_embedding(
                query.transpose(1, 2), key.transpose(1, 2), cos, sin
            )
        seen = attended(shape, query, key, value.transpose(1, 2))
        return lora.LoRA_W.apply(seen.transpose(1, 2).reshape(batch, tokens, -1), *self.linear("o"))

    def forward(self, read: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        own = self.own
        norm = own.rms_layernorm.fast_rms_layernorm
        kept = {"save_output": True, "reuse_grad": True}
        between = read + self.attention(norm(self.before, read, **kept), cos, sin)
        linear = (*self.linear("gate"), *self.linear("up"), *self.linear("down"))
        kernel = own.swiglu.swiglu_fg_kernel, own.swiglu.swiglu_DWf_DW_dfg_kernel
        return between + own.fast_lora.LoRA_MLP.apply(norm(self.between, between, **kept), *linear, *kernel, True)
