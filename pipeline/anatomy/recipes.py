"""Checkpoints that mix formats by a recipe which their config states: what each part adds to a published total.

FP8 with one scale per block for every matrix, and routed experts in 4-bit floats of another kind: NVFP4 where Model Optimizer
quantised them again (`moe_quant_algo`), else those of the original (`expert_dtype`), which prediction layers keep where the
recipe passes them over. Sources: config.json of the DeepSeek-V4 family and of NVIDIA's copies of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipeline.anatomy.rows import Anatomy
from pipeline.anatomy.storages import STORAGES, Storage
from pipeline.anatomy.stored import Explanation, extras_by_sum, matrices

_BLOCKS = next(s for s in STORAGES if s.name == "one scale per block of 128 × 128")
_IN_PAIRS = {
    kind: [s for s in STORAGES if s.dtype_id == kind and "in pairs" in s.name and "a scale per" in s.name]
    for kind in ("nvfp4", "mxfp4")
}
_EIGHT = ("attention", "attention-output", "indexer", "shared-expert", "feed-forward", "other")


def explain_recipe(anatomy: Anatomy, total: int, config: Mapping[str, Any]) -> Explanation | None:
    """How the config's recipe gives this total to the element, or None."""
    quantization = config.get("quantization_config")
    if not isinstance(quantization, Mapping) or config.get("expert_dtype") != "fp4":
        return None
    if quantization.get("quant_method") != "fp8" or quantization.get("weight_block_size") != [128, 128]:
        return None
    kind = "nvfp4" if quantization.get("moe_quant_algo") == "NVFP4" else "mxfp4"
    ignored = quantization.get("ignore")
    passes_over = kind == "mxfp4" or (isinstance(ignored, list) and "mtp.*" in ignored)
    difference, known = total - anatomy.parameter_count, extras_by_sum(anatomy)
    for storage, ahead in _pairs(kind, passes_over):
        parts = _parts(anatomy, storage, ahead)
        held = known.get(difference - sum(size for _, size in parts))
        if held is not None and any(cause.startswith("multi-token") for cause, _ in held):
            return Explanation((*held, *parts), groups=frozenset({"expert", *_EIGHT[:4]}), is_ambiguous=True)
    return None


def _pairs(kind: str, passes_over: bool) -> Iterator[tuple[Storage, Storage]]:
    """The storage of experts, and that of experts in prediction layers."""
    for storage in _IN_PAIRS[kind]:
        for ahead in _IN_PAIRS["mxfp4"] if passes_over else (storage,):
            yield storage, ahead


def _parts(anatomy: Anatomy, storage: Storage, ahead: Storage) -> tuple[tuple[str, int], ...]:
    groups, predicting = matrices(anatomy), matrices(replace(anatomy, tensors=anatomy.predicting))
    eight = sum(
        m.count * _BLOCKS.extra(m.out, m.into) for held in (groups, predicting) for g in _EIGHT for m in held.get(g, ())
    )
    experts = sum(m.count * storage.extra(m.out, m.into) for m in groups.get("expert", ()))
    theirs = sum(m.count * ahead.extra(m.out, m.into) for m in predicting.get("expert", ()))
    return (
        (_BLOCKS.name, eight),
        (f"experts: {storage.name}", experts),
        (f"experts of prediction layers: {ahead.name}", theirs),
    )
