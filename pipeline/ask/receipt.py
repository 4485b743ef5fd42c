"""What a program really held, read from its log, against what the almanac says of it.

A number that a log does not have is not there in the answer either.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

from pipeline.base.bounds import visible

from .almanac import Almanac, Row
from .problems import Unknown
from .question import Model, Use
from .receipt_lines import LLAMA, PYTORCH, SGLANG, VLLM, Receipt
from .scenarios import sees

_CACHES_OF_16_BITS = ("auto", "bfloat16", "bf16", "float16", "fp16", "f16", "half", "none")
_CACHES = {"fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "q8_0": "q8_0", "q4_0": "q4_0", "f32": "fp32"}
_MIXES = {"medium": "_m", "small": "_s", "large": "_l"}


def format_of(receipt: Receipt) -> str | None:
    """The format that a log names, in the almanac's words; None where it names none that is known."""
    said = receipt.words.get("quantization", "").lower()
    if receipt.program == LLAMA and said:
        mix, _, kind = said.partition(" - ")
        return f"gguf-{mix}{_MIXES.get(kind, '')}"
    return {
        "awq": "awq-int4",
        "awq_marlin": "awq-int4",
        "gptq": "gptq-int4",
        "gptq_marlin": "gptq-int4",
        "fp8": "fp8",
        "mxfp4": "mxfp4",
        "bitsandbytes": "nf4",
        "none": "bf16",
    }.get(said)


def _held_at(receipt: Receipt, use: Use) -> tuple[int | None, int]:
    """The tokens of a sequence, and how many sequences a cache was set aside for."""
    said, users = receipt.numbers, use.sequences or 1
    if use.context_tokens:
        return use.context_tokens, users
    if receipt.words.get("slots_share") in ("false", "0") and said.get("sequence_tokens"):
        return said["sequence_tokens"], max(users, said.get("slots", users))
    names = ("context_served", "context_tokens", "context_asked", "sequence_tokens")
    return next((said[name] for name in names if said.get(name)), None), users


def compared(almanac: Almanac, model: Model, use: Use, receipt: Receipt, count: int = 1) -> dict[str, Any]:
    """What the log says of each component, what the formulas say, and the difference, on `count` cards where it does not say how many. Raises
    Unknown with the reason where they say nothing."""
    said = receipt.numbers
    context, users = _held_at(receipt, use)
    engine = {VLLM: "vllm", SGLANG: "sglang", LLAMA: "llama.cpp", PYTORCH: None}[receipt.program]
    # 0.8 has both engines and says which it starts; what is older has the first
    first = re.match(r"0\.[0-8]\.", receipt.words.get("version", "")) and receipt.words.get("generation") != "V1"
    if receipt.program == VLLM and first:
        engine = "vllm-0.8"
    asked = {
        "m": model.model_id,
        "dtype": use.dtype_id or (model.dtype_id if engine else None) or format_of(receipt),
        "phase": use.phase_id,
        "engine": engine,
        "context": context,
        "users": users,
        "kv": use.kv_dtype_id or _cache_format(receipt),
        "attention": "eager" if receipt.words.get("flash") in ("0", "disabled", "off") else None,
        "count": max(said.get("gpu_count", count), len(receipt.cards.get("weights", ())), 1),
        "dp": said.get("data_parallel") if receipt.program == SGLANG else None,
    }
    (ours,) = almanac.rows(
        "FROM footprint_of($m, dtype_id := $dtype, phase_id := $phase, engine_id := $engine, context_tokens := $context, sequences := $users, "
        "kv_dtype_id := $kv, gpu_count := $count, attention := $attention, data_parallel := $dp)",
        asked,
    )
    if ours["total_bytes"] is None:
        raise Unknown(f"Not known: what is to be compared with ({visible(ours['unknown_reason'] or 'no reason')})")
    ours |= {"has_counted_tower": sees(almanac, ours["model_id"]), "graphs_bytes": _graphs_of(almanac, ours)}
    if receipt.words.get("draft", "").lower() == "mtp":
        ours = _with_predictions(almanac, asked, ours)
    lines = [
        {
            "component": name,
            "log_bytes": held,
            "ours_bytes": said,
            "difference": round(said / held - 1, 4) if held else None,
        }
        for name, held, said in _pairs(receipt, ours)
        # (cache and buffers of llama.cpp are those of a context, and a log may not say it)
        if context or receipt.program != LLAMA or name == "weights"
    ]
    return {
        "program": receipt.name,
        "version": receipt.words.get("version"),
        "model": model.shown,
        **{
            name: ours[name]
            for name in (
                "dtype_id",
                "phase_id",
                "engine_id",
                "context_tokens",
                "sequences",
                "kv_dtype_id",
                "gpu_count",
                "holds_for",
            )
        },
        "is_context_said": context is not None,
        "components": lines,
        "measured": _rows(receipt, ours if context else ours | {"context_tokens": None}),
    }


