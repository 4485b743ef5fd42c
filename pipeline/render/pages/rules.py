"""Rules of thumb against the almanac, as the tables `rule_of_thumb` and `rule_error` have them: a line for each, then how its errors lie."""

from __future__ import annotations

import polars as pl

from pipeline.render import words
from pipeline.render.data.book import Book
from pipeline.render.draw import plot
from pipeline.render.pages.models import ModelPages

EDGES = (-0.5, -0.25, -0.1, -0.03, 0.03, 0.1, 0.25, 0.5, 1.0)
LABELS = ("< −50", "−50", "−25", "−10", "±3", "+10", "+25", "+50", "+100", "> +100")


class Rules:
    def __init__(self, book: Book, pages: ModelPages) -> None:
        self.book, self.pages = book, pages
        self.errors = pl.read_parquet(book.folder / "rule_error.parquet")

    def rows(self) -> list[dict]:
        """A row for each rule that has models to be held against, in their order."""
        example = self._example()
        rules = sorted(self.book["rule_of_thumb"], key=lambda rule: rule["rule_rank"])
        return [self._row(rule, example) for rule in rules if rule["model_count"]]

    def _example(self) -> str | None:
        """The most downloaded of the models that most rules speak of."""
        counts = dict(self.errors.group_by("model_id").len().iter_rows())
        return max((m["model_id"] for m in self.book.models if m["model_id"] in counts), key=counts.get, default=None)

    def _row(self, rule: dict, example: str | None) -> dict:
        found = self.errors.filter(pl.col("rule_id") == rule["rule_id"])
        counts = [0] * (len(EDGES) + 1)
        for error in found["error"]:
            counts[sum(error >= edge for edge in EDGES)] += 1
        near, median = _share(rule["near_share"]), _percent(rule["median_error"])
        title = f"{rule['name']}: error over {rule['model_count']} models"
        description = f"Median {median}, {near} within 10 per cent."
        shown = found.filter(pl.col("model_id") == example).to_dicts()
        return {
            "rule": rule,
            "left_out": len(self.book.models) - rule["model_count"],
            "median": median,
            "near": near,
            "under": _share(rule["under_share"]),
            "low": self._extreme(rule["lowest_model_id"], rule["worst_under"]),
            "high": self._extreme(rule["highest_model_id"], rule["worst_over"]),
            "asked": _asked(rule),
            "example": self._extreme(example, shown[0]["error"]) | shown[0] if shown else None,
            "plot": plot.histogram(
                f"rule-{rule['rule_id']}", title, description, list(zip(LABELS, counts, strict=True)), 4
            ),
        }

    def _extreme(self, model_id: str, error: float) -> dict:
        return {"name": model_id, "path": self.pages.paths[model_id], "percent": _percent(error)}


def _asked(rule: dict) -> str | None:
    """What the rule gives for the model that people name with it."""
    count, size = rule["example_parameter_count"], rule["example_bytes"]
    return count and f"It gives {size / 1e9:,.4g} GB for {count / 1e9:g} billion parameters."


def _share(part: float) -> str:
    return f"{100 * part:.0f} %"


def _percent(error: float) -> str:
    rounded = round(100 * error)
    text = words.count(rounded) if abs(error) >= 100 else f"{rounded:+d}" if rounded else "0"
    return f"{text.replace('-', '−')} %"
