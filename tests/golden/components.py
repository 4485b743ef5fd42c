"""What the formulas say, component by component, for scenarios that together reach every branch: tests/golden/components.csv.

    python -m tests.golden.components            # after a change of a formula: writes the file anew
    python -m tests.golden.components --choose   # chooses models and scenarios anew, too

The rows are no truth of their own (that is what tests/oracle, figures.csv and measured.csv hold): they hold every constant that a
tolerance there would let slip, and the diff of the file shows, number by number, what a change of a formula does.
"""

from __future__ import annotations

import csv
import dataclasses
import random
import sys
from pathlib import Path

import duckdb
import polars as pl

from pipeline.book.facts import read_facts, read_measured
from pipeline.book.scenario import TYPES
from pipeline.hub.snapshot import Snapshot, newest_snapshot
from pipeline.press import blank, formulas
from pipeline.press.anatomise import anatomise
from pipeline.press.work import work_of

PATH = Path(__file__).with_name("components.csv")
COMPONENTS = (
    "weights_bytes", "kv_cache_bytes", "kv_padding_bytes", "state_bytes", "activations_bytes", "gradients_bytes", "optimizer_bytes",
    "adapters_bytes", "overhead_bytes", "total_bytes", "host_bytes", "error_band", "peak_moment",
)  # fmt: skip
_EACH_MODEL = 9
_MOST_MODELS = 90
_SEED = 20261122

# Scenarios by phase; each value is tried by itself and in company, since models draw from the product at random.
_INFERENCE = {
    "dtype_id": [
        "bf16", "bf16", "fp32", "fp8", "int8", "nf4", "awq-int4", "gptq-int4", "gptq-int8", "mxfp4", "nvfp4", "stored",
        "gguf-q8_0", "gguf-q6_k", "gguf-q4_k_m", "gguf-q3_k_m", "gguf-q2_k", "gguf-iq4_xs", "gguf-mxfp4", "mlx-4bit", "mlx-8bit",
    ],
    "engine_id": [None, None, None, "transformers", "transformers-4.44", "vllm", "vllm-0.8", "sglang", "llama.cpp", "mlx-lm"],
    "context_tokens": [1, 100, 512, 4096, 8192, 33_000],
    "sequences": [1, 1, 3, 8],
    "kv_dtype_id": [None, None, None, "fp8", "q8_0", "q4_0"],
    "attention": [None, None, "eager"],
    "images": [None, None, 0, 2],
    "gpu_count": [1, 1, 1, 2, 4, 8, 16],
    "sharding": [None, None, "pp"],
}  # fmt: skip
_TRAINING = {
    "phase_id": ["pretrain", "full-finetune", "full-finetune", "lora", "lora", "qlora"],
    "engine_id": [None, None, None, None, "torchtune", "torchtitan", "megatron", "deepspeed", "litgpt"],
    "dtype_id": [None, None, None, "fp32", "fp16", "nf4", "int8"],
    "context_tokens": [128, 512, 2048, 4096, 8192],
    "sequences": [1, 1, 2, 8],
    "optimizer_id": [None, None, "adamw-8bit", "adafactor", "sgd", "lion-8bit", "muon", "galore-adamw", "adamw-foreach", "adamw-forloop"],
    "precision": [None, None, "amp", "pure", "mixed"],
    "checkpointing": [None, "full", "full", "selective"],
    "lora_rank": [None, 4, 64],
    "lora_targets": [None, None, "attention", "query-value", "experts"],
    "adapter": [None, None, None, "dora"],
    "attention": [None, None, "eager", "masked"],
    "loss": [None, None, "chunked", "fused"],
    "gradient_accumulation": [None, None, 4],
    "ema": [None, None, None, True],
    "gpu_count": [1, 1, 1, 2, 8, 16],
    "sharding": [None, None, "ddp", "zero1", "zero2"],
    "tensor_parallel": [None, None, None, 2],
    "pipeline_parallel": [None, None, None, 2],
    "context_parallel": [None, None, None, 2],
    "expert_parallel": [None, None, None, 4],
    "offload": [None, None, None, "optimizer", "all"],
}  # fmt: skip
_ADAPTER_ONLY = ("lora_rank", "lora_targets", "adapter")


