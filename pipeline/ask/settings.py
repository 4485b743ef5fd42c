"""What a program has to be told so that an answer holds, where no command that is shown tells it.

A figure is of what `engine_setting` of its row says, and a start without that may run out of memory: a "fits" never stands without it.
"""

from __future__ import annotations

import math
import re
from typing import Any

from pipeline.book.commands import COUNTED

from .almanac import Almanac, Row
from .question import Card, Use
from .scenarios import verdict_of

CONTEXT = {"vllm": "--max-model-len", "sglang": "--context-length"}
CARDS = {"vllm": "--tensor-parallel-size", "sglang": "--tp"}
STAGES = {"vllm": "--pipeline-parallel-size", "sglang": "--pp-size"}
SPREAD = 4  # cards, from which on more stands outside of a share (engine_setting.sql)
SHARE, UNKNOWN_SHARE, REQUESTS = "--gpu-memory-utilization", "SHARE", "--max-num-seqs"


def settings_of(told: list[Row], card: Card, verdict: str | None, use: Use | None = None) -> list[dict[str, Any]]:
    """Of the formats that fit (or of the best of those that barely do) the engine and what it is told, those with the same words together."""
    rows = [row for row in told if verdict_of(row) == verdict and verdict in ("fits", "tight")]
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows if verdict == "fits" else rows[:1]:
        if setting := _setting(row, card, use):
            found.setdefault((row["engine_id"], setting), []).append(row["dtype_id"])
    return [{"engine_id": engine, "setting": setting, "dtype_ids": names} for (engine, setting), names in found.items()]


def _setting(row: Row, card: Card, use: Use | None = None) -> str:
    """What its engine is told. vLLM's share is of the whole card, also where something else holds a part of that; a server that is not told of
    the context takes all that its model reads, and one card where it is not told of more."""
    told, engine = said_setting(row, card, use) or "", row["engine_id"]
    if engine in CARDS and row["gpu_count"] > 1 and not (use and use.data_parallel):  # (which says it all)
        # (an older almanac does not say how its cards are shared)
        tensor, stages = row.get("tensor_parallel") or row["gpu_count"], row.get("pipeline_parallel") or 1
        ways = [f"{CARDS[engine]} {tensor}"] * (tensor > 1) + [f"{STAGES[engine]} {stages}"] * (stages > 1)
        told = " ".join([*ways, told]).rstrip()
    reach, whole = row["max_context_tokens"], row["model_context_tokens"]
    if engine in CONTEXT and row["context_tokens"] and (told or whole is None or reach is None or reach < whole):
        told = f"{CONTEXT[engine]} {row['context_tokens']} {told}".rstrip()
    return told


def said_setting(row: Row, card: Card, use: Use | None = None) -> str | None:
    """What an engine is told by the almanac, and by whoever asks: the share of the whole card, and the most requests."""
    words = (row["engine_setting"] or "").split(" ")
    share, most = (use.share, use.max_num_seqs) if use else (None, None)
    if row["engine_id"].startswith("vllm") and most:
        # (beyond what it is told it does not start)
        most = min(most, int(words[words.index(REQUESTS) + 1])) if REQUESTS in words else most
        words = [*_without(REQUESTS, words), REQUESTS, str(most)]
    # (an older almanac tells no share of what something else leaves free)
    is_taken = card.free_bytes is not None and not row["share_is_free"] and SHARE not in words
    if row["engine_id"].startswith("vllm") and (share or is_taken):
        words = [SHARE, f"{share:g}" if share else _share_of(row, card), *_without(SHARE, words)]
    return " ".join(filter(None, words)) or None


def is_startable(row: Row, card: Card) -> bool:
    """Whether an engine starts with what the almanac tells it: where something else holds a part of the card, nothing that is pasted knows of
    it; where a system does, its default may be more than there is and is told (SGLang takes its share of what is free)."""
    is_told = not row["engine_id"].startswith("vllm") or SHARE in (row["engine_setting"] or "").split(" ")
    return bool(row["share_is_free"] or (card.free_bytes is None and is_told))


def _without(flag: str, words: list[str]) -> list[str]:
    """The words but for a flag and its value."""
    place = words.index(flag) if flag in words else len(words)
    return words[:place] + words[place + 2 :]


def _share_of(row: Row, card: Card) -> str:
    if not card.whole_bytes:  # an amount of memory of a card that nobody named
        return UNKNOWN_SHARE
    return f"{math.ceil(100 * row['total_bytes'] / card.whole_bytes) / 100:.2f}"


def most_share(almanac: Almanac, card: Card) -> float:
    """The most of the whole card that vLLM may be given: more than is free when it starts it refuses, and what stands outside of its share by
    then is taken (share_most of the almanac)."""
    among = ("vllm_non_torch_parallel_bytes",) if card.count > 1 else ()
    spread = ("vllm_non_torch_parallel_spread_bytes",) if card.count >= SPREAD else ()
    names = ["process_context_bytes", *among, *spread]
    apart = almanac.value("SELECT sum(value) FROM constant WHERE list_contains($names, constant_id)", {"names": names})
    return math.floor(100 * (card.usable_bytes - (apart or 0)) / (card.whole_bytes or card.usable_bytes)) / 100


def unsaid(answer: dict[str, Any], shown: list[dict[str, str]], names: dict[str, str]) -> list[dict[str, Any]]:
    """Those settings that none of the commands that are shown tells its engine."""
    told = [(line["engine"], line["command"].split()) for line in shown]
    return [
        one
        for one in answer.get("settings", ())
        if not any(
            engine == names.get(one["engine_id"], one["engine_id"]) and set(one["setting"].split()) <= set(command)
            for engine, command in told
        )
    ]


def read_by_itself(almanac: Almanac, card: Card) -> int | None:
    """The tokens of a step that vLLM takes by itself on a card, where that is known."""
    place = almanac.schema_of("card_row")
    if place is None or card.gpu_id is None:
        return None
    rows = almanac.rows(
        f"SELECT card.vllm_read_tokens AS tokens FROM {place}.card_row WHERE gpu_id = $id", {"id": card.gpu_id}
    )
    return int(rows[0]["tokens"]) if rows else None


def kept_free_by(almanac: Almanac, program: str | None, version: str | None = None) -> int:
    """Bytes of each card that a program leaves free by itself: for that it moves to the CPU what would fit."""
    query = "SELECT count(*) > 0 FROM duckdb_columns() WHERE table_name = 'program' AND column_name = 'kept_free_mib'"
    if program is None or not almanac.value(query):
        return 0  # (a file from before there was such a column)
    rows = almanac.rows("SELECT min_version, kept_free_mib FROM program WHERE program_id = $id", {"id": program})
    known = sorted((_numbers(row["min_version"]), row["kept_free_mib"] or 0) for row in rows)
    asked = _numbers(version) if version else None
    held = [kept for first, kept in known if asked is None or first <= asked]
    return 2**20 * int(held[-1] if held else 0)


def _numbers(version: str | None) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version or "")]


def counted_of(almanac: Almanac, engine_id: str | None) -> dict[str, int] | None:
    """The requests and the tokens of a step that figures of vLLM have, whatever its defaults are on a card; None of another engine."""
    if engine_id != "vllm":
        return None
    rows = almanac.rows(
        "SELECT constant_id, value FROM constant WHERE list_contains($names, constant_id)", {"names": list(COUNTED)}
    )
    values = {row["constant_id"]: int(row["value"]) for row in rows}
    return {"sequences": values[COUNTED[0]], "batched_tokens": values[COUNTED[1]]} if len(values) == 2 else None
