"""What llama.cpp keeps in the computer's memory of a model that a card does not hold: whole layers, or the experts of a mixture.

Of unlike programs that run it within, each moves them in its own words; where a person says how much memory the computer has, that is the answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline.book import beside as said

from .almanac import Almanac, Row
from .question import Card, Model, Use
from .scenarios import USUAL
from .settings import kept_free_by
from .values import MOST_LAYERS

_TRIED = 4  # formats, each a question of its own
_SYSTEM = "SELECT any_value(value) FROM constant WHERE constant_id = 'host_system_bytes'"
_TAKES = (
    "SELECT internal.ram_takes($host_bytes::BIGINT, $error_band::DOUBLE, $ram_bytes::BIGINT, $system_bytes::BIGINT)"
)
_SEVERAL = "how several cards share a model with the CPU is not worked out"
_SPLIT = "SELECT context_tokens, sequences FROM cpu_split LIMIT 1"
_VERDICT = "SELECT internal.card_verdict($bytes::BIGINT, $error_band, $capacity_bytes::BIGINT, 1)"
_WAY = "SELECT internal.way_beside($gpu_layers, $cpu_expert_layers, $layer_count)"


def layers_of(almanac: Almanac, model: Model, card: Card, use: Use, told: list[Row], dtype: str) -> Row:
    """layers_that_fit of what is asked. What a file holds beyond the format, and what a program keeps free, is taken off as if all of it were
    on the card."""
    free, kept = card.free_bytes, kept_free_by(almanac, use.program, use.program_version)
    if (model.beyond_bytes or kept) and told:
        free = (told[0]["capacity_bytes"] if free is None else free) - model.beyond_bytes - kept
    given = {
        "dtype_id": dtype, "context_tokens": use.context_tokens, "sequences": use.sequences or 1, "kv_dtype_id": use.kv_dtype_id,
        "free_bytes": free,
    }  # fmt: skip
    # (an older almanac is not asked for what it does not know)
    more = {"attention": use.attention, "text_only": use.text_only, "told_gpu_layers": use.gpu_layers}
    given |= {
        name: value for name, value in (more | {"told_expert_layers": use.expert_layers}).items() if value is not None
    }
    words = ", ".join(f"{name} := ${name}" for name in given)
    asked = {"gpu": card.gpu_id, "model": model.model_id} | given
    (row,) = almanac.rows(f"FROM layers_that_fit($gpu, $model, {words})", asked)
    return row


def is_shared(row: Row) -> bool:
    """Whether some of it goes to the card and some does not. (All of the layers are no share: some builds keep what a model sees with free once
    more, which is not counted there.)"""
    return bool(row["unknown_reason"] is None and row["gpu_layers"] and row["gpu_layers"] <= row["layer_count"])


def _way_beside(almanac: Almanac, fitting: Row) -> dict[str, Any] | None:
    """Of layers_that_fit the way that is told, as way_beside of the SQL has it."""
    if fitting["unknown_reason"] is not None:
        return None
    names = ("gpu_layers", "cpu_expert_layers", "layer_count")
    kind = almanac.value(_WAY, {name: fitting[name] for name in names})
    if kind is None:
        return None
    is_experts = kind == "experts"
    before = "cpu_expert_" if is_experts else ""
    return {
        "gpu_layers": fitting["layer_count"] + 1 if is_experts else fitting["gpu_layers"],
        "cpu_expert_layers": fitting["cpu_expert_layers"] if is_experts else None,
        "gpu_bytes": fitting[f"{before}gpu_bytes"],
        "host_bytes": fitting[f"{before}host_bytes"],
    }


def _takes(almanac: Almanac, host_bytes: int, error_band: float, ram_bytes: int, system: float) -> bool:
    given = {"host_bytes": host_bytes, "error_band": error_band, "ram_bytes": ram_bytes, "system_bytes": int(system)}
    return bool(almanac.value(_TAKES, given))


def _shared_rows(told: list[Row]) -> list[Row]:
    """What llama.cpp runs of what is known: usual formats first, the largest of them first."""
    rows = [row for row in told if row["engine_id"] == "llama.cpp" and row["total_bytes"]]
    return sorted(rows, key=lambda row: (row["dtype_id"] not in USUAL, -row["weights_bytes"]))


def beside(almanac: Almanac, model: Model, card: Card, use: Use, told: list[Row]) -> dict[str, Any] | None:
    """How a model runs with a part of it in the computer's memory, of which there are `use.ram_bytes`: the first usual format, else the largest,
    that both hold. `is_held` is whether the memory takes what the card leaves to it, its error margin and what the system needs beside it."""
    if use.ram_bytes is None or use.is_training or use.images or use.program not in (None, *said.RUN_IT):
        return None
    rows = _shared_rows(told)
    most = next((row["weights_bytes"] for row in rows if row["dtype_id"] in USUAL), None)
    smaller = [row for row in rows if most is None or row["weights_bytes"] <= most]
    system = almanac.value(_SYSTEM)
    found = None
    for row in smaller[:_TRIED] if system is not None else []:
        fitting = layers_of(almanac, model, card, use, told, row["dtype_id"])
        way = _way_beside(almanac, fitting)
        if way is None:
            continue
        one = {
            "dtype_id": row["dtype_id"], "context_tokens": fitting["context_tokens"], "layer_count": fitting["layer_count"], **way,
            "ram_bytes": use.ram_bytes, "system_bytes": int(system), "cards": card.count,
            "is_held": _takes(almanac, way["host_bytes"], row["error_band"], use.ram_bytes, system),
        }  # fmt: skip
        if one["is_held"]:
            return one
        found = found or one
    return found


def all_beside(almanac: Almanac, card: Card, use: Use, rows: list[Row]) -> dict[str, Any]:
    """Of models that the card holds in none of these formats, how those run that do with a part of them in the computer's memory: each in the
    first of its formats, which come the best first. `unknown_reason` is why none is told of; whole layers are told of where
    the table has them (`has_dense`)."""
    system = almanac.value(_SYSTEM)
    told = {
        "ram_bytes": use.ram_bytes, "system_bytes": system and int(system), "models": {}, "unknown_reason": None,
        "has_dense": use.is_plain and not use.kv_dtype_id and almanac.rows(_SPLIT) == [{"context_tokens": use.context_tokens, "sequences": use.sequences}],
    }  # fmt: skip
    if reason := _not_told_of_all(almanac, card, use, rows):
        return told | {"unknown_reason": reason}
    rows = [row for row in rows if row["engine_id"] == "llama.cpp" and row["verdict"] in ("tight", "no")]
    if not rows:
        return told
    names = ("model_id", "dtype_id", "context_tokens", "total_bytes", "error_band")
    columns = ", ".join(f"unnest(${name}) AS {name}" for name in (*names, "bytes"))
    given = {name: [row[name] for row in rows] for name in names}
    given["bytes"] = [row["capacity_bytes"] for row in rows]
    almanac.connection.execute(f"CREATE OR REPLACE TEMP TABLE asked AS SELECT {columns}", given)
    ways = almanac.rows("FROM internal.ways_beside('asked', $ram_bytes::BIGINT)", {"ram_bytes": use.ram_bytes})
    by_format = {(way["model_id"], way["dtype_id"]): way for way in ways}
    shown = ("dtype_id", "context_tokens", "layer_count", "gpu_layers", "cpu_expert_layers", "gpu_bytes", "host_bytes")
    for row in rows:
        way = by_format.get((row["model_id"], row["dtype_id"]))
        if way and row["model_id"] not in told["models"] and (told["has_dense"] or is_mixture(way)):
            one = {name: way[name] for name in shown}
            told["models"][row["model_id"]] = one | {"flags": flags_of(way)}
    return told


def is_mixture(way: dict[str, Any]) -> bool:
    """Whether the experts of some layers lie in the computer's memory, and not whole layers."""
    return way["cpu_expert_layers"] is not None


