"""The page of plans: how many cards so many users take, and how long a training of so much data, as the tables of plans have them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from urllib.parse import urlencode

from pipeline.render import words
from pipeline.render.data.book import Book
from pipeline.render.pages.models import ModelPages

CONTEXT = 8192  # of the tables that are shown; the others are in the table plan_serving
FORMATS = ("stored", "bf16", "gguf-q4_k_m", "gguf-mxfp4")  # 16 bits or as published, and 4 bits
HOLDS = ("fits", "multi-gpu", "tight")


class Plans:
    def __init__(self, book: Book, pages: ModelPages) -> None:
        self.book, self.pages = book, pages
        self.cards = {gpu["gpu_id"]: gpu for gpu in book["gpu"]}

    def serving(self) -> list[dict]:
        """A table for each number of users: models in their formats down, cards across."""
        rows = [r for r in self.book["plan_serving"] if r["plan_rank"] == 1 and r["context_tokens"] == CONTEXT]
        rows = self._by_size(r for r in rows if r["dtype_id"] in FORMATS)
        return [
            {
                "users": users,
                "gpus": self._gpus(rows),
                "rows": [
                    self._named(model) | {"format": words.format_name(dtype, self._stored.get(model)), "cells": [self._held(cells.get(g["gpu_id"])) for g in self._gpus(rows)]}
                    for (model, dtype), cells in _grid(
                        (r for r in rows if r["users"] == users), ("model_id", "dtype_id"), "gpu_id"
                    )
                ],
            }
            for users in sorted({r["users"] for r in rows})
        ]  # fmt: skip

    def trainings(self) -> list[dict]:
        """A table for each card: models in their phases down, sizes of the data across."""
        rows = self._by_size(r for r in self.book["plan_training"] if r["plan_rank"] == 1)
        sizes = sorted({r["data_bytes"] for r in rows})
        return [
            {
                "gpu": gpu,
                "sizes": [_size(size) for size in sizes],
                "rows": [
                    self._named(model) | {"phase": self.pages.phases.get(phase, phase), "cells": [_time(cells.get(size)) for size in sizes]}
                    for (model, phase), cells in _grid(
                        (r for r in rows if r["gpu_id"] == gpu["gpu_id"]), ("model_id", "phase_id"), "data_bytes"
                    )
                ],
            }
            for gpu in self._gpus(rows)
        ]  # fmt: skip

    def _by_size(self, rows: Iterable[dict]) -> list[dict]:
        sizes = {m["model_id"]: m["parameter_count"] or 0 for m in self.book.models}
        return sorted(rows, key=lambda r: (sizes.get(r["model_id"], 0), r["model_id"]))

    def _gpus(self, rows: Iterable[dict]) -> list[dict]:
        found = {r["gpu_id"] for r in rows} & self.cards.keys()
        return sorted((self.cards[g] for g in found), key=lambda g: (g["capacity_bytes"], g["name"]))

    def _named(self, model_id: str) -> dict:
        return {"name": model_id.rpartition("/")[2], "path": self.pages.paths[model_id]}

    @cached_property
    def _stored(self) -> dict[str, str | None]:
        return {m["model_id"]: m["stored_format"] for m in self.book.models}

    def _held(self, row: dict | None) -> dict:
        if row is None or row["verdict"] not in HOLDS:
            return {"count": None, "why": "not known" if row is None else row["unknown_reason"] or "64 do not hold it"}
        return {
            "count": row["gpu_count"],
            "is_tight": row["verdict"] == "tight",
            "mistaken": row["gpu_count_by_weights_times_users"] if row["users"] > 1 else None,
            "likely": _tokens(row),
            "why": f"{row['copy_count']} × the model on {row['copy_gpu_count']} each, {row['total_bytes'] / 2**30:.1f} GiB on each card{_speed(row)}",
            "asked": self._asked(row),
        }

    def _asked(self, row: dict) -> str:
        """The same question as the calculator's address has it."""
        given = {
            "model": row["model_id"],
            "gpu": row["gpu_id"],
            "dtype": row["dtype_id"],
            "context": row["context_tokens"],
        }
        given |= {"engine_id": row["engine_id"], "sequences": row["copy_users"], "gpu_count": row["copy_gpu_count"]}
        return urlencode(given)


def _tokens(row: dict) -> str | None:
    """Tokens a second that are likely for each user."""
    likely = row["user_tokens_per_second_likely"]
    return None if likely is None else f"{likely:,.0f}" if likely >= 10 else f"{likely:.2g}"


def _speed(row: dict) -> str:
    told = _tokens(row)
    return "" if told is None else f"; likely {told} tokens a second for each user"


def _grid(rows: Iterable[dict], keys: tuple[str, str], across: str) -> list[tuple[tuple, dict]]:
    """Rows by two of their columns, and in each by a third."""
    found: dict[tuple, dict] = {}
    for row in rows:
        found.setdefault((row[keys[0]], row[keys[1]]), {})[row[across]] = row
    return list(found.items())


def _time(row: dict | None) -> dict:
    if row is None or row["hours"] is None or row["verdict"] not in HOLDS:
        return {"count": None, "why": (row or {}).get("unknown_reason") or "not known"}
    return {
        "count": row["gpu_count"],
        "hours": f"{row['hours']:,.0f} h" if row["hours"] >= 1 else "an hour" if row["hours"] >= 0.75 else "minutes",
        "is_late": row["finishes"] == "no",
        "is_tight": row["finishes"] == "likely" or row["verdict"] == "tight",
        "why": f"{row['hours_least']:.2g} to {row['hours_most']:.2g} hours at {100 * row['hardware_share']:.0f} % of the card's rate",
    }


def _size(size: int) -> str:
    unit, word = next(pair for pair in ((10**9, "GB"), (10**6, "MB"), (1000, "kB"), (1, "bytes")) if size >= pair[0])
    return f"{size / unit:g} {word}"