def book_of(snapshot: Snapshot) -> duckdb.DuckDBPyConnection:
    """Formulas over the models of that snapshot, in memory."""
    connection = duckdb.connect()
    fill(connection, snapshot)
    return connection


def fill(connection: duckdb.DuckDBPyConnection, snapshot: Snapshot) -> dict[str, formulas.Statement]:
    """The same in an empty database. Returns its statements."""
    frames = anatomise(snapshot)
    frames |= {"work": work_of(frames["model"]), "measured": read_measured()}
    formulas.load(connection, read_facts(), frames)
    return formulas.run_sql(connection)


def flat_book_of() -> duckdb.DuckDBPyConnection:
    """The same over all models of the bundled snapshot, as people ask it."""
    connection = duckdb.connect()
    blank.make(connection)
    frames = anatomise(newest_snapshot())
    blank.fill(connection, {**frames, "work": work_of(frames["model"])})
    return connection


def read() -> list[dict[str, object]]:
    """The rows, typed: columns of TYPES and COMPONENTS, None where nothing is given."""
    with PATH.open(encoding="utf-8", newline="") as file:
        frame = pl.DataFrame(list(csv.DictReader(file))).with_columns(pl.all().replace("", None))
    whole = [name for name in COMPONENTS if name.endswith("_bytes")]
    kinds = {name: kind for name, kind in TYPES.items() if name in frame.columns and kind != pl.Boolean}
    booleans = [pl.col(name) == "true" for name, kind in TYPES.items() if kind == pl.Boolean and name in frame.columns]
    return (
        frame.with_columns(*booleans)
        .cast(kinds | dict.fromkeys(whole, pl.Int64) | {"error_band": pl.Float64})
        .to_dicts()
    )


