"""The page of published speeds: each run of serving and of training with what we say of it and what was reported."""

from __future__ import annotations

from pipeline.render.data.book import Book
from pipeline.render.pages.errors import address_of


class Runs:
    def __init__(self, book: Book, paths: dict[str, str]) -> None:
        self.book, self.paths = book, paths
        self.cards = {gpu["gpu_id"]: gpu for gpu in book["gpu"]}
        self.formats = {dtype["dtype_id"]: dtype["name"] for dtype in book["dtype"]}
        self.sources = {row["source_id"]: row for row in book["source"]}

    def served(self) -> list[dict]:
        """Runs that wrote tokens, by program, card and model."""
        rows = [row for row in self.book["serving_run"] if row["decode_tokens_per_second"]]
        return [
            self._told(row)
            | {
                "program": row["program"],
                "dtype": self.formats.get(row["dtype_id"], row["dtype_id"]),
                "users": row["users"],
                "context": row["context_tokens"],
                "reported": row["decode_tokens_per_second"],
                "said": row["decode_tokens_per_second_likely"],
                "bound": row["decode_share"],
                "ratio": _ratio(row["decode_tokens_per_second_likely"], row["decode_tokens_per_second"]),
            }
            for row in sorted(rows, key=lambda r: (r["program"], r["gpu_id"], r["model_name"], r["users"], r["serving_run_id"]))
        ]  # fmt: skip

    def trained(self, phases: dict[str, str]) -> list[dict]:
        """Runs of training, by phase, card and model: shares of the rate of their cards."""
        rows = sorted(
            self.book["training_run"], key=lambda r: (r["phase_id"], r["gpu_id"], r["model_name"], r["run_id"])
        )
        return [
            self._told(row)
            | {
                "phase": phases.get(row["phase_id"], row["phase_id"]),
                "context": row["context_tokens"],
                "tokens": row["tokens_per_second_gpu"],
                "reported": row["hardware_share"],
                "said": row["hardware_share_likely"],
                "low": row["hardware_share_low"],
                "high": row["hardware_share_high"],
                "ratio": _ratio(row["hardware_share_likely"], row["hardware_share"]),
            }
            for row in rows
        ]

    def within(self) -> str:
        """How many of the runs of serving that have a likely speed lie within a quarter and within half of it."""
        ratios = [row["ratio"] for row in self.served() if row["ratio"]]
        near = [sum(1 / far <= ratio <= far for ratio in ratios) for far in (1.25, 1.5)]
        return f"{near[0]} of {len(ratios)} lie within a quarter of what we say, {near[1]} within half"

    def _told(self, row: dict) -> dict:
        card, source = self.cards.get(row["gpu_id"]), self.sources.get(row["source"], {})
        return {
            "model": row["model_name"],
            "path": self.paths.get(row.get("model_id")),
            "count": row["gpu_count"],
            "card": card["short"] if card else row["gpu_id"],
            "gpu_id": row["gpu_id"],
            "source": source.get("title") or row["source"],
            "address": address_of(source.get("locator") or ""),
            "locator": row["locator"],
        }


def _ratio(said: float | None, reported: float | None) -> float | None:
    return said / reported if said and reported else None
