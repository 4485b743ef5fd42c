"""The default lookup: every scenario of scenario_set.csv, once for every model whose anatomy is known.

Contexts beyond what a model's config allows are left out; a model that does not say gets them all.
"""

from __future__ import annotations

import itertools

import polars as pl

TYPES = {
    "model_id": pl.String,
    "dtype_id": pl.String,
    "phase_id": pl.String,
    "engine_id": pl.String,
    "context_tokens": pl.Int64,
    "max_context_tokens": pl.Int64,
    "sequences": pl.Int64,
    "images": pl.Int64,
    "image_width": pl.Int64,
    "image_height": pl.Int64,
    "audio_seconds": pl.Float64,
    "kv_dtype_id": pl.String,
    "optimizer_id": pl.String,
    "precision": pl.String,
    "checkpointing": pl.String,
    "lora_rank": pl.Int64,
    "lora_targets": pl.String,
    "adapter": pl.String,
    "attention": pl.String,
    "loss": pl.String,
    "gradient_accumulation": pl.Int64,
    "ema": pl.Boolean,
    "optimizer_rank": pl.Int64,
    "sharding": pl.String,
    "gpu_count": pl.Int64,
    "tensor_parallel": pl.Int64,
    "pipeline_parallel": pl.Int64,
    "context_parallel": pl.Int64,
    "expert_parallel": pl.Int64,
    "micro_batches_in_flight": pl.Int64,
    "sequence_parallel": pl.Boolean,
    "offload": pl.String,
}


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
