"""The format that a config declares its checkpoint to be stored in, as one of our dtype ids.

`quantization_config` has a dialect per quantiser, and anybody writes what he likes into it: everything is read warily,
and what is not plainly one of our formats is None. Formats that mix precisions by a recipe of their own are None too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float8_e4m3fn": "fp8",
}
_SAFETENSORS = {"BF16": "bf16", "F16": "fp16", "F32": "fp32", "F8_E4M3": "fp8"}
_WIDTHS = {"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1, "F8_E5M2": 1, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "BOOL": 1}
_MLX = {
    ("affine", 8, 64): "mlx-8bit",
    ("affine", 6, 64): "mlx-6bit",
    ("affine", 5, 64): "mlx-5bit",
    ("affine", 4, 64): "mlx-4bit",
    ("affine", 4, 32): "mlx-4bit-g32",
    ("affine", 3, 64): "mlx-3bit",
    ("affine", 2, 64): "mlx-2bit",
    ("mxfp4", 4, 32): "mlx-mxfp4",
}
_GROUPED = {
    (4, "float", 16): "nvfp4",
    (4, "float", 32): "mxfp4",
    (4, "int", 128): "gptq-int4",
    (4, "int", 64): "gptq-int4-g64",
    (4, "int", 32): "gptq-int4-g32",
}
_HINTS = {"AWQ-4bit": "awq-int4", "GPTQ-Int4": "gptq-int4", "F16": "fp16"}


def is_quantised(config: Mapping[str, Any]) -> bool:
    return any(
        isinstance(part.get(k), Mapping) for part in parts_of(config) for k in ("quantization_config", "quantization")
    )


def declared_format(config: Mapping[str, Any], hint: str | None = None) -> str | None:
    """The dtype_id of the weights by `quantization_config`, else by the Hub's own tag; None where neither names one."""
    for part in parts_of(config):
        if isinstance(part.get("quantization"), Mapping):
            return _mlx_format(part["quantization"])
        quantization = part.get("quantization_config")
        if isinstance(quantization, Mapping):
            if isinstance(part.get("expert_dtype", quantization.get("expert_dtype")), str):
                return None  # experts of another format than the rest
            found = quantised_format(quantization)
            return found if found == "mxfp4" or not _leaves_attention(quantization) else None
    return _HINTS.get(hint) if isinstance(hint, str) else None


def plain_format(config: Mapping[str, Any]) -> str | None:
    """The dtype_id by `dtype` or `torch_dtype`, for a checkpoint that is not quantised."""
    for part in parts_of(config):
        for key in ("dtype", "torch_dtype"):
            name = part.get(key)
            if isinstance(name, str):
                return _DTYPES.get(name.removeprefix("torch."))
    return None


def format_by_counts(counts: Mapping[str, int] | None) -> str | None:
    """The dtype_id that nearly every element has, from counts by safetensors dtype."""
    total = sum(counts.values()) if counts else 0
    for name, count in (counts or {}).items():
        if count > 0.9 * total:
            return _SAFETENSORS.get(name)
    return None


def bytes_by_counts(counts: Mapping[str, int] | None, total: int | None) -> int | None:
    """Bytes of a checkpoint whose dtypes all have whole bytes; None where they do not add up to the published total."""
    if not counts or sum(counts.values()) != total or not counts.keys() <= _WIDTHS.keys():
        return None
    return sum(count * _WIDTHS[name] for name, count in counts.items())