def _with_predictions(almanac: Almanac, asked: Row, ours: Row) -> Row:
    """With the layers that predict, where a log says that they draft and it is known what they hold."""
    (both,) = almanac.rows(
        "FROM speculative_of($m, 'mtp', dtype_id := $dtype, engine_id := $engine, context_tokens := $context, sequences := $users, "
        "kv_dtype_id := $kv, gpu_count := $count)",
        {name: value for name, value in asked.items() if name not in ("phase", "attention", "dp")},
    )
    if both["total_bytes"] is None:
        return ours
    return ours | {
        "weights_bytes": ours["weights_bytes"] + both["draft_weights_bytes"],
        "kv_cache_bytes": ours["kv_cache_bytes"] + both["draft_cache_bytes"],
    }


def _cache_format(receipt: Receipt) -> str | None:
    """The format of the cache that a log names, None for the engine's own. Raises Unknown for one that is not described: compared with another
    it would be a wrong row of the book."""
    said = receipt.words.get("kv_format", "auto").lower()
    if said in _CACHES_OF_16_BITS:
        return None
    if said in _CACHES:
        return _CACHES[said]
    raise Unknown(f"Not known: a KV cache in {visible(said)}, which the log names, is not described")


def _graphs_of(almanac: Almanac, ours: Row) -> int | None:
    """What is counted for the graphs of vLLM, a part of overhead_bytes; None for other programs."""
    if not str(ours["engine_id"]).startswith("vllm"):
        return None
    (row,) = almanac.rows(
        "SELECT internal.graphs_bytes_vllm(shape.model, {'engine_id': $engine, 'pipeline_parallel': 1, 'max_num_seqs': NULL::BIGINT, "
        "'enforce_eager': false, 'max_loras': NULL::BIGINT}, "
        "sizes.constants)::BIGINT AS graphs "
        "FROM internal.shape_row AS shape, internal.constants_row AS sizes WHERE shape.model_id = $m",
        {"m": ours["model_id"], "engine": ours["engine_id"]},
    )
    return row["graphs"]


def _activations(receipt: Receipt) -> int | None:
    """The activations of a log that has them together with what vLLM set aside for its graphs; None where it does not say how much that is."""
    both, aside = receipt.numbers["activations_graphs"], receipt.numbers.get("graphs_estimated")
    if receipt.words.get("graphs_profiled") == "disabled":
        return both
    if aside is not None:
        return both - aside if both > aside else None
    return both if "captured" in receipt.words else None  # (an estimate is said in the next line)


def _found(receipt: Receipt, ours: Row) -> dict[str, int]:
    """Sizes by what they are of, of the card that holds most. llama.cpp loads what a model sees with from a file of its own, which is part
    of our figures: where a log has it the two are added, and where it was left out weights and activations are of something else."""
    found = receipt.numbers | {what: max(by.values()) for what, by in receipt.cards.items()}
    if "activations_graphs" in found and (activations := _activations(receipt)):
        found["activations"] = activations
    if receipt.program != LLAMA or ours["has_counted_tower"] is None:
        return found
    if "tower_weights" not in found:
        return {what: size for what, size in found.items() if what not in ("weights", "activations")}
    beside = {"weights": "tower_weights", **({"activations": "tower"} if ours["has_counted_tower"] else {})}
    return found | {what: found[what] + found.get(of, 0) for what, of in beside.items() if what in found}


