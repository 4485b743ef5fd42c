"""A small almanac to render: a few models and cards, every dtype and phase, unknown numbers, and a hostile name.

The numbers are made up; the shape is pipeline.book.schema's, so that a page which renders here renders from the real tables.
"""

from __future__ import annotations

import datetime
import re
import statistics
from itertools import product
from pathlib import Path

import duckdb
import polars as pl

from pipeline.book.schema import PUBLISHED
from pipeline.press import changes, publish
from pipeline.render import addresses, render
from tests.once import once

DEEP = "deep"  # a site lives below the root of its host as well as at it
SITE = f"https://almanac.example/{DEEP}/"
GIB = 1024**3
HOSTILE = "evil-org/\u202e<script>alert('x')</script>\"&-8B"
UNKNOWN = "acme/No-Config"
SHORT, SHORT_TOKENS = "tiny-lab/embed-small", 2048
POLARS = {"string": pl.String, "integer": pl.Int64, "number": pl.Float64, "boolean": pl.Boolean, "date": pl.Date}
FILL = {"string": "x", "integer": 1, "number": 1.0, "boolean": False, "date": datetime.date(2026, 1, 1)}

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
FACTS = Path(__file__).parents[2] / "tables" / "facts" / "constant.csv"
# as they are published, but for a server's share of a card, which is smaller so that it decides among so few models
CONSTANTS = dict(pl.read_csv(FACTS).select("constant_id", pl.col("value").cast(float)).iter_rows()) | {
    "vllm_default_share": 0.7
}
REASON = "MXFP4 needs a block size that this model's projections do not divide into"


# made-up errors of two rules of thumb, by model; the last model has none
RULE_ERRORS = {"weights-times-2": (-0.4, 0.02, 0.3, 2.5), "weights-alone": (-0.2, -0.04, -0.6, -0.08)}

# the book's own rules beside the footprint
SQL, RULES = (
    FACTS.parents[1] / "sql",
    (
        *("words.sql", "speed/speed.sql", "speed/likely.sql", "plans/machine.sql", "plans/training.sql"),
        *(
            "plans/techniques.sql",
            "sharding/plans.sql",
            "plans/serving.sql",
            "ask/speculative_of.sql",
            "scenario/versions.sql",
            "ask/objective.sql",
            "plans/drafts.sql",
            "pipelines/pipelines.sql",
            "pipelines/training.sql",
            "pipelines/pipeline_training.sql",
            "capacity/verdict.sql",
            "capacity/cpu_split.sql",
            "capacity/together.sql",
        ),
    ),
)
# what the real formulas work out as tables, from more than there is here
WORKED_OUT = re.compile(
    r"CREATE OR REPLACE (TABLE|VIEW) (training_run|training_rate|training_share|serving_run|engine_speed|cpu_split|draft_engines|denoiser_adapted)\b"
)


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


