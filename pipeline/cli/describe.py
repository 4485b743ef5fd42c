"""The anatomy of one config in words: for people who add an architecture, or wonder what a config.json holds.

Counts are elements; a cache is told per token and per sequence, in elements and in bytes at 16 bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.anatomy.rows import TENSOR_CLASSES, Anatomy, AttentionLayer
from pipeline.base.bounds import visible
from pipeline.base.failures import Failure
from pipeline.hub.careful import Malformed, parse, problem_of

_BYTES = 2  # of a 16-bit element


def config_in(path: Path) -> Any:
    """The JSON value of a config.json that somebody has, read with the care that the Hub's are read with. Raises Failure and OSError.

    Infinite numbers, which some configs of the Hub hold, are taken as a crawl takes them; what is not a number at all is not.
    """
    try:
        config = parse(path.read_bytes(), refused=("NaN",))
    except Malformed as problem:
        text = str(problem)
        said = f"is {text}" if text.startswith("not JSON") else f"is not JSON that can be used: {text}"
        raise Failure(visible(f"{path.name} {said}")) from None
    if problem := problem_of(config):
        raise Failure(visible(f"{path.name} is not used: {problem}"))
    return config


def told(path: Path) -> str:
    """The description of a config.json. Raises Failure with the reason where there is none, OSError where it cannot be read."""
    config = config_in(path)
    try:
        return describe(read_config(config))
    except UnknownAnatomy as reason:
        raise Failure(visible(f"unknown: {reason}")) from None
    except ContradictoryConfig as reason:
        raise Failure(visible(f"contradictory: {reason}")) from None
    except Exception as mistake:
        named = config.get("model_type") if isinstance(config, Mapping) else None
        mistake.add_note(visible(f"while {path} was read, whose model_type is {named!r}"))
        raise


def describe(anatomy: Anatomy) -> str:
    context = f"{anatomy.max_context_tokens:,} tokens" if anatomy.max_context_tokens else "not said"
    if anatomy.trained_context_tokens:
        context += f", trained for {anatomy.trained_context_tokens:,}"
    lines = [
        visible(
            f"model_type     {anatomy.model_type}" + (f" ({anatomy.architecture})" if anatomy.architecture else "")
        ),
        f"layers         {anatomy.layer_count:,} of width {anatomy.hidden_size:,}",
        f"context        {context}",
        f"parameters     {anatomy.parameter_count:,}",
    ]
    if anatomy.active_parameter_count != anatomy.parameter_count:
        lines.append(f"  per token    {anatomy.active_parameter_count:,}")
    counts = Counter()
    for tensor in anatomy.tensors:
        counts[tensor.tensor_class] += tensor.element_count
    lines += [f"  {name:<15}{counts[name]:>20,}" for name in TENSOR_CLASSES if counts[name]]
    if anatomy.is_head_tied:
        lines.append("  the head is the embedding")
    lines += ["", "cache", *(_cache(layer) for layer in anatomy.attention)]
    growing = sum(
        a.layer_count * a.elements_per_token
        for a in anatomy.attention
        if a.mechanism not in ("sliding", "cross", "bidirectional")
    )
    if growing:
        lines.append(f"  every further token takes {growing:,} elements, {growing * _BYTES:,} bytes at 16 bits")
    if extra := {cause: size for cause, size in anatomy.stored_extra.items() if size}:
        lines += ["", "a checkpoint may hold besides"]
        lines += [f"  {size:>+20,}  {cause}" for cause, size in sorted(extra.items(), key=lambda part: -part[1])]
    return "\n".join(lines)


def _cache(layer: AttentionLayer) -> str:
    held = []
    if layer.elements_per_token:
        reach = f" of the last {layer.window_tokens:,}" if layer.window_tokens else ""
        unread = ", in Transformers alone" if layer.mechanism == "bidirectional" else ""
        held.append(f"{layer.elements_per_token:,} elements per token{reach}{unread}")
    if layer.state_elements:
        width = layer.state_dtype_id or "the model's dtype"
        held.append(f"a state of {layer.state_elements:,} in {width}")
    if layer.conv_state_elements:
        held.append(f"{layer.conv_state_elements:,} of last inputs")
    mechanism = "" if layer.mechanism == layer.kind else f" ({layer.mechanism})"
    return f"  {layer.layer_count:>4} × {layer.kind}{mechanism}: {'; '.join(held) or 'nothing'}"
