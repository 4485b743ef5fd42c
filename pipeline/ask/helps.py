"""What helps where a model does not fit, and what to paste where it does."""

from __future__ import annotations

import re
from typing import Any

from pipeline.base.bounds import visible
from pipeline.book import commands as pasted

from . import host
from .almanac import Almanac, Row
from .question import Card, Model, Use
from .scenarios import SMALL_CACHE, USUAL, told_of, verdict_of
from .settings import kept_free_by
from .training_helps import easier_of
from .works import same_of

SIBLINGS, OTHERS = 4, 2
_ALL_OF_IT = "LLAMA_ARG_FIT_TARGET=0"  # what Ollama is told where it is to keep nothing free of a card
_UNREAD = "No source here says what its files are in: in 16 bits they take this, in fewer less."
_ALL_LAYERS = "-ngl 99"
_FLASH = "-fa on"  # what llama.cpp's command says of attention
_OF_ANOTHER = {"ollama": "llama.cpp"}  # whose numbers are told of it
# how an engine is told of its cache's format (kv_dtype.setting, and Ollama's words): each command has its own words for it
_SIXTEEN = ("fp32", "bf16", "fp16")  # caches that llama.cpp is not told of
_CACHE = re.compile(r"(?:--kv-cache-dtype |-ctk |OLLAMA_KV_CACHE_TYPE=)(\S+)(?: -ctv \S+)?")


def helps_of(
    almanac: Almanac,
    model: Model,
    card: Card,
    use: Use,
    rows: list[Row],
    told: list[Row],
    count: int,
    smaller: list[str],
) -> list[dict[str, Any]]:
    """What makes it fit, each with its numbers: a shorter context, a cache in 8 bits, more cards, the CPU, a smaller model."""
    found: list[dict[str, Any]] = []
    own = [row for row in rows if row["model_id"] == model.model_id]
    kept = kept_free_by(almanac, use.program, use.program_version)
    given = [row for row in told if kept and row["total_bytes"] and _fits_without(row, kept)]
    if given:
        best = max(given, key=lambda row: row["weights_bytes"])
        found.append({"help": "kept-free", "kept_free_bytes": kept, **told_of(best)})
    longest = max(told, key=lambda row: row["max_context_tokens"] or 0, default=None)
    if longest and longest["max_context_tokens"]:
        found.append({"help": "context", **told_of(longest)})
    if use.is_training and told:
        found += easier_of(almanac, model, card, use, told[0])
    if use.kv_dtype_id is None and not use.is_training:
        cached = [row for row in own if row["kv_dtype_id"] == SMALL_CACHE and row["verdict"] in ("fits", "multi-gpu")]
        if cached:
            found.append({"help": "cache", **told_of(max(cached, key=lambda row: row["weights_bytes"]))})
    many = [row for row in own if row["gpu_count"] > count and row["verdict"] in ("fits", "multi-gpu")]
    if many and not host.is_computer(almanac, card):
        found.append({"help": "cards", **told_of(min(many, key=lambda row: (row["gpu_count"], -row["weights_bytes"])))})
    dtype = use.dtype_id or next(
        (r["dtype_id"] for r in told if r["dtype_id"] in USUAL and r["dtype_id"].startswith("gguf-")), None
    )
    # (images are no part of that question)
    if not use.is_training and not use.images and count == 1 and dtype is not None and dtype.startswith("gguf-"):
        row = host.layers_of(almanac, model, card, use, told, dtype)
        if host.is_shared(row):
            found.append(
                {"help": "layers", **{name: value for name, value in row.items() if name not in ("gpu_id", "model_id")}}
            )
    others = [row for row in rows if row["model_id"] != model.model_id and row["verdict"] == "fits"]
    for name in smaller:
        if mine := [row for row in others if row["model_id"] == name]:
            found.append({"help": "smaller", "model": name, **told_of(max(mine, key=lambda row: row["weights_bytes"]))})
            break
    return found


def _fits_without(row: Row, kept: int) -> bool:
    """Whether a card takes it with its error margin, and without what a program keeps free of it."""
    return bool((row["total_bytes"] - kept) * (1 + row["error_band"]) <= row["capacity_bytes"])


