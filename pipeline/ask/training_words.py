"""In words, what was chosen of a training, by its trainer or, where nobody named one, by us: who starts it otherwise takes more or less."""

from __future__ import annotations

from typing import Any

from pipeline.base.bounds import in_words

from .almanac import Almanac
from .problems import Wrong

# optimizers as trainers call them, where that is another name than ours
_OPTIMIZERS = {
    "adamw-torch": "adamw", "adamw-torch-fused": "adamw", "adamw-hf": "adamw", "adamw-bnb-8bit": "adamw-8bit",
    "adamw-torch-8bit": "adamw-8bit", "paged-adamw-32bit": "paged-adamw", "lion-32bit": "lion",
}  # fmt: skip
_RECOMPUTED = {
    "full": "every layer recomputed (gradient checkpointing)",
    "selective": "layers recomputed in part (selective checkpointing)",
    "none": "no layer recomputed (no gradient checkpointing)",
}
_PRECISION = {
    "mixed": "fp32 masters of what is trained",
    "amp": "what is trained in fp32 (autocast)",
    "pure": "no fp32 copy of what is trained",
}
_TARGETS = {
    "all-linear": "all linear layers",
    "all-linear-head": "all linear layers and the head",
    "linear-layers": "all linear layers, not the routed experts",
    "query-value": "the projections of queries and values",
    "experts": "the routed experts",
    "attention-experts": "attention and the routed experts",
}


def recomputed(row: dict[str, Any]) -> str:
    """`, every layer recomputed (gradient checkpointing)`, as a part of the sentence; empty of what is no training."""
    told = row.get("checkpointing")
    return f", {_RECOMPUTED.get(told, told)}" if told else ""


def chosen(answer: dict[str, Any]) -> str:
    """All that was chosen, in one sentence; empty of an answer that does not say it (one of an older almanac)."""
    row, use = answer["best"], answer["use"]
    if not row.get("checkpointing"):
        return ""
    precision, many, rows = row.get("precision"), use["sequences"], answer.get("many", "sequences")
    optimizer = answer.get("optimizer") or row["optimizer_id"]
    if precision == "pure":  # (what does not follow the dtype of what is trained is named otherwise)
        optimizer = optimizer.replace("(fp32 states", "(states as wide as the weights")
    parts = [
        optimizer,
        _PRECISION.get(precision, precision) if precision else None,
        f"rank {row['lora_rank']} on {_TARGETS.get(row['lora_targets'], row['lora_targets'])}"
        if row["lora_rank"]
        else None,
        f"one {rows[:-1]} at a time" if many == 1 else f"{many:,} {rows} at once",
        _RECOMPUTED.get(row["checkpointing"], row["checkpointing"]),
        "the loss by Liger's kernels" if use.get("loss") == "fused" else None,
    ]
    told = ", ".join(filter(None, parts))
    if use.get("program"):
        return f"Its choices, or ours where it makes none, where nobody said otherwise: {told}."
    if use.get("checkpointing") or use.get("optimizer_id"):
        return f"No trainer was named, so what of these nobody said is our choice: {told}."
    return f"No trainer was named, so these choices are ours: {told}. Without recomputing it takes more; --program counts with a trainer's own choices."


def paged(answer: dict[str, Any], least: dict[str, Any]) -> int | None:
    """Bytes of states that a paged optimizer has too many for the card, which holds the rest; None where that is not what is lacking."""
    states = least.get("optimizer_bytes") or 0
    is_paged = ", paged" in (answer.get("optimizer") or "") and states > 0
    return states if is_paged and least["total_bytes"] - states <= least["capacity_bytes"] else None


def optimizer_of(almanac: Almanac, text: str) -> str:
    """The id of an optimizer, by our name or by a trainer's (adamw_bnb_8bit). Raises Wrong with those that there are."""
    said = text.strip().lower().replace("_", "-")
    known = [row["optimizer_id"] for row in almanac.rows("SELECT optimizer_id FROM optimizer ORDER BY optimizer_id")]
    found = _OPTIMIZERS.get(said, said)
    if found not in known:
        raise Wrong(f"{in_words(text)} is no optimizer of this almanac: {', '.join(known)}")
    return found
