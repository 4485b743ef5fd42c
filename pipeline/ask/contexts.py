"""The context that is asked: whether the model reads as much, and what a program takes by itself where nobody says one, and where that depends on
the memory of the cards (Ollama's)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pipeline.base.bounds import visible

from .almanac import Almanac
from .problems import Wrong
from .question import Card, Model, Use
from .values import ALL_TOKENS

_BESIDE_IMAGES = 1024  # for a question and its answer, and what such a context is a multiple of
_OTHERS = 3  # models that are named in the place of one that reads too little


def asked_of(tokens: int | None, model: Model | None) -> int | None:
    """The context that is asked, of `max` all that the model reads. Raises Wrong where that is not known."""
    if tokens != ALL_TOKENS:
        return tokens
    most = model and model.row["max_context_tokens"]
    if not most:
        raise Wrong(
            "--context max is all that a model reads, and "
            + (f"how much {model.shown} does is not known here" if model else "no model is asked about")
        )
    return most


def as_meant(model: Model, use: Use) -> Use:
    """The use, with all that the model reads where thousands of it were said: 131k of 131,072, which is no 131 × 1,024."""
    most, asked = model.row["max_context_tokens"], use.context_tokens
    if (
        not most
        or not asked
        or asked <= most
        or asked % 1024
        or asked // 1024 not in (most // 1000, round(most / 1000))
    ):
        return use
    return replace(use, context_tokens=most)


def check(almanac: Almanac, model: Model, use: Use) -> None:
    """Raises Wrong for a context that the model does not read, with those of its maker and size that do: Qwen3-30B-A3B-Instruct-2507."""
    most = model.row["max_context_tokens"]
    if use.context_tokens is None or most is None or use.context_tokens <= most:
        return
    others = almanac.value(
        f"""
        SELECT string_agg(model_id, ', ' ORDER BY downloads DESC) FROM (
            SELECT other.model_id, coalesce(other.downloads_30d, 0) AS downloads FROM model AS own JOIN model AS other
                USING (model_type, parameter_count)
            WHERE own.model_id = $model AND other.stored_format IS NULL AND other.max_context_tokens >= $tokens
                AND split_part(other.model_id, '/', 1) = split_part(own.model_id, '/', 1)
            ORDER BY downloads DESC LIMIT {_OTHERS}
        )
        """,
        {"model": model.model_id, "tokens": use.context_tokens},
    )
    more = f". Of its maker and size these read as much: {visible(others)}" if others else ""
    raise Wrong(
        f"{model.shown} reads {most:,} tokens at most; --context {use.context_tokens} is beyond that (--context {most} is all of it){more}"
    )


def with_own(almanac: Almanac, model: Model, use: Use, cards: Iterable[Card], count: int | None = None) -> Use:
    """The use with the context that its program takes on these cards, or on `count` of them: all that the machine has, whichever it runs on.
    As it is, where a context was said or that of the program is the same everywhere."""
    if use.program is None or use.is_training or use.context_tokens is not None:
        return use
    if almanac.schema_of("program_context") is None:
        return use
    size = sum((card.capacity_bytes or card.free_bytes or 0) * (count or card.count) for card in cards)
    steps = almanac.rows(
        "FROM own_context_of($program, version := $version, gpu_bytes := $size)",
        {"program": use.program, "version": use.program_version, "size": size},
    )
    place = next((place for place, step in enumerate(steps) if step["is_taken"]), None)
    if place is None:
        return use
    most, taken = model.row["max_context_tokens"], steps[place]["context_tokens"]
    own = {
        "program": almanac.value("SELECT any_value(name) FROM program WHERE program_id = $id", {"id": use.program}),
        "context_tokens": taken,
        "least_gib": steps[place]["least_gib"],
        "below_gib": steps[place + 1]["least_gib"] if place + 1 < len(steps) else None,
    }
    return replace(use, context_tokens=taken if most is None else min(taken, most), own_context=own)


def with_images(almanac: Almanac, model: Model, use: Use) -> tuple[Use, str]:
    """The use with a context that its images go into, where nobody said one and they do not go into the usual, and what to say of that."""
    if not use.images or use.context_tokens is not None or use.is_training:
        return use, ""
    most = model.row["max_context_tokens"]
    query = """
        SELECT prompt_tokens, internal.default_context_tokens({'max_context_tokens': $most::BIGINT}, $phase) AS usual_tokens
        FROM image_tokens_of($model, image_width := $width, image_height := $height)
    """
    asked = {
        "model": model.model_id,
        "width": use.image_width,
        "height": use.image_height,
        "phase": use.phase_id,
        "most": most,
    }
    (row,) = almanac.rows(query, asked)
    tokens = (row["prompt_tokens"] or 0) * use.images
    context = -(-(tokens + _BESIDE_IMAGES) // _BESIDE_IMAGES) * _BESIDE_IMAGES
    if context <= row["usual_tokens"] or (most is not None and tokens >= most):
        return use, ""
    context = context if most is None else min(context, most)
    note = f"Its {use.images:,} images are {tokens:,} tokens: asked of a context of {context:,}."
    return replace(use, context_tokens=context), note


def said(own: dict[str, Any] | None, tokens: int | None) -> str:
    """` (Ollama's own default on 23 GiB and more)`, beside the tokens; empty where somebody said how many."""
    if not own or not tokens:
        return ""
    if tokens < own["context_tokens"]:
        return f" (all that it reads: {own['program']}'s own default here is {own['context_tokens']:,})"
    if len(ends := [end for end in (own["least_gib"], own["below_gib"]) if end]) == 2:  # (0 is no end)
        where = f"from {ends[0]:g} GiB of GPU memory to below {ends[1]:g}"
    elif own["below_gib"]:
        where = f"below {own['below_gib']:g} GiB of GPU memory"
    else:
        where = f"from {own['least_gib']:g} GiB of GPU memory on" if own["least_gib"] else "here"
    return f" ({own['program']}'s own default {where})"
