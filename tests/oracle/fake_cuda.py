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
