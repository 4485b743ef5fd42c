"""Every row of the small almanac that is rendered, by table. The numbers are made up; a row says what its page needs, the rest is filled in."""

from __future__ import annotations

import statistics
from itertools import product
from pathlib import Path

import polars as pl

from tests.render.tiny_models import (
    BITS,
    GIB,
    GPUS,
    MEASURED,
    MODELS,
    PHASES,
    PRICES,
    REFUSED,
    footprints,
    models,
    splits,
)

FACTS = Path(__file__).parents[2] / "tables" / "facts" / "constant.csv"
# as they are published, but for a server's share of a card, which is smaller so that it decides among so few models
CONSTANTS = dict(pl.read_csv(FACTS).select("constant_id", pl.col("value").cast(float)).iter_rows()) | {
    "vllm_default_share": 0.7
}

# made-up errors of two rules of thumb, by model; the last model has none
RULE_ERRORS = {"weights-times-2": (-0.4, 0.02, 0.3, 2.5), "weights-alone": (-0.2, -0.04, -0.6, -0.08)}


def _rules():
    """Rules of thumb, and what each gives for each model."""
    known = [m for m, row in MODELS.items() if row[0]]
    rules, errors = [], []
    for rank, (rule_id, shares) in enumerate(RULE_ERRORS.items(), 1):
        of = list(zip(known, shares, strict=False))
        rules.append(
            {
                "rule_id": rule_id,
                "rule_rank": rank,
                "name": rule_id.replace("-", " "),
                "dtype_id": "bf16",
                "phase_id": "inference",
                "model_count": len(of),
                "median_error": statistics.median(shares),
                "near_share": sum(abs(e) <= 0.1 for e in shares) / len(of),
                "under_share": sum(e < -0.1 for e in shares) / len(of),
                "worst_under": min(shares),
                "lowest_model_id": min(of, key=lambda pair: pair[1])[0],
                "worst_over": max(shares),
                "highest_model_id": max(of, key=lambda pair: pair[1])[0],
                "source": "formats",
            }
        )
        errors += [
            {
                "rule_id": rule_id,
                "model_id": m,
                "rule_bytes": int(GIB * 10 * (1 + e)),
                "our_bytes": 10 * GIB,
                "error": e,
            }
            for m, e in of
        ]
    return rules, errors