def _pairs(receipt: Receipt, ours: Row) -> Iterator[tuple[str, int, int]]:
    numbers, most = receipt.numbers, {what: max(by.values()) for what, by in receipt.cards.items()}
    cache = ours["kv_cache_bytes"] + ours["kv_padding_bytes"]
    tokens = ours["context_tokens"] * ours["sequences"]
    if receipt.program == PYTORCH:
        yield from _known(
            ("peak allocated", numbers.get("allocated"), ours["total_bytes"] - ours["overhead_bytes"]),
            ("peak reserved", numbers.get("reserved"), ours["total_bytes"]),
        )
        return
    found = _found(receipt, ours)
    held = numbers.get("cache_keys", 0) + numbers.get("cache_values", 0) or numbers.get("cache_pool")
    yield from _known(
        ("weights", found.get("weights"), ours["weights_bytes"]),
        ("KV cache", most.get("cache"), cache),
        # a server's cache is all that is left: what a token takes of it can be compared
        (
            "KV cache, 1,000 tokens",
            round(1000 * held / numbers["cache_tokens"]) if held and numbers.get("cache_tokens") else None,
            round(1000 * cache / tokens),
        ),
        ("activations", found.get("activations"), ours["activations_bytes"]),
        (
            "beside PyTorch",
            numbers["non_torch"] + numbers.get("graphs", 0) if "non_torch" in numbers else None,
            ours["overhead_bytes"],
        ),
        (
            "weights and beside PyTorch",
            numbers["consumed"] + numbers.get("graphs", 0) if "consumed" in numbers else None,
            ours["weights_bytes"] + ours["overhead_bytes"],
        ),
        ("CUDA graphs, as estimated", numbers.get("graphs_estimated"), ours["graphs_bytes"] or 0),
    )


def _known(*pairs: tuple[str, int | None, int]) -> Iterator[tuple[str, int, int]]:
    return ((name, held, said) for name, held, said in pairs if held)


# of a log's words, the metric of measured.csv
_METRICS = {
    "weights": "weights_bytes",
    "cache": "kv_cache_bytes",
    "cache_pool": "kv_cache_bytes",
    "cache_tokens": "kv_tokens",
    "activations": "compute_buffer",
    "non_torch": "non_torch",
    "allocated": "peak_allocated",
    "reserved": "peak_reserved",
}


def _rows(receipt: Receipt, ours: Row) -> list[dict[str, Any]]:
    found = _found(receipt, ours)
    groups = receipt.numbers.get("data_parallel", 1)
    shared = (
        f"TP{ours['gpu_count']}{f' DP{groups}' if groups > 1 else ''}"
        if receipt.program in (VLLM, SGLANG)
        else f"layer split x{ours['gpu_count']}"
    )
    return [
        {
            "model_id": ours["model_id"],
            "phase": ours["phase_id"],
            "weights_dtype": ours["dtype_id"],
            "micro_batch": ours["sequences"] if ours["sequences"] > 1 else None,
            "seq_len": ours["context_tokens"],
            "parallelism": "1 GPU" if ours["gpu_count"] == 1 else shared,
            "framework": " ".join(filter(None, (receipt.name, receipt.words.get("version")))),
            "metric": metric,
            "value": value,
            "unit": "tokens" if metric == "kv_tokens" else "B",
            "value_bytes": None if metric == "kv_tokens" else value,
            "is_trap": "false",
            "confidence": "high",
            "scope": "per_gpu",
            "kv_dtype": ours["kv_dtype_id"],
        }
        for what, metric in _METRICS.items()
        if (value := found.get(what))
    ]


def as_csv(rows: list[dict[str, Any]], columns: list[str]) -> str:
    """Lines of measured.csv; its id, its source and the card are left to who gives them."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writerows({name: "" if row.get(name) is None else row[name] for name in columns} for row in rows)
    return out.getvalue()
