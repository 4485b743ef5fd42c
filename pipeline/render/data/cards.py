"""`data/cards.json`: what data sheets say of every card besides its memory, for speed, price and power.

The columns of the table `gpu` that the formulas of speed read have its names, so that a row of them is what the macros take.
"""

from __future__ import annotations

import json

from pipeline.render.data.book import Book

COLUMNS = (
    "gpu_id",
    "memory_bandwidth_gb_s",
    "bf16_tflops_dense",
    "fp16_tflops_dense",
    "fp8_tflops_dense",
    "int8_tops_dense",
    "fp4_tflops_dense",
    "tdp_w",
    "msrp_usd",
    "release_date",
)
SHARE = ("decode_share_low", "decode_share_high")


def data(book: Book) -> str:
    """Rows by the names of `columns`, and how much of the bound of speed is usually reached, with its source."""
    constants = {c["constant_id"]: c for c in book["constant"]}
    known = [constants[name] for name in SHARE if name in constants]
    share = {
        "low": known[0]["value"],
        "high": known[1]["value"],
        "source": next((s["title"] for s in book["source"] if s["source_id"] == known[0]["source"]), known[0]["source"]),
    } if len(known) == len(SHARE) else None  # fmt: skip
    rows = [[_short(gpu.get(name)) for name in COLUMNS] for gpu in book.gpus]
    return json.dumps({"columns": COLUMNS, "rows": rows, "share": share}, ensure_ascii=False, separators=(",", ":"))


def _short(value):
    """A whole number without its point, a date as text."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return int(value) if isinstance(value, float) and value.is_integer() else value
