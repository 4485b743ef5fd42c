"""How long a context a model takes, where its config is lent or rebuilt: no count tells it, and its files or lists of models report one.

A list fills in what it could not read (PLACEHOLDER), or reads it from the wrong part of a composed config. So what is reported is taken
where a model of the same type that has its own config takes as much, and is left out elsewhere: an unknown context is told as one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pipeline.confirm.grade import OWN_CONFIG, Graded
from pipeline.hub.record import Record

# Of 193 models of the bundled snapshot whose config says a context as well, 12 are reported with another one: 8 of them with this.
PLACEHOLDER = 4096
REPORTED = "Its context is the one that is reported of it"

Known = Mapping[str, frozenset[int]]


def contexts_of(graded: Iterable[tuple[Record, Graded]]) -> Known:
    """The contexts, in tokens, of models with their own config, by type."""
    known: dict[str, set[int]] = defaultdict(set)
    for record, found in graded:
        if record.config_kind in OWN_CONFIG and found.anatomy and found.anatomy.max_context_tokens:
            known[kin_type(found.anatomy.model_type)].add(found.anatomy.max_context_tokens)
    return {model_type: frozenset(tokens) for model_type, tokens in known.items()}


def with_context(record: Record, found: Graded, known: Known) -> Graded:
    """The grade of a record with the context that is reported of it, where nothing else says one and one of its type has it."""
    anatomy, reported = found.anatomy, record.context_length_reported
    if anatomy is None or anatomy.max_context_tokens or record.config_kind in OWN_CONFIG:
        return found
    if reported == PLACEHOLDER or reported not in known.get(kin_type(anatomy.model_type), ()):
        return found
    return replace(found, anatomy=replace(anatomy, max_context_tokens=reported), note=f"{found.note}. {REPORTED}")


def kin_type(model_type: str | None) -> str:
    """The type that a mixture of experts, or the language model alone, shares with the one beside it: of qwen3_moe qwen3, of gemma3_text gemma3."""
    return (model_type or "").removesuffix("_moe").removesuffix("_text")