# A formula with the real one's outline: steps, a join that may miss, scalar macros, a reason.
FORMULAS = """
create or replace table shape as select model_id, parameter_count, max_context_tokens, [{'layers': 32, 'elements': 2048}] as caches,
    starts_with(model_id, 'tiny-lab') as is_encoder, false as is_sparsely_read, null::varchar as writes_otherwise, active_parameter_count as token_elements
    from model where parameter_count is not null;
create or replace table weight as select model_id, dtype_id, (parameter_count * bits_per_weight / 8)::bigint as weights_bytes,
    (token_elements * bits_per_weight / 8)::bigint as read_bytes from shape, dtype;
create or replace table denoiser_weight (model_id varchar, pipeline_part varchar, dtype_id varchar, weights_bytes bigint, working_bytes bigint, first_bytes bigint, token_bytes bigint, holds_for varchar);
create or replace table denoiser_adapted (model_id varchar, adapter_elements bigint, adapted_matrices double, pair_layers bigint, single_layers double,
    plan varchar, has_other_blocks boolean);
create or replace table layer_weight (model_id varchar, dtype_id varchar, layer_bytes bigint[], expert_bytes bigint[], matrix_bytes bigint);
create or replace table kv_dtype as select *, null::double as least_capability, null::varchar as targets from (values ('bf16', 16), ('fp8', 8), ('q8_0', 8)) as t(kv_dtype_id, element_bits);
create or replace table model_name as select lower(model_id) as name, model_id from model;
create macro asked_number(value) as try_cast(value as bigint);
create macro kept_per_logit(model, scenario) as 4;
create macro gradients_per_logit(model, scenario) as 4;
create macro cast_elements(model) as 0;
create macro kv_cache_bytes(m, x) as list_sum(list_transform(m.caches, lambda c: c.layers * c.elements * x.context_tokens))::bigint;
create macro footprints_as_written(relation) as table
with asked as (from query_table(relation)),
x as (select coalesce(asked.context_tokens, 8192) as context_tokens, coalesce(asked.sequences, 1) as sequences,
    coalesce(asked.gpu_count, 1) as gpu_count, asked.* exclude (context_tokens, sequences, gpu_count),
    coalesce(asked.engine_id, d.engine_id) as engine_used
    from asked left join dtype as d on d.dtype_id = asked.dtype_id left join engine as e on e.engine_id = asked.engine_id),
part as (select x.*, w.weights_bytes as weights, kv_cache_bytes(m, x) * x.sequences * kv.element_bits // 8 as kv,
    case when x.context_tokens < 1 then 'a context starts at 1' end as unknown_reason
    from x left join shape as m on m.model_id = x.model_id left join weight as w on w.model_id = x.model_id and w.dtype_id = x.dtype_id
    left join kv_dtype as kv on kv.kv_dtype_id = coalesce(x.kv_dtype_id, 'bf16') left join optimizer as o on o.optimizer_id = x.optimizer_id
    left join phase as p on p.phase_id = x.phase_id left join model_name as named on named.name = lower(x.model_id))
select model_id, coalesce(dtype_id, 'bf16') as dtype_id, coalesce(phase_id, 'inference') as phase_id, 'flash' as attention,
    engine_used as engine_id, context_tokens, sequences, gpu_count, weights // gpu_count as weights_bytes, kv // gpu_count as kv_cache_bytes,
    0 as state_bytes, gpu_count as tensor_parallel, 1 as pipeline_parallel,
    case when unknown_reason is null then weights // gpu_count + kv // gpu_count end as total_bytes, 0.04 as error_band, null as peak_moment, unknown_reason
from part;
"""


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


def _models():
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


def _rows():
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
        "model": list(_models()),
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
        "attention_layer": [layer | {"model_id": m, "elements_per_token": 2048} for m in known],
        "footprint": list(footprints()),
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


def build(folder: Path) -> Path:
    """Write every published table but the compatibility view as Parquet, and an almanac.duckdb that holds them."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = _rows()
    for table in PUBLISHED.values():
        if table.name == "compatibility":
            continue
        schema = {c.name: POLARS[c.type] for c in table.columns}
        blank = {c.name: None if c.name in table.nullable else FILL[c.type] for c in table.columns}
        frame = pl.DataFrame([blank | row for row in rows.get(table.name, ())], schema=schema)
        frame = frame.sort([k for k in table.key if k in schema])
        frame.write_parquet(folder / f"{table.name}.parquet")
        frame.write_csv(folder / f"{table.name}.csv")
    (folder / "almanac.duckdb").unlink(missing_ok=True)
    with duckdb.connect() as connection:
        connection.execute(f"attach '{folder / 'almanac.duckdb'}' as almanac (storage_version 'v1.2.0')")
        for table in PUBLISHED.values():
            if table.name != "compatibility":
                file = folder / f"{table.name}.parquet"
                connection.execute(f"create table almanac.{table.name} as from read_parquet('{file}')")
        connection.execute("create table almanac.ladder as from almanac.footprint limit 0")
        connection.register("ladder_rows", pl.DataFrame(list(ladder()), infer_schema_length=None).to_arrow())
        connection.execute("insert into almanac.ladder by name from ladder_rows")
        connection.execute("use almanac")
        connection.execute(FORMULAS)
        for name in RULES:
            text = (SQL / name).read_text(encoding="utf-8")
            for statement in connection.extract_statements(text):
                if (
                    "AS TABLE" not in statement.query
                    and not WORKED_OUT.search(statement.query)
                    and " pipeline_number(" not in statement.query
                ):
                    connection.execute(statement.query)
        wide = ", ".join(f"{value}::double as {name}" for name, value in CONSTANTS.items())
        connection.execute(f"create table almanac.constants as select {wide}")
    versions = {"data_version": "tiny", "schema_version": "1.0.0", "snapshot_date": "2026-01-02"}
    changes.write(folder, folder, versions, folder / "release")
    return folder


def built() -> Path:
    """The same, made once for all tests."""
    return once("tiny-tables", build)


def rendered() -> Path:
    """The site of them at SITE, made once for all tests."""
    return once("tiny-site", lambda folder: published(folder / DEEP)) / DEEP


def published(folder: Path) -> None:
    """As a publish makes it."""
    render(built(), folder, site_url=SITE)
    publish.write_far(built(), folder, addresses.known(SITE))
