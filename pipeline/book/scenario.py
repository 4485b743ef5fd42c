"""The default lookup: every scenario of scenario_set.csv, once for every model whose anatomy is known.

Contexts beyond what a model's config allows are left out; a model that does not say gets them all.
"""

from __future__ import annotations

import csv
import functools
import itertools
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

import polars as pl

ENGINE_MEMORY = Path(__file__).parents[2] / "tables" / "facts" / "engine_memory.csv"
# What a scenario can say, in the order in which the macros take it.
TYPES = {
    "model_id": pl.String,
    "dtype_id": pl.String,
    "phase_id": pl.String,
    "context_tokens": pl.Int64,
    "sequences": pl.Int64,
    "kv_dtype_id": pl.String,
    "optimizer_id": pl.String,
    "checkpointing": pl.String,
    "lora_rank": pl.Int64,
    "lora_targets": pl.String,
    "precision": pl.String,
    "attention": pl.String,
    "sharding": pl.String,
    "gpu_count": pl.Int64,
    "engine_id": pl.String,
    "adapter": pl.String,
    "loss": pl.String,
    "gradient_accumulation": pl.Int64,
    "ema": pl.Boolean,
    "optimizer_rank": pl.Int64,
    "max_context_tokens": pl.Int64,
    "tensor_parallel": pl.Int64,
    "pipeline_parallel": pl.Int64,
    "context_parallel": pl.Int64,
    "expert_parallel": pl.Int64,
    "micro_batches_in_flight": pl.Int64,
    "sequence_parallel": pl.Boolean,
    "offload": pl.String,
    "images": pl.Int64,
    "image_width": pl.Int64,
    "image_height": pl.Int64,
    "audio_seconds": pl.Float64,
    "lora_dropout": pl.Float64,
    "reduce_bucket_elements": pl.Int64,
    "expandable_segments": pl.Boolean,
    "trains_embeddings": pl.Boolean,
    "program": pl.String,
    "program_version": pl.String,
    "data_parallel": pl.Int64,
    "decode_context_parallel": pl.Int64,
    "batched_tokens": pl.Int64,
    "max_num_seqs": pl.Int64,
    "text_only": pl.Boolean,
    "enforce_eager": pl.Boolean,
    "max_loras": pl.Int64,
    "max_lora_rank": pl.Int64,
}
# What is taken where nothing is said; all else is null, and the formulas fill in what fits the model and the phase.
DEFAULTS = {"phase_id": "'inference'"}
# what most questions say; of these alone a footprint takes half as long to plan
PLAIN = frozenset(
    [
        "model_id",
        "dtype_id",
        "phase_id",
        "engine_id",
        "context_tokens",
        "sequences",
        "kv_dtype_id",
        "optimizer_id",
        "checkpointing",
        "attention",
        "gpu_count",
    ]
)
# and what they say besides where they say more: how something is trained, shared and in which program. What is left is said by few, and
# pictures cost more to plan than all of this
USUAL = PLAIN | frozenset(
    [
        "max_context_tokens",
        "lora_rank",
        "lora_targets",
        "lora_dropout",
        "adapter",
        "precision",
        "loss",
        "gradient_accumulation",
        "sharding",
        "tensor_parallel",
        "pipeline_parallel",
        "context_parallel",
        "expert_parallel",
        "offload",
        "program",
        "program_version",
        "batched_tokens",
        "max_num_seqs",
        "text_only",
        "enforce_eager",
    ]
)
# Words in braces that stand in tables/sql for all arguments of a scenario.
_SQL_TYPES = {pl.String: "VARCHAR", pl.Int64: "BIGINT", pl.Float64: "DOUBLE", pl.Boolean: "BOOLEAN"}
_WORDS = {
    "columns": ", ".join(f"NULL::{_SQL_TYPES[kind]} AS {name}" for name, kind in TYPES.items()),
    "parameters": ", ".join(
        name if name == "model_id" else f"{name} := {DEFAULTS.get(name, 'NULL')}" for name in TYPES
    ),
    "arguments": ", ".join(f"{name} AS {name}" for name in TYPES),
    "passed": ", ".join(name if name == "model_id" else f"{name} := {name}" for name in TYPES),
    **{
        word: f"coalesce({', '.join(f'{name}::VARCHAR' for name in TYPES if name not in said)}) IS NULL"
        for word, said in (("is_plain", PLAIN), ("is_usual", USUAL))
    },
}


def written_out(sql: str) -> str:
    """A text of tables/sql with what it says in braces: all arguments of a scenario ({columns}, {parameters}, {arguments}; {passed} hands them on), whether no
    more is said than PLAIN or USUAL ({is_plain}, {is_usual}), and what the rows of engine_memory say ({cell_constant of engine_id}: branches of a CASE, each a
    constant, or the number itself where the row has one; {engines with cell_constant}: a list)."""
    sql = re.sub(r"\{(\w+) of (\w+)\}", lambda found: _wrapped(_branches(found[1], found[2])), sql)
    sql = re.sub(r"\{engines with (\w+)\}", lambda found: _wrapped(_listed(_engines(found[1]))), sql)
    return re.sub(rf"\{{({'|'.join(_WORDS)})\}}", lambda found: _wrapped(_WORDS[found[1]]), sql)


def _wrapped(words: str) -> str:
    return "\n    ".join(textwrap.wrap(words, 110))


@functools.cache
def _engine_memory() -> tuple[dict[str, str], ...]:
    with ENGINE_MEMORY.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def _engines(column: str) -> dict[str, str]:
    """What each engine says in a column, where it says something."""
    return {row["engine_id"]: row[column] for row in _engine_memory() if row[column]}


def _listed(engines: Iterable[str]) -> str:
    return ", ".join(f"'{engine}'" for engine in engines)


def _branches(column: str, engine_id: str) -> str:
    engines = _engines(column)
    return " ".join(
        f"WHEN {engine_id} IN ({_listed(e for e in engines if engines[e] == said)}) THEN {said if said.isdecimal() else f'constants.{said}'}"
        for said in dict.fromkeys(engines.values())
    )


def scenario_grid(scenario_sets: pl.DataFrame) -> pl.DataFrame:
    """One row per published scenario of a model: columns of TYPES but model_id, null means default; and least_parameter_count."""
    rows = [scenario for scenario_set in scenario_sets.to_dicts() for scenario in _expand(scenario_set)]
    kinds = {name: kind for name, kind in TYPES.items() if name != "model_id"}
    return pl.DataFrame(rows, schema=kinds | {"least_parameter_count": pl.Int64}).unique(maintain_order=True)


def _expand(scenario_set: dict) -> list[dict]:
    def values(column: str) -> list[str | None]:
        return (scenario_set[column] or "").split() or [None]

    return [
        {
            "phase_id": phase,
            "dtype_id": dtype,
            "engine_id": engine,
            "context_tokens": int(context),
            "sequences": int(sequences),
            "optimizer_id": optimizer,
            "checkpointing": checkpointing,
            "gpu_count": int(gpus),
            "sharding": sharding,
            "least_parameter_count": int(scenario_set["least_parameter_count"] or 0),
        }
        for phase, dtype, engine, context, sequences, optimizer, checkpointing, gpus in itertools.product(
            *map(
                values,
                (
                    "phase_ids",
                    "dtype_ids",
                    "engine_ids",
                    "contexts",
                    "sequence_counts",
                    "optimizer_ids",
                    "checkpointings",
                    "gpu_counts",
                ),
            )
        )
        for sharding in (values("sharding") if int(gpus) > 1 else [None])
    ]
