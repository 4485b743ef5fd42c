"""Runs what PyTorch's compiler writes for a GPU on fake CUDA tensors, where no GPU is. Written for PyTorch 2.11.0 and Triton 3.6.

Inductor lowers, fuses and plans as for the GPU that is described here; the code that it writes is run with kernels that do nothing, so that each of
its tensors is made and freed where it says so. No kernel is compiled or launched, and what is searched for by trying kernels (pad_mm, patterns of
attention) is left out.
"""

from __future__ import annotations

import contextlib
import re
import sys
import types
from collections.abc import Callable

import fake_cuda
import torch

GPU = types.SimpleNamespace(
    name="NVIDIA H200", major=9, minor=0, total_memory=150754820096, multi_processor_count=132, warp_size=32,
    max_threads_per_multi_processor=2048, max_threads_per_block=1024, regs_per_multiprocessor=65536,
    L2_cache_size=52428800, shared_memory_per_block=49152, shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472, gcnArchName="",
)  # fmt: skip


def install() -> None:
    fake_cuda.install()
    sys.setrecursionlimit(9000)  # lowering of one large graph
    _answer_for_the_card()
    _answer_for_triton()
    _leave_out_what_is_tried()
    from torch._inductor import graph

    graph.GraphLowering._compile_to_module_lines = _module


def _answer(*owners: object, **answers: object) -> None:
    """Each name of these owners answers with a value, whatever it is asked with."""
    for owner in owners:
        for name, value in answers.items():
            call = lambda *_args, _value=value, **_named: _value  # noqa: E731
            setattr(owner, name, staticmethod(call) if isinstance(owner, type) else call)


def _answer_for_the_card() -> None:
    import torch._dynamo.device_interface as interface
    import torch._subclasses.fake_tensor as fake_tensor
    import torch.cuda.graphs

    _answer(
        torch.cuda, get_device_properties=GPU, _get_device_properties=GPU, is_available=True, current_device=0,
        device_count=1, get_device_capability=(9, 0), _lazy_init=None, is_initialized=True, synchronize=None,
        _exchange_device=0, _maybe_exchange_device=0, is_current_stream_capturing=False,
    )  # fmt: skip
    _answer(torch.cuda.graphs, _cuda_isCurrentStreamCapturing=False)
    _answer(torch._C, _cuda_getCurrentRawStream=0, _cuda_getDevice=0)
    _answer(torch._C, _cuda_exchangeDevice=0, _cuda_maybeExchangeDevice=0)
    _answer(interface.CudaInterface.Worker, get_device_properties=GPU)
    _answer(
        interface.CudaInterface, get_device_properties=GPU, is_available=True, get_compute_capability=90,
        get_raw_stream=0, current_device=0,
    )  # fmt: skip
    interface.caching_worker_device_properties["cuda"] = [GPU]
    _answer(fake_tensor, init_gpu_context=None)
    for module in (torch.cuda, torch.cuda.random):
        module.get_rng_state = lambda *_args, **_named: torch.get_rng_state()
        _answer(module, set_rng_state=None)


def _answer_for_triton() -> None:
    import torch._inductor.codegen.triton as written
    import torch.utils._triton as asked
    import triton
    from triton.backends.compiler import GPUTarget

    driver = types.SimpleNamespace()
    _answer(driver, get_current_target=GPUTarget("cuda", 90, 32), get_device_interface=torch.cuda, get_current_device=0)
    triton.runtime.driver.set_active(driver)
    _answer(asked, has_triton=True, triton_hash_with_backend="none")
    _answer(written, triton_hash_with_backend="none")
    _answer(triton.runtime.jit.JITFunction, run=None)


def _leave_out_what_is_tried() -> None:
    import torch._functorch.config
    import torch._inductor.config as config
    from torch._inductor.fx_passes import fuse_attention, joint_graph, misc_patterns, pad_mm

    _answer(fuse_attention, joint_graph, _sfdp_init=None)
    _answer(joint_graph, pad_mm, _pad_mm_init=None)
    _answer(misc_patterns, _misc_patterns_init=None)
    config.fx_graph_cache = config.joint_graph_constant_folding = config.shape_padding = False
    config.compile_threads = 1
    torch._functorch.config.enable_autograd_cache = False


class _Asked:
    """Answers every name by `answer(name)`, or with what `beside` has of that name."""

    def __init__(self, answer: Callable[[str], object], **beside: object) -> None:
        self._answer = answer
        self.__dict__.update(beside)

    def __getattr__(self, name: str) -> object:
        return self._answer(name)


class _Kernel:
    def run(self, *_args: object, **_named: object) -> None:
        pass


def _extern(name: str) -> Callable:
    def call(*args: object, out: torch.Tensor | None = None, **named: object) -> object:
        return getattr(torch, name)(*args, **named) if out is None else out

    return call


def _module(_graph: object, wrapper_code: object) -> types.SimpleNamespace:
    """The module of a graph's code: in place of the one that Inductor would compile the kernels of."""
    code = wrapper_code.value.replace("async_compile.wait(globals())", "").replace("del async_compile", "")
    code = re.sub(r"async_compile = AsyncCompile\(\)", "async_compile = _kernels", code)
    names = {"__name__": "wrapper", "_kernels": _Asked(lambda _name: lambda *_args, **_named: _Kernel())}
    exec(compile(code, "wrapper", "exec"), names)
    runner = names["call"]
    call = runner if isinstance(runner, types.FunctionType) else runner.__func__
    cuda = _Asked(
        lambda name: getattr(torch.cuda, name), _DeviceGuard=contextlib.nullcontext, set_device=lambda _at: None
    )
    call.__globals__.update(
        torch=_Asked(lambda name: getattr(torch, name), cuda=cuda),
        extern_kernels=_Asked(_extern),
        empty_strided_cuda=lambda shape, stride, dtype: torch.empty_strided(shape, stride, dtype=dtype, device="cuda"),
        empty_strided_cpu=lambda shape, stride, dtype: torch.empty_strided(shape, stride, dtype=dtype),
        reinterpret_tensor=lambda tensor, shape, stride, offset=0: torch.as_strided(
            tensor, shape, stride, tensor.storage_offset() + offset
        ),
        assert_size_stride=lambda *_args: None,
        assert_alignment=lambda *_args: None,
        get_raw_stream=lambda _at: 0,
    )
    return types.SimpleNamespace(call=runner, __file__="wrapper.py")
