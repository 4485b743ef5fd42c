"""Rules of thumb against the almanac: how far each is off over all models, computed from the published footprints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from pipeline.render import words
from pipeline.render.data.book import Book
from pipeline.render.draw import plot
from pipeline.render.pages.models import ModelPages

EDGES = (-0.5, -0.25, -0.1, -0.03, 0.03, 0.1, 0.25, 0.5, 1.0)
LABELS = ("< −50", "−50", "−25", "−10", "±3", "+10", "+25", "+50", "+100", "> +100")
NEAR = 0.1


@dataclass(frozen=True)
class Rule:
    """A rule as people say it, the scenario that it speaks of, and both sides of the comparison as expressions."""

    name: str
    says: str
    against: str
    phase: str
    dtype: str
    rule: pl.Expr
    truth: pl.Expr
    why: str


_COUNT = pl.col("parameter_count").cast(pl.Float64)
_STATES = pl.col("weights_bytes") + pl.col("gradients_bytes") + pl.col("optimizer_bytes")


def _bits(dtype: str, bits: int, why: str) -> Rule:
    said = f"parameters × {bits} ÷ 8"
    return Rule(
        f"{dtype} weights are {bits} bits each", said, "the resident weights", "inference", dtype, _COUNT * bits / 8,
        pl.col("weights_bytes"), why,
    )  # fmt: skip


RULES = (
    Rule(
        "Weights × 1.2", "parameters × 2 bytes × 1.2", "the whole of a bf16 model at 8k tokens, one sequence", "inference",
        "bf16", _COUNT * 2 * 1.2, pl.col("total_bytes"),
        "The cache, the logits and the process itself do not grow with the parameters: a small model needs several times more, "
        "and a large one a few per cent.",
    ),
    _bits("bf16", 16, "True wherever nothing stays in 32 bits and nothing is stored that is not loaded."),
    _bits("fp8", 8, "Embeddings, head, norms and routers stay in 16 bits, and scales add to the rest."),
    _bits("nf4", 4, "Embeddings and head stay in 16 bits; scales take half a bit more for each weight."),
    _bits("awq-int4", 4, "Embeddings and head stay in 16 bits; scales and zero points add a fifth of a bit."),
    _bits("gguf-q4_k_m", 4, "A mix: about 4.5 bits for most tensors, more than six for some, and scales."),
    Rule(
        "16 bytes per parameter: the states", "parameters × 16", "weights, gradients and AdamW states in mixed precision",
        "full-finetune", "bf16", _COUNT * 16, _STATES,
        "The arithmetic holds where each trained parameter has a 16-bit weight and gradient and three 32-bit states.",
    ),
    Rule(
        "16 bytes per parameter: the run", "parameters × 16",
        "the whole of a full fine-tune at 2k tokens, micro-batch 1, full checkpointing", "full-finetune", "bf16", _COUNT * 16,
        pl.col("total_bytes"), "Activations, the loss over the vocabulary and the process come on top.",
    ),
    Rule(
        "A cache of 4 bytes × layers × hidden size", "4 × layers × hidden size × tokens", "the attention minimum at 8k tokens",
        "inference", "bf16", 4.0 * pl.col("layer_count") * pl.col("hidden_size") * pl.col("context_tokens"),
        pl.col("kv_cache_bytes").cast(pl.Float64).replace(0.0, None),
        "From before grouped heads: it knows neither them nor latent caches, windows and hybrid layers.",
    ),
)  # fmt: skip


class Rules:
    def __init__(self, book: Book, pages: ModelPages) -> None:
        self.book, self.pages = book, pages
        self.models = pl.DataFrame(
            [{k: m[k] for k in ("model_id", "parameter_count", "layer_count", "hidden_size")} for m in book.models],
            schema={
                "model_id": pl.String,
                "parameter_count": pl.Int64,
                "layer_count": pl.Int64,
                "hidden_size": pl.Int64,
            },
        )

    def rows(self) -> list[dict]:
        return [row for i, rule in enumerate(RULES) if (row := self._row(i, rule))]

    def _row(self, number: int, rule: Rule) -> dict | None:
        found = self.errors(rule)
        if found.is_empty():
            return None
        errors = found["error"].to_list()
        counts = [0] * (len(EDGES) + 1)
        for error in errors:
            counts[sum(error >= edge for edge in EDGES)] += 1
        share: Callable = lambda test: f"{100 * sum(map(test, errors)) / len(errors):.0f} %"  # noqa: E731
        low, high = found.row(0, named=True), found.row(-1, named=True)
        title = f"{rule.name}: error over {len(errors)} models"
        description = (
            f"Median {_percent(found['error'].median())}, {share(lambda e: abs(e) <= NEAR)} within 10 per cent."
        )
        return {
            "rule": rule,
            "number": len(errors),
            "left_out": len(self.book.models) - len(errors),
            "median": _percent(found["error"].median()),
            "near": share(lambda e: abs(e) <= NEAR),
            "under": share(lambda e: e < -NEAR),
            "low": self._extreme(low),
            "high": self._extreme(high),
            "plot": plot.histogram(f"rule{number}", title, description, list(zip(LABELS, counts, strict=True)), 4),
        }

    def errors(self, rule: Rule) -> pl.DataFrame:
        """Error of a rule by model, rule ÷ truth − 1, from the lowest."""
        wanted = self.book.default(rule.phase)
        engines = {d["dtype_id"]: d["engine_id"] for d in self.book["dtype"]}
        same = [
            pl.col(k).eq_missing(pl.lit(v, dtype=pl.Int64 if isinstance(v, int) else pl.String))
            for k, v in wanted.items()
        ]
        return (
            pl.scan_parquet(self.book.folder / "footprint.parquet")
            .filter(
                pl.col("phase_id") == rule.phase,
                pl.col("dtype_id") == rule.dtype,
                pl.col("engine_id") == (engines.get(rule.dtype) if rule.phase == "inference" else "transformers"),
                pl.col("gpu_count") == 1,
                *same,
            )
            .join(self.models.lazy(), on="model_id")
            .select("model_id", error=rule.rule / rule.truth - 1)
            .drop_nulls()
            .sort("error", "model_id")
            .collect()
        )

    def _extreme(self, row: dict) -> dict:
        return {"name": row["model_id"], "path": self.pages.paths[row["model_id"]], "error": _percent(row["error"])}


def _percent(error: float) -> str:
    rounded = round(100 * error)
    text = words.count(rounded) if abs(error) >= 100 else f"{rounded:+d}" if rounded else "0"
    return f"{text.replace('-', '−')} %"
