"""What a checkpoint may hold, the likeliest first: its config as it stands, with parts left out, with what a source left out filled in.

Nothing here is judged: `explain` says whether a published total is that of a candidate, and grades follow from what it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipeline.anatomy.rows import Anatomy
from pipeline.confirm.completing import text_place
from pipeline.confirm.filling import fillings, without
from pipeline.confirm.stored import TOWERS
from pipeline.hub.record import Record

FILLED = "Not listed by its source, but what gives the total"
LEAVES_TOWERS = "The checkpoint leaves out the towers and the projector of its architecture"
LEAVES_HEAD = "The checkpoint leaves out the output head"
IS_TIED = "The total holds no output head beside the embedding: it is tied, as a model that writes has one"
TIED_AGAIN = "tied head stored again"
TIE = "tie_word_embeddings"
HEADLESS = ("feature-extraction", "sentence-similarity")  # tasks of models without a head over the vocabulary
# Kinds of configs whose tie is a guess, or another's; what a library's class or table says is what that library loads.
_GUESSED = ("reconstructed", "sibling")


def candidates(record: Record, anatomy: Anatomy) -> Iterator[tuple[str, Anatomy, bool]]:
    """What the checkpoint may hold, the likeliest first: with words for it, and whether the config alone says so."""
    is_tied = may_be_tied(record) and record.pipeline_tag not in HEADLESS
    parts = _with_ties if is_tied else variants
    for what, held in parts(anatomy):
        yield what, held, True
    filled = [(f"{FILLED}: {what}", held) for what, held in fillings(record, anatomy)]
    for filling, whole in filled:
        for what, held in parts(whole):
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


def may_be_tied(record: Record) -> bool:
    """Whether no source of the config says if the head is the embedding."""
    if record.config_kind not in _GUESSED:
        return False
    place = text_place(record.config)
    is_said = TIE in record.config or (place is not None and TIE in record.config[place])
    return not (is_said and record.config_kind == "reconstructed" and TIE not in record.config_inferred_fields)


def own_head(anatomy: Anatomy) -> int:
    """Elements of a head that could be the embedding: it has the same shape."""
    shapes = {(t.out_features, t.in_features) for t in anatomy.tensors if t.role == "embedding"}
    heads = [t for t in anatomy.tensors if t.role == "head" and (t.out_features, t.in_features) in shapes]
    return sum(t.element_count for t in heads)


def _with_ties(anatomy: Anatomy) -> Iterator[tuple[str, Anatomy]]:
    """Of a model that writes, a head that is missing is the embedding: it makes logits, whatever the config was lent by."""
    size = own_head(anatomy)
    for what, held in variants(anatomy):
        if what == LEAVES_HEAD and size == sum(t.element_count for t in anatomy.tensors if t.tensor_class == "head"):
            extra = {**held.stored_extra, TIED_AGAIN: size}
            yield IS_TIED, replace(held, is_head_tied=True, stored_extra=extra)
        else:
            yield what, held


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
        yield LEAVES_HEAD, replace(anatomy, tensors=kept)