def smaller_of(almanac: Almanac, model: Model) -> list[str]:
    """Smaller works of the same maker and family for the same task: those made no more than a year before it first, the largest of them first, and
    of one size the most downloaded."""
    return [
        row["model_id"]
        for row in almanac.rows(
            """
            SELECT model.model_id, coalesce(try_cast(left(model.created_at::VARCHAR, 10) AS DATE)
                >= try_cast(left(own.created_at::VARCHAR, 10) AS DATE) - INTERVAL 1 YEAR, false) AS is_recent
            FROM model JOIN work ON work.model_id = model.model_id AND work.lead_model_id = model.model_id
            JOIN model AS own ON own.model_id = $id
            JOIN work AS own_work ON own_work.model_id = own.model_id
            WHERE split_part(model.model_id, '/', 1) = split_part(own_work.lead_model_id, '/', 1) AND model.family = own.family
                AND model.pipeline_tag = own.pipeline_tag AND model.parameter_count < 0.9 * own.parameter_count
                AND model.anatomy_grade <> 'unknown'
            QUALIFY row_number() OVER (PARTITION BY round(10 * ln(model.parameter_count))
                ORDER BY is_recent DESC, model.downloads_30d DESC) = 1
            ORDER BY is_recent DESC, model.parameter_count DESC LIMIT $limit
            """,
            {"id": model.model_id, "limit": SIBLINGS},
        )
    ]


def commands_of(
    almanac: Almanac,
    model: Model,
    told: list[Row],
    count: int,
    *,
    with_images: bool = False,
    program: str | None = None,
    is_eager: bool = False,
    split: str = "",
    alone: str | None = None,
) -> list[dict[str, str]]:
    """Of each engine the command for its best format that fits, that of `program` first; none for a model that no command runs. With images
    none that runs text alone: what is converted for one question is the text, and a pipeline that generates text takes no image. `split` is how
    llama.cpp is told to share it with the CPU: then the command of `alone` is told and no other."""
    if model.row["pipeline_tag"] not in pasted.TALKING or not pasted.SAFE.fullmatch(model.model_id):
        return []
    same = same_of(almanac, model)
    weights = _weights(almanac, model, [row["model_id"] for row in same])
    named = ((row["model_id"], row["stored_format"]) for row in same)
    held_by = pasted.repositories(named, model.model_id, weights)
    is_unread = "bf16" not in held_by and _is_unread(model)
    if is_unread:
        held_by["bf16"] = model.model_id
    found: dict[str, dict[str, str]] = {}
    for line in sorted([*_of_tag(model), *pasted.lines()], key=lambda line: line["engine"] != program):
        engine = _OF_ANOTHER.get(line["engine"], line["engine"])
        is_tags = bool(model.tag) and line["engine"] == "ollama"
        if model.is_own_mix and not is_tags:
            continue  # other programs load other files
        if "{model}" in line["command"] and model.made_from != "" and not pasted.SAFE.fullmatch(model.made_from or ""):
            continue  # nobody converts what is packed already
        formats = line["formats"].split() if is_tags else pasted.formats_of(line, held_by, model.row["stored_format"])
        row = next(
            (r for r in told if verdict_of(r) == "fits" and r["engine_id"] == engine and r["dtype_id"] in formats), None
        )
        # a server takes its share of the whole card, which something else holds a part of; and flags beyond the share are vLLM's own
        users = row["sequences"] if row else 1
        if (
            line["engine"] in found
            or (split and line["engine"] != alone)
            or row is None
            or (is_eager and _FLASH not in line["command"])
            or not row["share_is_free"]
            or (users > 1 and engine == "transformers")
            or (with_images and (engine == "transformers" or not line["held"]))
        ):
            continue
        held = {name: held_by[name] for name in line["held"].split() if name in held_by}
        share, cache, flags = _settings(row["engine_setting"])
        if engine == "llama.cpp" and row["kv_dtype_id"] not in _SIXTEEN:
            cache = row["kv_dtype_id"]  # (a program that runs it within has words of its own)
        if cache and not line["cache"]:
            continue  # nothing that is pasted there makes its cache so small
        flags = "" if engine in ("llama.cpp", "mlx-lm") else flags  # their commands say by themselves that one asks
        asked = {"model": model.made_from or model.model_id, "context": str(row["context_tokens"]), "share": share}
        asked |= pasted.told_besides(line, cache, row["context_tokens"], users)
        leaves_tower = "--no-mmproj" in (row["engine_setting"] or "")
        asked |= pasted.TEXT_ALONE if model.is_text_alone or leaves_tower else {}
        if count > 1:
            asked |= {
                "tensor_parallel_size": f" --tensor-parallel-size {count}",
                "tp": f" --tp {count}",
                "devices": "'auto'",
            }
        command = pasted.fill(line["command"], row["dtype_id"], held, asked)
        if split:
            command = command.replace(_ALL_LAYERS, split)
        if is_eager:
            command = command.replace(_FLASH, "-fa off")
        kept = (
            kept_free_by(almanac, line["engine"]) if line["engine"] != program and line["engine"] in _OF_ANOTHER else 0
        )
        if kept and not _fits_without(row, -kept):
            command = f"{_ALL_OF_IT} {command}"
        found[line["engine"]] = {
            "engine": line["name"],
            "dtype_id": row["dtype_id"],
            "command": command + (flags if line["engine"] == engine else ""),
            # (what a page says of numbers that are vLLM's: here they are SGLang's own)
            "note": "" if engine == "sglang" else pasted.fill(line["note"], row["dtype_id"], held, asked),
        }
        if is_unread and row["dtype_id"] == "bf16":
            found[line["engine"]]["note"] = " ".join(filter(None, (_UNREAD, found[line["engine"]]["note"])))
    return list(found.values())


