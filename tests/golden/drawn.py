"""What the formulas say of many scenarios drawn at random, as a digest for each model and component: tests/golden/drawn.csv.

    python -m tests.golden.drawn                 # after a change of a formula: names what changed and writes the file anew
    python -m tests.golden.drawn --of owner/name    # every scenario of that model and its numbers: to compare with another revision

components.csv holds numbers that a person reads in a diff; these are ten times as many and reach what few scenarios do: every engine, every
argument, alone and in company, refused ones too. The rows are no truth of their own: they hold what a change of a formula did not mean to change.
"""

from __future__ import annotations

import csv
import hashlib
import random
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import duckdb

from pipeline.book.facts import read_facts
from pipeline.book.scenario import TYPES
from pipeline.hub.snapshot import newest_snapshot
from tests.golden import components, varied

PATH = Path(__file__).with_name("drawn.csv")
SAID = (*components.COMPONENTS, "unknown_reason")
OF_EACH, OF_NAMED, OF_TYPE = 60, 180, 30
_SEED = 20261126
# of each kind of class that vLLM was read to adapt; others are refused, and are asked less often
_SERVED_ADAPTERS = (
    "Qwen/Qwen2.5-7B-Instruct",
    "google/gemma-3-1b-it",
    "meta-llama/Llama-3.2-1B",
    "microsoft/phi-4",
    "mistralai/Mixtral-8x7B-Instruct-v0.1",
)

# by what is done: engines that do it, and what may be asked beside it; None is what the engine takes by itself
_SERVED = {
    "engine_id": [None, "transformers", "transformers-4.44", "transformers-4.15", "vllm", "vllm-0.8", "sglang", "llama.cpp", "mlx-lm", "mlx-vlm", "tensorrt-llm", "autoawq-0.1.6", "exllamav3", "exllamav3-0.0.4"],
    "dtype_id": components._INFERENCE["dtype_id"],
    "kv_dtype_id": [None, None, None, "fp8", "q8_0", "q4_0"],
    "attention": [None, None, "eager", "flash", "masked"],
    "gpu_count": [1, 1, 1, 2, 3, 4, 8, 16],
    "sharding": [None, None, "pp", "tp"],
    "tensor_parallel": [None, None, None, 2, 4, 8],
    "pipeline_parallel": [None, None, None, 2, 3],
    "max_context_tokens": [None, None, 20_000],
    "images": [None, None, 0, 2],
    "image_width": [None, 336, 1920],
    "image_height": [None, 448, 1080],
    "audio_seconds": [None, None, None, 40.5],
    "program": [None, None, None, None, "ollama", "vllm", "transformers", "lm-studio"],
    "data_parallel": [None, 2, 4, 8],
    "expert_parallel": [None, 2, 8],
    "decode_context_parallel": [None, 2, 4],
}  # fmt: skip
_TRAINED = {
    "engine_id": [None, None, "transformers-4.15", "pytorch-loop", "torchtune", "torchtune-0.4", "torchtitan", "megatron", "deepspeed", "litgpt", "litgpt-0.4", "litgpt-2023", "unsloth", "autogptq-0.5"],
    "optimizer_id": components._TRAINING["optimizer_id"],
    "optimizer_rank": [None, None, 64],
    "precision": [None, None, "amp", "pure", "mixed"],
    "checkpointing": [None, None, "full", "selective"],
    "lora_rank": [None, None, 1, 64],
    "lora_targets": [None, None, "attention", "query-value", "experts", "attention-experts", "all-linear", "all-linear-head"],
    "lora_dropout": [None, None, 0.05],
    "adapter": [None, None, None, "dora"],
    "trains_embeddings": [None, None, None, True],
    "attention": [None, None, "eager", "masked", "flash"],
    "loss": [None, None, "chunked", "fused", "full", "score", "unsloth"],
    "gradient_accumulation": [None, None, 4],
    "ema": [None, None, None, True],
    "gpu_count": [1, 1, 1, 2, 6, 8, 16],
    "sharding": [None, None, "ddp", "zero1", "zero2", "zero3"],
    "tensor_parallel": [None, None, None, 2],
    "pipeline_parallel": [None, None, None, 2, 3],
    "context_parallel": [None, None, None, 2],
    "expert_parallel": [None, None, None, 2, 4],
    "sequence_parallel": [None, None, True, False],
    "micro_batches_in_flight": [None, None, 2],
    "reduce_bucket_elements": [None, None, 50_000_000],
    "expandable_segments": [None, None, True],
    "offload": [None, None, None, "optimizer", "all"],
    "images": [None, None, None, 2],
}  # fmt: skip
# what an engine answers for; beside it most draws say nothing that it refuses
_LITGPT = {
    "phase_id": ["full-finetune", "lora", "lora", "qlora"],
    "dtype_id": [None, "nf4", "nf4-double"],
    "gpu_count": [1],
    "precision": ["pure"],
    "checkpointing": ["none"],
    "loss": ["chunked"],
    "attention": ["flash"],
    "lora_targets": [None, "attention", "query-value", "all-linear", "all-linear-head"],
    "optimizer_id": [None, "adamw", "sgd", "adamw-foreach"],
}
_ALONE = {
    "gpu_count": [1, 1, 1, 2],
    "lora_targets": [None, "attention", "query-value", "all-linear"],
    "loss": [None, "full", "chunked"],
}
_EXLLAMAV3 = {
    "dtype_id": ["exl3-8bpw", "exl3-4bpw", "exl3-2.5bpw"],
    "gpu_count": [1],
    "images": [None],
    "kv_dtype_id": [None, "exl3-8bit", "exl3-4bit"],
}
_AUTOGPTQ = {
    "phase_id": ["qlora"],
    "dtype_id": ["gptq-int4"],
    "gpu_count": [1],
    "precision": ["pure"],
    "checkpointing": ["full"],
    "adapter": [None, "lora"],
    "optimizer_id": ["adamw-master", "adamw-master", None],
}
_OWN = {
    "autogptq-0.5": _AUTOGPTQ,
    "litgpt": _LITGPT,
    "litgpt-0.4": _LITGPT,
    "litgpt-2023": _LITGPT,
    "unsloth": {"phase_id": ["lora", "qlora"], "gpu_count": [1], "loss": [None, "unsloth"], "offload": [None]},
    "torchtune": _ALONE,
    "torchtune-0.4": _ALONE,
    "transformers-4.15": _ALONE | {"dtype_id": ["bf16", "fp16", "fp32", "int8"], "kv_dtype_id": [None]},
    "llama.cpp": {
        "dtype_id": ["bf16", "gguf-q8_0", "gguf-q6_k", "gguf-q4_k_m", "gguf-q3_k_m", "gguf-iq4_xs", "gguf-mxfp4"]
    },
    "autoawq-0.1.6": {"dtype_id": ["awq-int4"], "gpu_count": [1]},
    "mlx-lm": {"dtype_id": ["mlx-4bit", "mlx-8bit", "bf16"], "gpu_count": [1]},
    "exllamav3": _EXLLAMAV3,
    "exllamav3-0.0.4": _EXLLAMAV3,
    "mlx-vlm": {"dtype_id": ["mlx-4bit", "mlx-8bit", "bf16"], "gpu_count": [1], "images": [None]},
}
# as Unsloth trains by itself: the layers that it runs itself are counted so alone
_OWN_LAYERS = {"loss": "fused", "checkpointing": "full", "precision": "amp", "lora_targets": "all-linear", "gpu_count": 1} | dict.fromkeys(
    ("lora_dropout", "adapter", "trains_embeddings", "attention", "images", "optimizer_id", "program")
)  # fmt: skip
_REFUSED = 0.15  # of draws that may say what their engine refuses
_RARE = {"images": 0.1, "audio_seconds": 0.1, "image_width": 0.1, "image_height": 0.1, "expert_parallel": 0.15, "trains_embeddings": 0.15,
    "data_parallel": 0.1, "decode_context_parallel": 0.15, "optimizer_rank": 0.15, "reduce_bucket_elements": 0.15, "offload": 0.2, "program": 0.2}  # fmt: skip
