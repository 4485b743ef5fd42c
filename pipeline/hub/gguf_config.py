"""The config of a model whose repository holds GGUF files alone, from the metadata of the file: its own words in other names.

Only architectures whose layers all have the same heads, read by the families of the same shape; a pattern of windows is that of
the class. What llama.cpp's converter leaves out shows in the tensors: how many rows the vocabulary has, a head, biases. Source of
the keys: docs/gguf.md in github.com/ggml-org/ggml, and gguf-py/gguf/constants.py in github.com/ggml-org/llama.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.base.bounds import LARGEST_SIZE, MOST_REPEATS

Tensor = tuple[str, str, list[int]]
# general.architecture → (model_type, the class whose head is the vocabulary's)
ARCHITECTURES = {
    "llama": ("llama", "LlamaForCausalLM"),
    "qwen2": ("qwen2", "Qwen2ForCausalLM"),
    "qwen3": ("qwen3", "Qwen3ForCausalLM"),
    "qwen3moe": ("qwen3_moe", "Qwen3MoeForCausalLM"),
    "gemma": ("gemma", "GemmaForCausalLM"),
    "gemma2": ("gemma2", "Gemma2ForCausalLM"),
    "gemma3": ("gemma3_text", "Gemma3ForCausalLM"),
    "gpt-oss": ("gpt_oss", "GptOssForCausalLM"),
    "granite": ("granite", "GraniteForCausalLM"),
    "olmo2": ("olmo2", "Olmo2ForCausalLM"),
    "phi3": ("phi3", "Phi3ForCausalLM"),
    "starcoder2": ("starcoder2", "Starcoder2ForCausalLM"),
}
_SIZES = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "context_length": "max_position_embeddings",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
}
_OPTIONAL = {
    "feed_forward_length": "intermediate_size",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
}
_EXPERTS = {"llama": ("mixtral", "MixtralForCausalLM")}  # where there are any
_PERIODS = {
    "gemma2": 2,
    "gemma3_text": 6,
    "gpt_oss": 2,
}  # every so many layers one sees the whole context; the others a window


def config_of(metadata: Mapping[str, Any], tensors: Iterable[Tensor]) -> dict[str, Any] | None:
    """The config, or None where the metadata do not determine one."""
    name = metadata.get("general.architecture")
    if not isinstance(name, str) or name not in ARCHITECTURES:
        return None
    model_type, architecture = ARCHITECTURES[name]
    sizes = {ours: _size(metadata.get(f"{name}.{theirs}")) for theirs, ours in {**_SIZES, **_OPTIONAL}.items()}
    found = {key: value for key, value in sizes.items() if value}
    if any(size not in found for size in _SIZES.values()) or found["num_hidden_layers"] > MOST_REPEATS:
        return None
    if found.get("num_experts"):
        if model_type in _EXPERTS:
            model_type, architecture = _EXPERTS[model_type]
        if model_type not in ("mixtral", "gpt_oss", "qwen3_moe"):
            return None
        if model_type != "qwen3_moe":  # experts are as wide as the feed-forward that the file names
            found["num_local_experts"] = found.pop("num_experts")
            found["intermediate_size"] = found.pop("moe_intermediate_size", None) or found.get("intermediate_size")
    if _size(metadata.get(f"{name}.attention.value_length")) != found.get("head_dim"):
        return None
    if "head_dim" not in found and found["hidden_size"] % found["num_attention_heads"] == 0:
        found["head_dim"] = found["hidden_size"] // found["num_attention_heads"]
    types = _layer_types(metadata.get(f"{name}.attention.sliding_window_pattern"), model_type, found)
    shapes = {tensor: shape for tensor, _, shape in tensors}
    rows = shapes.get("token_embd.weight", [])
    if types is None or len(rows) != 2 or rows[1] != found["hidden_size"]:
        return None
    biased = {"attention_bias": True} if "blk.0.attn_q.bias" in shapes else {}
    return {
        "model_type": model_type,
        "architectures": [architecture],
        **{"sliding_window": None, **{key: value for key, value in found.items() if value is not None}},
        **types,
        "vocab_size": rows[0],
        "tie_word_embeddings": "output.weight" not in shapes,
        **biased,
        **_scaling(metadata, name),
    }


def _size(value: Any) -> int | None:
    """A size, also where every layer is given its own and all are one."""
    if isinstance(value, list):
        value = value[0] if value and all(v == value[0] for v in value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_SIZE else None


def _layer_types(pattern: Any, model_type: str, found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Which layers see a window only, where the file lists them; None where a window and its pattern do not go together."""
    layers, period = found["num_hidden_layers"], _PERIODS.get(model_type)
    if "sliding_window" not in found:
        return {} if period is None and pattern is None else None
    if period is None:
        return {} if model_type == "phi3" and pattern is None else None
    if isinstance(pattern, list) and len(pattern) == layers and all(isinstance(v, bool) for v in pattern):
        return {"layer_types": ["sliding_attention" if is_local else "full_attention" for is_local in pattern]}
    return {} if pattern in (None, period) else None


def _scaling(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    """How positions are stretched, where the file says from which length."""
    factor, original = (metadata.get(f"{name}.rope.scaling.{key}") for key in ("factor", "original_context_length"))
    kind = metadata.get(f"{name}.rope.scaling.type")
    if (
        not isinstance(factor, float)
        or not 1 < factor < LARGEST_SIZE
        or not _size(original)
        or kind not in ("linear", "yarn")
    ):
        return {}
    return {"rope_scaling": {"rope_type": kind, "factor": factor, "original_max_position_embeddings": original}}