def packed_form(config: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Bits of packed integers and how many share a scale, where the config names one of each: GPTQ, compressed-tensors, MLX."""
    bits, groups = set(), set()
    for part in parts_of(config):
        for quantization in (part.get("quantization_config"), part.get("quantization")):
            if isinstance(quantization, Mapping):
                named = quantization.get("config_groups")
                named = (
                    [g.get("weights") for g in named.values() if isinstance(g, Mapping)]
                    if isinstance(named, Mapping)
                    else []
                )
                for given in (quantization, *(weights for weights in named if isinstance(weights, Mapping))):
                    bits |= {given[key] for key in ("bits", "w_bit", "num_bits") if _is_whole(given.get(key))}
                    groups |= {given[key] for key in ("group_size", "q_group_size") if _is_whole(given.get(key))}
    return bits.pop() if len(bits) == 1 else None, groups.pop() if len(groups) == 1 else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def parts_of(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The config and the language model's part of it."""
    inner = [config.get(key) for key in ("text_config", "llm_config", "language_config", "thinker_config")]
    return [config, *(part for part in inner if isinstance(part, Mapping))]


def _leaves_attention(quantization: Mapping[str, Any]) -> bool:
    """Whether the attention of the language model is left out: MXFP4 does so by design, elsewhere it is a mix."""
    for key in ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers"):
        names = quantization.get(key)
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str) and "attn" in name and not any(part in name for part in ("vis", "audio", "tower")):
                return True
    return False


def _mlx_format(quantization: Mapping[str, Any]) -> str | None:
    """MLX: bits and group of all matrices; what has a width of its own must be a gate in 8 bits, which every format of MLX has."""
    for name, own in quantization.items():
        if name in ("group_size", "bits", "mode") or isinstance(own, str):
            continue
        is_gate = name.endswith((".gate", "shared_expert_gate", "gate.gate_proj")) or "router" in name
        if not (is_gate and isinstance(own, Mapping) and (own.get("bits"), own.get("group_size")) == (8, 64)):
            return None
    given = (quantization.get("mode", "affine"), quantization.get("bits"), quantization.get("group_size"))
    return _MLX.get(given) if all(isinstance(value, str | int) for value in given) else None


def quantised_format(quantization: Mapping[str, Any]) -> str | None:
    method = quantization.get("quant_method")
    method = method.lower() if isinstance(method, str) else ""
    bits = quantization.get("bits", quantization.get("w_bit"))
    group = quantization.get("group_size", quantization.get("q_group_size"))
    if method in ("gptq", "awq"):
        return f"{method}-int4" if bits == 4 and group in (128, None) else None
    if method == "bitsandbytes":
        if quantization.get("load_in_4bit") is True:
            return "nf4" if quantization.get("bnb_4bit_quant_type", "nf4") == "nf4" else None
        return "int8" if quantization.get("load_in_8bit") is True else None
    if method in ("fp8", "fbgemm_fp8"):
        return "fp8"
    if method == "mxfp4":
        return "mxfp4"
    if method in ("compressed-tensors", "modelopt", ""):
        return _grouped_format(quantization)
    return None


def _grouped_format(quantization: Mapping[str, Any]) -> str | None:
    """compressed-tensors and Model Optimizer: one format for every group of layers, or none."""
    algorithm = quantization.get("quant_algo")
    groups = quantization.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        return {"NVFP4": "nvfp4", "FP8": "fp8"}.get(algorithm) if isinstance(algorithm, str) else None
    formats = {format_of_weights(g.get("weights") if isinstance(g, Mapping) else None) for g in groups.values()}
    return formats.pop() if len(formats) == 1 else None


def format_of_weights(weights: Any) -> str | None:
    """The format of one group of compressed-tensors: bits, their type, and how many share a scale."""
    weights = weights if isinstance(weights, Mapping) else {}
    bits, kind, size = weights.get("num_bits"), weights.get("type"), weights.get("group_size")
    if not all(isinstance(value, str | int | None) for value in (bits, kind, size)):
        return None
    found = _GROUPED.get((bits, kind, size))
    if found == "gptq-int4-g32" and weights.get("symmetric") is True:
        found = f"{found}-sym"  # a zero point would be an eighth of a bit
    if found is None and bits == 8 and kind in ("float", "int"):
        found = "fp8" if kind == "float" else "int8"
    return found
