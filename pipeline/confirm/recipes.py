"""Checkpoints that mix formats by a recipe which their config states: what each part adds to a published total.

FP8 with one scale per block for every matrix, and routed experts in 4-bit floats of another kind: NVFP4 where Model Optimizer
quantised them again (`moe_quant_algo`), else those of the original (`expert_dtype`), which prediction layers keep where the
recipe passes them over. Sources: config.json of the DeepSeek-V4 family and of NVIDIA's copies of it.

MLX packs one width throughout. Source: mlx/nn/layers/quantized.py in github.com/ml-explore/mlx, and the gates that the models of
github.com/ml-explore/mlx-lm keep in 8 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipeline.anatomy.rows import Anatomy, Tensor
from pipeline.confirm.storages import STORAGES, Storage
from pipeline.confirm.stored import TOWERS, Explanation, extras_by_sum, matrices

_BLOCKS = next(s for s in STORAGES if s.name == "one scale per block of 128 × 128")
_IN_PAIRS = {
    kind: [s for s in STORAGES if s.dtype_id == kind and "in pairs" in s.name and "a scale per" in s.name]
    for kind in ("nvfp4", "mxfp4")
}
_WORDS, _GROUPS = (1, 2, 3, 4, 5, 6, 8), (32, 64, 128)  # bits of MLX's integers, and how many share a scale
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


def explain_mlx(anatomy: Anatomy, total: int) -> Explanation | None:
    """MLX: every matrix and embedding of the language model in words of 32 bits, with a scale and a bias per group.

    Towers are packed alike or not at all; what chooses experts is in 8 bits, or as the rest. None where no width gives the total.
    """
    difference = total - anatomy.parameter_count
    for with_towers in (False, True):
        held = [(t, t.tensor_class in TOWERS) for t in anatomy.tensors]
        chosen = [t for t, is_tower in held if _is_packed(t) and (with_towers or not is_tower)]
        gates = [t for t in chosen if t.role in ("router", "shared_expert_gate")]
        found = {}
        for bits in _WORDS:
            for group in _GROUPS:
                rest = sum(_packed(t, bits, group) for t in chosen if t not in gates)
                for gate in ((8, 64), (bits, group)):
                    if rest + sum(_packed(t, *gate) for t in gates) == difference:
                        found.setdefault((bits, group))
        if found:
            names = " or ".join(f"{bits}-bit integers, a scale and a bias per {group}" for bits, group in found)
            return Explanation(((f"packed by MLX: {names}", difference),), is_ambiguous=len(found) > 1)
    return None


def _is_packed(tensor: Tensor) -> bool:
    is_matrix = tensor.operator in ("linear", "linear-subclass", "expert", "embedding") or tensor.role == "router"
    return is_matrix and tensor.element_count % _GROUPS[0] == 0


def _packed(tensor: Tensor, bits: int, group: int) -> int:
    """Elements more than the weights; a matrix whose inputs do not fill groups stays as it is."""
    if tensor.in_features is not None and tensor.in_features % group:
        return 0
    return tensor.element_count * bits // 32 + 2 * tensor.element_count // group - tensor.element_count


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
