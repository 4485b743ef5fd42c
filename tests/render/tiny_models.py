"""The models and cards of the small almanac that is rendered, and their footprints. The numbers are made up."""

from __future__ import annotations

from itertools import product

GIB = 1024**3
HOSTILE = "evil-org/\u202e<script>alert('x')</script>\"&-8B"
UNKNOWN = "acme/No-Config"
SHORT, SHORT_TOKENS = "tiny-lab/embed-small", 2048
# id: parameters in 10^9, task, downloads, grade
MODELS = {
    "acme/Alpha-7B-Instruct": (7.0, "text-generation", 900_000, "exact"),
    "acme/Beta-MoE-30B-A3B": (30.0, "text-generation", 500_000, "matched"),
    "acme/CamelCoder.2-405B": (405.0, "text-generation", 1_000, "derived"),
    "tiny-lab/embed-small": (0.1, "feature-extraction", 2_000_000, "exact"),
    HOSTILE: (8.0, None, 3, "exact"),
    UNKNOWN: (None, "text-generation", 70_000, "unknown"),
}
PRICES = {"rtx-3060-12gb": 329.0, "rtx-4090": 1599.0, "l40s": 7500.0}
# id: name, vendor, segment, nominal GiB, capacity GiB
GPUS = {
    "rtx-3060-12gb": ("GeForce RTX 3060 12GB", "nvidia", "consumer", 12, 11.6),
    "rtx-4090": ("GeForce RTX 4090", "nvidia", "consumer", 24, 23.4),
    "l40s": ("L40S", "nvidia", "datacenter", 48, 44.2),
    "h100-sxm": ("H100 SXM", "nvidia", "datacenter", 80, 78.9),
    "mi300x": ("Instinct MI300X", "amd", "datacenter", 192, 191.9),
    "m4-max-128gb": ("Apple M4 Max 128GB", "apple", "unified", 128, 107.5),
}
BITS = {
    "stored": ("As published", "transformers", 16.0, True),
    "fp32": ("fp32", "transformers", 32.0, True),
    "bf16": ("bf16", "transformers", 16.0, True),
    "fp16": ("fp16", "transformers", 16.0, True),
    "fp8": ("fp8", "vllm", 8.0, False),
    "int8": ("int8", "transformers", 8.0, False),
    "nf4": ("NF4", "transformers", 4.5, False),
    "awq-int4": ("AWQ int4", "vllm", 4.2, False),
    "gptq-int4": ("GPTQ int4", "vllm", 4.2, False),
    "mxfp4": ("MXFP4", "vllm", 4.25, False),
    "nvfp4": ("NVFP4", "vllm", 4.5, False),
    "gguf-q8_0": ("GGUF Q8_0", "llama.cpp", 8.5, False),
    "gguf-q6_k": ("GGUF Q6_K", "llama.cpp", 6.6, False),
    "gguf-q5_k_m": ("GGUF Q5_K_M", "llama.cpp", 5.7, False),
    "gguf-q4_k_m": ("GGUF Q4_K_M", "llama.cpp", 4.85, False),
    "gguf-q3_k_m": ("GGUF Q3_K_M", "llama.cpp", 3.9, False),
    "gguf-q2_k": ("GGUF Q2_K", "llama.cpp", 3.2, False),
}
PHASES = {
    "inference": ("Inference", "Generate or encode with fixed weights"),
    "pretrain": ("Pretraining", "Train every weight from scratch"),
    "full-finetune": ("Full fine-tune", "Train every weight of a finished model"),
    "lora": ("LoRA", "Train low-rank adapters beside frozen 16-bit weights"),
    "qlora": ("QLoRA", "Train adapters beside frozen 4-bit weights"),
}
COUNTS = (1, 2, 4, 8, 16)
# measured: id, phase, engine, what was measured and what we say in GiB, where it is read
MEASURED = (
    ("run-a", "inference", "vllm", 15.0, 15.1, "https://example.org/a"),
    ("run-b", "inference", "transformers", 14.0, 13.9, "a log that nobody links to"),
    ("run-c", "inference", "llama.cpp", 5.0, 9.0, "arXiv:2404.10933"),
    ("run-d", "lora", "transformers", 20.0, 21.0, "a log that nobody links to"),
    ("run-e", "lora", "transformers", 18.0, 15.0, "github.com/acme/runs @0123456 log.txt"),
    ("run-f", "lora", "transformers", 0.0, 1.0, "https://example.org/f"),
    ("run-h", "lora", "transformers", None, 2.0, "a log that counts parameters"),
    ("run-g", "full-finetune", "transformers", 99.0, None, "https://example.org/g"),
)
# by engine, vendor and format: what does not run, and what nobody says; all else runs
REFUSED = {
    ("vllm", "apple", "bf16"): (False, "vLLM has no kernels for it"),
    ("transformers", "amd", "nf4"): (None, "not settled"),
}
COMPONENTS = ("weights", "kv_cache", "kv_padding", "state", "activations", "gradients", "optimizer", "adapters")
REASON = "MXFP4 needs a block size that this model's projections do not divide into"


def _scenarios():
    formats = [(dtype, row[1]) for dtype, row in BITS.items()] + [("bf16", "vllm")]
    for (dtype, engine), context, sequences in product(formats, (2048, 8192), (1, 8)):
        yield dtype, engine, "inference", context, sequences, None, None
    trained = [("bf16", p) for p in ("pretrain", "full-finetune", "lora")] + [("nf4", "qlora")]
    for (dtype, phase), context, checkpointing, optimizer in product(
        trained, (512, 2048), ("none", "full"), ("adamw", "adamw-8bit")
    ):
        yield dtype, "transformers", phase, context, 1, optimizer, checkpointing