# data-parallel ranks of a server that share experts, in degrees that go together
_SPREAD = 0.3
_RANKS = [(2, 2), (4, 4), (8, 8), (4, 1), (8, 1), (2, 8), (4, 8), (1, 8)]
_PACKED = ["nf4", "nf4-double", "int8"]
_ALWAYS = ("gpu_count", "dtype_id")
_OF_ADAPTERS = ("lora_rank", "lora_targets", "lora_dropout", "adapter", "trains_embeddings")
_OF_SEVERAL = ("sharding", "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "data_parallel", "decode_context_parallel", "sequence_parallel", "micro_batches_in_flight", "reduce_bucket_elements")  # fmt: skip
# of each argument how often it is drawn at all: a scenario that says everything is refused for one thing
_SAYS = 0.35
# beside those of components.csv: whose classes some engines alone describe
_MODELS = (
    "EleutherAI/pythia-1.4b",
    "Qwen/Qwen2.5-7B-Instruct",
    "Qwen/Qwen3-8B",
    "google/gemma-2b",
    "meta-llama/Llama-3.2-1B",
    "microsoft/Phi-3.5-mini-instruct",
    "microsoft/phi-2",
    "state-spaces/mamba-130m-hf",
    "tiiuae/falcon-7b",
)


def models() -> dict[str, int]:
    """Models and how many scenarios are drawn of each: those of components.csv, and one of each type that implementation.csv describes."""
    told = {row["model_type"] for row in read_facts()["implementation"].to_dicts()}
    of_types = [model_id for model_id, (config, _others) in varied.kinds().items() if config.get("model_type") in told]
    of_components = [row["model_id"] for row in components.read()]
    return dict.fromkeys(of_types, OF_TYPE) | dict.fromkeys(of_components, OF_EACH) | dict.fromkeys(_MODELS, OF_NAMED)


@cache
def scenarios() -> list[dict[str, object]]:
    """Each with a context of its own, by which it is told apart from others of its model."""
    found = []
    for model_id, count in sorted(models().items()):
        draw = random.Random(f"{_SEED} {model_id}")
        for place in range(count):
            row = _drawn(draw, model_id)
            # (what reads less than that has a reason)
            row["context_tokens"] = draw.choice((1, 500, 1000, 2000, 4000)) + place
            if row["engine_id"] == "vllm":  # by the place, so that nothing else is drawn otherwise
                row["batched_tokens"] = (None, None, 2048, 16_384)[place % 4]
                row["max_num_seqs"] = (None, 8, None, 512)[place % 4]
                if model_id in _SERVED_ADAPTERS or place % 12 == 5:
                    row["max_loras"], row["max_lora_rank"] = ((None, None), (1, None), (8, 64))[place % 3]
            if row["engine_id"] in ("vllm", "sglang"):
                row["enforce_eager"] = (None, None, True)[place % 3]
            if row["engine_id"] == "unsloth" and place % 2:
                row |= _OWN_LAYERS
            if row["engine_id"] == "llama.cpp" and not row.get("images"):
                row["text_only"] = (None, True)[place % 2]
            found.append(row)
    return found


def _drawn(draw: random.Random, model_id: str) -> dict[str, object]:
    phase = draw.choice(("inference", "inference", "pretrain", "full-finetune", "lora", "lora", "qlora"))
    said = _SERVED if phase == "inference" else _TRAINED
    engine = draw.choice(said["engine_id"])
    own = _OWN.get(engine, {}) if draw.random() >= _REFUSED else {}
    phase = draw.choice(own.get("phase_id", [phase]))
    row = dict.fromkeys(TYPES) | {"model_id": model_id, "phase_id": phase, "sequences": draw.choice((1, 1, 2, 5))}
    for name, values in said.items():
        if name in own or name in _ALWAYS or draw.random() < _RARE.get(name, _SAYS):
            row[name] = draw.choice(own.get(name, values))
    row["engine_id"] = engine
    if phase != "inference":
        packed = [name for name in own.get("dtype_id", ()) if name in _PACKED]
        row["dtype_id"] = draw.choice(packed or _PACKED if phase == "qlora" else [None, None, "bf16", "fp16", "fp32"])
    if row["program"] is not None:
        row |= {"engine_id": None, "dtype_id": None}
    if phase == "inference" and engine in ("vllm", "sglang") and draw.random() < _SPREAD:
        ranks, experts = draw.choice(_RANKS)
        row |= dict.fromkeys(_OF_SEVERAL) | {
            "data_parallel": ranks,
            "expert_parallel": experts,
            "gpu_count": max(ranks, experts),
        }
    if phase not in ("lora", "qlora"):
        row |= dict.fromkeys(_OF_ADAPTERS)
    if row["gpu_count"] == 1:
        row |= dict.fromkeys(_OF_SEVERAL)
    return row


def digests(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], str]:
    """By model and component six digits of what the formulas say of all its scenarios."""
    found: dict[tuple[str, str], hashlib._Hash] = {}
    for row, now in zip(scenarios(), components.ask(connection, scenarios()), strict=True):
        for name in SAID:
            found.setdefault((row["model_id"], name), hashlib.sha256()).update(f"{now[name]}\0".encode())
    return {key: digest.hexdigest()[:6] for key, digest in found.items()}