def all_rows():
    rules, rule_errors = _rules()
    gpus = [
        {
            "gpu_id": gpu_id,
            "name": name,
            "vendor": vendor,
            "segment": segment,
            "architecture": "ada",
            "memory_gib_nominal": nominal,
            "memory_mib_reported": int(nominal * 1022) if vendor != "amd" else None,
            "memory_mib_cuda": int(nominal * 1012) if gpu_id == "rtx-4090" else None,
            "whole_bytes": int(capacity * GIB),
            "capacity_bytes": int(capacity * GIB),
            "capacity_basis": "measured" if gpu_id == "rtx-4090" else "imputed",
            "memory_bandwidth_gb_s": 1008.0,
            "bf16_tflops_dense": 165.0,
            "msrp_usd": PRICES.get(gpu_id),
            "tdp_w": 450.0 if vendor == "nvidia" else None,
            "release_date": "2022-10-12",
            "source": "data-sheet",
            "memory_reported_source": "nvidia-smi in public logs",
        }
        for gpu_id, (name, vendor, segment, nominal, capacity) in GPUS.items()
    ]
    dtypes = [
        {
            "dtype_id": i,
            "name": n,
            "engine_id": e,
            "bits_per_weight": b,
            "product_bits": 16,
            "is_trainable": t,
            "has_packed_experts": False,
            "source": "formats",
        }
        for i, (n, e, b, t) in BITS.items()
    ]
    known = [m for m, row in MODELS.items() if row[0]]
    runs_on = [
        {
            "engine_id": engine,
            "running_id": dtype,
            "dtype_id": dtype,
            "phase_id": phase,
            "attention": "flash",
            "gpu_id": gpu_id,
            "source": "formats",
        }
        | dict(zip(("runs", "how"), REFUSED.get((engine, gpu[1], dtype), (True, None)), strict=True))
        for engine, dtype, phase, (gpu_id, gpu) in product(
            ("transformers", "vllm", "llama.cpp"), BITS, PHASES, GPUS.items()
        )
        if dtype != "stored"
    ]
    layer = {"kind": "full", "mechanism": "full", "component": "text", "layer_count": 32, "kv_head_count": 8}
    return {
        "source": [{"source_id": "formats", "title": "Format notes", "locator": "https://example.org/formats"}],
        "model": list(models()),
        "gpu": gpus,
        "runs_on": runs_on,
        "dtype": dtypes,
        "phase": [{"phase_id": p, "name": n, "meaning": m, "source": "house"} for p, (n, m) in PHASES.items()],
        "engine": [{"engine_id": e, "name": e, "engine_version": "1.0"} for e in ("transformers", "vllm", "llama.cpp")],
        "optimizer": [{"optimizer_id": o, "name": o} for o in ("adamw", "adamw-8bit")],
        "constant": [
            {"constant_id": name, "value": value, "unit": "token", "applies_to": "limits"}
            for name, value in CONSTANTS.items()
        ],
        "tensor_class": [
            {"model_id": m, "tensor_class": c, "element_count": n, "layer_count": 32, "is_quantisable": c != "norm"}
            for m in known
            for c, n in (("attention", 2_000_000_000), ("feed-forward", 4_000_000_000), ("norm", 300_000))
        ],
        "attention_layer": [
            layer | {"model_id": m, "elements_per_token": 2048, "window_tokens": 4096 if "Beta-MoE" in m else None}
            for m in known
        ],
        "footprint": list(footprints()),
        "cpu_split": list(splits()),
        "plan_serving": [
            {
                "model_id": "acme/Alpha-7B-Instruct",
                "dtype_id": dtype,
                "engine_id": "vllm",
                "gpu_id": gpu,
                "users": users,
                "context_tokens": 8192,
                "plan_rank": 1,
                "gpu_count": count,
                "verdict": verdict,
                "copy_count": 1,
                "copy_gpu_count": count,
                "copy_users": users,
                "tensor_parallel": count,
                "pipeline_parallel": 1,
                "capacity_bytes": 20 * GIB,
                "total_bytes": 9 * GIB,
                "gpu_count_by_weights_times_users": users * 2,
                "user_tokens_per_second_likely": 55.0 if verdict else None,
                "unknown_reason": None if verdict else "nobody knows",
            }
            for gpu, count, verdict in (("rtx-4090", 2, "multi-gpu"), ("h100-sxm", 1, "tight"), ("mi300x", 1, None))
            for dtype in ("stored", "gguf-q4_k_m")
            for users in (1, 3)
        ],
        "plan_training": [
            {
                "model_id": "acme/Alpha-7B-Instruct",
                "phase_id": "lora",
                "gpu_id": "h100-sxm",
                "data_bytes": size,
                "plan_rank": 1,
                "days": 1.0,
                "gpu_count": count,
                "verdict": "fits",
                "finishes": finishes,
                "hours": hours,
                "hours_least": hours / 2,
                "hours_most": 2 * hours,
                "hardware_share": 0.4,
            }
            for size, count, finishes, hours in (
                (1000, 1, "yes", 0.001),
                (10**9, 4, "likely", 18.0),
                (10**11, 1024, "no", 99.0),
            )
        ],
        "outcome": [
            {
                "outcome_id": name,
                "outcome": outcome,
                "model_id": "acme/Alpha-7B-Instruct",
                "gpu_id": "rtx-4090",
                "gpu_count": 1,
                "phase_id": "inference",
                "program": "vllm",
                "program_version": "0.30",
                "dtype_id": "bf16",
                "context_tokens": 8192,
                "total_bytes": total,
                "error_band": 0.05 if total else None,
                "capacity_bytes": 25_000_000_000,
                "verdict": verdict,
                "engine_setting": "--max-num-seqs 1" if verdict else None,
                "judgement": judgement,
                "unknown_reason": None if verdict else "<i>nobody</i> read it",
                "source": "formats",
                "locator": "https://example.org/runs/1",
                "note": "<b>by hand</b>",
            }
            for name, outcome, total, verdict, judgement in (
                ("a-1", "ran", 20_000_000_000, "fits", "right"),
                ("b-2", "did not run", 20_000_000_000, "fits", "false fits"),
                ("c-3", "ran", None, None, "not known"),
            )
        ],
        "serving_run": [
            {
                "serving_run_id": f"run-{users}",
                "model_name": "Alpha 7B",
                "model_id": "acme/Alpha-7B-Instruct",
                "gpu_id": "rtx-4090",
                "gpu_count": 1,
                "program": "vllm",
                "dtype_id": "gguf-q4_k_m",
                "users": users,
                "context_tokens": 512,
                "decode_tokens_per_second": 100.0 * users,
                "decode_tokens_per_second_likely": likely,
                "decode_share": 0.5,
                "prefill_tokens_per_second": None,
                "source": "formats",
                "locator": "<b>a table</b>",
            }
            for users, likely in ((1, 120.0), (4, None))
        ],
        "training_run": [
            {
                "run_id": "a-lora",
                "model_name": "Alpha 7B",
                "gpu_id": "h100-sxm",
                "gpu_count": 8,
                "phase_id": "lora",
                "context_tokens": 2048,
                "tokens_per_second_gpu": 2000.0,
                "hardware_share": 0.4,
                "hardware_share_likely": 0.5,
                "hardware_share_low": 0.3,
                "hardware_share_high": 0.6,
                "source": "formats",
                "locator": "row 1",
            }
        ],
        "rule_of_thumb": rules,
        "rule_error": rule_errors,
        "measured": [
            {"measured_id": i, "metric": "peak", "strict_set": "A", "source": source}
            | (
                {"value": 7e9, "unit": "params"}
                if size is None
                else {"value": size, "unit": "GiB", "value_bytes": int(size * GIB)}
            )
            for i, _phase, _engine, size, _told, source in MEASURED
        ],
        "prediction": [
            {
                "measured_id": i,
                "model_id": "acme/Alpha-7B-Instruct",
                "phase_id": phase,
                "engine_id": engine,
                "dtype_id": "bf16",
            }
            | {"predicted_bytes": told and int(told * GIB), "error": told and (told / size - 1 if size else 0.5)}
            | {"reason": None if told else "the number of GPUs is not told"}
            for i, phase, engine, size, told, _source in MEASURED
        ],
        "accuracy": [
            {
                "metric": "allocated",
                "phase_id": "lora",
                "engine_id": "transformers",
                "row_count": 12,
                "median_error": 0.02,
                "p95_error": 0.09,
                "worst_under": -0.12,
                "worst_over": 0.08,
            }
        ],
    }
