"""TRL's own kernels of the loss (since 1.14) and its head in tiles (since 1.15) for fake tensors: the functions of its files, whose Triton
kernels, which make no tensor, do nothing."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import re
import sys
import types
from pathlib import Path


class Nothing:
    """A Triton kernel: launched on a grid, it writes into what it was given."""

    def __getitem__(self, _grid):
        return lambda *_given, **_named: None


@contextlib.contextmanager
def as_it_is(*_arguments):
    yield


def kernels(trl: Path, name: str):
    """A file of trl/kernels as a module of its own, as it runs where Triton is."""
    for parent in ("trl", "trl.kernels", "trl.trainer", "trl.trainer.utils"):
        sys.modules.setdefault(parent, types.ModuleType(parent)).__path__ = []
    sys.modules["trl.trainer.utils"].maybe_gather_lm_head_ctx = as_it_is
    triton = types.ModuleType("triton")
    triton.jit, triton.cdiv, triton.language = (
        (lambda kernel: kernel),
        (lambda a, b: -(-a // b)),
        types.ModuleType("tl"),
    )
    triton.language.constexpr, triton.__spec__ = int, importlib.util.spec_from_loader("triton", None)
    before = {key: sys.modules.get(key) for key in ("triton", "triton.language")}
    sys.modules |= {"triton": triton, "triton.language": triton.language}
    spec = importlib.util.spec_from_file_location(f"trl.kernels.{name}", trl / "kernels" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for key, value in before.items():
        sys.modules.pop(key) if value is None else sys.modules.update({key: value})
    module.triton, module._use_triton = triton, lambda _device: True
    module._forward_kernel = module._backward_kernel = Nothing()
    module._addmm_fp32 = lambda _sum, _left, _right: None  # a product that is added in place
    return module


def one_pass(trl: Path) -> dict:
    """Log-probabilities and entropy by one kernel: what 1.14 calls where logits are on a card."""
    fused = kernels(trl, "logprob_entropy").selective_log_softmax_and_entropy

    def both(logits, index, entropy_requires_grad=True, temperature=1.0, row_mask=None):
        logprobs, entropy = fused(logits, index, temperature=temperature, row_mask=row_mask)
        return logprobs, entropy if entropy_requires_grad else entropy.detach()

    def one(logits, index, temperature=1.0, row_mask=None):
        return fused(logits, index, temperature=temperature, row_mask=row_mask)[0]

    return {"selective_log_softmax_and_entropy": both, "selective_log_softmax": one}


def add_tiled_head(trl: Path, functions, model, outputs: tuple[str, ...]) -> None:
    """add_fused_lm_head of a release: the model's forward pass answers with log-probabilities."""
    import torch
    from packaging.version import Version

    text = (trl / "trainer" / "utils.py").read_text()
    (columns,) = re.findall(r"^_CHUNKED_LOGPROB_CHUNK_SIZE = (\d+)", text, re.MULTILINE)
    tiles = kernels(trl, "chunked_logprob")
    space = {
        "torch": torch, "functools": functools, "types": types, "Version": Version, "DTensor": type(None), "nullcontext": contextlib.nullcontext,
        "transformers": __import__("transformers"), "maybe_gather_lm_head_ctx": as_it_is, "FusedCausalLMOutput": types.SimpleNamespace,
        "_ChunkedLogProbFunction": tiles.ChunkedLogProbFunction, "_use_triton": tiles._use_triton, "_CHUNKED_LOGPROB_CHUNK_SIZE": int(columns),
    }  # fmt: skip
    functions(trl / "trainer" / "utils.py", {"add_fused_lm_head"}, space)
    space["add_fused_lm_head"](model, outputs=outputs)
