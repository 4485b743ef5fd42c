"""What to paste so that a model runs: for each engine a command with the context and the flags that make it fit (site/commands.csv).

The page says it of four bits and the context that it opens with; for a card of the reader's the browser chooses format and context
(site/assets/run.js).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pipeline.base.readonly import reading
from pipeline.book.commands import ENGINES, SAFE, SHARE, TALKING, fill, formats_of, lines, repositories
from pipeline.render.data.relatives import Relatives

_HERE = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'internal' AND table_name = 'seeing_model'"
FOUR_BIT = (
    "gguf-q4_k_m",
    "gguf-mxfp4",
    "mxfp4",
    "gptq-int4-g32-sym",
    "awq-int4",
    "gptq-int4",
    "mlx-4bit",
    "bf16",
    "fp8",
)  # what a page says before a card is known


def as_file() -> str:
    """`data/commands.json`: the commands and notes with their gaps, in the order of the file, for the browser."""
    return json.dumps([[row["command"], row["note"]] for row in lines()], ensure_ascii=False, separators=(",", ":"))


def seeing(folder: Path) -> dict[str, bool]:
    """Models that see, by whether anybody counted what llama.cpp sets aside for their tower; nothing of a file without formulas."""
    with reading(folder / "almanac.duckdb") as connection:
        if not connection.execute(_HERE).fetchone()[0]:
            return {}
        rows = connection.execute("SELECT model_id, has_counted_tower FROM internal.seeing_model ORDER BY model_id")
        return dict(rows.fetchall())


def packings(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """By model the formats that makers of repositories pack otherwise than whole, and how; nothing of a file without formulas."""
    with reading(folder / "almanac.duckdb") as connection:
        if not connection.execute(_HERE).fetchone()[0]:
            return {}
        found: dict[str, list[tuple[str, str]]] = {}
        for name, dtype_id, note in connection.execute("FROM internal.model_packing ORDER BY ALL").fetchall():
            found.setdefault(name, []).append((dtype_id, note))
        return found


def packing_spreads(folder: Path) -> dict[str, list[tuple[str, int]]]:
    """By model the formats of which a copy may hold more than most do, and how many bytes at most; nothing of a file without formulas."""
    with reading(folder / "almanac.duckdb") as connection:
        if not connection.execute(_HERE).fetchone()[0]:
            return {}
        found: dict[str, list[tuple[str, int]]] = {}
        query = (
            "SELECT model_id, dtype_id, packing_spread_bytes FROM weight WHERE packing_spread_bytes > 0 ORDER BY ALL"
        )
        for name, dtype_id, size in connection.execute(query).fetchall():
            found.setdefault(name, []).append((dtype_id, size))
        return found


def kept_in(folder: Path) -> dict[str, dict]:
    """Of models of which an engine makes something of its own: `kept`, what vLLM is told of the one format that it keeps their cache in, and
    `unread`, the engines that cannot load them or of which nobody knows what they hold."""
    with reading(folder / "almanac.duckdb") as connection:
        if not connection.execute(_HERE).fetchone()[0]:
            return {}
        rows = connection.execute(
            """
            SELECT shape.model_id, ' ' || kv.setting, list_concat(coalesce(engine_gaps, []), coalesce(unread_engines, []))
            FROM internal.shape AS shape LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = shape.pool.kv_dtype_id
            WHERE coalesce(engine_gaps, unread_engines) IS NOT NULL OR pool IS NOT NULL ORDER BY 1
            """
        )
        return {name: {"kept": kept, "unread": unread} for name, kept, unread in rows.fetchall()}


def weights(folder: Path) -> dict[tuple[str, str], int]:
    """What models weigh in the formats of repositories that commands name; nothing of a file without formulas."""
    named = sorted({name for row in lines() for name in row["held"].split()} - {"gguf"})
    with reading(folder / "almanac.duckdb") as connection:
        if not connection.execute(_HERE).fetchone()[0]:
            return {}
        rows = connection.execute(
            "SELECT model_id, dtype_id, weights_bytes FROM weight WHERE list_contains(?, dtype_id) AND weights_bytes IS NOT NULL",
            [named],
        )
        return {(name, dtype_id): size for name, dtype_id, size in rows.fetchall()}


class Commands:
    def __init__(
        self, models: list[dict], relatives: Relatives, weights: Mapping[tuple[str, str], int] = MappingProxyType({})
    ) -> None:
        self.models, self.relatives, self.weights = models, relatives, weights

    def of(
        self,
        number: int,
        context: int,
        gaps: dict[str, str],
        unread: Collection[str] = (),
        container: Mapping[str, Any] | None = None,
        told: Collection[str] | None = None,
    ) -> list[dict]:
        """The commands of a model, an engine each; none for a model that generates no text or whose id a shell would not take, nor of
        engines that cannot load it or whose way with it nobody read. `gaps` say what the commands are told of what it sees with, `container`
        what its files are where not every program loads them: packed already they are not packed again, but their original is; `told` the formats
        that its page tells, where those are not all."""
        model = self.models[number]
        if model["pipeline_tag"] not in TALKING or not SAFE.fullmatch(model["model_id"]):
            return []
        held_by = self.repositories(number)
        found: dict[str, dict] = {}
        for place, row in enumerate(lines()):
            formats = [f for f in formats_of(row, held_by, model["stored_format"]) if told is None or f in told]
            if row["engine"] in found or not formats or {row["engine"], ENGINES.get(row["engine"])} & set(unread):
                continue
            packs = "{model}" in row["command"]
            original = container["original_id"] if packs and container else model["model_id"]
            if packs and not SAFE.fullmatch(original or ""):
                continue
            held = {name: held_by[name] for name in row["held"].split() if name in held_by}
            dtype = next((f for f in FOUR_BIT if f in formats), formats[0])
            asked = {"model": original, "context": str(context), "share": SHARE}
            asked |= gaps
            found[row["engine"]] = {
                "engine": row["engine"],
                "name": row["name"],
                "command": fill(row["command"], dtype, held, asked),
                "note": fill(row["note"], dtype, held, asked),
                "line": place,
                "model": original,
                "formats": " ".join(formats),
            }
        return list(found.values())

    def repositories(self, number: int) -> dict[str, str]:
        """By format the repository that holds this very model in it: its own, else the most downloaded of those that are listed and hold the
        weights that its figures count."""
        same = [number, *sorted(k for k in self.relatives.alike(number) if k != number)]
        named = ((self.models[i]["model_id"], self.models[i]["stored_format"]) for i in same)
        return repositories(named, self.models[number]["model_id"], self.weights)