def _components(billions, dtype, phase, context, sequences, checkpointing, count):
    """Arithmetic with the right shape and no claim: sharding divides weights and states, nothing divides overhead."""
    weights = int(billions * 1e9 * BITS[dtype][2] / 8 / count)
    training = phase != "inference"
    trained = (
        0 if not training else int(billions * 1e9 / count) if phase in ("pretrain", "full-finetune") else 20_000_000
    )
    return {
        "weights_bytes": weights,
        "kv_cache_bytes": 0 if training else 131_072 * context * sequences // count,
        "kv_padding_bytes": 0 if training else 16 * 131_072 * sequences,
        "state_bytes": 0,
        "activations_bytes": context * sequences * (2_000_000 if checkpointing == "none" else 100_000),
        "gradients_bytes": 2 * trained,
        "optimizer_bytes": 12 * trained,
        "adapters_bytes": 40_000_000 if phase in ("lora", "qlora") else 0,
        "overhead_bytes": 700_000_000,
    }


MIXTURE, BLOCKS = "acme/Beta-MoE-30B-A3B", 32


def splits():
    """Of the mixture what a card and RAM hold: layers from the first on, or the experts of some, which are nine tenths of each. The embeddings, a tenth
    of a block, are in RAM throughout."""
    formats = [(dtype, engine) for dtype, (_name, engine, *_rest) in BITS.items() if engine == "llama.cpp"]
    same = ("model_id", "dtype_id", "engine_id", "context_tokens", "sequences", "error_band")
    for row in footprints([(*each, "inference", 8192, 1, None, None) for each in formats], (1,)):
        if row["model_id"] != MIXTURE:
            continue
        block = row["weights_bytes"] // BLOCKS
        expert, brought, aside = block * 9 // 10, block // 4, block // 10
        ways = [(layers, 0, (BLOCKS + 1 - layers) * block) for layers in range(BLOCKS + 2)]
        ways += [(BLOCKS + 1, layers, layers * expert) for layers in range(1, BLOCKS + 1)]
        for gpu_layers, cpu_expert_layers, moved in ways:
            yield {name: row[name] for name in same} | {
                "gpu_layers": gpu_layers,
                "cpu_expert_layers": cpu_expert_layers,
                "gpu_bytes": row["total_bytes"] - moved + (brought if moved else 0),
                "host_bytes": aside + moved,
            }


def footprints(scenarios=None, counts=COUNTS):
    for model_id, (billions, *_rest) in MODELS.items():
        for (dtype, engine, phase, context, sequences, optimizer, checkpointing), count in product(
            scenarios or list(_scenarios()), counts
        ):
            if (phase == "inference" and count == 16) or (model_id == SHORT and context > SHORT_TOKENS):
                continue
            row = {
                "model_id": model_id,
                "dtype_id": dtype,
                "phase_id": phase,
                "engine_id": engine,
                "context_tokens": context,
                "sequences": sequences,
                "kv_dtype_id": "bf16" if phase == "inference" else None,
                "optimizer_id": optimizer,
                "precision": None if phase == "inference" else "mixed",
                "checkpointing": checkpointing,
                "lora_rank": 16 if phase in ("lora", "qlora") else None,
                "lora_targets": "all-linear" if phase in ("lora", "qlora") else None,
                "attention": "flash",
                "sharding": "none" if count == 1 else "tp" if phase == "inference" else "zero3",
                "gpu_count": count,
                "error_band": 0.04 if phase == "inference" else 0.05 if count == 1 else 0.1,
            }
            if billions is None:
                row["unknown_reason"] = "No config is published, and no sibling has its shape"
            else:
                parts = _components(billions, dtype, phase, context, sequences, checkpointing, count)
                row |= parts | {"total_bytes": sum(parts.values())}
                if dtype == "mxfp4" and model_id == "acme/Alpha-7B-Instruct":
                    row |= {"weights_bytes": None, "total_bytes": None, "unknown_reason": REASON}
            yield row


def ladder():
    """Points on one GPU between and beyond those of the lookup; the last is the models' own context."""
    longer = [(*row[:3], context, *row[4:]) for row in _scenarios() for context in (4096, 32768) if row[3] == 2048]
    yield from footprints(longer, (1,))


def models():
    for model_id, (billions, task, downloads, grade) in MODELS.items():
        known = billions is not None
        count = int(billions * 1e9) if known else None
        yield {
            "model_id": model_id,
            "revision": "a" * 40 if known else None,
            "pipeline_tag": task,
            "license": "apache-2.0",
            "is_gated": model_id.startswith("acme/Beta"),
            "downloads_30d": downloads,
            "likes": downloads // 100,
            "family": "alpha",
            "model_type": "alpha",
            "parameter_count": count,
            "stored_parameter_count": count,
            "active_parameter_count": count // 10 if known and "MoE" in model_id else count,
            "max_context_tokens": SHORT_TOKENS if model_id == SHORT else 32768 if known else None,
            "anatomy_grade": grade,
            "anatomy_note": "Its count equals the published total" if known else "No config is published",
            "layer_count": 32 if known else None,
            "hidden_size": 4096 if known else None,
            "vocab_size": 32000 if known else None,
            "stored_format": "bf16" if known else None,
            "facts_as_of": "2026-10",
            "config_kind": "verbatim" if known else None,
            "config_source": f"config.json of {model_id}" if known else None,
            "sources": "hub listing ; config.json",
        }