def held_otherwise(almanac: Almanac, model: Model, dtype_id: str) -> dict[str, Any]:
    """Where no repository holds the format as it is counted: those that hold it otherwise, with what their weights take (None: not known), the
    most downloaded first; empty where there is none."""
    same = same_of(almanac, model)
    weights = _weights(almanac, model, [row["model_id"] for row in same])
    named = [row["model_id"] for row in same if pasted.kind(row["model_id"], row["stored_format"]) == dtype_id]
    others = [name for name in named if not pasted.is_counted(name, dtype_id, model.model_id, weights)]
    if not others or len(others) < len(named):
        return {}
    rows = [{"model": visible(name), "weights_bytes": weights.get((name, dtype_id))} for name in others[:OTHERS]]
    return {"dtype_id": dtype_id, "weights_bytes": weights.get((model.model_id, dtype_id)), "repositories": rows}


def _weights(almanac: Almanac, model: Model, names: list[str]) -> dict[tuple[str, str], int | None]:
    """What repositories weigh by format, as far as it is known; one that was asked for by its files' name is what is counted."""
    query = "SELECT model_id, dtype_id, weights_bytes FROM weight WHERE list_contains($ids, model_id)"
    rows = almanac.rows(query, {"ids": [model.model_id, *names]})
    weights = {(row["model_id"], row["dtype_id"]): row["weights_bytes"] for row in rows}
    if model.repository and model.dtype_id:
        weights[model.repository, model.dtype_id] = weights.get((model.model_id, model.dtype_id))
    return weights


def _is_unread(model: Model) -> bool:
    """Whether nobody read what a repository's files are in, and its name speaks of no format: as makers give models out, that is 16 bits."""
    row = model.row
    is_silent = row["stored_format"] is None and not model.dtype_named and not model.repository
    return is_silent and not pasted.kind(model.model_id, None) and row.get("library") in (None, "transformers")


def _of_tag(model: Model) -> list[dict[str, str]]:
    """The command of a tag of Ollama's library: it holds the file, in the format that it is told in."""
    if not model.tag:
        return []
    (line,) = (line for line in pasted.lines() if line["engine"] == "ollama")
    command = line["command"].replace("hf.co/{repository}{tag}", model.tag)
    return [{**line, "command": command, "formats": model.dtype_id or ""}]


def _settings(told: str | None) -> tuple[str, str | None, str]:
    """The share of a card that a server has to be given, the format of a cache in few bits, and the flags besides."""
    words = _CACHE.sub("", told or "").split()
    share, rest, cache = pasted.SHARE, [], _CACHE.search(told or "")
    while words:
        word = words.pop(0)
        if word == "--gpu-memory-utilization":
            share = words.pop(0)
        else:
            rest.append(word)
    return share, cache and cache[1], "".join(f" {word}" for word in rest)


def has_stages(almanac: Almanac, model: Model) -> bool:
    return almanac.value("SELECT count(*) > 0 FROM component WHERE model_id = $id", {"id": model.model_id})