def ask(connection: duckdb.DuckDBPyConnection, rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """What the formulas say of each row's scenario now: COMPONENTS and unknown_reason, in their order."""
    keys = [(row["model_id"], row["context_tokens"]) for row in rows]
    assert len(set(keys)) == len(keys), "a model has each context once: it tells its rows apart"
    connection.register(
        "golden_rows", pl.DataFrame([{n: row.get(n) for n in TYPES} for row in rows], schema=TYPES).to_arrow()
    )
    connection.execute("CREATE OR REPLACE TEMP TABLE golden AS FROM golden_rows")
    names = ("model_id", "context_tokens", *COMPONENTS, "unknown_reason")
    answers = connection.execute(f"SELECT {', '.join(names)} FROM footprints('golden')").fetchall()
    by_key = {answer[:2]: dict(zip(names[2:], answer[2:], strict=True)) for answer in answers}
    return [by_key[key] for key in keys]


def differences(expected: list[dict], said: list[dict]) -> list[str]:
    """Every number that is not the one of the file, as 'model scenario: component expected -> said'."""
    return [
        f"{told(row)}: {name} {row[name]} -> {now[name]}"
        for row, now in zip(expected, said, strict=True)
        for name in COMPONENTS
        if row[name] != now[name]
    ]


def told(row: dict) -> str:
    return " ".join(
        f"{name}={row[name]}" if name != "model_id" else row[name] for name in TYPES if row.get(name) is not None
    )


def choose() -> list[dict[str, object]]:
    """Models that differ in what formulas look at, most downloaded first, each with scenarios drawn from the products above."""
    snapshot = newest_snapshot()
    connection = book_of(snapshot)
    features = """
        SELECT m.model_id, list_distinct(flatten([
            (SELECT list(concat_ws('/', mechanism, recurrence, has_qk_norm, has_output_gate, window_tokens IS NULL)) FROM attention_layer AS a WHERE a.model_id = m.model_id),
            (SELECT list(concat_ws('/', activation, is_gated, expert_count > 0, shared_width > 0)) FROM feed_forward_layer AS f WHERE f.model_id = m.model_id),
            (SELECT list(concat_ws('/', t.component, reader, grid, activation, is_gated)) FROM tower AS t WHERE t.model_id = m.model_id),
            (SELECT list(operator || '/' || role) FROM tensor AS n WHERE n.model_id = m.model_id AND tensor_class <> 'norm'),
            [concat_ws('/', norm_kind, is_block_parallel, has_flash_attention, is_head_tied, hidden_dropout > 0), stored_format],
            (SELECT list(i.model_type) FROM implementation AS i WHERE i.model_type = m.model_type)
        ])) AS features
        FROM model AS m WHERE m.parameter_count IS NOT NULL AND anatomy_grade IN ('exact', 'matched') ORDER BY downloads_30d DESC NULLS LAST, model_id"""
    seen: set[str] = set()
    chosen: list[str] = []
    candidates = [(model, {f for f in found if f}) for model, found in connection.execute(features).fetchall()]
    while candidates and len(chosen) < _MOST_MODELS:
        model, found = max(candidates, key=lambda one: len(one[1] - seen))
        if not found - seen:
            break
        chosen.append(model)
        seen |= found
        candidates.remove((model, found))
    longest = dict(connection.execute("SELECT model_id, max_context_tokens FROM model").fetchall())
    draw, rows, taken = random.Random(_SEED), [], set()
    for model in sorted(chosen):
        for _ in range(12 * _EACH_MODEL):
            row = _drawn(draw, model)
            row["context_tokens"] = min(row["context_tokens"], longest[model] or 4096)
            while (model, row["context_tokens"]) in taken and row["context_tokens"] > 1:
                row["context_tokens"] -= 1
            if (model, row["context_tokens"]) not in taken:
                taken.add((model, row["context_tokens"]))
                rows.append(row)
    kept: dict[str, list[dict[str, object]]] = {}
    for row, answer in zip(rows, ask(connection, rows), strict=True):
        few = kept.setdefault(row["model_id"], [])
        if answer["total_bytes"] is not None and len(few) < _EACH_MODEL:
            few.append(row)
    connection.close()
    return [row for few in kept.values() for row in few]


def _drawn(draw: random.Random, model: str) -> dict[str, object]:
    is_training = draw.random() < 0.55
    row = dict.fromkeys(TYPES) | {"model_id": model, "phase_id": "inference"}
    row |= {name: draw.choice(values) for name, values in (_TRAINING if is_training else _INFERENCE).items()}
    if row["phase_id"] not in ("lora", "qlora"):
        row |= dict.fromkeys(_ADAPTER_ONLY)
    if row["phase_id"] == "qlora":
        row["dtype_id"] = draw.choice(["nf4", "nf4-double", "int8"])
    if row["gpu_count"] == 1:
        row |= dict.fromkeys(
            ("sharding", "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")
        )
    return row


def small_snapshot(rows: list[dict]) -> Snapshot:
    """The bundled snapshot with the models of those rows alone."""
    snapshot, named = newest_snapshot(), {row["model_id"] for row in rows}
    return dataclasses.replace(snapshot, records=tuple(r for r in snapshot.records if r.model_id in named))


def write(rows: list[dict], said: list[dict]) -> None:
    given = [name for name in TYPES if any(row.get(name) is not None for row in rows)]
    with PATH.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*given, *COMPONENTS], lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        for row, answer in zip(rows, said, strict=True):
            writer.writerow({name: _cell(value) for name, value in (row | answer).items()})


def _cell(value: object) -> object:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else value


def main(arguments: list[str]) -> int:
    rows = choose() if "--choose" in arguments or not PATH.exists() else read()
    connection = book_of(newest_snapshot())
    said = ask(connection, rows)
    connection.close()
    if PATH.exists() and "--choose" not in arguments:
        print("\n".join(differences(rows, said)) or "nothing has changed")
    write(rows, said)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
