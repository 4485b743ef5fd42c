"""In words, what a model is given: so many tokens, or what its forward pass was counted with (a picture, a series)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import contexts, training_words

# (what a model that sees holds of an image in training was counted of some LoRA alone)
TRAINED_ON_TEXT = "Counted with text alone: a training on images takes more. --phase lora --program ms-swift --images 1 says how much, where that was counted."
_REACH = 3  # the place of the longest context in a table of formats


def at_of(answer: dict[str, Any]) -> str:
    """`at 8,192 tokens`, `for a picture of 640 × 640 pixels`, and how many at once."""
    best, use = answer["best"], answer["use"]
    many, said = use["sequences"] > 1, answer.get("input", {})
    if said.get("is_one_size"):
        return f"for {use['sequences']:,} at once, each {said['input']}" if many else f"for {said['input']}"
    at = f"at {best['context_tokens']:,} tokens" if best["context_tokens"] else ""
    at += contexts.said(use.get("own_context"), best["context_tokens"])
    who = "users at once" if use["phase_id"] == "inference" and not said else "sequences at once"
    alone = " of text alone" if at and use["phase_id"] != "inference" and answer.get("is_text_alone") else ""
    return (
        at
        + alone
        + _images_of(use)
        + (f" for {use['sequences']:,} {who}" if many else "")
        + training_words.recomputed(best)
    )


def _images_of(use: dict[str, Any]) -> str:
    """` with 2 images of 1024 × 768 pixels among them`: they are part of the tokens."""
    if not use.get("images"):
        return ""
    many = "an image" if use["images"] == 1 else f"{use['images']:,} images"
    size = f" of {use['image_width']} × {use['image_height']} pixels" if use.get("image_width") else ""
    return f" with {many}{size} among them"


def without_reach(answer: dict[str, Any], table: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Rows of formats: of an input of one size there is no longest."""
    if not answer.get("input", {}).get("is_one_size"):
        return list(table)
    return [(*row[:_REACH], *row[_REACH + 1 :]) for row in table]


def counted_with(answer: dict[str, Any]) -> str:
    """What was counted, and what else there is to know of it; empty where nothing was."""
    said = answer.get("input")
    if answer["verdict"] is None:
        return ""
    if answer.get("is_text_alone") and answer["use"]["phase_id"] != "inference":
        return TRAINED_ON_TEXT
    if answer["use"].get("text_only"):
        return "Counted with text alone: what it sees or hears with is left out (--no-mmproj)."
    if answer.get("image_reason") and not answer["use"].get("images"):
        return f"Counted with text alone: {answer['image_reason']}."
    if answer.get("sees") and not answer["use"].get("images"):
        return "Counted with text alone. What it sees with is loaded and counted, the images themselves are not: --images 1 counts one in each prompt."
    if not said:
        return ""
    note = f" {said['note']}." if said["note"] else ""
    return f"Counted with {said['input']}, as {said['program']} runs it.{note}"