def read() -> dict[tuple[str, str], str]:
    with PATH.open(encoding="utf-8", newline="") as file:
        return {(row["model_id"], name): row[name] for row in csv.DictReader(file) for name in SAID}


def differences(expected: Mapping[tuple[str, str], str], said: Mapping[tuple[str, str], str]) -> list[str]:
    """By model the components that are not what the file has."""
    changed: dict[str, list[str]] = {}
    for model_id, name in sorted(expected.keys() | said.keys()):
        if expected.get((model_id, name)) != said.get((model_id, name)):
            changed.setdefault(model_id, []).append(name)
    return [f"{model_id}: {', '.join(names)}" for model_id, names in changed.items()]


def main(arguments: list[str]) -> int:
    rows = [row for row in scenarios() if arguments[:1] != ["--of"] or row["model_id"] == arguments[1]]
    # (of all models: what is known of one may be another's)
    connection = components.book_of(newest_snapshot())
    if arguments[:1] == ["--of"]:
        for row, now in zip(rows, components.ask(connection, rows), strict=True):
            print(components.told(row), *(f"{name}={now[name]}" for name in SAID), sep="\t")
        return 0
    now = digests(connection)
    if PATH.exists():
        print("\n".join(differences(read(), now)) or "nothing has changed")
    with PATH.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model_id", *SAID])
        for model_id in dict.fromkeys(key[0] for key in now):
            writer.writerow([model_id, *(now[model_id, name] for name in SAID)])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