def _not_told_of_all(almanac: Almanac, card: Card, use: Use, rows: list[Row]) -> str | None:
    if rows and not any(row["engine_id"] == "llama.cpp" for row in rows):
        return "sharing with the CPU is worked out for llama.cpp"
    if card.count > 1:
        return _SEVERAL
    if is_computer(almanac, card):
        return "its memory is the computer's, and there is no other to share a model with"
    return None


def is_computer(almanac: Almanac, card: Card) -> bool:
    """Whether the card's memory is the computer's, so that several of them are as many computers."""
    schema = almanac.schema_of("card_row")
    if card.gpu_id is None or schema is None:
        return False
    query = f"SELECT any_value({schema}.is_computer(gpu)) FROM gpu WHERE gpu_id = $gpu"
    return bool(almanac.value(query, {"gpu": card.gpu_id}))


def asked_way(almanac: Almanac, model: Model, card: Card, use: Use, told: list[Row]) -> dict[str, Any] | None:
    """So many layers on the card, or the experts of so many off it, as it was said: what both hold then, and whether the card does."""
    if use.gpu_layers is None and use.expert_layers is None:
        return None
    rows = _shared_rows(told)
    if not rows:
        return None
    row = rows[0]
    if card.count > 1 and (use.expert_layers or (use.gpu_layers or 0) < MOST_LAYERS):
        return {"dtype_id": row["dtype_id"], "verdict": None, "unknown_reason": _SEVERAL}
    way = layers_of(almanac, model, card, use, told, row["dtype_id"])
    if not use.expert_layers and (use.gpu_layers or 0) > (way["layer_count"] or 0):
        return None  # all of them, which is what is told of anyway
    is_experts = use.expert_layers is not None and way["cpu_expert_layers"] is not None
    size = way["cpu_expert_gpu_bytes" if is_experts else "gpu_bytes"]
    given = {name: way[name] for name in ("dtype_id", "context_tokens", "layer_count", "unknown_reason")}
    if size is None:
        return given | {"verdict": None}
    most = layers_of(almanac, model, card, replace(use, gpu_layers=None, expert_layers=None), told, row["dtype_id"])
    band, capacity = row["error_band"], row["capacity_bytes"]
    held = way["cpu_expert_host_bytes" if is_experts else "host_bytes"]
    system = almanac.value(_SYSTEM) or 0
    is_taken = use.ram_bytes is None or _takes(almanac, held, band, use.ram_bytes, system)
    verdict = almanac.value(_VERDICT, {"bytes": size, "error_band": band, "capacity_bytes": capacity})
    return given | {
        "verdict": verdict if is_taken else "no", "gpu_bytes": size, "capacity_bytes": capacity, "error_band": band, "host_bytes": held,
        "gpu_layers": None if is_experts else way["gpu_layers"], "cpu_expert_layers": way["cpu_expert_layers"] if is_experts else None,
        "ram_bytes": use.ram_bytes, "system_bytes": int(system), "is_held": is_taken,
        "fitting": most["cpu_expert_layers" if is_experts else "gpu_layers"],
    }  # fmt: skip


def flags_of(way: dict[str, Any]) -> str:
    """What llama.cpp is told of it."""
    return _filled(said.FLAGS, way)


def told_as(way: dict[str, Any], program: str | None) -> str:
    """The same in the words of the program that runs it."""
    return _filled(said.TOLD.get(program or "", said.FLAGS), way)


def _filled(words: dict[str, str], way: dict[str, Any]) -> str:
    part = "experts" if way["cpu_expert_layers"] else "layers"
    return words[part].format(experts=way["cpu_expert_layers"], layers=way["gpu_layers"])
