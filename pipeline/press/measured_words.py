"""The scenario of a measured row, read from the words of its source."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from pipeline.book.scenario import TYPES
from pipeline.press.compared import COMPARED, COMPARED_PIPELINE

Row = Mapping[str, Any]
# What a run of a diffusion pipeline was asked, in the words of `pipeline_of`: it has no context, and is another question.
PIPELINE = dict.fromkeys(("placement", "denoiser_dtype_id", "text_dtype_id"), pl.String)
PIPELINE |= dict.fromkeys(("width", "height", "frames"), pl.Int64) | {"is_tiled": pl.Boolean}
# what a server's log says of its card
LOGGED = {"card_gib": pl.Float64, "card_share": pl.Float64}
# What a scenario must have before it is asked for, and what is said where the words do not give it.
REQUIRED = {
    "compared_with": "the metric has no counterpart in a footprint",
    "engine_id": "the program is not an engine of ours",
    "phase_id": "the phase is none of ours",
    "dtype_id": "the format of the weights is not stated, or not one of ours",
    "context_tokens": "the context is not stated as one number",
    "sequences": "the number of sequences is not stated",
    "gpu_count": "more than one kind of parallelism",
}
_NUMBERS = (
    "context_tokens", "sequences", "gpu_count", "tensor_parallel", "pipeline_parallel", "context_parallel", "lora_rank",
    "generated_tokens", "gradient_accumulation", "reduce_bucket_elements", "width", "height", "frames",
)  # fmt: skip
# how a word of reading.csv becomes a share or a flag
_AS = {pl.Float64: float, pl.Boolean: "true".__eq__}


class ReadingError(ValueError):
    """A rule of reading.csv that speaks of something that does not exist, or a scenario that is not answered just once."""


def read_scenarios(measured: Iterable[Row], rules: Iterable[Row]) -> list[dict[str, Any]]:
    """One scenario per measurement: columns of TYPES, `compared_with`, `generated_tokens`, `workspace` and `reason`."""
    measured = list(measured)
    rules = _compiled(rules)
    tokens = {row["group_id"]: row["value"] for row in measured if row["metric"] == "kv_tokens"}
    scenarios = []
    for row in measured:
        words = {name: "" if value is None else str(value).strip() for name, value in row.items()}
        words["is_trap"] = words["is_trap"].lower()
        words["group_kv_tokens"] = ""
        if row["metric"] == "kv_cache_bytes" and words["framework"].startswith("vLLM"):
            # what is left for the cache depends on the card; its size per token is what can be compared
            count = tokens.get(row["group_id"])
            words["group_kv_tokens"] = "unknown" if count is None else f"{count:.0f}"
        scenarios.append({"measured_id": row["measured_id"], **_with_defaults(_read(words, rules))})
    return scenarios


def _compiled(rules: Iterable[Row]) -> list[dict[str, Any]]:
    known = {*TYPES, *PIPELINE, *LOGGED, "compared_with", "generated_tokens", "workspace", "reason"}
    ready = []
    for rule in sorted(rules, key=lambda rule: rule["rank"]):
        if rule["reads"] not in known:
            raise ReadingError(f"reading.csv: rank {rule['rank']} reads {rule['reads']!r}, which no scenario has")
        if rule["reads"] == "compared_with" and rule["as_value"] not in COMPARED | COMPARED_PIPELINE:
            raise ReadingError(
                f"reading.csv: rank {rule['rank']} compares with {rule['as_value']!r}, which nothing computes"
            )
        try:
            patterns = re.compile(rule["pattern"] or ""), re.compile(rule["when_pattern"] or "")
        except re.error as error:
            raise ReadingError(f"reading.csv: rank {rule['rank']} is no regular expression: {error}") from None
        ready.append({**rule, "pattern": patterns[0], "when_pattern": patterns[1]})
    return ready


def _read(words: Mapping[str, str], rules: Iterable[Row]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for rule in rules:
        field = rule["reads"]
        if field in found or (rule["when_column"] and not rule["when_pattern"].fullmatch(words[rule["when_column"]])):
            continue
        if match := rule["pattern"].fullmatch(words[rule["column_name"]]):
            value = match.expand(rule["as_value"])
            if field in _NUMBERS:
                value = math.prod(map(int, value.split("*")))
            found[field] = (
                _AS.get((TYPES | PIPELINE | LOGGED).get(field), str)(value) if field not in _NUMBERS else value
            )
    return found


def _with_defaults(found: dict[str, Any]) -> dict[str, Any]:
    """Every column, with what a measurement means where it says nothing."""
    row = (
        dict.fromkeys((*TYPES, *PIPELINE, *LOGGED, "compared_with", "generated_tokens", "workspace", "reason")) | found
    )
    if row["placement"] is not None:
        return _of_pipeline(row)
    if row["reason"] is None:
        row["reason"] = next((why for name, why in REQUIRED.items() if row[name] is None), None)
    trains, adapts = row["phase_id"] not in (None, "inference"), row["phase_id"] in ("lora", "qlora")
    row["kv_dtype_id"] = None if trains else row["kv_dtype_id"] or ("fp32" if row["dtype_id"] == "fp32" else "bf16")
    row["optimizer_id"] = (row["optimizer_id"] or "adamw") if trains else None
    row["checkpointing"] = (row["checkpointing"] or "none") if trains else None
    row["attention"] = row["attention"] or "flash"
    row["precision"] = (row["precision"] or _precision(row)) if trains else None
    # what was measured did run
    row["max_context_tokens"] = row["context_tokens"] and row["context_tokens"] + (row["generated_tokens"] or 0)
    row["loss"] = (row["loss"] or "full") if trains else None
    row["gradient_accumulation"] = (row["gradient_accumulation"] or 1) if trains else None
    row["ema"], row["optimizer_rank"] = (False, 128) if trains else (None, None)
    row["adapter"] = (row["adapter"] or "lora") if adapts else None
    row["lora_rank"] = (row["lora_rank"] or 16) if adapts else None
    row["trains_embeddings"] = bool(row["trains_embeddings"]) if adapts else None
    if adapts and row["lora_targets"] is None:
        row["reason"] = row["reason"] or "the adapters' targets are not attention or all linear layers"
        row["lora_targets"] = "all-linear"
    elif not adapts:
        row["lora_targets"] = None
    row["sharding"] = "none" if row["gpu_count"] == 1 else row["sharding"] or "tp"
    tensor, pipeline = row["sharding"] == "tp", row["sharding"] == "pp"
    row["tensor_parallel"] = row["tensor_parallel"] or (row["gpu_count"] if tensor else 1)
    row["pipeline_parallel"] = row["pipeline_parallel"] or (row["gpu_count"] if pipeline else 1)
    row["micro_batches_in_flight"] = row["pipeline_parallel"]
    row["context_parallel"], row["expert_parallel"] = row["context_parallel"] or 1, row["expert_parallel"] or 1
    row["offload"] = "none"
    return row


def _of_pipeline(row: dict[str, Any]) -> dict[str, Any]:
    needed = ("compared_with", "phase_id", "dtype_id")
    row["reason"] = row["reason"] or next((REQUIRED[name] for name in needed if row[name] is None), None)
    if row["reason"] is None and row["compared_with"] not in COMPARED_PIPELINE:
        row["reason"] = "the metric has no counterpart in a pipeline"
    return row | {"sequences": 1, "gpu_count": 1, "sharding": "none"}


def _precision(row: Row) -> str:
    return "amp" if row["phase_id"] == "qlora" else "pure" if row["dtype_id"] == "fp32" else "mixed"
