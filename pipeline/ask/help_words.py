"""What helps where a model does not fit, in a sentence each."""

from __future__ import annotations

from typing import Any

from pipeline.base.bounds import visible

from . import training_helps
from .naming import engine_name, format_name, gib_of


def help_of(told: dict[str, Any], card: dict[str, Any], use: dict[str, Any]) -> str:
    kind = told["help"]
    if kind == "layers":
        is_ollama = use["program"] == "ollama"
        if is_ollama and told.get("cpu_expert_layers") is not None:
            return (
                f"Share it with the CPU, as Ollama does by itself: all layers on the card in {format_name(told['dtype_id'])} with the experts of about "
                f"{told['cpu_expert_layers']} on the CPU, {gib_of(told['cpu_expert_host_bytes'])} GiB in main memory; slower (num_gpu moves whole layers)."
            )
        how = f"Ollama does so by itself; num_gpu {told['gpu_layers']}" if is_ollama else f"-ngl {told['gpu_layers']}"
        text = f"Share it with the CPU: {told['gpu_layers']} of {told['layer_count'] + 1} layers on the card ({how}) in {format_name(told['dtype_id'])}, {gib_of(told['host_bytes'])} GiB in main memory; slower."
        if told.get("cpu_expert_layers") is not None:
            text += f" Or all layers with the experts of {told['cpu_expert_layers']} on the CPU (-ngl 99 --n-cpu-moe {told['cpu_expert_layers']}), {gib_of(told['cpu_expert_host_bytes'])} GiB there."
        return text
    name = f"{format_name(told['dtype_id'])} ({engine_name(told)})"
    if kind in ("easier", "phase"):
        return training_helps.helped(told, name)
    if kind == "kept-free":
        return (
            f"The whole card: of {gib_of(told['kept_free_bytes'])} GiB that Ollama keeps free nothing is kept with LLAMA_ARG_FIT_TARGET=0 (in the environment "
            f"of ollama serve), and {name} fits."
        )
    if kind == "context":
        return f"A shorter context: {name} holds {told['max_context_tokens']:,} tokens."
    if kind == "cache":
        return f"A cache in 8 bits (--kv q8_0): {name} fits, up to {told['max_context_tokens']:,} tokens."
    if kind == "requests":
        reach = (
            f"fits, up to {told['max_context_tokens']:,} tokens"
            if told["verdict"] == "fits"
            else f"barely fits, in {gib_of(told['total_bytes'])} GiB"
        )
        return f"Fewer requests at once ({_fewer(told)}): {name} {reach}."
    if kind == "eager":
        flag = "--disable-cuda-graph" if told["engine_id"] == "sglang" else "--enforce-eager"
        flag = " ".join(filter(None, (flag, _fewer(told))))
        return f"Without CUDA graphs ({flag}), slower: {name} fits, {gib_of(told['total_bytes'])} GiB, up to {told['max_context_tokens']:,} tokens."
    if kind == "larger":
        many = f", {gib_of(told['total_bytes'])} GiB on each of {told['gpu_count']}" if told["gpu_count"] > 1 else ""
        return f"If yours is {told['name']}: it fits in {name}{many}, up to {told['max_context_tokens']:,} tokens (--gpu {told['gpu_id']})."
    if kind == "text":
        return f"Without what it sees with (--no-mmproj): {name} fits, {gib_of(told['total_bytes'])} GiB, up to {told['max_context_tokens']:,} tokens."
    if kind == "raised":
        most = told["raised_bytes"] // 2**30
        return (
            f"More of its memory: raised to at most {most} GiB ({told['raised_by']}), {name} fits with {gib_of(told['total_bytes'])} GiB, "
            f"up to {told['max_context_tokens']:,} tokens (--gpu {card['gpu_id']} --free {most}GiB)."
        )
    if kind == "cards":
        return f"{told['gpu_count']} such cards: it fits in {name}, {gib_of(told['total_bytes'])} GiB on each."
    return f"Smaller: {visible(told['model'])} fits in {name}, up to {told['max_context_tokens']:,} tokens."


def _fewer(told: dict[str, Any]) -> str:
    """How vLLM is told to run fewer requests at once, or nothing."""
    if not told.get("max_num_seqs"):
        return ""
    step = f" --max-num-batched-tokens {told['batched_tokens']}" if told["batched_tokens"] else ""
    return f"--max-num-seqs {told['max_num_seqs']}{step}"
