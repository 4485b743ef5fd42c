"""Lets a CPU-only build of PyTorch hold fake CUDA tensors that run through autograd, autocast and optimizers (needs g++, x86-64).

FakeTensorMode on such a build refuses autograd for device 'cuda': no device guard is registered and the engine finds no
accelerator. fake_cuda.cpp registers a guard that does nothing. Nothing is ever executed on a GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sysconfig
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("fake_cuda.cpp")
# These have a CUDA kernel and a composite fallback: without a kernel a CPU-only build takes them apart, as no GPU does.
KERNELS = ("silu_backward", "mish_backward", "native_channel_shuffle", "_fused_rms_norm")
_held: list[object] = []


def install() -> None:
    import torch

    if _held or torch.cuda.is_available():
        return
    library = torch.library.Library("aten", "IMPL")

    def never(*_args, **_named):
        raise NotImplementedError("fake tensors only")

    for name in KERNELS:
        library.impl(name, never, "CUDA")
    guard = ctypes.CDLL(str(_compiled()))
    if guard.install_fake_cuda() != 0:
        raise RuntimeError("PyTorch still finds no accelerator")
    _held.extend((library, guard))
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda *_args, **_named: True
    torch.cuda.get_device_capability = lambda *_args, **_named: (9, 0)
    _let_groups_multiply_fp32()


def _let_groups_multiply_fp32() -> None:
    """The meta function of `_grouped_mm` refuses what is not bf16. The kernel for CUDA takes it, writes one product after the other into
    the same output, and makes nothing else (PyTorch 2.13.0, aten/src/ATen/native/cuda/GroupedBlas.cpp, `_grouped_mm_fallback`); it is
    measured on a card (card.csv: full fine-tuning of qwen3_moe in fp32)."""
    import torch
    from torch import _meta_registrations as registered

    usual = registered._meta_grouped_mm_common

    def common(mat_a, mat_b, scale_a, scale_b, offs=None, bias=None, out_dtype=None, **named):
        if scale_a is None and mat_a.dtype == mat_b.dtype == torch.float32:
            return registered._create_grouped_mm_output_tensor(mat_a, mat_b, offs, out_dtype)
        return usual(mat_a, mat_b, scale_a, scale_b, offs=offs, bias=bias, out_dtype=out_dtype, **named)

    registered._meta_grouped_mm_common = common


def _compiled() -> Path:
    import torch

    here = Path(torch.__file__).parent
    tag = hashlib.sha256(torch.__version__.encode() + SOURCE.read_bytes()).hexdigest()[:12]
    shared = Path(tempfile.gettempdir()) / f"fake_cuda_{tag}.so"
    if not shared.exists():
        partial = shared.with_suffix(f".{os.getpid()}")
        subprocess.run(
            [
                "g++", "-O0", "-std=c++20", "-shared", "-fPIC", str(SOURCE), "-o", str(partial),
                f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}", f"-I{here}/include",
                f"-I{here}/include/torch/csrc/api/include", f"-I{sysconfig.get_paths()['include']}",
                f"-L{here}/lib", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{here}/lib",
            ],
            check=True,
        )  # fmt: skip
        partial.replace(shared)
    return shared
