"""What a checkpoint may hold, the likeliest first: its config as it stands, with parts left out, with what a source left out filled in.

Nothing here is judged: `explain` says whether a published total is that of a candidate, and grades follow from what it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipeline.anatomy.rows import Anatomy
from pipeline.confirm.filling import fillings, without
from pipeline.confirm.stored import TOWERS
from pipeline.hub.record import Record

FILLED = "Not listed by its source, but what gives the total"
LEAVES_TOWERS = "The checkpoint leaves out the towers and the projector of its architecture"
TIED_AGAIN = "tied head stored again"


def candidates(record: Record, anatomy: Anatomy) -> Iterator[tuple[str, Anatomy, bool]]:
    """What the checkpoint may hold, the likeliest first: with words for it, and whether the config alone says so."""
    for what, held in variants(anatomy):
        yield what, held, True
    filled = [(f"{FILLED}: {what}", held) for what, held in fillings(record, anatomy)]
    for filling, whole in filled:
        for what, held in variants(whole):
            yield ". ".join(filter(None, (filling, what))), held, False
    for filling, whole in [*filled, ("", anatomy)]:
        roles = {t.role for t in whole.tensors}
        for role, name in (("pooler", "pooler"), ("mask_embedding", "embedding of masked sounds")):
            is_bare = role != "pooler" or (whole.architecture or "").endswith("Model")
            if role in roles and is_bare:
                what = f"The checkpoint leaves out the {name}"
                yield ". ".join(filter(None, (filling, what))), without(whole, role), not filling


def with_own_head(anatomy: Anatomy) -> Anatomy:
    """The same model with a head that shares nothing with the embedding."""
    embedding = next(t for t in anatomy.tensors if t.role == "embedding")
    head = replace(embedding, tensor_class="head", role="head", operator="linear")
    extra = {cause: size for cause, size in anatomy.stored_extra.items() if cause != TIED_AGAIN}
    return replace(anatomy, tensors=(*anatomy.tensors, head), is_head_tied=False, stored_extra=extra)


def variants(anatomy: Anatomy) -> Iterator[tuple[str, Anatomy]]:
    """The anatomy, and what is left of it where a checkpoint leaves whole parts out."""
    yield "", anatomy
    classes = {t.tensor_class for t in anatomy.tensors}
    if classes & set(TOWERS):
        components = {t.component for t in anatomy.tensors if t.tensor_class in TOWERS}
        kept = tuple(t for t in anatomy.tensors if t.tensor_class not in TOWERS)
        yield (
            LEAVES_TOWERS,
            replace(
                anatomy,
                tensors=kept,
                attention=tuple(a for a in anatomy.attention if a.component not in components),
                feed_forward=tuple(f for f in anatomy.feed_forward if f.component not in components),
                towers=tuple(t for t in anatomy.towers if t.component not in components),
            ),
        )
    if "head" in classes:
        kept = tuple(t for t in anatomy.tensors if t.tensor_class != "head")
        yield "The checkpoint leaves out the output head", replace(anatomy, tensors=kept)
