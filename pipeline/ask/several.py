"""Several unlike cards together, and a draft beside its model."""

from __future__ import annotations

from typing import Any

from pipeline.book import commands as pasted

from .almanac import Almanac, Row
from .drafts import is_head
from .helps import commands_of
from .question import Card, Model, Use
from .scenarios import VERDICTS
from .settings import kept_free_by

TOGETHER = ("gguf-q8_0", "gguf-q6_k", "gguf-q5_k_m", "gguf-mxfp4", "gguf-q4_k_m", "gguf-q3_k_m")  # the best first
# Formats that are tried with a draft, the best first, and that of the draft where nobody names it.
DRAFTING = {
    "llama.cpp": (tuple(name for name in TOGETHER if name != "gguf-mxfp4"), "gguf-q8_0"),
    "mlx-lm": (("mlx-8bit", "mlx-6bit", "mlx-4bit"), "mlx-8bit"),
}
_SERVED = (("bf16", "fp8", "awq-int4"), None)


def together(almanac: Almanac, model: Model, cards: list[Card], use: Use) -> dict[str, Any]:
    """What several unlike cards hold of a model in llama.cpp, which shares it by what they give: the best format that fits, else the smallest."""
    native = pasted.GGUF_OF.get(model.row["stored_format"] or "")
    formats = [use.dtype_id] if use.dtype_id else [native] if native else [f for f in TOGETHER if f != "gguf-mxfp4"]
    asked = {
        "cards": [card.gpu_id for card in cards for _ in range(card.count)],
        "model": model.model_id,
        "context": use.context_tokens,
        "sequences": use.sequences or 1,
        "kv": use.kv_dtype_id,
    }
    kept = kept_free_by(almanac, use.program, use.program_version)
    verdict, rows = None, []
    for dtype in formats:
        rows = almanac.rows(
            "FROM fits_together($cards, $model, dtype_id := $dtype, context_tokens := $context, sequences := $sequences, kv_dtype_id := $kv)",
            asked | {"dtype": dtype},
        )
        rows = [_beside(row, kept) for row in rows]
        verdict = max(
            (row["verdict"] for row in rows), key=lambda word: VERDICTS.index(word) if word else 9, default=None
        )
        if verdict in ("fits", None):
            break
    commands = []
    if verdict == "fits":
        given = {"share_is_free": True, "gpu_count": 1, "kv_dtype_id": use.kv_dtype_id}
        told = [rows[0] | given | {"total_bytes": rows[0]["gpu_bytes"]}]
        split = " ".join(rows[0]["engine_setting"].split()[:2])  # of the cache the command tells by itself
        commands = [
            each | {"command": f"{each['command']} {split}"}
            for each in commands_of(almanac, model, told, 1)
            if each["engine"] == "llama.cpp"
        ]
    return {
        "model": model.shown,
        "own_context": use.own_context,
        "together": [row | {"name": _named(cards, row["gpu_id"])} for row in rows],
        "verdict": verdict,
        "kept_free_bytes": kept,
        "helps": [],
        "commands": commands,
        "reason": next((row["unknown_reason"] for row in rows if row["unknown_reason"]), None),
    }


def _beside(row: Row, kept: int) -> Row:
    """A card with what a program keeps free of it."""
    if not kept or row["gpu_bytes"] is None:
        return row
    held = row["gpu_bytes"] + kept
    is_more, is_near = held > row["capacity_bytes"], held * (1 + row["error_band"]) > row["capacity_bytes"]
    return row | {"gpu_bytes": held, "verdict": "no" if is_more else "tight" if is_near else row["verdict"]}


def drafted(almanac: Almanac, model: Model, draft: Model | None, card: Card, use: Use) -> dict[str, Any]:
    """What a model and one that drafts for it hold on a card: the best format that fits, else the smallest. Without a draft its own
    layers that predict further tokens draft."""
    of_format = almanac.value("SELECT min(engine_id) FROM dtype WHERE dtype_id = $dtype", {"dtype": use.dtype_id})
    is_served = draft is None or is_head(draft)
    if is_served and of_format != "llama.cpp":  # (no library drafts with them, but servers do)
        of_format = None
    engine = use.engine_id or of_format or model.files_engine or ("vllm" if is_served else "llama.cpp")
    formats, of_draft = DRAFTING.get(engine, _SERVED)
    asked = {
        "card": card.gpu_id, "model": model.model_id, "draft": draft.model_id if draft else "mtp",
        "of_draft": draft and (draft.dtype_id or of_draft), "engine": engine,
        "context": use.context_tokens, "sequences": use.sequences or 1, "kv": use.kv_dtype_id, "count": card.count,
    }  # fmt: skip
    said = (
        "($model, $draft, dtype_id := $dtype, draft_dtype_id := $of_draft, engine_id := $engine, context_tokens := $context, "
        "sequences := $sequences, kv_dtype_id := $kv, gpu_count := $count)"
    )
    row: Row = {}
    for dtype in [use.dtype_id] if use.dtype_id else formats:
        (row,) = almanac.rows(f"FROM speculative_fits_on{said.replace('(', '($card, ', 1)}", asked | {"dtype": dtype})
        if row["verdict"] in ("fits", "multi-gpu", None):
            break
    (parts,) = almanac.rows(
        f"FROM speculative_of{said}",
        {name: value for name, value in asked.items() if name != "card"} | {"dtype": row["dtype_id"]},
    )
    return {
        "model": model.shown,
        "own_context": use.own_context,
        "draft": draft.shown if draft else "its own prediction layers (MTP)",
        "drafted": parts | row,
        "card": card.name,
        "verdict": "fits" if row["verdict"] == "multi-gpu" else row["verdict"],
        "helps": [],
        "commands": [],
        "reason": row["unknown_reason"],
    }


def _named(cards: list[Card], gpu_id: str) -> str:
    return next(card.name for card in cards if card.gpu_id == gpu_id)
