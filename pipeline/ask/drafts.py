"""What drafts for a model: a smaller model, a head that reads the layers of one model (table draft_head), or the model's own layers."""

from __future__ import annotations

from pipeline.base.bounds import visible

from . import models
from .almanac import Almanac
from .question import Model

_OWN = ("mtp", "nextn")


def draft_of(almanac: Almanac, asked: str) -> Model | None:
    """The draft of that name; None for the model's own layers. Of a head nothing is known but as a draft."""
    if asked.strip().lower() in _OWN:
        return None
    return _head_of(almanac, asked) or models.model_of(almanac, asked)


def is_head(draft: Model | None) -> bool:
    return draft is not None and draft.row.get("of_model_id") is not None


def _head_of(almanac: Almanac, asked: str) -> Model | None:
    if almanac.schema_of("draft_head") is None:
        return None
    found = almanac.rows("FROM draft_head WHERE lower(model_id) = lower($asked)", {"asked": asked.strip()})
    return Model(found[0]["model_id"], visible(found[0]["model_id"]), found[0]) if found else None
