"""`data/cards.json`: what data sheets say of every card besides its memory, for speed, price and power.

The columns of the table `gpu` that the formulas of speed and of plans read have its names, so that a row of them is what the macros take.
"""

from __future__ import annotations

import json

from pipeline.render.data.book import Book
from pipeline.render.data.rules import in_python

COLUMNS = (
    "gpu_id",
    "vendor",
    "architecture",
    "segment",
    "memory_bandwidth_gb_s",
    "bf16_tflops_dense",
    "fp16_tflops_dense",
    "fp8_tflops_dense",
    "int8_tops_dense",
    "fp4_tflops_dense",
    "nvlink_gb_s",
    "tdp_w",
    "msrp_usd",
    "release_date",
)
SHARE = ("decode_share_low", "decode_share_high")


def share(book: Book) -> dict | None:
    """How much of the bound of speed is usually reached, and who says so; None where the release does not know."""
    constants = {c["constant_id"]: c for c in book["constant"]}
    if not all(name in constants for name in SHARE):
        return None
    low, high = (constants[name] for name in SHARE)
    titles = {s["source_id"]: s["title"] for s in book["source"]}
    return {"low": low["value"], "high": high["value"], "source": titles.get(low["source"], low["source"])}


def under(book: Book, system: str, gpu: dict) -> int | None:
    """What a card gives one program under a system, by tables/sql/capacity/system.sql; None where nobody can say: what is free is typed. A
    release that does not know the share of Windows tells all cards as under Linux."""
    constants = {c["constant_id"]: c["value"] for c in book["constant"]}
    return in_python().system_bytes(gpu, system, constants) if "wddm_share" in constants else gpu["capacity_bytes"]


def programs_of(book: Book, engine_id: str) -> list[str]:
    """The programs that people know and that run this engine, by their names (table program)."""
    rows = book["program"]
    found = {row["name"] for row in rows if row["engine_id"] == engine_id and "inference" in row["phase_ids"].split()}
    return sorted(found - {engine["name"] for engine in book["engine"]} - {engine_id})


def data(book: Book) -> str:
    """Rows by the names of `columns`, and the share of the bound of speed that is usual."""
    rows = [[_short(gpu.get(name)) for name in COLUMNS] for gpu in book.gpus]
    told = {"columns": COLUMNS, "rows": rows, "share": share(book)}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _short(value):
    """A whole number without its point, a date as text."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return int(value) if isinstance(value, float) and value.is_integer() else value
